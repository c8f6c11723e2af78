"""``popmodel metrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from popmodel.cli.options import (
    DRAWN,
    SCALING_MODES,
    ApplicationOption,
    DrawnFormatOption,
    DrawnOutputOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    ScalingOption,
    WindowOption,
    choice,
    families,
    whole_number,
)

if TYPE_CHECKING:
    from popmodel.api.breakdown import By
    from popmodel.efficiency.observables import OutsideMPI

EXAMPLES = (
    "popmodel metrics run.prv",
    "popmodel metrics run_*.prv --scaling strong",
    "popmodel metrics run.prv --family talp",
    "popmodel metrics run.prv --window 2s:5s --by process",
    "popmodel metrics run.prv --fail-under parallel_efficiency=0.8",
    "popmodel metrics run.prv -o metrics.json",
)


BREAKDOWNS: dict[str, By] = {"process": "process", "region": "region"}
READINGS: dict[str, OutsideMPI] = {"everywhere": "everywhere", "not-in-mpi": "not-in-mpi"}


def command(
    ctx: typer.Context,
    traces: Annotated[list[str], typer.Argument(metavar="TRACE", help="Traces, one per run.")],
    family: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Families of metrics, separated by commas, or all. Default: tables show the one "
            "that fits the run, other formats contain all.",
        ),
    ] = None,
    scaling: ScalingOption = "auto",
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="Reference run for scaling, by its number (from 1) or name."
        ),
    ] = None,
    outside_mpi: Annotated[
        str,
        typer.Option(
            metavar="|".join(READINGS),
            help="What counts as outside MPI: useful code and parallel regions, or all time "
            "outside MPI calls. Affects only the family hybrid-multiplicative.",
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
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(BREAKDOWNS),
            help="Show a table of the processes, or a column for each user region.",
        ),
    ] = None,
) -> None:
    """Compute the POP efficiencies of runs.

    Shows the POP efficiencies of each trace: how much of the time of all cores is useful, and where
    the rest goes. Several traces stand side by side and are compared with a reference run.

    By default the analysis covers the end of MPI_Init on the last rank to the start of MPI_Finalize
    on the first; the first lines say how much that leaves out.
    """
    from popmodel.api.metrics import metrics
    from popmodel.cli.output import target
    from popmodel.cli.thresholds import check, parse
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.reports.formats import TABLE

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    which = whole_number("--application", application)
    mode = SCALING_MODES[choice("--scaling", scaling, tuple(SCALING_MODES))]
    reading = READINGS[choice("--outside-mpi", outside_mpi, tuple(READINGS))]
    breakdown = None if by is None else BREAKDOWNS[choice("--by", by, tuple(BREAKDOWNS))]
    known = load_families()
    chosen = None if family is None else families(family, tuple(known))
    thresholds = [parse(text, known) for text in fail_under or []]
    found = metrics(
        traces,
        scaling=mode,
        reference=reference,
        outside_mpi=reading,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        by=breakdown,
        application=which,
    )
    if chosen is None:
        chosen = found.fitting if goal.format is TABLE else tuple(known)
    evaluated = dict(zip(found.names, found.evaluations, strict=True))
    goal.write(
        found.to_dict(chosen),
        found.views,
        found.files,
        lambda: check(thresholds, evaluated, chosen),
    )
