"""``popmodel validate``: predictions beside measured runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import UsageError
from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.base.values import cut, dataclass
from popmodel.cli.command import argument, flag, option
from popmodel.cli.completion import TABLES, TRACES, bundled_signatures, family_names
from popmodel.cli.parameters import (
    BIND,
    CORES_PER_NODE,
    FOA,
    FROM_START,
    MACHINE,
    NODES,
    REGION,
    SET,
    WINDOW,
)
from popmodel.reports.formats import DRAWN
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from popmodel.api.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.cli.measured_runs import MeasuredRuns
    from popmodel.cli.predict import Prediction
    from popmodel.model.run.placement import Allocation
    from popmodel.reports.views import Views
    from popmodel.runs.measurement import MeasuredRow
    from popmodel.runs.table import RunTimes
    from popmodel.traces.selection import Foa, TracePart, Window
    from popmodel.validation.comparison import ComparedValue, Comparison, Split
    from popmodel.validation.prediction_errors import Baselines, ByTerm, SplitDecision
    from popmodel.validation.predictions import Subject

EXAMPLES = (
    "popmodel validate stencil3d runs.csv --machine m.json",
    "popmodel validate stencil3d runs.csv --fail-if 'error > 20%'",
    "popmodel validate app.toml large.prv.gz --trained-on small.csv",
    "popmodel validate app.toml run_4x2.prv.gz run_8x1.prv.gz",
    "popmodel validate prediction.json run.prv.gz",
)
FORMATS = DRAWN
CONDITIONS = True
RENAMED = {
    "--fail-over": "--fail-if 'error > VALUE' or --fail-if 'METRIC > VALUE'",
    "--fail-under": "--fail-if 'coverage < VALUE'",
}


@dataclass(frozen=True)
class Validation(Result):
    """Predictions compared with measurements, as returned by `validate`."""

    subject: Subject  # What was predicted
    comparison: Comparison  # The runs beside their predictions
    decisions: tuple[SplitDecision, ...]  # Whether the right split would have been chosen
    tables: tuple[RunTimes, ...]  # The tables that were read
    files: tuple[str, ...]  # The files that were read
    warnings: tuple[str, ...] = ()  # What is doubtful about the measured runs, one line each
    families: tuple[str, ...] | None = None  # The requested families; None: the main one

    @property
    def rows(self) -> tuple[ComparedValue, ...]:
        """One row for every quantity of every run that is compared."""
        from popmodel.validation.comparison import values_of

        return values_of(self.comparison.pairs)

    @property
    def splits(self) -> tuple[Split, ...]:
        """Runs grouped by split, parameters and region."""
        from popmodel.validation.comparison import splits

        return splits(self.comparison.pairs)

    @property
    def tests(self) -> tuple[Split, ...]:
        """Those whose configuration no fit has seen."""
        return tuple(one for one in self.splits if one.region.is_test)

    @property
    def terms(self) -> tuple[ByTerm, ...]:
        """Useful time and losses in seconds, of runs that have efficiencies."""
        from popmodel.validation.prediction_errors import by_term

        return by_term(self.splits)

    @property
    def baselines(self) -> Baselines | None:
        """Plain extrapolations of the same runs; None where there is nothing to extrapolate."""
        from popmodel.validation.prediction_errors import compare_baselines

        return compare_baselines(self.tests, self.comparison.training)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/validate/1``, without provenance."""
        from popmodel.validation.prediction_errors import (
            by_metric,
            by_region,
            errors_by_term,
            summary,
        )
        from popmodel.validation.verdict import verdict

        about, made, rows, terms = self.subject, self.comparison, self.rows, self.terms
        disturbed = any(run.disturbed for run in made.measured)
        said = verdict(
            self.splits, made.defaults, made.left_out, terms, self.baselines, disturbed=disturbed
        )
        known = about.calibration
        return document(
            "popmodel/validate/1",
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
        from popmodel.validation.prediction_errors import summary

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
        from popmodel.prediction.prediction import MAIN_FAMILY
        from popmodel.reports.validation_tables import views

        return views(self.families or (MAIN_FAMILY,))

    def values(self) -> list[ResultValue]:
        """Sizes of the errors of tests: relative of runtimes, as fractions of efficiencies."""
        from popmodel.validation.comparison import varied

        tests, names = self.tests, varied(self.splits)
        if not tests:
            why = "no run is a test, all are of configurations of the fit"
            return [ResultValue(id, None, "", why) for id in ("error", "coverage", *_metrics())]
        times = [one.runtime for one in tests if one.runtime.covered is not None]
        runs = sum(len(time.measured) for time in times)
        found = [ResultValue("error", abs(one.error), one.describe(names)) for one in tests]
        found.append(
            ResultValue("coverage", sum(time.covered or 0 for time in times) / runs)
            if times
            else ResultValue("coverage", None, "", "the predictions have no intervals")
        )
        known = [
            ResultValue(f"{family}.{metric}", abs(one.predicted - one.mean), split.describe(names))
            for family, metrics in self._compared()
            for metric in metrics
            for split in tests
            if (one := split.metrics.get(family, {}).get(metric)) is not None
        ]
        compared = {one.id for one in known}
        why = "no run has it measured and predicted; tables have runtimes only"
        absent = [ResultValue(id, None, "", why) for id in _metrics() if id not in compared]
        return [*found, *known, *absent]

    def _compared(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """All families with their metrics, those that are shown first."""
        from popmodel.efficiency.hierarchy import load_families
        from popmodel.prediction.prediction import MAIN_FAMILY

        known = load_families()
        for name in dict.fromkeys((*(self.families or (MAIN_FAMILY,)), *known)):
            yield name, known[name].metrics


def _metrics() -> list[str]:
    """Ids of all metrics of all families."""
    from popmodel.efficiency.hierarchy import load_families

    return [f"{name}.{id}" for name, family in load_families().items() for id in family.metrics]


def validate(
    prediction: Annotated[
        SignatureLike | Prediction,
        argument(
            "INPUT",
            "What was predicted (.json), or what to predict from: a signature (.toml) or the name "
            "of one that comes with popmodel.",
            complete=(bundled_signatures, ".toml", ".json"),
        ),
    ],
    measured: Annotated[
        TraceLike | Iterable[TraceLike],
        argument(
            "RUN",
            "Traces (.prv, .prv.gz), or tables of runs (.csv, .json, .jsonl, .txt; popmodel docs "
            "runs): columns processes, threads, runtime (seconds), and any parameter of the "
            "application, such as N (an empty cell: as set, or its default), also behind a file: "
            "run.prv:N=256.",
            several=True,
            complete=(*TRACES, *TABLES),
        ),
    ],
    *,
    machine: Annotated[ProfileLike | None, MACHINE] = None,
    settings: Annotated[Mapping[str, float] | None, SET] = None,
    trained_on: Annotated[
        TraceLike | Iterable[TraceLike],
        option(
            "RUN",
            "Runs that the application was fitted to: they are no tests, and plain extrapolations "
            "see them only. A calibrated signature knows its own. Can be repeated.",
            several=True,
            complete=(*TRACES, *TABLES),
        ),
    ] = (),
    nodes: Annotated[int | None, NODES] = None,
    cores_per_node: Annotated[int | None, CORES_PER_NODE] = None,
    bind: Annotated[str, BIND] = "close",
    family: Annotated[
        str | Sequence[str] | None,
        option(
            "NAMES",
            "Families of metrics to show, separated by commas, or all. Default: hybrid-additive; "
            "JSON and CSV have all.",
            complete=(family_names,),
        ),
    ] = None,
    all_runs: Annotated[
        bool, flag("Compare also runs that look as if their threads had no cores of their own.")
    ] = False,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
) -> Validation:
    """Compare predictions with measured runs.

    Shows how far off the predicted runtimes are (repeats are averaged), whether their intervals
    hold and whether the right split would have been chosen; with --all also what plain
    extrapolations make of it, and for traces useful time, losses and efficiencies.

    Ids for --fail-if: error (of the runtime of each split, such as 'error > 20%'), coverage (the
    share of the runs inside the 90 % interval, such as 'coverage < 0.8'), and efficiencies by
    their errors in points ('load_balance > 5%').

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
        Parameters of the application (``--set``).
    trained_on : path or Trace, or several of them
        Runs that the application was fitted to: they are no tests of it, and plain extrapolations
        see them only. A calibrated signature knows its own.
    nodes, cores_per_node : int, optional
        Nodes to use, and cores to use of each; default: as few nodes as possible, all their cores.
    bind : {'close', 'spread', 'none'}, optional
        Where the threads of a process are: next to each other, as far apart as the cores of the
        process allow, or wherever the system puts them.
    family : str or sequence of str, optional
        Families of metrics to show, or ``"all"``; all are compared in any case.
    all_runs : bool
        Compare every run, also those that look as if their threads had no cores of their own.
    window, region, from_start, foa
        The part of traces that is compared, as for `metrics`.

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
    >>> max(found["error"]) < 0.1  # of the runtime of each split
    True
    """
    from popmodel.api.inputs import allocation_of, choices, numbers, several
    from popmodel.cli.measured_runs import read_runs
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.traces.selection import TracePart
    from popmodel.validation.comparison import compare_runs, splits
    from popmodel.validation.prediction_errors import decisions

    given = several(measured)
    if not given:
        raise UsageError("no measured run given", "name at least one trace or table")
    shown = choices(family, tuple(load_families()))
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
        shown,
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
    from popmodel.api.inputs import path_of
    from popmodel.cli.measured_runs import MeasuredRuns, read_runs
    from popmodel.runs.files import is_table
    from popmodel.runs.table import split
    from popmodel.traces import Trace
    from popmodel.traces.selection import PROGRAM

    if not given:
        return MeasuredRuns((), (), (), ())
    tables = all(not isinstance(one, Trace) and is_table(split(path_of(one))[0]) for one in given)
    part = PROGRAM if tables else asked
    return read_runs(given, about.parameters, settled=settled, asked=part)


def _subject(
    source: SignatureLike | Prediction,
    machine: ProfileLike | None,
    changes: Mapping[str, float],
    allocation: Allocation,
) -> Subject:
    """What the runs are compared with: a prediction, or an application to predict now."""
    from popmodel.api.inputs import profile_of, signature_of
    from popmodel.base.documents import parse_json, read_text
    from popmodel.cli.predict import Prediction
    from popmodel.model.run.placement import WHOLE
    from popmodel.prediction.prediction import PredictedRun
    from popmodel.validation import predictions

    is_made = isinstance(source, Prediction) or _is_saved(source)
    if is_made and (machine is not None or changes or allocation != WHOLE):
        raise UsageError(
            "machine, parameters, nodes, cores and binding do not go with a saved prediction",
            "name the application instead, to predict anew",
        )
    if isinstance(source, Prediction):
        if not isinstance(source.predicted, PredictedRun):
            raise UsageError("only a run that a signature predicts can be validated", "say procs=")
        return predictions.of_prediction(source.predicted)
    if not is_made:
        return predictions.of_application(
            signature_of(source), profile_of(machine), changes, allocation
        )
    path = str(source)
    content = predictions.PREDICTION.read(parse_json(read_text(path), path), path)
    return predictions.of_document(content, path)


def _is_saved(source: SignatureLike | Prediction) -> bool:
    """Whether a prediction is read from a file."""
    return isinstance(source, str | os.PathLike) and str(source).lower().endswith(".json")


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
