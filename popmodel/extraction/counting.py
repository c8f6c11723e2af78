"""How often loops are executed, from several runs: formulas that are exact, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel.expressions import parse
from popmodel.extraction.amounts import Amount
from popmodel.extraction.assumed import paths
from popmodel.extraction.outline import Calls, Meeting, Repeat, Work
from popmodel.extraction.told import Fitted, exactly
from popmodel.fitting.counts import Count, exact_law
from popmodel.fitting.formula import FIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.extraction.amounts import Key
    from popmodel.extraction.beside import Beside
    from popmodel.extraction.outline import Node, Outline
    from popmodel.fitting.samples import Sample

_FEW = 2
"""Counts that some formula of P gives by chance."""
_SAME = 1e-6
"""Relative difference of counts that are the same."""


def counted(outline: Outline, runs: Sequence[Beside], assumed: Mapping[Key, Amount]) -> Fitted:
    """Find formulas that give the counts of the loops of all runs, or keep those of the first run.

    A law that only comes near is none: where runs differ in how their calls nest, a count is
    compared with that of another loop.
    """
    amounts: dict[Key, Amount] = {}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    for key, samples, what, hints in _loops(outline, runs):
        values = [one.value for one in samples]
        if max(values) - min(values) <= _SAME * max(values):
            in_all = "" if len(samples) == len(runs) else " that have it"
            amounts[key] = Amount(assumed[key].formula, note=f"the same in all runs{in_all}")
            continue
        found = exact_law(samples, hints)
        if found is None or found.origin != FIT or not _is_sure(found, samples):
            amounts[key] = Amount(assumed[key].formula, note="as in the first run; others differ")
            notes.append(f"{what}: runs differ, that of the first is kept")
            continue
        amounts[key] = Amount(found.text, note=f"{found.origin}: exact in all runs")
        laws.append(exactly(what, found, len(samples)))
        notes += [f"{what}: {note}" for note in found.notes]
    return Fitted(amounts, {}, tuple(laws), tuple(notes))


def _is_sure(found: Count, samples: Sequence[Sample]) -> bool:
    """Whether a formula is no chance: some formula of P or T gives most pairs of counts."""
    return parse(found.text).names.isdisjoint(("P", "T")) or len(samples) > _FEW


def _loops(
    outline: Outline, runs: Sequence[Beside]
) -> list[tuple[Key, list[Sample], str, tuple[str, ...]]]:
    """Counts of loops in every run that has them, with what is likely of them."""
    found: list[tuple[Key, list[Sample], str, tuple[str, ...]]] = []
    names = tuple(runs[0].parameters)
    for path, node in paths(outline.body):
        if isinstance(node, Repeat):
            inside, around = _places(outline, node.body), _around(outline, path)
            base = runs[0].often(inside) / runs[0].often(around)
            samples = [
                run.sample(node.count * run.often(inside) / run.often(around) / base, 0.0)
                for run in runs
                if not inside or run.totals.executions[inside].any()
            ]
            found.append((("count", path), samples, f"iterations of {node.name}", ("1", *names)))
    return found


def _places(outline: Outline, body: Sequence[Node]) -> list[int]:
    """Places directly in a body, in loops inside if there are none."""
    found: list[int] = []
    for node in body:
        match node:
            case Work():
                found.append(outline.points[node.point].place)
            case Calls():
                found += node.places
            case Meeting():
                found.append(node.place)
            case Repeat():
                pass
    if not found:
        for node in body:
            if isinstance(node, Repeat):
                found += _places(outline, node.body)
    return [place for place in found if place >= 0]


def _around(outline: Outline, path: tuple[int, ...]) -> list[int]:
    body: Sequence[Node] = outline.body
    for index in path[:-1]:
        node = body[index]
        assert isinstance(node, Repeat)
        body = node.body
    direct = [node for node in body if not isinstance(node, Repeat)]
    return _places(outline, direct) if len(path) > 1 else []
