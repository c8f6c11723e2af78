"""What processes compute between the calls of a list, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value
from popmodel.model.kinds.calls import CallList, ListedCall
from popmodel.model.run.uneven import UnevenWork
from popmodel.model.uncertainty import nominal
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.call_list import ListPlan
    from popmodel.model.run.operations import Inside
    from popmodel.model.run.point import ModelPoint

_SECONDS, _INSTRUCTIONS = (
    next(key for key in ListedCall.own if key.name == name) for name in ("seconds", "instructions")
)
_KNOWN, _UNKNOWN = 0, 1


@dataclass(frozen=True)
class Computed:
    """Computation of a list; made by `Computed.of`."""

    mean: Value  # Of an average process, s
    # float64[rows, P]: Of one execution of each row by each process, s; of the best estimate.
    seconds: NDArray[np.float64]
    part: NDArray[np.int64]  # int64[rows]: Which of ``parts`` it is
    parts: tuple[UnevenWork, ...]  # How they differ
    instructions: Value | None  # Of an average process; None where nobody counted those of a row

    @staticmethod
    def of(
        calls: CallList,
        executions: NDArray[np.int64],
        point: ModelPoint,
        of: str,
        only_at: int | None,
    ) -> Computed:
        """Add up the computations of a list."""
        leaves = calls.leaves()
        seconds, part = np.zeros(executions.shape), np.full(len(leaves), _UNKNOWN)
        mean: Value = 0.0
        instructions: Value | None = 0.0
        turns: list[NDArray[np.float64] | None] = [None, None]
        sequences: list[NDArray[np.float64] | None] = [None, None]
        evaluated: dict[str, Value] = {}
        for row, (call, times) in enumerate(zip(leaves, executions, strict=True)):
            if call.do != "compute" or not times.any():
                continue
            given, counted = call.given["seconds"], call.given.get("instructions")
            if instructions is not None and isinstance(counted, Expression):
                what = f"instructions of {call.title} of {of!r}"
                by = 1.0 if only_at is None else _share(calls, call, point, of, only_at)
                count = point.amount(counted, _INSTRUCTIONS, what)
                instructions = instructions + count * (by * float(times.mean()))
            else:
                instructions = None
            uneven = call.spread.uneven(point)
            levels = np.ones(times.size) if uneven is None or uneven.ranks is None else uneven.ranks
            if isinstance(given, Expression) and "rank" not in given.names:
                if given.text not in evaluated:
                    what = f"seconds of {call.title} of {of!r}"
                    evaluated[given.text] = point.amount(given, _SECONDS, what)
                one = evaluated[given.text]
                if only_at is not None:
                    levels = levels * _share(calls, call, point, of, only_at)
                seconds[row] = nominal(one) * levels
                mean = mean + one * float((levels * times).mean())
            elif only_at is not None:
                on = calls.on(call, _with(point, only_at, ranked=True), of).astype(np.float64)
                best, average = _by_rank(given, call, _with(point, only_at), of, on)
                seconds[row] = (best * on).mean()
                mean = mean + average * float(times.mean())
            else:
                seconds[row], average = _by_rank(given, call, point, of, times.astype(np.float64))
                mean = mean + average
                levels = seconds[row]
            is_known = bool(np.ptp(levels * times))
            part[row] = _KNOWN if is_known else _UNKNOWN
            if uneven is not None and uneven.turns is not None:
                part[row] = len(turns)
                turns.append(uneven.turns)
                sequences.append(uneven.sequence)
        parts = _parts(seconds * executions, part, turns, sequences)
        return Computed(mean, seconds, part, parts, instructions)

    @property
    def uneven(self) -> tuple[UnevenWork, ...]:
        """The parts, if more is known of any than a spread."""
        plain = all(one.ranks is None and one.turns is None for one in self.parts if one.share)
        return () if plain else self.parts

    def inside(self, plan: ListPlan) -> Inside:
        """Return the computations where they stand."""
        from popmodel.model.run.operations import Inside

        return Inside(
            plan.where,
            plan.process,
            self.seconds[plan.computing, plan.process],
            self.part[plan.computing],
            self.parts,
        )


def _with(point: ModelPoint, processes: int, *, ranked: bool = False) -> ModelPoint:
    """Return the point with the ranks of as many processes, and P as it is or as many."""
    placement = replace(point.placement, processes=processes)
    names = {**point.ranked, "P": float(processes)} if ranked else point.ranked
    return replace(point, placement=placement, ranked=names)


def _share(calls: CallList, call: ListedCall, point: ModelPoint, of: str, processes: int) -> float:
    """Part of so many processes that carry out a call."""
    return float(calls.on(call, _with(point, processes, ranked=True), of).mean())


def _by_rank(
    given: Expression | tuple[float, ...],
    call: ListedCall,
    point: ModelPoint,
    of: str,
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], Value]:
    """Seconds of every rank, of the best estimate, and their mean with weights."""
    what = f"seconds of {call.title} of {of!r}"
    if isinstance(given, Expression):
        mean = point.mean_by_rank(given, _SECONDS, what, weights)
        return point.by_rank(given, _SECONDS, what), mean
    found = point.listed(given, what)
    return found, float((found * weights).mean())


def _parts(
    by_rank: NDArray[np.float64],
    part: NDArray[np.int64],
    turns: Sequence[NDArray[np.float64] | None],
    sequences: Sequence[NDArray[np.float64] | None],
) -> tuple[UnevenWork, ...]:
    """Put rows together that differ alike."""
    levels = np.zeros((len(turns), by_rank.shape[1]))
    np.add.at(levels, part, by_rank)
    whole = float(levels.sum(axis=0).mean())
    found = []
    every = zip(levels, turns, sequences, strict=True)
    for index, (level, values, sequence) in enumerate(every):
        mean = float(level.mean())
        is_known = index != _UNKNOWN and mean > 0 and bool(np.ptp(level))
        share = mean / whole if whole else 0.0
        found.append(UnevenWork(share, level / mean if is_known else None, values, sequence))
    return tuple(found)
