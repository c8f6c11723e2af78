"""A program on a machine with its uncertain inputs, evaluated under several assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol, TypeVar

import numpy as np

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.expressions import ExpressionError
from popmodel.base.expressions.elementary import Value, numbers, some
from popmodel.base.units import format_size, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.family import NO_MPI
from popmodel.machines.profile import MissingQuantity, Profile
from popmodel.machines.quantity import Quantity
from popmodel.model.model_error import (
    RESIDUALS,
    ModelForm,
    Reach,
    beyond_runs,
    disturbed,
    drifted,
    laws_of_split,
    measured_ranges,
    reaches,
    split_label,
    with_residuals,
)
from popmodel.model.replayed_run import (
    CLOSED_FORM,
    REPLAY,
    ReplayAgreement,
    Whole,
    carried_out_whole,
    similar,
    simulate,
)
from popmodel.model.run import feasible_splits
from popmodel.model.run.collective_times import CARRIED, CARRIED_LAW
from popmodel.model.run.memory_domains import UNBOUND, UNBOUND_LAW
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import (
    WHOLE,
    Allocation,
    ImpossibleSplit,
    Placement,
    place,
    remarks,
)
from popmodel.model.run.work import (
    LARGEST,
    Correction,
    ModelledObservables,
    RunCourse,
    RunWork,
    closed_form,
    corrected,
    correction,
    delays,
    observe,
)
from popmodel.model.signature.application import Signature, check_requirements, items, names
from popmodel.model.symbols import LAWS, SPREADS, WAITING, beginnings
from popmodel.model.terms import imbalance, message, openmp
from popmodel.model.tree import ItemTree, Known, Model, prepare
from popmodel.model.uncertainty import (
    FORMS,
    RESIDUAL,
    Array,
    Calibration,
    Draws,
    Estimate,
    estimate,
    group,
    nominal,
)

Factor = TypeVar("Factor")
RUN_TO_RUN = "run to run"
"""What the scores of the noise between runs are called."""
_KEPT = 4  # placements whose best estimate is kept
_GROWTH = ("reference_processes", "growth_exponent")


class Values(Protocol):
    """Values by the path of a quantity: draws, or symbols."""

    def __getitem__(self, path: str) -> Value: ...


class Study:
    """A program on a machine with its uncertain inputs."""

    def __init__(
        self,
        signature: Signature,
        profile: Profile,
        settings: Mapping[str, float],
        draws: int,
        seed: int,
        factors: Mapping[str, Value] | None = None,
        allocation: Allocation = WHOLE,
    ) -> None:
        self.signature = signature
        self.profile = profile
        self.allocation = allocation
        self.draws = draws
        self.seed = seed
        self.settings = dict(settings)
        asked = signature.with_settings(settings)
        asked.require_known()
        self.params, self.constants = asked.params, asked.constants
        self._paths = asked.paths
        # factors act on spreads that items state as on those of [imbalance]
        spreads = dict.fromkeys(sorted(_own_spreads(signature)), Quantity(0.0))
        spreads |= signature.imbalance
        self.quantities: dict[str, Quantity] = {
            **profile.assumed,
            **disturbed(profile.quantities, profile.noisy),
            CARRIED_LAW: CARRIED,
            UNBOUND_LAW: UNBOUND,
            **profile.plain,
            **{self._paths[name]: value for name, value in asked.inputs.items()},
            **{f"imbalance.{name}": value for name, value in spreads.items()},
        }
        self.factors = expand(factors or {}, self.quantities)
        self.calibration = _holding(signature.calibration, profile, self.quantities)
        self.has_mpi = signature.communicates
        self._measured = measured_ranges(profile)
        self._best: dict[Placement, tuple[ModelEvaluation, Known]] = {}

    @property
    def included(self) -> tuple[str, ...]:
        """What intervals include: ``parameters``, ``laws``, and ``overlap`` and ``noise`` if any.

        Nothing without draws.
        """
        is_open = any(path in self.quantities for path in FORMS)
        cases = {
            "parameters": True,
            "overlap": is_open,
            "laws": True,
            "noise": bool(self.profile.noisy),
        }
        return tuple(name for name, holds in cases.items() if holds and self.draws)

    @property
    def values(self) -> dict[str, float]:
        return {
            name: one.value
            for name, one in {**self.params, **self.constants}.items()
            if name in self.params or name in self.settings
        }

    @property
    def _numbers(self) -> dict[str, float]:
        return {name: one.value for name, one in {**self.params, **self.constants}.items()}

    def with_settings(self, settings: Mapping[str, float]) -> Study:
        """Return the same study with some parameters changed; all others are drawn alike."""
        return self._like(self.signature, {**self.settings, **settings})

    def with_signature(self, signature: Signature) -> Study:
        return self._like(signature, self.settings)

    def _like(self, signature: Signature, settings: Mapping[str, float]) -> Study:
        same = (self.draws, self.seed, self.factors, self.allocation)
        return Study(signature, self.profile, settings, *same)

    def sources(
        self, factors: Mapping[str, Value] | None = None, draws: int | None = None
    ) -> Draws:
        """Return the inputs, drawn as often as the study says, or ``draws`` times."""
        both: dict[str, Value] = dict(self.factors)
        for path, factor in (factors or {}).items():
            both[path] = both.get(path, 1.0) * factor
        count = self.draws if draws is None else draws
        return Draws(self.quantities, count, self.seed, both, self.calibration)

    def admit(
        self, processes: int, threads: int, allocation: Allocation | None = None
    ) -> Placement:
        """Place a split that the machine and the application allow."""
        placement = place(processes, threads, self.profile.topology, allocation or self.allocation)
        check_requirements(self.signature, processes, threads, self._numbers)
        names(self.signature, processes, threads, self._numbers)  # refuses grids that do not fit
        self._check_memory(placement)
        return placement

    def _check_memory(self, placement: Placement) -> None:
        """Refuse a split whose processes need more bytes each than a node has for them."""
        available = self.profile.topology.memory_per_node
        memory = None if available is None else self.memory(placement)
        if memory is None or available is None or memory * placement.per_node <= available:
            return
        raise ImpossibleSplit(
            f"{self.signature.name} needs {format_size(memory * placement.per_node, digits=3)} "
            f"on a node ({plural(placement.per_node, 'process', 'processes')}), "
            f"a node has {format_size(available, digits=3)}",
            "use a smaller problem or fewer processes per node",
        )

    def memory(self, placement: Placement) -> float | None:
        if self.signature.limits.memory_per_rank is None:
            return None
        return nominal(self.model(placement, self.sources(draws=0)).memory_per_rank() or 0.0)

    def admit_or_advise(
        self, processes: int, threads: int, allocation: Allocation | None = None
    ) -> Placement:
        """Do the same, and name the nearest choices that are possible in the hint of a refusal."""
        available = allocation or self.allocation
        try:
            return self.admit(processes, threads, available)
        except ImpossibleSplit as error:
            advice = self._advice(processes, threads, available, error.processes) or error.hint
            raise ImpossibleSplit(error.message, advice) from None

    def _advice(
        self, processes: int, threads: int, available: Allocation, only: int | None
    ) -> str | None:
        """Name splits that are possible, and a number of nodes on which this one is."""
        topology = self.profile.topology

        possible = partial(self.is_possible, allocation=available)
        splits = feasible_splits.nearest(processes, threads, possible, topology, available, only)
        enough = (
            count
            for count in feasible_splits.more_nodes(processes, threads, topology, available)
            if self.is_possible(processes, threads, replace(available, nodes=count))
        )
        return feasible_splits.hint(splits, next(enough, None), topology)

    def is_possible(
        self, processes: int, threads: int, allocation: Allocation | None = None
    ) -> bool:
        """Tell whether the machine and the application allow a split."""
        try:
            self.admit(processes, threads, allocation)
        except (UsageError, ExpressionError, MissingQuantity):
            return False
        return True

    def run(
        self,
        placement: Placement,
        drawn: Draws,
        overlap: str | None = None,
        agreement: ReplayAgreement | None = None,
        known: Known | None = None,
    ) -> ModelEvaluation:
        model = self.model(placement, drawn, overlap)
        tree = model.work(known)
        spread = tree.spread(self.spread(placement, drawn))
        reach = reaches(self._measured, tree.point.parameters.used, placement.nodes)
        hull = {} if drawn.calibration is None else drawn.calibration.hull
        split = split_label(placement, self._numbers, hull)
        laws = laws_of_split(
            split,
            tree.total,
            spread.values(),
            (*reach, *self.beyond(placement)),
            drawn,
            from_source=self.signature.basis == "source",
        )
        work, wait = laws.applied(tree.total), laws.factor(WAITING.path)
        if drawn.calibration is not None:
            work = drifted(work, placement, drawn, drawn.calibration.drifts)
            work = with_residuals(work, placement, drawn, drawn.calibration.residuals)
        spread = {name: value * wait for name, value in spread.items()}
        course = closed_form(work, placement.processes, spread, has_mpi=self.has_mpi)
        modelled = observe(work, placement, course, has_mpi=self.has_mpi)
        limit = model.memory_per_rank()
        memory = None if limit is None else nominal(limit)
        run = ModelEvaluation(tree, laws, work, course, modelled, memory)
        return run if agreement is None else as_replayed(placement, run, agreement.correction)

    def beyond(self, placement: Placement) -> tuple[Reach, ...]:
        """How far a run goes beyond those that the signature was calibrated by."""
        if self.calibration is None:
            return ()
        values = {name: one.value for name, one in self.params.items()}
        at = {"P": placement.processes, "T": placement.threads, "nodes": placement.nodes}
        return tuple(beyond_runs(self.calibration.hull, {**values, **at}))

    def model(self, placement: Placement, drawn: Draws, overlap: str | None = None) -> Model:
        parameters = Parameters(
            self.profile,
            drawn.__getitem__,
            across_sockets=placement.sockets_spanned > 1,
            unchanged=drawn.unchanged if drawn.factors else None,
            are_drawn=drawn.count > 0,
            from_source=self.signature.basis == "source",
        )
        params = {name: drawn[path] for name, path in self._paths.items()}
        changed = {name: drawn.factor(f"imbalance.{name}") for name in _own_spreads(self.signature)}
        growth = {name: self._at(placement, drawn, one) for name, one in changed.items()}
        return prepare(self.signature, placement, parameters, params, overlap, growth, changed)

    def outcome(
        self, placement: Placement, drawn: Draws, *, replayed: bool = True
    ) -> ModelEvaluation:
        """Evaluate a run as predictions show it.

        The rule depends on this run alone, so that all commands have one number for it: the
        replay, or the closed form where nothing can be replayed.
        """
        agreement, why_not = None, None
        if replayed:
            try:
                agreement = self.replay(placement)
            except NotUnrolled as reason:
                why_not = str(reason)
        run = self.run(placement, drawn, agreement=agreement)
        self.require_time(placement, run)
        return replace(run, agreement=agreement, why_not=why_not)

    def require_time(self, placement: Placement, run: ModelEvaluation) -> None:
        """Refuse a run that takes no time, of which nothing is a share."""
        if not np.all(numbers(run.modelled.runtime) > 0):
            raise ImpossibleSplit(
                f"{placement.processes} x {placement.threads} is not possible: "
                f"{self.signature.name} takes no time, nothing is computed or sent",
                "choose another split or other parameters",
            )

    def best(self, placement: Placement) -> ModelEvaluation:
        """Evaluate the model at the best estimate, once for the questions about one split."""
        return self._evaluated(placement)[0]

    def known(self, placement: Placement) -> Known:
        """Items with their works at the best estimate, which no change of the program touches."""
        return self._evaluated(placement)[1]

    def _evaluated(self, placement: Placement) -> tuple[ModelEvaluation, Known]:
        if placement not in self._best:
            known: Known = {}
            run = self.run(placement, self.sources(draws=0), known=known)
            while len(self._best) >= _KEPT:
                del self._best[next(iter(self._best))]
            self._best[placement] = run, known
        return self._best[placement]

    def replay(self, placement: Placement) -> ReplayAgreement:
        """Put a replay beside the closed form, both of the best estimate."""
        if not self.has_mpi:
            raise NotUnrolled(NO_MPI)
        if placement.processes == 1:
            raise NotUnrolled("one process, no messages")
        run, spread = self.best(placement), self.spread(placement, self.sources(draws=0))
        small = similar(self.signature, run.tree)
        processes, tree = small.point.placement.processes, run.tree
        if small.signature is not self.signature:
            tree = Model(small.signature, small.point).work()
        found = simulate(tree, spread, self.seed)
        closed = closed_form(tree.total, processes, tree.spread(spread), has_mpi=True)
        changed = correction(
            tree.total,
            delays(tree.total, closed),
            delays(tree.total.computed(found.computation), found.course),
            found.computation,
        )
        replayed = as_replayed(placement, run, changed)
        return ReplayAgreement(
            nominal(run.modelled.aggregates["useful_mean"]),
            nominal(replayed.modelled.aggregates["useful_mean"]),
            run.course.nominal(),
            replayed.course.nominal(),
            changed,
            processes,
            found.part * small.share,
            found.repeats,
            found.operations,
            self.seed,
        )

    def whole(self, processes: int, threads: int) -> Whole:
        """Carry out every step of the program, to be replayed on any network."""
        placement = self.admit_or_advise(processes, threads)
        drawn = self.sources()
        tree = self.run(placement, drawn).tree
        return carried_out_whole(self.signature, tree, self.spread(placement, drawn), self.seed)

    def spread(self, placement: Placement, drawn: Values) -> dict[str, Value]:
        """Return the spread of work at this number of processes, by its kind.

        That of items without their own: `popmodel.model.tree.Tree.spread` has that of all; and
        what the largest part of the work asks for, `LARGEST`.
        """
        known = [name for name in SPREADS.values() if f"imbalance.{name}" in self.quantities]
        spread = {name: self._at(placement, drawn, drawn[f"imbalance.{name}"]) for name in known}
        if "imbalance.largest" in self.quantities:
            part = drawn["imbalance.largest"]
            spread[LARGEST] = imbalance.excess_of_largest(part, placement.processes)
        return spread

    def _at(self, placement: Placement, drawn: Values, cv: Value) -> Value:
        """A spread at this number of processes."""
        given = {
            name: drawn[f"imbalance.{name}"] for name in _GROWTH if name in self.signature.imbalance
        }
        return imbalance.spread_at(
            cv,
            placement.processes,
            given.get("reference_processes", 1.0),
            given.get("growth_exponent", 0.0),
        )

    @property
    def surest(self) -> float:
        """The largest probability that is ever announced."""
        return 1.0

    @property
    def outside(self) -> dict[str, float]:
        """Sentences on parameters outside of those of the runs, with how many times they are."""
        return {}

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why predictions are not to be trusted yet, a sentence each."""
        return ()

    def learnt(self, _: Placement | None = None) -> dict[str, Any] | None:
        """What documents have of the runs behind the signature; None without any."""
        return None

    def scores(self, drawn: Draws) -> dict[str, Array]:
        """Return the normal scores of every group of uncertain quantities that was used.

        Those of the laws depend on the split: `Form.scores`.
        """
        if not self.draws:
            return {}
        uncertain = (path for path in drawn.used if self.quantities[path].is_uncertain)
        return {name: drawn.scores(name) for name in sorted(set(map(group, uncertain)))}

    def terms(self, placement: Placement, drawn: Draws) -> dict[str, Array]:
        """Return the normal scores of the residual terms that add to a run."""
        if self.calibration is None or not self.draws:
            return {}
        at = [name for name in self.calibration.residuals if RESIDUALS[name].shape(placement)]
        return {name: drawn.scores(name) for name in at}

    def new_run(self, runtime: Value, drawn: Draws) -> Estimate:
        """Return the runtime of one more run, s: what varies from run to run is in its interval."""
        known, best = self.calibration, nominal(runtime)
        if self.signature.calibration is None:
            return Estimate(best, why="not known how much runs vary: no runs have calibrated it")
        if known is None or known.machine_digest != self.profile.digest:
            return Estimate(best, why="not known how much runs vary on this machine")
        varied = numbers(runtime) * np.exp(known.noise * drawn.scores(RUN_TO_RUN))
        return replace(estimate(varied), value=best)

    def model_form(
        self, placement: Placement, agreement: ReplayAgreement | None = None
    ) -> tuple[float, float]:
        """Return the runtime if transfers hide behind arithmetic, and if nothing overlaps, s."""
        best, known = self.sources(draws=0), self.known(placement)

        def runtime(overlap: str) -> float:
            run = self.run(placement, best, overlap, agreement, known)
            return nominal(run.modelled.runtime)

        return runtime("full"), runtime("none")

    def message_passing(
        self, placement: Placement, run: ModelEvaluation
    ) -> tuple[Estimate | None, str | None]:
        """Compare with one process per core on the same cores."""
        if not self.has_mpi:
            return None, NO_MPI
        try:
            pure = self.admit(placement.cores, 1)
            other = self.run(pure, self.sources())
        except PopmodelError as error:  # not possible, or the machine is not known there
            return None, f"no comparison with one process per core: {error.message}"
        if not numbers(other.work.transfer).all():
            return None, "one process per core does not communicate"
        return estimate(message.message_passing_ratio(run.work.transfer, other.work.transfer)), None

    def assumptions(self, placement: Placement, run: ModelEvaluation) -> list[str]:
        """Say what a run needs, the profile lacks, and is assumed."""
        if self.has_mpi:
            within, between = placement.per_node > 1, placement.nodes > 1
            for path in self.profile.assumed_network(intra=within, inter=between):
                run.machine.get(path)  # replays take it, who note nothing
        return sorted(run.machine.assumptions)

    def notes(self, placement: Placement, run: ModelEvaluation) -> list[str]:
        """Say what a reader should know of a run."""
        notes = [
            *remarks(placement, self.profile.topology),
            *self.assumptions(placement, run),
            *sorted(run.machine.remarks),
        ]
        e_mt = multithreading(run.work, placement)
        if e_mt is not None and openmp.threads_bring_nothing(e_mt.value, placement.threads):
            notes.append(
                f"e_mt x T = {e_mt.value * placement.threads:.2f}: the threads bring no speed-up, "
                "as if they shared a core"
            )
        return notes


