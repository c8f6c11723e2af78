"""Predictions compared with measured runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
)
from popmodel.api.measured import MeasuredRuns, read_runs
from popmodel.base.documents import parse_json, read_text
from popmodel.base.errors import UsageError
from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.base.values import cut, dataclass
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.prediction.prediction import MAIN_FAMILY, PredictedRun
from popmodel.reports.result import Result
from popmodel.reports.validate import views
from popmodel.runs.files import is_table
from popmodel.runs.measurement import MeasuredRow
from popmodel.runs.table import RunTimes, split
from popmodel.traces import Trace
from popmodel.traces.selection import PROGRAM, Foa, TracePart, Window
from popmodel.validation import predictions
from popmodel.validation.comparison import (
    ComparedValue,
    Comparison,
    Split,
    compare_runs,
    splits,
    values_of,
)
from popmodel.validation.prediction_errors import (
    Baselines,
    ByTerm,
    SplitDecision,
    by_metric,
    by_region,
    by_term,
    compare_baselines,
    decisions,
    errors_by_term,
    summary,
)
from popmodel.validation.predictions import PREDICTION, Subject
from popmodel.validation.verdict import verdict

if TYPE_CHECKING:
    from popmodel.reports.views import Views

SCHEMA = "popmodel/validate/1"


@dataclass(frozen=True)
class Validation(Result):
    """Predictions compared with measurements, as returned by `validate`."""

    subject: Subject  # What was predicted
    comparison: Comparison  # The runs beside their predictions
    decisions: tuple[SplitDecision, ...]  # Whether the right split would have been chosen
    tables: tuple[RunTimes, ...]  # The tables that were read
    files: tuple[str, ...]  # The files that were read
    warnings: tuple[str, ...] = ()  # What is doubtful about the measured runs, one line each

    @property
    def rows(self) -> tuple[ComparedValue, ...]:
        """One row for every quantity of every run that is compared."""
        return values_of(self.comparison.pairs)

    @property
    def splits(self) -> tuple[Split, ...]:
        """Runs grouped by split, parameters and region."""
        return splits(self.comparison.pairs)

    @property
    def tests(self) -> tuple[Split, ...]:
        """Those whose configuration no fit has seen."""
        return tuple(one for one in self.splits if one.region.is_test)

    @property
    def terms(self) -> tuple[ByTerm, ...]:
        """Useful time and losses in seconds, of runs that have efficiencies."""
        return by_term(self.splits)

    @property
    def baselines(self) -> Baselines | None:
        """Plain extrapolations of the same runs; None where there is nothing to extrapolate."""
        return compare_baselines(self.tests, self.comparison.training)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/validate/1``, without provenance."""
        about, made, rows, terms = self.subject, self.comparison, self.rows, self.terms
        disturbed = any(run.disturbed for run in made.measured)
        said = verdict(
            self.splits, made.defaults, made.left_out, terms, self.baselines, disturbed=disturbed
        )
        known = about.calibration
        return document(
            SCHEMA,
            verdict=said,
            application=about.application,
            machine=about.machine,
            preset=about.preset,
            noisy=about.noisy,
            not_modelled=about.not_modelled,
            measured=[run for run in made.measured if run.window is not None],
            ignored=[
                {"file": table.path, "columns": table.ignored}
                for table in self.tables
                if table.ignored
            ],
            warnings=self.warnings,
            left_out=made.left_out,
            training=None
            if made.training is None
            else made.training.to_dict() | {"noise": 0.0 if known is None else known.noise},
            splits=self.splits,
            rows=rows,
            summary=summary(rows),
            regions=by_region(rows),
            by_metric=by_metric(rows),
            by_term=errors_by_term(terms),
            terms=terms,
            decisions=self.decisions,
            baselines=self.baselines,
        )

    def __repr__(self) -> str:
        runtime = summary(self.rows)["runtime"]
        told = "no tests"
        if runtime["rows"]:
            told = (
                f"median error of the runtime {100 * runtime['median_error']:.1f} %, "
                f"{runtime['covered']} of {plural(runtime['intervals'], 'interval')} contain the "
                "measurement"
            )
        return cut(
            f"<Validation of {self.subject.application} on {self.subject.machine}: "
            f"{plural(len(self.comparison.measured), 'run')}, {told}>"
        )

    @property
    def views(self) -> Views:
        return views((MAIN_FAMILY,), tuple(load_families()))


