"""All splits of some cores into processes and threads, evaluated in the same draws.

`popmodel.splits.choice` judges them and says which to take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.errors import UsageError
from popmodel.machine.profile import Profile
from popmodel.model.changes import factors_of
from popmodel.model.run.launch import launch_line, mpirun_line
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.model.study import Study
from popmodel.model.uncertainty import DEFAULT_COUNT, LEVEL
from popmodel.plain import document
from popmodel.prediction.prediction import study_of, subject
from popmodel.splits import tuning
from popmodel.splits.choice import SplitCheck, SplitChoice, check, choose, growth
from popmodel.splits.largest import LargestSplit, largest_cores
from popmodel.splits.splits import (
    Impossible,
    Refused,
    SplitCandidate,
    divisors,
    evaluate_all,
    impossible,
    judge,
)
from popmodel.splits.tuning import Tuned
from popmodel.values import dataclass

SCHEMA = "popmodel/sweep/1"

Step = Callable[[int, int], None]
"""Told how many splits of how many are done."""


@dataclass(frozen=True)
class SplitSweep:
    """All splits of some numbers of cores; made by `sweep`."""

    # Program and machine.
    signature: Signature
    profile: Profile
    settings: Mapping[str, float]  # Value of every parameter of the application
    bind: str  # Where the threads of a process are
    what_if: Mapping[str, float]  # Factors that were applied
    candidates: tuple[SplitCandidate, ...]  # By cores, then by rising threads
    refused: tuple[Refused, ...]  # Splits that are not possible, with the reason
    impossible: tuple[Impossible, ...]  # Numbers of cores of which none is
    choices: tuple[SplitChoice, ...]  # One per other number of cores
    checks: tuple[SplitCheck, ...]  # What replays say, one per number of cores
    largest: LargestSplit | None  # Why this number of cores, if it was searched
    # Best value of a parameter for each of the choices; empty if none was asked for.
    tuned: tuple[Tuned, ...]
    # The runs that the signature was learnt from, `Study.learnt`; None without any.
    learnt: Mapping[str, Any] | None
    included: tuple[str, ...]  # What the intervals and probabilities include, `Study.included`
    # Draws behind them.
    draws: int
    seed: int

    def _started(self, split: SplitCandidate) -> str:
        """The program with its arguments, for a split."""
        at = split.placement
        return self.signature.started(at.processes, at.threads, self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/sweep/1``, without provenance."""
        about = subject(self.signature, self.profile, self.settings)
        about["machine"]["cores_per_node"] = self.profile.topology.cores_per_node
        return document(
            SCHEMA,
            **about,
            bind=self.bind,
            what_if=self.what_if,
            candidates=[
                {
                    **one.to_dict(),
                    "launch": launch_line(one.placement, self._started(one)),
                    "launch_mpirun": mpirun_line(one.placement, self._started(one)),
                }
                for one in self.candidates
            ],
            refused=self.refused,
            impossible=self.impossible,
            best=[one.split for choice in self.choices for one in choice.tied],
            choices=[
                {**choice.facts(self._started(choice.taken), self.profile), "checked": checked}
                for choice, checked in zip(self.choices, self.checks, strict=True)
            ],
            growth=growth(self.choices),
            largest=self.largest,
            tuned=self.tuned,
            assumptions=sorted({text for one in self.candidates for text in one.assumptions}),
            **({} if self.learnt is None else {"learnt": self.learnt}),
            intervals={"level": LEVEL, "include": self.included},
            draws=self.draws,
            seed=self.seed,
        )


def sweep(
    signature: Signature,
    profile: Profile,
    cores: Sequence[int] | None,
    settings: Mapping[str, float] | None = None,
    *,
    what_if: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
    max_memory: float | None = None,
    efficiency: float | None = None,
    tune: str | None = None,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
    step: Step | None = None,
    trusted: bool = True,
) -> SplitSweep:
    """Evaluate every split of some cores into P processes with T threads, P T = cores."""
    changes = dict(what_if or {})
    known = dict(settings or {})

    def study_with(more: Mapping[str, float]) -> Study:
        values = {**known, **more}
        return study_of(signature, profile, values, draws, seed, factors_of(changes), allocation)

    study = study_with({})
    if tune is not None:
        tuning.parameter(study, tune)  # a wrong name is told before the work
    largest: LargestSplit | None = None
    if cores is None:
        if efficiency is None:
            raise UsageError("cores and efficiency are both missing", "give one of them")
        largest = largest_cores(study, efficiency, max_memory)
        cores = [largest.cores]
    drawn = study.sources()
    counts = list(dict.fromkeys(cores))
    total, done = sum(len(divisors(count)) for count in counts), 0

    def one_more() -> None:
        nonlocal done
        done += 1
        if step is not None:
            step(done, total)

    candidates: list[list[SplitCandidate]] = []
    checks: list[SplitCheck] = []
    refused: list[Refused] = []
    without: list[Impossible] = []
    for count in counts:
        found, no = evaluate_all(study, drawn, count, max_memory, one_more)
        refused += no
        if found:
            candidates.append(judge(found, study.surest))
            checks.append(check(found))
        else:
            without.append(impossible(study, count, no, max_memory))
    if not candidates:
        raise UsageError(without[0].why, without[0].hint)
    scores = study.scores(drawn)
    trusted = trusted and not study.doubts
    choices = tuple(choose(mine, profile.topology, scores, trusted=trusted) for mine in candidates)
    tuned = tuple(
        tuning.tune(
            study, tune, choice.taken.placement, lambda value: study_with({tune: value}), max_memory
        )
        for choice in choices
        if tune is not None
    )
    return SplitSweep(
        signature,
        profile,
        study.values,
        allocation.bind,
        changes,
        tuple(one for mine in candidates for one in mine),
        tuple(refused),
        tuple(without),
        choices,
        tuple(checks),
        largest,
        tuned,
        study.learnt(),
        study.included,
        draws,
        seed,
    )