def _holding(
    known: Calibration | None, profile: Profile, quantities: Mapping[str, Quantity]
) -> Calibration | None:
    """Return what runs have taught as far as it holds on a machine.

    On another one than that of the runs it is what they taught of the program; what was set by hand
    is as it was set.
    """
    if known is None:
        return None
    for name in known.residuals:
        if name not in RESIDUALS:
            raise UsageError(
                f"calibration: there is no term {name!r}", f"there are {', '.join(RESIDUALS)}"
            )
    there = {group(path) for path, one in quantities.items() if one.is_uncertain}
    kept = {name for name in known.names if name in there}
    if known.machine_digest == profile.digest:
        kept |= {name for name in known.names if name.startswith((RESIDUAL, *LAWS))}
    else:
        kept = {name for name in kept if name.startswith(("params.", "constants.", "imbalance."))}
        known = replace(known, drifts={})  # from a place on that machine
    return known.only(kept) if kept else None


def as_replayed(placement: Placement, run: ModelEvaluation, by: Correction) -> ModelEvaluation:
    """Return an evaluation with the computation and the delays that a replay found."""
    work, course = corrected(run.work, delays(run.work, run.course), by)
    modelled = observe(work, placement, course, has_mpi=True)
    return replace(run, work=work, course=course, modelled=modelled)


