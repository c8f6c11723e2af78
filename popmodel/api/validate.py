"""Predictions compared with measured runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from popmodel.api.focus import Asked, Foa
from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    TraceLike,
    allocation_of,
    numbers,
    path_of,
    profile_of,
    several,
    signature_of,
    trace_of,
)
from popmodel.api.results import Result
from popmodel.documents import parse_json, read_text
from popmodel.efficiency.measure import analyse
from popmodel.errors import UsageError
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.plain import document
from popmodel.prediction.prediction import MAIN_FAMILY, Prediction
from popmodel.report.validate import views
from popmodel.trace import Trace
from popmodel.trace.part import PROGRAM, Window
from popmodel.units import plural
from popmodel.validation import subject
from popmodel.validation.comparison import Row, compare, summary
from popmodel.validation.left_out import LeftOut, of_runs, oversubscribed, suspicious
from popmodel.validation.measurement import Measurement, from_run
from popmodel.validation.predicted import PREDICTION
from popmodel.validation.repeats import Split, splits
from popmodel.validation.run_times import RunTimes, read_table
from popmodel.validation.subject import Subject
from popmodel.validation.verdict import verdict
from popmodel.values import cut, dataclass

if TYPE_CHECKING:
    from popmodel.report.views import Views

__all__ = ["Validation", "validate"]

SCHEMA = "popmodel/validate/1"


@dataclass(frozen=True)
class Validation(Result):
    """Predictions compared with measurements, as returned by `validate`.

    Attributes
    ----------
    application, machine : str
        What was predicted.
    preset : bool
        Whether the machine comes with popmodel: it was not measured.
    noisy : tuple of str
        Sections of its profile that were measured beside noise.
    measured : tuple of Measurement
        The measured runs.
    rows : tuple of Row
        One row for every quantity of every run that is compared.
    left_out : tuple of LeftOut
        Runs that are not compared: their threads had no cores of their own.
    defaults : mapping of str to float
        Parameters of the application left at their defaults.
    tables : tuple of RunTimes
        The tables that were read.
    files : tuple of str
        The files that were read.
    """

    application: str
    machine: str
    preset: bool
    noisy: tuple[str, ...]
    measured: tuple[Measurement, ...]
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    defaults: Mapping[str, float]
    tables: tuple[RunTimes, ...]
    files: tuple[str, ...]

    @property
    def splits(self) -> tuple[Split, ...]:
        """Runs grouped by split and parameters."""
        return splits(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/validate/1``, without provenance."""
        found = self.splits
        return document(
            SCHEMA,
            verdict=verdict(found, self.defaults, self.left_out, disturbed=self._disturbed),
            application=self.application,
            machine=self.machine,
            preset=self.preset,
            noisy=self.noisy,
            measured=[run for run in self.measured if run.window is not None],
            ignored=[
                {"file": table.path, "columns": table.ignored}
                for table in self.tables
                if table.ignored
            ],
            left_out=self.left_out,
            splits=found,
            rows=self.rows,
            summary=summary(self.rows),
        )

    @property
    def _disturbed(self) -> bool:
        return any(run.disturbed for run in self.measured)

    def __repr__(self) -> str:
        runtime = summary(self.rows)["runtime"]
        return cut(
            f"<Validation of {self.application} on {self.machine}: "
            f"{plural(len(self.measured), 'run')}, median error of the runtime "
            f"{100 * runtime['median_error']:.1f} %, {runtime['covered']} of "
            f"{plural(runtime['intervals'], 'interval')} contain the measurement>"
        )

    def _views(self) -> Views:
        return views((MAIN_FAMILY,))


