"""``popmodel metrics``: POP efficiencies of one or several runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.values import dataclass, document
from popmodel.cli.command import argument, option, verb
from popmodel.cli.completion import TRACES, family_names
from popmodel.cli.options import (
    APPLICATION,
    FOA,
    FROM_START,
    REGION,
    SCALING,
    WINDOW,
    one_of,
)
from popmodel.reports.formats import DRAWN
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from popmodel.cli.inputs import TraceLike
    from popmodel.cli.talp_reports import ReportedMetrics
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.efficiency.measure import MeasuredRun, RegionRun
    from popmodel.efficiency.observables import OutsideMPI
    from popmodel.efficiency.scaling import Scaling
    from popmodel.reports.views import Views
    from popmodel.runs.regression import RunHistory, ValueChange
    from popmodel.traces import Trace
    from popmodel.traces.selection import Foa, TracePart, Window

By: TypeAlias = Literal["process", "region"]

EXAMPLES = (
    "popmodel metrics run.prv",
    "popmodel metrics run_*.prv --scaling strong",
    "popmodel metrics run.prv --family talp",
    "popmodel metrics run.prv --window 2s:5s --by process",
    "popmodel metrics run.prv --fail-if 'parallel_efficiency < 0.8'",
    "popmodel metrics run.prv -o metrics.json",
    "popmodel metrics run_*.prv --history perf.jsonl --label v1.2 --fail-if 'runtime > +5 %'",
)
FORMATS = DRAWN
CONDITIONS = True
RESOURCES = True
SCHEMA = "popmodel/metrics/1"
RENAMED = {"--fail-under": "--fail-if 'METRIC < VALUE'"}
ABOUT_MPI = ("mpi", "mpi-additive")
"""Families whose advice would mislead where there is no MPI: all loss reads as communication."""


@dataclass(frozen=True)
class Metrics(Result):
    """Efficiencies of one or several runs, as returned by `metrics`."""

    names: tuple[str, ...]  # A short name for each run
    runs: tuple[MeasuredRun, ...]  # The measurements of each run
    # For each run, the evaluation of every family, by family id.
    evaluations: tuple[Mapping[str, FamilyEvaluation], ...]
    scaling: Scaling  # The runs against their reference run
    warnings: tuple[list[dict[str, Any]], ...]  # For each run, the problems of its trace
    outside_mpi: OutsideMPI  # What counts as time outside MPI
    # For each run, its processes or regions, if requested with `by`, as the document has them.
    breakdowns: tuple[Mapping[str, Any], ...]
    # The requested families; None: those that suit the runs.
    asked: tuple[str, ...] | None = None
    by: By | None = None  # The requested breakdown
    history: RunHistory | None = None  # The earlier runs, where they were asked for

    @property
    def shown(self) -> tuple[str, ...]:
        """The families on the screen: the requested ones, else those that suit the runs."""
        return self.asked or self.fitting

    @property
    def fitting(self) -> tuple[str, ...]:
        """The families that suit the runs, in their order: of devices, of MPI, of all threads."""
        from popmodel.efficiency.verdict import families_of

        of_host = families_of([run.observables for run in self.runs], of_host=True)
        found = [name for name in self.evaluations[0] if name in (*self._own, *of_host)]
        return tuple(sorted(found, key=lambda name: not self.evaluations[0][name].family.requires))

    @property
    def _own(self) -> list[str]:
        from popmodel.efficiency.verdict import families_of

        return families_of([run.observables for run in self.runs])

    def to_dict(self, families: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the document, schema ``popmodel/metrics/1``, without provenance."""
        given = families or self.asked or _telling(self.evaluations)
        chosen = dict.fromkeys([*given, "scaling"])
        shown = [{name: run[name] for name in chosen} for run in self.evaluations]
        found = metrics_document(
            self.runs, shown, self.scaling, self.warnings, self.outside_mpi, self.breakdowns
        )
        return found if self.history is None else {**found, "history": self.history.to_dict()}

    @property
    def views(self) -> Views:
        """How the document is shown: with processes, regions or earlier runs if requested."""
        from popmodel.reports.registry import views_of

        history = {} if self.history is None else {"history": self.history}
        return views_of({"schema": SCHEMA, "runs": self.breakdowns, **history})

    def shown_document(self) -> dict[str, Any]:
        """The document with the families that the screen shows."""
        return self.to_dict(self.shown)

    def document_for(self, format_name: str) -> dict[str, Any]:
        """The document that is written in a format; a comment on a history has one tree."""
        if format_name == "markdown" and self.history is not None:
            return self.shown_document()
        return super().document_for(format_name)

    def changes(self, id: str) -> Sequence[tuple[str, ValueChange]]:
        """Changes of a value against earlier runs, with the configuration, where there are any."""
        if self.history is None:
            return super().changes(id)
        return self.history.changes(self.find(id)[0].id)

    def values(self) -> list[ResultValue]:
        """Efficiencies, those of the shown families first, and runtimes."""
        found = []
        # Where runs have families of their own, those of all threads have the ids of both.
        first = self.asked or reversed(self.fitting)
        order = dict.fromkeys([*first, *self.evaluations[0]])
        for name, run, evaluations in zip(self.names, self.runs, self.evaluations, strict=True):
            where = name if len(self.runs) > 1 else ""
            found.append(ResultValue("runtime", float(run.observables.runtime), where))
            for family in order:
                values, absent = evaluations[family].values, evaluations[family].absent
                found += [
                    ResultValue(f"{family}.{id}", number, where) for id, number in values.items()
                ]
                found += [
                    ResultValue(f"{family}.{id}", None, where, why) for id, why in absent.items()
                ]
        return found

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the result rests on."""
        return tuple(run.trace for run in self.runs)


def _telling(evaluations: Sequence[Mapping[str, FamilyEvaluation]]) -> tuple[str, ...]:
    """Families that say something of any of the runs: those of devices if any run has some."""
    return tuple(
        name
        for name, evaluation in evaluations[0].items()
        if not evaluation.family.requires or any(run[name].values for run in evaluations)
    )


@verb
def metrics(
    traces: Annotated[
        TraceLike | Iterable[TraceLike],
        argument(
            "TRACE",
            "Traces, one per run; also summaries of popmodel check (.json), profiles of Score-P "
            "(.cubex), and reports of TALP (.json), whose own efficiencies are shown.",
            several=True,
            complete=(*TRACES, ".json", ".cubex"),
        ),
    ],
    *,
    family: Annotated[
        str | Sequence[str] | None,
        option(
            "NAMES",
            "Families of metrics, separated by commas, or all. Default: tables show the one that "
            "fits the run, other formats contain all.",
            complete=(family_names,),
        ),
    ] = None,
    scaling: Annotated[str, SCALING] = "auto",
    reference: Annotated[
        int | str | None,
        option("RUN", "Reference run for scaling, by its number (from 1) or name."),
    ] = None,
    outside_mpi: Annotated[
        OutsideMPI,
        option(
            "everywhere|not-in-mpi",
            "What counts as outside MPI: useful code and parallel regions, or all time outside MPI "
            "calls. Affects only the family hybrid-multiplicative.",
            one_of(("everywhere", "not-in-mpi")),
        ),
    ] = "everywhere",
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    by: Annotated[
        By | None,
        option(
            "process|region",
            "Show a table of the processes, or a column for each user region.",
            one_of(("process", "region")),
        ),
    ] = None,
    application: Annotated[int, APPLICATION] = 1,
    history: Annotated[
        str | os.PathLike[str] | None,
        option(
            "FILE",
            "Add the runs to FILE (a line of JSON each) and compare them with the last "
            "10 runs there of the same machine, program and configuration.",
            complete=(".jsonl",),
        ),
    ] = None,
    label: Annotated[
        str | None,
        option("TEXT", "What was run, such as a commit; runs with one label are repeats."),
    ] = None,
    badge: Annotated[
        str | os.PathLike[str] | None,
        option("FILE", "Write the change against --history as a small picture (.svg)."),
    ] = None,
) -> Metrics | ReportedMetrics:
    """Compute the POP efficiencies of runs.

    Shows the POP efficiencies of each trace: how much of the time of all cores is useful, and where
    the rest goes. Several traces stand side by side and are compared with a reference run.

    By default the analysis covers the end of MPI_Init on the last rank to the start of MPI_Finalize
    on the first; the first lines say how much that leaves out.

    Parameters
    ----------
    traces : path or Trace, or several of them
        One trace per run. Reports of TALP (``dlb --talp-output-file``) stand with TALP's own
        efficiencies beside those of traces; nothing is replayed of them, nor of profiles of Cube
        (``profile.cubex`` of Score-P).
    family : str or sequence of str, optional
        Families of metrics to show, or ``"all"``; default: those that suit the runs.
    scaling : {"auto", "strong", "weak"}
        Whether all runs do the same work (strong) or work grows with the cores (weak).
    reference : int or str, optional
        The reference run: its number (from 1), name or path; default: the run on the fewest cores.
    outside_mpi : {"everywhere", "not-in-mpi"}
        What counts as time outside MPI; affects only the family ``hybrid-multiplicative``.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an omitted end, or None, means that of the trace.
    region, from_start : optional
        Analyse all occurrences of a region, joined together; the whole run, not only from MPI_Init
        to MPI_Finalize.
    foa : str, optional
        ``"auto"`` for a few representative iterations, ``"iterations=10:20"``, or times.
    by : {"process", "region"}, optional
        Also break each run down by process, or analyse each user region.
    application : int
        Number of the application in the traces, from 1.
    history : path, optional
        A file that gets a line of JSON for each run; its last 10 runs of other labels, of the same
        machine, program and configuration, are what the runs are compared with.
    label, badge : optional
        What was run, such as a commit, by default the time (runs of one label are repeats); a
        picture (SVG) of the change against the history, replaced if it exists.

    Raises
    ------
    FileError
        If a trace cannot be read or analysed.
    UsageError
        If the reference run or a family does not exist.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.metrics("examples/traces/stencil3d.2x2.prv.gz")
    >>> found.names
    ('stencil3d.2x2',)
    >>> 0 < found["parallel_efficiency"] < 1
    True
    >>> table = found.to_dataframe()
    >>> float(table["mpi.parallel_efficiency"][0]) < 1
    True
    >>> picture = found.plot()  # picture.save("efficiencies.svg")
    """
    from popmodel.cli.inputs import choices, path_of, several, trace_of
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.efficiency.scaling import Comparable, evaluate_all, scale
    from popmodel.reports.figures import run_names
    from popmodel.traces import Trace
    from popmodel.traces.selection import TracePart
    from popmodel.traces.workers import map_traces

    keep = None
    if history is not None:
        from popmodel.cli.history import HistoryRequest

        if by is not None:
            raise UsageError("--by cannot be combined with --history", "leave one of them out")
        parts = {"window": window, "region": region, "from start": from_start, "foa": foa}
        named = [f"{name} {value}" for name, value in parts.items() if value]
        named += [f"application {application}"] if application != 1 else []
        keep = HistoryRequest(os.fspath(history), label, ", ".join(named), badge)
    elif label is not None or badge is not None:
        option_name = "--label" if label is not None else "--badge"
        raise UsageError(f"{option_name}: needs earlier runs", "add --history perf.jsonl")
    asked = TracePart.of(window, region, from_start, foa)
    chosen = choices(family, tuple(load_families()))
    given = several(traces)
    if reported := [one for one in given if _is_report(one)]:
        from popmodel.cli.talp_reports import with_reports

        return with_reports(
            reported,
            [one for one in given if one not in reported],
            keep,
            family=chosen,
            scaling=scaling,
            reference=reference,
            outside_mpi=outside_mpi,
            window=window,
            region=region,
            from_start=from_start,
            foa=foa,
            by=by,
            application=application,
        )
    paths = [path_of(trace) for trace in given]
    if not paths:
        raise UsageError("no trace given", "name at least one")
    names = run_names(paths)
    compared_with = None if reference is None else run_index(str(reference), paths, names)
    if by == "region" and region is not None:
        raise UsageError("one region cannot be broken down by region", "leave one of them out")
    units = [(each, application, asked, by, outside_mpi, keep is not None) for each in given]
    read = [None if isinstance(each, Trace) else path_of(each) for each in given]
    measured = list(map_traces(_measure, units, read))
    runs, breakdowns, warnings, marked = map(list, zip(*measured, strict=True))
    mode: Any = None if scaling == "auto" else scaling
    comparable = [
        Comparable(name, run.observables.aggregates(outside_mpi), run.observables.absent)
        for name, run in zip(names, runs, strict=True)
    ]

    def other_program(first: int, other: int) -> str | None:
        from popmodel.runs.same_program import difference, may_differ

        sums_alone = runs[first].window is None or runs[other].window is None
        if sums_alone or not may_differ(runs[first], runs[other]):
            return None
        both = (trace_of(given[run], application=application) for run in (first, other))
        told = difference(*both)
        return told and told.text

    scaled = scale(comparable, mode, compared_with, difference=other_program)
    for index, why in scaled.strangers.items():
        runs[index] = replace(runs[index], caveats=(why, *runs[index].caveats))
    evaluations = []
    for index, (path, run) in enumerate(zip(paths, comparable, strict=True)):
        with _named(path):
            evaluations.append(evaluate_all(run, scaled, index))
    compared_runs = None
    if keep is not None:
        results = zip(names, runs, evaluations, marked, strict=True)
        compared_runs = keep.compare(keep.run_line(*result) for result in results)
    return Metrics(
        tuple(names),
        tuple(runs),
        tuple(evaluations),
        scaled,
        tuple(warnings),
        outside_mpi,
        tuple(breakdowns),
        _telling(evaluations) if chosen == tuple(load_families()) else chosen,
        by,
        compared_runs,
    )


def _is_report(given: TraceLike) -> bool:
    """Whether it is a report of TALP."""
    if not isinstance(given, str | os.PathLike) or not os.fspath(given).lower().endswith(".json"):
        return False
    from popmodel.runs.talp_files import is_talp

    return is_talp(given)


def _measure(
    given: TraceLike,
    application: int,
    asked: TracePart,
    by: By | None,
    outside_mpi: OutsideMPI,
    marks: bool,
) -> tuple[MeasuredRun, dict[str, Any], list[dict[str, Any]], Mapping[str, Mapping[str, Any]]]:
    """A run, broken down, with the problems of its trace and, if asked for, its marked regions."""
    from popmodel.cli.inputs import path_of, trace_of
    from popmodel.efficiency.measure import analyse, by_process
    from popmodel.runs.checked_runs import is_checked_run, read_checked_run
    from popmodel.runs.cube_profiles import is_cube_profile, read_cube_profile
    from popmodel.structure.focus import part_of_run
    from popmodel.traces.info import as_data, marked_regions
    from popmodel.traces.selection import TracePart

    path = path_of(given)
    summed_up = is_checked_run(path)
    if summed_up or is_cube_profile(path):
        if asked != TracePart() or by == "region":
            raise UsageError(
                f"{path}: has sums of the whole run, no parts of it",
                "record a trace: popmodel trace",
            )
        read_sums = read_checked_run if summed_up else read_cube_profile
        run = read_sums(path)
        rows = {"by_process": by_process(run.observables)} if by else {}
        return run, rows, [], {}
    trace = trace_of(given, application=application)
    with _named(path):
        part = part_of_run(asked, trace)
        run = analyse(trace, part=part)
        breakdown = _broken_down(by, trace, run, part, outside_mpi)
    problems = as_data((*trace.call_warnings(), *trace.warnings))
    return run, breakdown, problems, marked_regions(trace) if marks else {}


def _broken_down(
    by: By | None, trace: Trace, run: MeasuredRun, part: TracePart, outside_mpi: OutsideMPI
) -> dict[str, Any]:
    """The processes of a run, or its regions analysed each as a run that has no other."""
    from popmodel.efficiency.measure import by_process, by_region
    from popmodel.efficiency.scaling import Comparable, evaluate_all, scale

    if by is None:
        return {}
    if by == "process":
        return {"by_process": by_process(run.observables)}
    rows = []
    for region in by_region(trace, part):
        evaluated: dict[str, FamilyEvaluation] = {}
        if region.run is not None:
            observed = region.run.observables
            own = Comparable(region.name, observed.aggregates(outside_mpi), observed.absent)
            evaluated = evaluate_all(own, scale([own]), 0)
            del evaluated["scaling"]
        rows.append(_region_row(region, evaluated, run))
    return {"by_region": rows}


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Begin the message of an error with the trace that it is about."""
    try:
        yield
    except FileError:
        raise
    except PopmodelError as error:
        problem = error.message.removeprefix(f"{path}: ")
        raise FileError(path, problem, hint=error.hint) from error


