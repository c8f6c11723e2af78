"""How often loops of a signature are executed, from several runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.expressions import parse
from popmodel.fit.counts import Count, exact_law
from popmodel.fit.law import FIT, law
from popmodel.signature.assumed_scaling import SignatureAmount, SignatureConstant, paths
from popmodel.signature.law_notes import FittedLaws, exactly, told
from popmodel.signature.outline import OutlineCalls, OutlineMeeting, OutlineRepeat, OutlineWork
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.samples import Sample
    from popmodel.signature.align_runs import AlignedRun
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.outline import Node, Outline


_FEW = 2
"""Counts that some formula of P gives by chance."""
_SAME = 1e-6
"""Relative difference of counts that are the same."""
_BY_DATA = 0.02
"""Relative error of counts that no formula gives, such as those of a solver that converges."""
_DIGITS = 9


@dataclass(frozen=True)
class Counts:
    """How often loops are executed in several runs."""

    laws: FittedLaws
    # By path of each loop, and () for the program: how often its body is executed in each run
    # for each time that it is in the first one; of a run without it, how often the signature says.
    executions: Mapping[tuple[int, ...], NDArray[np.float64]]


def counted(
    outline: Outline, runs: Sequence[AlignedRun], assumed: Mapping[Key, SignatureAmount]
) -> Counts:
    """Find formulas that give the counts of the loops of all runs, or laws that come near."""
    amounts: dict[Key, SignatureAmount] = {}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    measured: dict[tuple[int, ...], NDArray[np.float64]] = {(): np.ones(len(runs))}
    said: dict[tuple[int, ...], NDArray[np.float64]] = {}  # Turns, over those of the first run
    by_data: dict[tuple[float, ...], list[tuple[Key, float]]] = {}
    for path, node in paths(outline.body):
        if not isinstance(node, OutlineRepeat):
            continue
        around = measured[path[:-1]]
        inside, below = _places(outline, node.body), _places(outline, node.body, below=True)
        often = np.array(  # where a run lacks what is in the body itself, by its inner loops
            [run.turns(inside, runs[0]) or run.turns(below, runs[0]) for run in runs]
        )
        ratio = np.divide(often, around, out=np.ones(len(runs)), where=around > 0)
        measured[path] = ratio * around
        has = (often > 0) & (around > 0)
        said[path] = np.where(has, ratio, 1.0)
        if np.ptp(ratio[has]) <= _SAME * ratio[has].max(initial=0.0):
            in_all = "the same in all runs" + ("" if has.all() else " that have it")
            amounts["count", path] = SignatureAmount(assumed["count", path].formula, note=in_all)
            continue
        samples = _samples(runs, np.where(has, ratio, 0.0), node.count)
        exact = exact_law(samples, ("1", *runs[0].parameters))
        if exact is not None and exact.origin == FIT and _is_sure(exact, samples):
            what = f"iterations of {node.name}"
            formula = parse(exact.text)
            said[path][~has] = [
                float(formula.evaluate(run.sample(0.0).configuration)) / node.count
                for run in compress(runs, ~has)
            ]
            amounts["count", path] = SignatureAmount(
                exact.text, note=f"{exact.origin}: exact in all runs"
            )
            laws.append(exactly(what, exact, len(samples)))
            notes += [f"{what}: {note}" for note in exact.notes]
            continue
        key = tuple(np.where(has, ratio, 0.0).round(_DIGITS).tolist())
        by_data.setdefault(key, []).append((("count", path), node.count))
    for number, (ratio, members) in enumerate(by_data.items(), start=1):
        named = max(members, key=lambda member: member[1])[1]
        samples = [
            replace(one, relative_error=_BY_DATA) for one in _samples(runs, np.array(ratio), named)
        ]
        what = f"iterations of {plural(len(members), 'loop')} whose number data may decide"
        found = law(samples, hints=("1",))
        constants = tuple(
            SignatureConstant(
                f"n{number}_{key}", one.value, one.low, one.high, "1", one.origin,
                f"{what}, {one.meaning}",
            )
            for key, one in found.constants.items()
        )  # fmt: skip
        text = found.text(f"n{number}_")
        for key, times in members:
            lacks = measured[key[1]] == 0
            said[key[1]][lacks] = [
                found.at(run.processes, run.threads, run.parameters).value / named
                for run in compress(runs, lacks)
            ]
            part = text if times == named else f"{times / named:.12g}*({text})"
            formula = f"max(floor({part} + 1/2), 1)"
            amounts[key] = SignatureAmount(
                formula, constants, note=f"{found.origin}: near {found.form}"
            )
        laws.append(told(what, "1", found, None))
        notes += [f"{what}: {note}" for note in found.notes]
    executions = {(): np.ones(len(runs))}
    for path, ratio in said.items():
        executions[path] = ratio * executions[path[:-1]]
    return Counts(FittedLaws(amounts, {}, tuple(laws), tuple(notes)), executions)


def _samples(runs: Sequence[AlignedRun], ratio: NDArray[np.float64], count: float) -> list[Sample]:
    """Counts in the runs that have a loop, by how they are over that of the first one."""
    return [
        run.sample(count * float(one), 0.0) for run, one in zip(runs, ratio, strict=True) if one > 0
    ]


def _is_sure(found: Count, samples: Sequence[Sample]) -> bool:
    """Whether a formula is no chance: some formula of P or T gives most pairs of counts."""
    return parse(found.text).names.isdisjoint(("P", "T")) or len(samples) > _FEW


def _places(outline: Outline, body: Sequence[Node], *, below: bool = False) -> list[int]:
    """Places directly in a body, in loops inside if there are none or they are asked for."""
    found: list[int] = []
    for node in body:
        match node:
            case OutlineWork():
                found += outline.points[node.point].places
            case OutlineCalls():
                found += node.places
            case OutlineMeeting():
                found.append(node.place)
            case OutlineRepeat():
                pass
    if below or not found:
        for node in body:
            if isinstance(node, OutlineRepeat):
                found += _places(outline, node.body, below=below)
    return [place for place in found if place >= 0]