def validate(
    prediction: SignatureLike | PredictedRun,
    measured: TraceLike | Iterable[TraceLike],
    *,
    machine: ProfileLike | None = None,
    settings: Mapping[str, float] | None = None,
    trained_on: TraceLike | Iterable[TraceLike] = (),
    nodes: int | None = None,
    cores_per_node: int | None = None,
    bind: str = "close",
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    all_runs: bool = False,
) -> Validation:
    """Compare predictions with measured runs.

    Parameters
    ----------
    prediction : path, str, Prediction or Signature
        A prediction returned by `predict` or saved as ``.json``, or an application to predict now.
    measured : path or Trace, or several of them
        Traces, or tables of runs (``popmodel docs runs``); columns named like a parameter of the
        application set it for each run whose cell is not empty. Parameters of the run of a trace
        may stand behind its name: ``run.prv.gz:N=256``.
    machine : str, path or Profile, optional
        A machine profile: a file, the name of a preset, or a loaded one.
    settings : mapping of str to float, optional
        Parameters of the application.
    trained_on : path or Trace, or several of them
        Runs that the application was fitted to: they are no tests of it, and plain extrapolations
        see them only. A calibrated signature knows its own.
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
        Focus of analysis: ``"auto"`` for a few representative iterations, ``"iterations=10:20"``,
        or times as ``"0.8s:1.2s"``.
    all_runs : bool
        Compare every run, also those that look as if their threads had no cores of their own.

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
    asked = TracePart.of(window, region, from_start, foa)
    changes = numbers("settings", settings)
    about = _subject(prediction, machine, changes, allocation_of(nodes, cores_per_node, bind))
    found = read_runs(given, about.parameters, settled=changes, asked=asked)
    fitted = _fitted(several(trained_on), about, asked, changes)
    _refuse_conflicts(found.runs, changes)
    made = compare_runs(about, found.runs, fitted.runs, all_runs=all_runs)
    return Validation(
        about,
        made,
        decisions(splits(made.pairs), about.choose),
        found.tables,
        (*about.files, *found.files, *fitted.files),
        # runs of the fit may be among those that are compared
        tuple(dict.fromkeys((*found.warnings, *fitted.warnings, *_unnamed(about, fitted)))),
    )


def _unnamed(about: Subject, fitted: MeasuredRuns) -> tuple[str, ...]:
    """That a saved prediction does not say which runs it was fitted to."""
    if not about.unnamed or fitted.runs:
        return ()
    runs = plural(about.unnamed, "run")
    return (
        f"the prediction was calibrated by {runs} that its file does not name, so that all runs "
        "count as tests: name those with --trained-on, or validate the signature",
    )


def _fitted(
    given: Sequence[Any],
    about: Subject,
    asked: TracePart,
    settled: Collection[str],
) -> MeasuredRuns:
    """The runs of a fit, of traces the same part; none where none are named."""
    if not given:
        return MeasuredRuns((), (), (), ())
    tables = all(not isinstance(one, Trace) and is_table(split(path_of(one))[0]) for one in given)
    part = PROGRAM if tables else asked
    return read_runs(given, about.parameters, settled=settled, asked=part)


def _subject(
    source: SignatureLike | PredictedRun,
    machine: ProfileLike | None,
    changes: Mapping[str, float],
    allocation: Allocation,
) -> Subject:
    if isinstance(source, PredictedRun):
        _refuse_changes(machine, changes, allocation)
        return predictions.of_prediction(source)
    if not isinstance(source, Signature) and str(source).lower().endswith(".json"):
        _refuse_changes(machine, changes, allocation)
        path = os.fspath(source)
        return predictions.of_document(
            PREDICTION.read(parse_json(read_text(path), path), path), path
        )
    return predictions.of_application(
        signature_of(source), profile_of(machine), changes, allocation
    )


def _refuse_changes(
    machine: ProfileLike | None, changes: Mapping[str, float], allocation: Allocation
) -> None:
    """Refuse what a prediction that was made has settled."""
    if machine is not None or changes or allocation != WHOLE:
        raise UsageError(
            "machine, parameters, nodes, cores and binding do not go with a saved prediction",
            "name the application instead, to predict anew",
        )


def _refuse_conflicts(runs: Sequence[MeasuredRow], changes: Mapping[str, float]) -> None:
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