def run_index(text: str, traces: Sequence[str], names: Sequence[str]) -> int:
    """The run that is meant: a number from 1, a column's name or a path."""
    for known in (names, traces):
        if text in known:
            return list(known).index(text)
    if text.isdecimal() and 1 <= int(text) <= len(traces):
        return int(text) - 1
    raise UsageError(
        f"reference {text}: no such run",
        f"use 1 to {len(traces)} or one of {', '.join(names)}"
        if len(traces) > 1
        else f"the only run is {names[0]}",
    )


def metrics_document(
    runs: Sequence[MeasuredRun],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    warnings: Sequence[Sequence[Mapping[str, Any]]],
    outside_mpi: OutsideMPI = "everywhere",
    breakdowns: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Put measured runs into a document."""
    from popmodel.efficiency.verdict import advise, families_of
    from popmodel.reports.figures import run_names

    names = run_names([run.trace for run in runs])
    own = families_of([run.observables for run in runs])
    entries = [
        {
            **_run(run, families, compared=index != scaling.reference),
            "family": own[index],
            "warnings": told,
            "outside_mpi": outside_mpi,
        }
        for index, (run, families, told) in enumerate(zip(runs, evaluations, warnings, strict=True))
    ]
    for entry, families, parts in zip(entries, evaluations, breakdowns, strict=False):
        entry |= parts
        if "by_region" in parts:
            entry["by_region"] = [
                row
                | {
                    key: {name: row[key][name] for name in families if name in row[key]}
                    for key in ("metrics", "absent")
                }
                for row in parts["by_region"]
            ]
    return document(
        SCHEMA,
        runs=entries,
        scaling={
            "mode": scaling.mode,
            "reference": runs[scaling.reference].trace,
            "why": scaling.why,
            "notes": scaling.doubts,
        },
        advice=advise(runs, evaluations, scaling, names),
    )


def _region_row(
    region: RegionRun, families: Mapping[str, FamilyEvaluation], whole: MeasuredRun
) -> dict[str, Any]:
    """A region; times in seconds."""
    run = region.run
    ideal = run.observables.absent.get("ideal_runtime") if run else region.problem
    return {
        "region": region.name,
        "problem": region.problem or None,
        "window": None if run is None else run.window,
        "caveats": [] if run is None else [one for one in run.caveats if one not in whole.caveats],
        "notes": [] if run is None else run.notes,
        "runtime": None if run is None else float(run.observables.runtime),
        "ideal_runtime": None if run is None or ideal else run.observables.ideal_runtime,
        "metrics": {name: evaluation.values for name, evaluation in families.items()},
        "absent": {name: evaluation.absent for name, evaluation in families.items()},
    }


def _run(
    run: MeasuredRun, families: Mapping[str, FamilyEvaluation], *, compared: bool
) -> dict[str, Any]:
    observables = run.observables
    team = {int(number) for number in observables.threads}
    # A replay of a run that has nothing to replay gives a number, but no ideal runtime.
    ideal = None if "ideal_runtime" in observables.absent else observables.ideal_runtime
    lowest = {
        name: _lowest(evaluation)
        for name, evaluation in families.items()
        if (compared or name != "scaling") and (observables.has_mpi or name not in ABOUT_MPI)
    }
    return {
        "trace": run.trace,
        "processes": len(observables.threads),
        # One number where all processes have the same number of threads, else one for each.
        "threads": team.pop() if len(team) == 1 else observables.threads,
        "caveats": run.caveats,
        "window": run.window,
        "disturbed": run.evidence.disturbed,
        "waited": run.evidence.waited,
        "runtime": float(observables.runtime),
        "ideal_runtime": ideal,
        "observables": {**observables.to_dict(), "ideal_runtime": ideal},
        **({"devices": observables.devices.to_list()} if observables.devices else {}),
        "metrics": {name: evaluation.values for name, evaluation in families.items()},
        "absent": {name: evaluation.absent for name, evaluation in families.items()},
        "lowest": {name: found for name, found in lowest.items() if found is not None},
        "call_sites": run.call_sites,
        "notes": run.notes,
        "family_notes": {
            name: evaluation.notes for name, evaluation in families.items() if evaluation.notes
        },
    }


def _lowest(evaluation: FamilyEvaluation) -> dict[str, Any] | None:
    """The metric that costs most and what to do about it; None where nothing is lost."""
    from popmodel.reports.figures import loses

    family = evaluation.family
    leaf = family.lowest_leaf(evaluation)
    if leaf is None or not loses(evaluation.values[leaf.id]):
        return None
    # What is advised for a metric with parts leads to them; here they have no values.
    reasons = dict.fromkeys(evaluation.absent[part] for part in family.parts(leaf.id))
    why = f"Its parts are unknown: {'; '.join(reasons)}."
    return {
        "metric": leaf.id,
        "value": evaluation.values[leaf.id],
        "advice": why if reasons else leaf.advice,
    }
