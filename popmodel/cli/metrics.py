"""``popmodel metrics``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from popmodel.cli.options import (
    ApplicationOption,
    CacheOption,
    ForceOption,
    FormatOption,
    FromStartOption,
    OutputOption,
    choice,
    families,
    whole_number,
)
from popmodel.errors import FileError, PopmodelError, UsageError

if TYPE_CHECKING:
    from popmodel.efficiency.family import Evaluation
    from popmodel.efficiency.measure import Run
    from popmodel.efficiency.observables import OutsideMPI
    from popmodel.efficiency.scaling import Mode

EXAMPLES = (
    "popmodel metrics run.prv",
    "popmodel metrics run_*.prv --scaling strong",
    "popmodel metrics run.prv --family talp",
    "popmodel metrics run.prv --fail-under parallel_efficiency=0.8",
    "popmodel metrics run.prv -o metrics.json",
)


SCALING_MODES: dict[str, Mode | None] = {"auto": None, "strong": "strong", "weak": "weak"}
READINGS: dict[str, OutsideMPI] = {"everywhere": "everywhere", "not-in-mpi": "not-in-mpi"}


def command(
    ctx: typer.Context,
    traces: Annotated[list[str], typer.Argument(metavar="TRACE", help="Traces, one per run.")],
    family: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Families of metrics, separated by commas, or all. Without it the table shows "
            "those that fit the run; other formats have all.",
        ),
    ] = None,
    scaling: Annotated[
        str,
        typer.Option(
            metavar="|".join(SCALING_MODES),
            help="Whether the runs do the same work or work that grows.",
        ),
    ] = "auto",
    reference: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The run to compare with, by number from 1 or by name."),
    ] = None,
    outside_mpi: Annotated[
        str,
        typer.Option(
            metavar="|".join(READINGS),
            help="What time outside MPI is: useful code and OpenMP, or all outside of calls. Acts "
            "on the family hybrid-multiplicative.",
        ),
    ] = "everywhere",
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=VALUE",
            help="Exit with status 3 if METRIC (or FAMILY.METRIC) of a run is below VALUE. "
            "May be given several times.",
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    application: ApplicationOption = "1",
    from_start: FromStartOption = False,
) -> None:
    """Say how efficient runs are, and why.

    Shows the POP efficiencies of each trace: how much of the time of all cores is useful, and where
    the rest goes. Several traces stand side by side and are compared with a reference run.

    The program is analysed, from the end of MPI_Init of the last rank to the begin of MPI_Finalize
    of the first; the first lines say what that leaves out.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.cli.thresholds import check, parse
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.efficiency.measure import analyse
    from popmodel.efficiency.scaling import Comparable, scale
    from popmodel.report.metrics import VIEWS
    from popmodel.report.metrics_document import document
    from popmodel.report.names import run_names
    from popmodel.report.render import Format
    from popmodel.trace import read
    from popmodel.trace.info import as_data

    goal = target(output, format, force=force)
    which = whole_number("--application", application)
    mode = SCALING_MODES[choice("--scaling", scaling, tuple(SCALING_MODES))]
    reading = READINGS[choice("--outside-mpi", outside_mpi, tuple(READINGS))]
    known = load_families()
    chosen = None if family is None else families(family, tuple(known))
    thresholds = [parse(text, known) for text in fail_under or []]
    names = run_names(traces)
    compared_with = None if reference is None else _index(reference, traces, names)
    runs, warnings = [], []
    for path in traces:
        trace = read(path, application=which, cache=not no_cache)
        with _named(path):
            runs.append(analyse(trace, from_start=from_start))
        warnings.append(as_data((*trace.warnings, *trace.calls().warnings)))

    aggregates = [run.observables.aggregates(reading) for run in runs]
    comparable = [
        Comparable(name, values, run.observables.absent)
        for name, values, run in zip(names, aggregates, runs, strict=True)
    ]
    scaled = scale(comparable, mode=mode, reference=compared_with)
    evaluated: list[dict[str, Evaluation]] = []
    for index, (path, run) in enumerate(zip(traces, comparable, strict=True)):
        values = {**run.aggregates, **scaled.aggregates(index)}
        absent = {**run.absent, **scaled.absent(index)}
        with _named(path):
            evaluated.append(
                {
                    name: scaled.evaluations[index]
                    if name == "scaling"
                    else member.evaluate(values, absent)
                    for name, member in known.items()
                }
            )
    if chosen is None:
        chosen = _fitting(runs) if goal.format is Format.TABLE else tuple(known)
    shown = [{name: run[name] for name in (*chosen, "scaling")} for run in evaluated]
    result = document(runs, shown, scaled, warnings, reading)
    stamp = provenance.collect(ctx.obj, traces).to_dict()
    goal.write({**result, "provenance": stamp}, VIEWS)
    check(thresholds, dict(zip(names, evaluated, strict=True)), chosen)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Begin the message of an error with the trace that it is about."""
    try:
        yield
    except FileError:
        raise
    except PopmodelError as error:
        raise FileError(path, error.message, hint=error.hint) from error


def _index(text: str, traces: Sequence[str], names: Sequence[str]) -> int:
    """The run that ``--reference`` names: a number from 1, a column's name or a path."""
    for known in (names, traces):
        if text in known:
            return list(known).index(text)
    if text.isdecimal() and 1 <= int(text) <= len(traces):
        return int(text) - 1
    raise UsageError(
        f"--reference {text}: no such run", f"use 1 to {len(traces)} or one of {', '.join(names)}"
    )


def _fitting(runs: Sequence[Run]) -> tuple[str, ...]:
    """The families that suit all runs: that of MPI alone, or two that count all threads."""
    from popmodel.efficiency.workers import apart

    if any(apart(run.observables) for run in runs):
        return ("hybrid-additive", "talp")
    if any(run.observables.has_openmp for run in runs):
        return ("hybrid-additive", "hybrid-multiplicative")
    return ("mpi",)
