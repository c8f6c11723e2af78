"""A program on a machine with its uncertain inputs, evaluated under several assumptions."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from popmodel.errors import UsageError
from popmodel.expressions.elementary import Value
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.metrics.observables import NO_MPI
from popmodel.model import grid
from popmodel.model.agreement import Agreement
from popmodel.model.course import Course, closed_form, corrected
from popmodel.model.exchange import NotUnrolled
from popmodel.model.observe import Modelled, observe
from popmodel.model.parameters import Parameters
from popmodel.model.performance import Model, prepare
from popmodel.model.placement import Placement, place
from popmodel.model.prediction import Estimate
from popmodel.model.program import COMMUNICATION, items
from popmodel.model.signature import Signature
from popmodel.model.simulate import simulate
from popmodel.model.terms import imbalance, message, openmp
from popmodel.model.uncertainty import Draws, group, interval, shares
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


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of the model."""

    work: Work
    course: Course
    modelled: Modelled
    extent: tuple[int, ...]
    memory: float | None
    left_out: set[str]
    remarks: set[str]


class Study:
    """A program on a machine with its uncertain inputs.

    Parameters
    ----------
    signature, profile : Signature, Profile
        Program and machine.
    settings : mapping of str to float
        Values instead of the signature's parameters.
    draws, seed : int
        Draws of the uncertain inputs, and their seed.
    factors : mapping of str to float, optional
        What-if factors on quantities of the machine, by the beginning of their path.
    """

    def __init__(
        self,
        signature: Signature,
        profile: Profile,
        settings: Mapping[str, float],
        draws: int,
        seed: int,
        factors: Mapping[str, float] | None = None,
    ) -> None:
        self.signature = signature
        self.profile = profile
        self.draws = draws
        self.seed = seed
        self.params = with_settings(signature, settings)
        self.quantities: dict[str, Quantity] = {
            **profile.quantities,
            **{f"params.{name}": value for name, value in self.params.items()},
            **{f"imbalance.{name}": value for name, value in signature.imbalance.items()},
        }
        self.factors = expand(factors or {}, self.quantities)
        self.has_mpi = any(isinstance(item, COMMUNICATION) for item in items(signature.program))

    def sources(
        self, factors: Mapping[str, float] | None = None, draws: int | None = None
    ) -> Draws:
        count = self.draws if draws is None else draws
        both = dict(self.factors)
        for path, factor in (factors or {}).items():
            both[path] = both.get(path, 1.0) * factor
        return Draws(self.quantities, count, self.seed, both)

    def check(self, placement: Placement) -> None:
        grid.check_requirements(
            self.signature,
            placement.processes,
            placement.threads,
            {name: quantity.value for name, quantity in self.params.items()},
        )

    def run(self, placement: Placement, drawn: Draws, overlap: str | None = None) -> Evaluation:
        model = self._model(placement, drawn, overlap)
        parameters = model.parameters
        work = model.work()
        spread = self._spread(placement, drawn)
        course = closed_form(work, placement.processes, spread, has_mpi=self.has_mpi)
        modelled = observe(work, placement, course, has_mpi=self.has_mpi)
        limit = model.memory_per_rank()
        memory = None if limit is None else nominal(limit)
        return Evaluation(
            work, course, modelled, model.extent, memory, parameters.left_out, parameters.remarks
        )

    def _model(self, placement: Placement, drawn: Draws, overlap: str | None = None) -> Model:
        parameters = Parameters(self.profile, drawn.__getitem__)
        params = {name: drawn[f"params.{name}"] for name in self.params}
        return prepare(self.signature, placement, parameters, params, overlap)

    def replayed(self, placement: Placement, run: Evaluation) -> tuple[Evaluation, Agreement]:
        """Check an evaluation by a replay of its best estimate, and correct it if that differs.

        Raises
        ------
        NotUnrolled
            If there is nothing to replay, or too much.
        """
        if not self.has_mpi:
            raise NotUnrolled(NO_MPI)
        if placement.processes == 1:
            raise NotUnrolled("one process waits for nobody")
        best = self.sources(draws=0)
        model = self._model(placement, best)
        work = model.work()
        found = simulate(model, work, self._spread(placement, best), self.seed)
        closed = Course(*(nominal(value) for value in vars(run.course).values()))
        useful = nominal(run.modelled.aggregates["useful_mean"])
        agreement = Agreement(useful, closed, found.course, found.part, found.operations, self.seed)
        if not agreement.trusts_replay:
            return run, agreement
        course = corrected(run.work, run.course, found.course)
        modelled = observe(run.work, placement, course, has_mpi=True)
        return replace(run, course=course, modelled=modelled), agreement

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
        before = nominal(self.run(placement, self.sources(draws=0)).modelled.runtime)
        changes = {}
        for label, factors in _REMEDIES.items():
            after = self.run(placement, self.sources(expand(factors, self.quantities), draws=0))
            changes[label] = nominal(after.modelled.runtime) / before - 1
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
            nominal(self.run(placement, self.sources(draws=0), overlap).modelled.runtime)
            for overlap in ("full", "none")
        )
        return fastest, slowest

    def message_passing(
        self, placement: Placement, run: Evaluation
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
        return estimate(message.message_passing_ratio(run.work.transfer, other.work.transfer)), None

    def notes(self, placement: Placement, run: Evaluation) -> list[str]:
        notes = sorted(run.remarks)
        e_mt = multithreading(run.work, placement)
        if e_mt is not None and openmp.threads_bring_nothing(e_mt.value, placement.threads):
            notes.append(
                f"e_mt x T = {e_mt.value * placement.threads:.2f}: the threads bring no speed-up, "
                "as if they shared a core"
            )
        return notes


def with_settings(signature: Signature, settings: Mapping[str, float]) -> dict[str, Quantity]:
    """Give the parameters of a signature with values that were set instead of its own."""
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


def expand(factors: Mapping[str, float], quantities: Mapping[str, Quantity]) -> dict[str, float]:
    """Resolve ``net.inter.beta`` to the paths in the list of size classes."""
    expanded = {}
    for prefix, factor in factors.items():
        for path in quantities:
            flat = group(path).replace(".classes", "")
            if path.startswith(prefix) or flat.startswith(prefix):
                expanded[path] = factor
    return expanded


def check_memory(
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


def multithreading(work: Work, placement: Placement) -> Estimate | None:
    if not np.any(work.parallel):
        return None
    return estimate(
        openmp.multithreading_efficiency(work.single_thread, placement.threads, work.parallel)
    )


def nominal(value: Value) -> float:
    """Give the best estimate, which is draw 0."""
    return float(np.ravel(value)[0])


def estimate(value: Value) -> Estimate:
    return Estimate(nominal(value), *interval(value))
