"""``popmodel validate``: predictions beside measured runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.cli.command import argument, flag, option, verb
from popmodel.cli.completion import TABLES, TRACES, bundled_signatures, family_names
from popmodel.cli.options import (
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
    from popmodel.cli.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.cli.measured_runs import MeasuredRuns
    from popmodel.cli.predict import Prediction
    from popmodel.model.run.process_placement import Allocation
    from popmodel.runs.measurement import MeasuredRow
    from popmodel.traces.selection import Foa, TracePart, Window
    from popmodel.validation.predictions import Subject
    from popmodel.validation.validated_runs import ValidatedRuns

EXAMPLES = (
    "popmodel validate stencil3d runs.csv --machine m.json",
    "popmodel validate stencil3d runs.csv --fail-if 'error > 20%'",
    "popmodel validate app.toml large.prv.gz --trained-on small.csv",
    "popmodel validate app.toml run_4x2.prv.gz run_8x1.prv.gz",
    "popmodel validate prediction.json run.prv.gz",
    "popmodel validate run_4.prv.gz run_8.prv.gz",
)
FORMATS = DRAWN
CONDITIONS = True
RENAMED = {
    "--fail-over": "--fail-if 'error > VALUE' or --fail-if 'METRIC > VALUE'",
    "--fail-under": "--fail-if 'coverage < VALUE'",
}


@dataclass(frozen=True)
class Validation(Result):
    """Predictions compared with measurements, as returned by `validate`.

    It has the attributes of `popmodel.validation.validated_runs.ValidatedRuns`, such as ``splits``.
    """

    validated: ValidatedRuns
    files: tuple[str, ...]  # The files that were read
    families: tuple[str, ...] | None = None  # The requested families; None: the main one

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.validated, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/validate/1``, without provenance."""
        return self.validated.to_dict()

    def values(self) -> list[ResultValue]:
        """Sizes of the errors of tests: relative of runtimes, as fractions of efficiencies."""
        from popmodel.efficiency.hierarchy import load_families
        from popmodel.prediction.prediction import MAIN_FAMILY
        from popmodel.validation.comparison import varied

        tests, names, known = self.validated.tests, varied(self.validated.splits), load_families()
        # those that are shown first
        families = dict.fromkeys((*(self.families or (MAIN_FAMILY,)), *known))
        metrics = [(family, metric) for family in families for metric in known[family].metrics]
        found = [ResultValue("error", abs(one.error), one.describe(names)) for one in tests]
        times = [one.runtime for one in tests if one.runtime.covered is not None]
        if times:
            share = sum(one.covered or 0 for one in times) / sum(len(one.measured) for one in times)
            found.append(ResultValue("coverage", share))
        found += [
            ResultValue(f"{family}.{metric}", abs(one.predicted - one.mean), split.describe(names))
            for family, metric in metrics
            for split in tests
            if (one := split.metrics.get(family, {}).get(metric)) is not None
        ]
        why = {
            "coverage": "the predictions have no intervals",
            **dict.fromkeys((f"{family}.{metric}" for family, metric in metrics), _NOT_COMPARED),
        }
        if not tests:
            why = dict.fromkeys(("error", *why), _NO_TEST)
        there = {one.id for one in found}
        return [
            *found,
            *(ResultValue(id, None, "", no) for id, no in why.items() if id not in there),
        ]


_NO_TEST = "no run is a test, all are of configurations of the fit"
_NOT_COMPARED = "no run has it measured and predicted; tables have runtimes only"


