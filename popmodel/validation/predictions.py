"""What measured runs are compared with: a prediction that was made, or an application.

Of a prediction the runtime, efficiencies and terms are compared. Its intervals are of the mean of
many runs; they are widened to those of one more run, as far as runs have told how these vary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from popmodel.base.document_schemas import check
from popmodel.base.documents import parse_json, read_text
from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.values import dataclass
from popmodel.efficiency.evaluation import USEFUL
from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import END
from popmodel.model.run.process_placement import Allocation, place
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import DEFAULT_COUNT, Calibration, Estimate
from popmodel.prediction.prediction import INSIDE, SCHEMA, PredictedRun, predict, study_of
from popmodel.prediction.projected_runs import AUTO, RunComparison, ask_run
from popmodel.prediction.split_choice import SplitChoice, choose, evaluate, judge
from popmodel.runs.measurement import (
    MeasuredRow,
    deviation_of_loss,
    deviation_of_metric,
    has_reference,
)


@dataclass(frozen=True)
class Predicted:
    """What a prediction says of one run."""

    # P and T.
    processes: int
    threads: int
    runtime: Estimate  # Seconds
    metrics: Mapping[str, Mapping[str, Estimate]]  # By family and metric id
    parameters: Mapping[str, float] = field(default_factory=dict)  # Those of the application
    # Parts of the runtime, s, `popmodel.efficiency.evaluation`.
    terms: Mapping[str, Estimate] = field(default_factory=dict)
    nodes: int | None = None  # Nodes that it takes; None if that is not known
    # How far it goes beyond what was measured of the machine, `Validity.status`.
    validity: str = INSIDE


def read_prediction(path: str) -> dict[str, Any]:
    """Read a prediction that was saved: of a signature, or of measured runs."""
    content = parse_json(read_text(path), path, hint=_MAKE)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise FileError(path, "is not a prediction", hint=_MAKE)
    check(content, path)
    if not (content["runtime"]["value"] or 0) > 0:
        raise FileError(path, "predicts no runtime", hint=_MAKE)
    return content


_MAKE = "make one: popmodel predict ... -o prediction.json"


def from_prediction(made: PredictedRun, noise: float = 0.0) -> Predicted:
    """Take what is compared from a prediction."""
    at = made.placement
    mean = Predicted(
        at.processes,
        at.threads,
        made.runtime,
        made.metrics,
        made.settings,
        made.terms,
        at.nodes,
        made.validity.status,
    )
    return _varied(mean, noise)


def from_document(document: Mapping[str, Any]) -> Predicted:
    """Take what is compared from the document of a prediction.

    Its intervals are of the mean of many runs; it says how much they vary if runs have told it.
    """

    def estimates(entries: Mapping[str, Any]) -> dict[str, Estimate]:
        return {name: estimate(entry) for name, entry in entries.items()}

    def estimate(entry: Mapping[str, Any]) -> Estimate:
        return Estimate(entry["value"], entry["low"], entry["high"])

    about = document.get("application", _PROJECTED)
    mean = Predicted(
        document["processes"],
        document["threads"],
        estimate(document["runtime"]),
        {family: estimates(values) for family, values in document["metrics"].items()},
        about["settings"],
        estimates(document.get("terms", {})),
        document["placement"]["nodes"] if "placement" in document else None,
        document["validity"]["status"] if "validity" in document else PROJECTED,
    )
    return _varied(mean, (about["calibration"] or {}).get("noise", 0.0))


PROJECTED = "projected"
"""How far a projection of measured runs goes beyond what was measured of the machine: nobody
knows."""
_PROJECTED: Mapping[str, Any] = {
    "name": "projection of measured runs",
    "settings": {},
    "calibration": None,
}


def _varied(mean: Predicted, noise: float) -> Predicted:
    """What is said of one more run, of what is said of the mean of many."""
    return replace(
        mean,
        runtime=of_new_run(mean.runtime, noise),
        metrics=metrics_of_new_run(mean.metrics, noise),
        terms=terms_of_new_run(mean.terms, mean.runtime.value, noise),
    )


def of_new_run(mean: Estimate, noise: float) -> Estimate:
    """Widen the interval of a mean runtime to that of one more run."""
    if mean.low is None or mean.high is None or noise == 0:
        return mean
    below, above = math.log(mean.value / mean.low), math.log(mean.high / mean.value)
    return Estimate(
        mean.value,
        mean.value * math.exp(-math.hypot(below, END * noise)),
        mean.value * math.exp(math.hypot(above, END * noise)),
    )


def metrics_of_new_run(
    means: Mapping[str, Mapping[str, Estimate]], noise: float
) -> dict[str, dict[str, Estimate]]:
    """Widen the intervals of mean metrics, by family and id, to those of one more run.

    Families and metrics of a version that has some which this one lacks stay as they are.
    """
    families = load_families()
    return {
        name: _of_family(families[name], metrics, noise) if name in families else dict(metrics)
        for name, metrics in means.items()
    }


def _of_family(family: Family, means: Mapping[str, Estimate], noise: float) -> dict[str, Estimate]:
    values = {metric: mean.value for metric, mean in means.items() if metric in family.metrics}
    wider = dict(means)
    for metric in values:
        deviation = deviation_of_metric(noise, family, metric, values)
        most = None if has_reference(family, metric) else 1.0
        wider[metric] = _widened(means[metric], deviation, family.metrics[metric].at_least, most)
    return wider


def terms_of_new_run(
    means: Mapping[str, Estimate], runtime: float, noise: float
) -> dict[str, Estimate]:
    """Widen the intervals of mean terms of the runtime, s, to those of one more run."""
    return {
        name: _widened(
            one,
            noise * one.value
            if name == USEFUL.name
            else runtime * deviation_of_loss(noise, one.value / runtime),
            least=0.0,
        )
        for name, one in means.items()
    }


def _widened(
    mean: Estimate, deviation: float, least: float | None = None, most: float | None = None
) -> Estimate:
    """Add what varies from run to run to an interval, as far as the bounds of a quantity allow."""
    if mean.low is None or mean.high is None:
        return mean
    low = mean.value - math.hypot(mean.value - mean.low, END * deviation)
    high = mean.value + math.hypot(mean.high - mean.value, END * deviation)
    return Estimate(
        mean.value,
        low if least is None else min(mean.low, max(low, least)),
        high if most is None else max(mean.high, min(high, most)),
    )


class _Application(NamedTuple):
    """What predictions are made from."""

    signature: Signature
    profile: Profile
    changes: Mapping[str, float]
    allocation: Allocation


@dataclass(frozen=True)
class Subject:
    """What measured runs are compared with."""

    # Their names.
    application: str
    machine: str
    preset: bool  # Whether the machine comes with popmodel
    noisy: tuple[str, ...]  # Sections of its profile that were measured beside noise
    files: tuple[str, ...]  # The files that say what they are
    # Parameters of the application, where a run does not say otherwise.
    parameters: Mapping[str, float]
    defaults: Mapping[str, float]  # Those of them that nobody set
    source: Predicted | _Application | RunComparison = field(repr=False)
    # Nodes of the machine and cores of each that may be used; None of a saved prediction.
    available: tuple[int, int] | None = None
    calibration: Calibration | None = None  # What measured runs have taught of the application
    unnamed: int = 0  # Runs that a saved prediction was calibrated by, which its file does not name
    # MPI calls of the program that the signature does not contain, with their share of the time.
    not_modelled: str = ""

    @property
    def measured(self) -> bool:
        """Whether it is predicted from measured runs alone."""
        return isinstance(self.source, RunComparison)

    def predict(self, runs: Sequence[MeasuredRow]) -> list[Predicted]:
        """Return predictions for runs: a saved one, whatever they are."""
        if isinstance(self.source, Predicted):
            return [self.source]
        different = {run.configuration: run for run in runs}.values()
        if isinstance(self.source, RunComparison):
            return [_carried(self.source, run) for run in different]
        return [_predicted(self.source, run) for run in different]

    def choose(
        self, parameters: Mapping[str, float], splits: Sequence[tuple[int, int]]
    ) -> SplitChoice | None:
        """Return which of some splits is recommended; None where that cannot be told."""
        if not isinstance(self.source, _Application):
            return None
        signature, profile, changes, allocation = self.source
        settings = {**changes, **parameters}
        study = study_of(signature, profile, settings, DEFAULT_COUNT, 0, allocation=allocation)
        drawn = study.sources()
        judged = judge([evaluate(study, drawn, *split) for split in splits], study.surest)
        if all(split.regret is None for split in judged):
            return None
        return choose(judged, profile.topology, study.scores(drawn), trusted=not study.doubts)

    def nodes_of(self, processes: int, threads: int) -> int | None:
        """Return the nodes that a split takes; None where that is not known."""
        if isinstance(self.source, Predicted):
            split = self.source.processes, self.source.threads
            return self.source.nodes if (processes, threads) == split else None
        if isinstance(self.source, RunComparison):
            return None
        try:
            topology = self.source.profile.topology
            return place(processes, threads, topology, self.source.allocation).nodes
        except UsageError:
            return None  # of a run on another machine: nobody knows


def _predicted(application: _Application, run: MeasuredRow) -> Predicted:
    signature, profile, changes, allocation = application
    try:
        made = predict(
            signature,
            profile,
            run.processes,
            run.threads,
            {**changes, **run.parameters},
            allocation=allocation,
            advice=False,
        )
    except PopmodelError as error:
        if run.line is None:
            raise
        raise FileError(run.source, error.message, line=run.line, hint=error.hint) from error
    return from_prediction(made, _noise(signature.calibration))


def _noise(calibration: Calibration | None) -> float:
    return 0.0 if calibration is None else calibration.noise


def _carried(compared: RunComparison, run: MeasuredRow) -> Predicted:
    """Measured runs carried to the size of another one."""
    for name, value in run.parameters.items():
        known = {one.parameters[name] for one in compared.runs if name in one.parameters}
        if known - {value}:
            raise UsageError(
                f"{run.place}: {name} is {value:g}, and the runs to predict from have another one",
                "predict from a signature of these runs: popmodel signature from",
            )
    found = ask_run(compared, run.processes, run.threads, AUTO)
    return replace(from_document(found.to_dict()), parameters=run.parameters)


def of_measured(
    runs: Sequence[MeasuredRow], warnings: Sequence[str], files: tuple[str, ...]
) -> Subject:
    """Compare with measured runs that are carried to the size of each."""
    names = [run.place for run in runs]
    compared = RunComparison.of(tuple(runs), tuple(warnings), names)
    return Subject(_PROJECTED["name"], "that of the runs", False, (), files, {}, {}, compared)


def of_prediction(made: PredictedRun) -> Subject:
    """Compare with a prediction."""
    known = made.signature.calibration
    source = from_prediction(made, _noise(known))
    return replace(_of_saved(made.to_dict(), (), source), calibration=known, unnamed=0)


def of_document(document: Mapping[str, Any], files: tuple[str, ...]) -> Subject:
    """Compare with a prediction that was read from a file."""
    return _of_saved(document, files, from_document(document))


def _of_saved(document: Mapping[str, Any], files: tuple[str, ...], source: Predicted) -> Subject:
    about, machine = document.get("application", _PROJECTED), document.get("machine", {})
    used = len(document["projection"]["runs"]) if "projection" in document else 0
    return Subject(
        about["name"],
        machine.get("name", "that of the runs"),
        machine.get("preset") is True,
        tuple(machine.get("noisy", ())),
        files,
        source.parameters,
        {},
        source,
        unnamed=used or (about["calibration"] or {}).get("runs") or 0,
        not_modelled=about.get("not_modelled", ""),
    )


def of_application(
    signature: Signature, profile: Profile, changes: Mapping[str, float], allocation: Allocation
) -> Subject:
    """Compare with predictions of every measured run."""
    params = signature.with_settings(changes).params
    values = {name: quantity.value for name, quantity in params.items()}
    return Subject(
        signature.name,
        profile.name,
        profile.is_preset,
        profile.noisy,
        (signature.path, profile.path),
        values,
        {name: value for name, value in values.items() if name not in changes},
        _Application(signature, profile, changes, allocation),
        allocation.available(profile.topology),
        signature.calibration,
        not_modelled=signature.not_modelled,
    )