def validate(
    prediction: SignatureLike | Prediction,
    measured: TraceLike | Iterable[TraceLike],
    *,
    machine: ProfileLike | None = None,
    settings: Mapping[str, float] | None = None,
    nodes: int | None = None,
    cores_per_node: int | None = None,
    bind: str = "close",
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    all_runs: bool = False,
    cache: bool = True,
) -> Validation:
    """Compare predictions with measured runs.

    Parameters
    ----------
    prediction : path, str, Prediction or Signature
        A prediction returned by `predict` or saved as ``.json``, or an application to predict now.
    measured : path or Trace, or several of them
        Traces, or tables of runtimes (``.csv``); table columns named like a parameter of the
        application set it for each run whose cell is not empty.
    machine : str, path or Profile, optional
        A machine profile: a file, the name of a preset, or a loaded one.
    settings : mapping of str to float, optional
        Parameters of the application.
    nodes, cores_per_node : int, optional
        Nodes to use, and cores to use of each; default: as few nodes as possible, all their cores.
    bind : {'close', 'spread', 'none'}, optional
        Where the threads of a process are: next to each other, as far apart as the cores of the
        process allow, or wherever the system puts them.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an omitted end, or None, means that of the trace.
    region : str, optional
        Analyse all occurrences of a region, joined together.
    from_start : bool
        Analyse the whole run. Default: from the end of MPI_Init on the last rank to the start of
        MPI_Finalize on the first.
    foa : str, optional
        Focus of analysis: ``"auto"`` for a few representative iterations, ``"iterations=10..20"``,
        or times as ``"0.8s..1.2s"``.
    all_runs : bool
        Compare every run, also those that look as if their threads had no cores of their own.
    cache : bool
        Whether to use and keep parsed copies of the traces.

    Raises
    ------
    FileError
        If a file cannot be read.
    UsageError
        If there is no prediction for the size of a measured run, or options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.validate(
    ...     "stencil3d",
    ...     "examples/stencil3d/two-core-vm.csv",
    ...     machine="examples/profiles/two-core-vm.json",
    ...     settings={"N": 256},
    ... )
    >>> found.rows[0].metric, found.rows[0].processes, found.rows[0].threads
    ('runtime', 1, 1)
    >>> abs(found.rows[0].difference) < 1  # relative to the measured runtime
    True
    """
    given = several(measured)
    if not given:
        raise UsageError("no measured run given", "name at least one trace or table")
    asked = Asked.of(window, region, from_start, foa)
    if asked != Asked(PROGRAM) and all(_is_table(one) for one in given):
        raise UsageError(
            "a window, a region or the whole run can be taken of traces, not of tables of runtimes",
            "leave them out, or name a trace",
        )
    changes = numbers("settings", settings)
    about = _subject(prediction, machine, changes, allocation_of(nodes, cores_per_node, bind))
    runs: list[Measurement] = []
    tables: list[RunTimes] = []
    for one in given:
        if _is_table(one):
            tables.append(read_table(one, about.parameters))
            runs += tables[-1].runs
        else:
            trace = trace_of(one, cache=cache)
            runs.append(from_run(analyse(trace, part=asked.of_run(trace))))
    _refuse_conflicts(runs, changes)

    def filled(run: Measurement) -> Measurement:
        return replace(run, parameters={**about.parameters, **run.parameters})

    able, crowded = (runs, []) if all_runs else _parted(runs, about)
    predictions = about.predict(able)
    rows = compare(predictions, [filled(run) for run in able])
    left = of_runs((filled(run), why) for run, why in crowded)
    if not all_runs:
        kept, disturbed = suspicious(splits(rows))
        left += disturbed
        rows = tuple(row for row in rows if any(split.holds(row) for split in kept))
    return Validation(
        about.application,
        about.machine,
        about.preset,
        about.noisy,
        tuple(filled(run) for run in runs),
        rows,
        left,
        {
            name: value
            for name, value in about.defaults.items()
            if not all(name in run.parameters for run in runs)
        },
        tuple(tables),
        (*about.files, *map(path_of, given)),
    )


def _parted(
    runs: Sequence[Measurement], about: Subject
) -> tuple[list[Measurement], list[tuple[Measurement, str]]]:
    """Runs whose threads had cores, and the others with the reason; all if there are no others."""
    able: list[Measurement] = []
    crowded: list[tuple[Measurement, str]] = []
    for run in runs:
        why = None if about.available is None else oversubscribed(run, *about.available)
        if why is None and run.disturbed:
            why = "their threads waited for CPUs"
        if why is None:
            able.append(run)
        else:
            crowded.append((run, why))
    # where none is left, prediction and verdict say what the machine has, and what disturbed
    return (able, crowded) if able else (list(runs), [])


def _is_table(measured: TraceLike) -> bool:
    return not isinstance(measured, Trace) and path_of(measured).lower().endswith(".csv")


def _subject(
    source: SignatureLike | Prediction,
    machine: ProfileLike | None,
    changes: Mapping[str, float],
    allocation: Allocation,
) -> Subject:
    if isinstance(source, Prediction):
        _refuse_changes(machine, changes, allocation)
        return subject.prediction(source)
    if not isinstance(source, Signature) and str(source).lower().endswith(".json"):
        _refuse_changes(machine, changes, allocation)
        path = os.fspath(source)
        return subject.saved(PREDICTION.read(parse_json(read_text(path), path), path), path)
    return subject.application(signature_of(source), profile_of(machine), changes, allocation)


def _refuse_changes(
    machine: ProfileLike | None, changes: Mapping[str, float], allocation: Allocation
) -> None:
    """Refuse what a prediction that was made has settled."""
    if machine is not None or changes or allocation != WHOLE:
        raise UsageError(
            "machine, parameters, nodes, cores and binding do not go with a saved prediction",
            "name the application instead, to predict anew",
        )


def _refuse_conflicts(runs: Sequence[Measurement], changes: Mapping[str, float]) -> None:
    """Refuse a parameter that was set although all runs have their own values, and another one."""
    for name, value in changes.items():
        if not all(name in run.parameters for run in runs):
            continue  # set for the runs that leave it open
        for run in runs:
            if run.parameters[name] != value:
                raise UsageError(
                    f"{run.place}: {name} is {run.parameters[name]:g}, but was set to {value:g}",
                    f"do not set {name}: each run is predicted with its own",
                )