@verb
def validate(
    prediction: Annotated[
        SignatureLike | TraceLike | Prediction,
        argument(
            "INPUT",
            "What was predicted (.json), or what to predict from: a signature (.toml), the name of "
            "one that comes with popmodel, a trace, or a table of runs.",
            complete=(bundled_signatures, ".toml", *TRACES, *TABLES),
        ),
    ],
    measured: Annotated[
        TraceLike | Iterable[TraceLike],
        argument(
            "RUN",
            "Traces (.prv, .prv.gz), or tables of runs (.csv, .md, .txt, .json, ...; popmodel docs "
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
    prediction : path, str, Prediction, Signature or Trace
        A prediction returned by `predict` or saved as ``.json``, or what to predict from now: an
        application, a trace or a table of runs.
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
    from popmodel.cli.inputs import choices, several
    from popmodel.cli.measured_runs import read_runs
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.model.run.process_placement import Allocation
    from popmodel.traces.selection import TracePart
    from popmodel.validation.validated_runs import validate_runs

    given = several(measured)
    if not given:
        raise UsageError("no measured run given", "name at least one trace or table")
    shown = choices(family, tuple(load_families()))
    asked = TracePart.of(window, region, from_start, foa)
    changes = settings or {}
    allocation = Allocation(nodes, cores_per_node, bind)
    known = several(trained_on)
    if _is_of_runs(prediction):
        about = _carried(prediction, machine, changes, allocation, asked)
        known = [prediction, *known]
    else:
        about = _subject(prediction, machine, changes, allocation)
    parameters = None if about.measured else about.parameters
    found = read_runs(given, parameters, settled=changes, asked=asked)
    fitted = _fitted(known, parameters, asked, changes)
    _refuse_conflicts(found.runs, changes)
    validated = validate_runs(
        about,
        found.runs,
        fitted.runs,
        all_runs=all_runs,
        ignored=[(table.path, table.ignored) for table in found.tables if table.ignored],
        # runs of the fit may be among those that are compared
        warnings=tuple(
            dict.fromkeys((*found.warnings, *fitted.warnings, *_unnamed(about, fitted)))
        ),
    )
    return Validation(validated, (*about.files, *found.files, *fitted.files), shown)


def _unnamed(about: Subject, fitted: MeasuredRuns) -> tuple[str, ...]:
    """That a saved prediction does not say which runs it was fitted to."""
    if not about.unnamed or fitted.runs:
        return ()
    runs = plural(about.unnamed, "run")
    return (
        f"the prediction rests on {runs} that its file does not name, so that all runs "
        "count as tests: name those with --trained-on, or validate the signature",
    )


def _is_of_runs(source: Any) -> bool:
    """Whether runs are given to predict from: a trace or a table of them."""
    from popmodel.base.documents import parse_json, read_text
    from popmodel.base.errors import PopmodelError
    from popmodel.cli.inputs import kind_of, refuse_profile
    from popmodel.cli.predict import Prediction

    if isinstance(source, Prediction):
        return False
    refuse_profile(source)
    if _is_saved(source):  # of a table of runs, or of metrics, too
        try:
            content = parse_json(read_text(source), source)
        except PopmodelError:  # who reads it says so
            return False
        schema = content.get("schema") if isinstance(content, dict) else None
        return schema in ("popmodel/runs/1", "popmodel/metrics/1")
    return kind_of(source) != "signature"


def _carried(
    source: Any,
    machine: ProfileLike | None,
    changes: Mapping[str, float],
    allocation: Allocation,
    asked: TracePart,
) -> Subject:
    """Measured runs as what to predict from: they are carried to the size of each other run."""
    from popmodel.cli.measured_runs import read_runs
    from popmodel.model.run.process_placement import WHOLE
    from popmodel.validation.predictions import of_measured

    if machine is not None or changes or allocation != WHOLE:
        raise UsageError(
            "machine, parameters, nodes, cores and binding need a signature",
            "leave them out, or make one of the runs: popmodel signature from",
        )
    own = read_runs([source], None, asked=_part([source], asked))
    return of_measured(own.runs, own.warnings, own.files)


def _part(given: Sequence[Any], asked: TracePart) -> TracePart:
    """The part that is asked for, where it can be taken: not of tables alone."""
    from popmodel.cli.inputs import kind_of
    from popmodel.traces.selection import PROGRAM

    return PROGRAM if all(kind_of(one) == "table" for one in given) else asked


def _fitted(
    given: Sequence[Any],
    parameters: Mapping[str, float] | None,
    asked: TracePart,
    settled: Collection[str],
) -> MeasuredRuns:
    """The runs of a fit, of traces the same part; none where none are named."""
    from popmodel.cli.measured_runs import MeasuredRuns, read_runs

    if not given:
        return MeasuredRuns((), (), (), ())
    return read_runs(given, parameters, settled=settled, asked=_part(given, asked))


def _subject(
    source: Any,
    machine: ProfileLike | None,
    changes: Mapping[str, float],
    allocation: Allocation,
) -> Subject:
    """What the runs are compared with: a prediction, or an application to predict now."""
    from popmodel.cli.inputs import profile_of, signature_of
    from popmodel.cli.predict import Prediction
    from popmodel.model.run.process_placement import WHOLE
    from popmodel.prediction.prediction import PredictedRun
    from popmodel.validation import predictions

    is_made = isinstance(source, Prediction) or _is_saved(source)
    if is_made and (machine is not None or changes or allocation != WHOLE):
        raise UsageError(
            "machine, parameters, nodes, cores and binding do not go with a saved prediction",
            "name the application instead, to predict anew",
        )
    if isinstance(source, Prediction):
        if isinstance(source.predicted, PredictedRun):
            return predictions.of_prediction(source.predicted)
        made = source.to_dict()
        if "runtime" not in made:
            raise UsageError("only the prediction of a run can be validated", "predict with procs=")
        return predictions.of_document(made, source.files)
    if not is_made:
        return predictions.of_application(
            signature_of(source), profile_of(machine), changes, allocation
        )
    path = str(source)
    return predictions.of_document(predictions.read_prediction(path), (path,))


def _is_saved(source: Any) -> bool:
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
