"""Where places are in the nest of a program, and what bursts before them are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.phases.phase import SEVERAL
from popmodel.structure.nest import Leaf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.nest import FoundLoop, Nest
    from popmodel.structure.structure import Structure

_START, _END = "start", "end"


class Home(NamedTuple):
    """Where a place is: the indices that lead to its leaf, and the part of the run."""

    path: tuple[int, ...]
    part: str


def homes(structure: Structure) -> dict[int, Home]:
    """Where each place is, as -1 the end of the run, and after it what is of several places."""
    found: dict[int, Home] = {}
    loop = structure.loop
    part = "" if loop is None else "initialisation"
    for path, leaf, inside in _leaves(structure.nest, (), False, loop):
        if inside:
            part = "iterations"
        elif part == "iterations":
            part = "finalisation"
        for place in leaf.places:
            found[place] = Home(path, part)
    found[-1] = Home((len(structure.nest),), "" if loop is None else "finalisation")
    found[SEVERAL] = Home((len(structure.nest) + 1,), "")
    return found


def _leaves(
    nest: Nest, path: tuple[int, ...], inside: bool, loop: FoundLoop | None
) -> Iterator[tuple[tuple[int, ...], Leaf, bool]]:
    for index, node in enumerate(nest):
        here = (*path, index)
        if isinstance(node, Leaf):
            yield here, node, inside
        else:
            yield from _leaves(node.body, here, inside or node is loop, loop)


def name_of_burst(structure: Structure, previous: NDArray[np.int32], place: int) -> str:
    """What a burst before a place is called: after what, and before what, it mostly stands."""
    before = int(np.bincount(previous + 1).argmax()) - 1
    first = _START if before < 0 else structure.places[before].name
    last = _END if place < 0 else structure.places[place].name
    return f"{first} to {last}"


def told_apart(names: Sequence[str], inside: Sequence[str]) -> list[str]:
    """Names of which no two are equal: with the user region or call site, else numbered."""
    often = Counter(names)
    longer = [
        f"{name} in {where}" if often[name] > 1 and where else name
        for name, where in zip(names, inside, strict=True)
    ]
    often, seen = Counter(longer), Counter[str]()
    told = []
    for name in longer:
        seen[name] += 1
        told.append(f"{name} ({seen[name]})" if often[name] > 1 else name)
    return told