def _own_spreads(signature: Signature) -> set[str]:
    """The spreads that items of a program state instead of ``[imbalance]``."""
    return {name for item in items(signature.program) for name in item.stated_spreads}


def expand(factors: Mapping[str, Factor], quantities: Mapping[str, Quantity]) -> dict[str, Factor]:
    """Resolve ``net.inter.beta`` to the paths in the list of size classes."""
    expanded = {}
    for path in quantities:
        beginnings_ = _named_by(path)
        if not beginnings_.isdisjoint(factors):
            expanded[path] = [value for name, value in factors.items() if name in beginnings_][-1]
    return expanded


@cache
def _named_by(path: str) -> frozenset[str]:
    """What factors on a quantity may be named by, the size classes of messages left out as well."""
    return frozenset((*beginnings(path), *beginnings(group(path).replace(".classes", ""))))


def multithreading(work: RunWork, placement: Placement) -> Estimate | None:
    """Return e_mt of all parallel loops; None without any."""
    if not some(work.parallel):
        return None
    return estimate(
        openmp.multithreading_efficiency(work.single_thread, placement.threads, work.parallel)
    )


# What an evaluation of the model gives: one run, by the closed form or as a replay says it.


@dataclass(frozen=True)
class ModelEvaluation:
    """One evaluation of the model."""

    tree: ItemTree  # The works of the program's items, as the laws give them
    form: ModelForm  # Factors of the laws: how far they may be off here
    work: RunWork  # What an average process does, with these factors
    course: RunCourse  # How long the run takes
    modelled: ModelledObservables  # What the metrics need of it
    memory: float | None  # Memory of a process, bytes; None if the signature does not say it
    # The replay whose delays it has, and why there is none, of a run as predictions show it.
    agreement: ReplayAgreement | None = None
    why_not: str | None = None

    @property
    def extent(self) -> tuple[int, ...]:
        return self.tree.point.extent

    @property
    def machine(self) -> Parameters:
        return self.tree.point.parameters

    @property
    def source(self) -> str:
        return CLOSED_FORM if self.agreement is None else REPLAY
