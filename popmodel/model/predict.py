"""Predict one run: runtime, efficiencies with intervals, where the time goes, what would help."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from popmodel.errors import UsageError
from popmodel.expressions.elementary import Value
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.metrics.hierarchy import load_families
from popmodel.metrics.observables import NO_MPI
from popmodel.model import grid
from popmodel.model.observe import Modelled, observe
from popmodel.model.parameters import Parameters
from popmodel.model.performance import prepare
from popmodel.model.placement import Placement, place
from popmodel.model.prediction import MAIN_FAMILY, Estimate, Prediction
from popmodel.model.program import COMMUNICATION, NEIGHBOURS, items
from popmodel.model.signature import Signature
from popmodel.model.terms import imbalance, message, openmp
from popmodel.model.uncertainty import DEFAULT_COUNT, Draws, group, interval, shares
from popmodel.model.work import Work
from popmodel.units import format_size

_NEGLIGIBLE = 0.0005  # of the runtime: a remedy that brings less is not worth a line

# what would help: label -> factors on the quantities of the profile and the signature
_REMEDIES: Mapping[str, Mapping[str, float]] = {
    "+10 % memory bandwidth": {"memory.b1": 1.1, "memory.bsat": 1.1, "memory.by_cores": 1.1},
    "+10 % clock": {"core.freq": 1.1},
    "+10 % cache": {"memory.kappa": 1.1},
    "+10 % network bandwidth": {"net.inter.beta": 1 / 1.1, "net.nic_G": 1 / 1.1},
    "half the network latency": {"net.inter.alpha": 0.5},
    "half the OpenMP overhead": {"openmp.": 0.5},
    "half the imbalance": {
        "imbalance.persistent_cv": 0.5,
        "imbalance.transient_cv": 0.5,
    },
}


def predict(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    settings: Mapping[str, float] | None = None,
    *,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
) -> Prediction:
    """Predict a run of an application on a machine.

    Parameters
    ----------
    signature : Signature
        The application; `popmodel.model.signature.load` reads one.
    profile : Profile
        The machine; `popmodel.machine.profile.load` reads one.
    processes, threads : int
        P, and T per process; one thread per core.
    settings : mapping of str to float, optional
        Values instead of the signature's parameters.
    draws, seed : int
        Draws of the uncertain inputs behind the intervals, and their seed.

    Raises
    ------
    UsageError
        If there is no such parameter, or the application or the machine does not allow this
        number of processes and threads; the hint names the nearest that is possible.
    MissingQuantity
        If the machine profile does not know something that the application needs.
    """
    study = _Study(signature, profile, settings or {}, draws, seed)
    placement = place(processes, threads, profile.topology)
    study.check(placement)
    drawn = study.sources()
    run = study.run(placement, drawn)
    _check_memory(run.memory, placement, profile, signature)
    metrics, absent, limits, notes = _metrics(run.modelled)
    e_mp, e_mp_absent = study.message_passing(placement, run)
    return Prediction(
        application=signature.name,
        machine=profile.name,
        application_path=signature.path,
        machine_path=profile.path,
        application_is_bundled=signature.is_bundled,
        machine_is_preset=profile.is_preset,
        machine_origin=profile.origin,
        settings={name: quantity.value for name, quantity in study.params.items()},
        placement=placement,
        grid=run.extent,
        memory_per_process=run.memory,
        runtime=_estimate(run.modelled.runtime),
        metrics=metrics,
        absent=absent,
        limits=limits,
        time={part: _estimate(value) for part, value in run.modelled.time.items()},
        remedies=study.remedies(placement),
        doubtful=study.doubtful(drawn, run.modelled.runtime),
        model_form=study.model_form(placement),
        multithreading_efficiency=_multithreading(run.work, placement),
        message_passing_ratio=e_mp,
        message_passing_absent=e_mp_absent,
        inputs={path: study.quantities[path] for path in drawn.used},
        left_out=tuple(sorted(run.left_out)),
        notes=(*notes, *study.notes(placement, run)),
        draws=draws,
        seed=seed,
    )


@dataclass(frozen=True)
class _Run:
    """One evaluation of the model."""

    work: Work
    modelled: Modelled
    extent: tuple[int, ...]
    memory: float | None
    left_out: set[str]
    remarks: set[str]


class _Study:
    """A program on a machine with its uncertain inputs, evaluated under several assumptions."""

    def __init__(
        self,
        signature: Signature,
        profile: Profile,
        settings: Mapping[str, float],
        draws: int,
        seed: int,
    ) -> None:
        self.signature = signature
        self.profile = profile
        self.draws = draws
        self.seed = seed
        self.params = _with_settings(signature, settings)
        self.quantities: dict[str, Quantity] = {
            **profile.quantities,
            **{f"params.{name}": value for name, value in self.params.items()},
            **{f"imbalance.{name}": value for name, value in signature.imbalance.items()},
        }
        self.has_mpi = any(isinstance(item, COMMUNICATION) for item in items(signature.program))

    def sources(
        self, factors: Mapping[str, float] | None = None, draws: int | None = None
    ) -> Draws:
        count = self.draws if draws is None else draws
        return Draws(self.quantities, count, self.seed, factors)

    def check(self, placement: Placement) -> None:
        grid.check_requirements(
            self.signature,
            placement.processes,
            placement.threads,
            {name: quantity.value for name, quantity in self.params.items()},
        )

    def run(self, placement: Placement, drawn: Draws, overlap: str | None = None) -> _Run:
        parameters = Parameters(self.profile, drawn.__getitem__)
        params = {name: drawn[f"params.{name}"] for name in self.params}
        model = prepare(self.signature, placement, parameters, params, overlap)
        work = model.work()
        modelled = observe(work, placement, self._spread(placement, drawn), has_mpi=self.has_mpi)
        limit = self.signature.limits.memory_per_rank
        memory = None if limit is None else _nominal(model.value(limit))
        return _Run(work, modelled, model.extent, memory, parameters.left_out, parameters.remarks)

    def _spread(self, placement: Placement, drawn: Draws) -> dict[str, Value]:
        known = {name: drawn[f"imbalance.{name}"] for name in self.signature.imbalance}
        reference = known.get("reference_processes", 1.0)
        exponent = known.get("growth_exponent", 0.0)
        return {
            name: imbalance.spread_at(known[name], placement.processes, reference, exponent)
            for name in ("persistent_cv", "transient_cv")
            if name in known
        }

    def remedies(self, placement: Placement) -> dict[str, float]:
        before = _nominal(self.run(placement, self.sources(draws=0)).modelled.runtime)
        changes = {}
        for label, factors in _REMEDIES.items():
            after = self.run(placement, self.sources(_expand(factors, self.quantities), draws=0))
            changes[label] = _nominal(after.modelled.runtime) / before - 1
        helpful = {label: change for label, change in changes.items() if change < -_NEGLIGIBLE}
        return dict(sorted(helpful.items(), key=lambda item: item[1]))

    def doubtful(self, drawn: Draws, runtime: Value) -> dict[str, float]:
        groups = (
            {group(path) for path in drawn.used if self.quantities[path].is_uncertain}
            if self.draws
            else set()
        )
        return shares({name: drawn.scores(name) for name in sorted(groups)}, runtime)

    def model_form(self, placement: Placement) -> tuple[float, float]:
        fastest, slowest = (
            _nominal(self.run(placement, self.sources(draws=0), overlap).modelled.runtime)
            for overlap in ("full", "none")
        )
        return fastest, slowest

    def message_passing(
        self, placement: Placement, run: _Run
    ) -> tuple[Estimate | None, str | None]:
        """Compare with one process per core on the same cores."""
        if not self.has_mpi:
            return None, NO_MPI
        try:
            pure = place(placement.cores, 1, self.profile.topology)
            self.check(pure)
            other = self.run(pure, self.sources())
        except UsageError as error:
            return None, f"no comparison with one process per core: {error.message}"
        if not np.all(other.work.transfer):
            return None, "one process per core does not communicate"
        return _estimate(
            message.message_passing_ratio(run.work.transfer, other.work.transfer)
        ), None

    def notes(self, placement: Placement, run: _Run) -> list[str]:
        notes = sorted(run.remarks)
        e_mt = _multithreading(run.work, placement)
        if e_mt is not None and openmp.threads_bring_nothing(e_mt.value, placement.threads):
            notes.append(
                f"e_mt x T = {e_mt.value * placement.threads:.2f}: the threads bring no speed-up, "
                "as if they shared a core"
            )
        transient = self.signature.imbalance.get("transient_cv")
        neighbours = any(isinstance(item, NEIGHBOURS) for item in items(self.signature.program))
        if transient is not None and transient.value > 0 and neighbours:
            notes.append(
                "processes wait for neighbours only: serialisation is an upper bound, "
                "a replay gives it exactly"
            )
        return notes


def _with_settings(signature: Signature, settings: Mapping[str, float]) -> dict[str, Quantity]:
    params = dict(signature.params)
    for name, value in settings.items():
        if name not in params:
            near = difflib.get_close_matches(name, params, n=1)
            known = ", ".join(params) or "none"
            raise UsageError(
                f"{signature.name} has no parameter {name!r}",
                f"did you mean {near[0]}?" if near else f"it has: {known}",
            )
        if not (np.isfinite(value) and value > 0):
            raise UsageError(f"parameter {name} should be a number above 0, not {value:g}")
        params[name] = Quantity(float(value), origin="user", source="set for this prediction")
    return params


def _expand(factors: Mapping[str, float], quantities: Mapping[str, Quantity]) -> dict[str, float]:
    """Resolve ``net.inter.beta`` to the paths in the list of size classes."""
    expanded = {}
    for prefix, factor in factors.items():
        for path in quantities:
            flat = group(path).replace(".classes", "")
            if path.startswith(prefix) or flat.startswith(prefix):
                expanded[path] = factor
    return expanded


def _check_memory(
    memory: float | None, placement: Placement, profile: Profile, signature: Signature
) -> None:
    available = profile.topology.memory_per_node
    if memory is None or available is None or memory * placement.per_node <= available:
        return
    needed = memory * placement.per_node
    raise UsageError(
        f"{signature.name} needs {format_size(needed, digits=3)} on a node "
        f"({placement.per_node} processes), a node has {format_size(available, digits=3)}",
        "use more processes, or a smaller problem",
    )


def _metrics(
    modelled: Modelled,
) -> tuple[dict[str, dict[str, Estimate]], dict[str, dict[str, str]], str | None, tuple[str, ...]]:
    """Evaluate all families in every draw."""
    metrics: dict[str, dict[str, Estimate]] = {}
    absent: dict[str, dict[str, str]] = {}
    limits: str | None = None
    notes: tuple[str, ...] = ()
    nominal = {name: _nominal(value) for name, value in modelled.aggregates.items()}
    for id, family in load_families().items():
        sampled = family.evaluate_samples(modelled.aggregates, modelled.absent)
        metrics[id] = {name: _estimate(values) for name, values in sampled.values.items()}
        absent[id] = dict(sampled.absent)
        if id == MAIN_FAMILY:
            evaluation = family.evaluate(nominal, modelled.absent)
            lowest = family.lowest_leaf(evaluation)
            limits = None if lowest is None else lowest.id
            notes = evaluation.notes
    return metrics, absent, limits, notes


def _multithreading(work: Work, placement: Placement) -> Estimate | None:
    if not np.any(work.parallel):
        return None
    return _estimate(
        openmp.multithreading_efficiency(work.single_thread, placement.threads, work.parallel)
    )


def _nominal(value: Value) -> float:
    """Give the best estimate, which is draw 0."""
    return float(np.ravel(value)[0])


def _estimate(value: Value) -> Estimate:
    return Estimate(_nominal(value), *interval(value))
