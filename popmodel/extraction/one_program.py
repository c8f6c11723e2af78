"""Runs that one signature is made of are of one program, or refused."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from popmodel.errors import PopmodelError
from popmodel.extraction.aligned import keys
from popmodel.structure.same_program import difference

if TYPE_CHECKING:
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_HINT = "give runs of one program, best of one build"
_IN_COMMON = 0.25
"""Share of the places of the larger program that the smaller one has, too, both with loops found.

Of runs of one program on 2 processes or more it was 0.6 and more in all traces tried, of runs of
different programs 0.2 and less, even where one has all calls of the other.
"""
_OF_THE_SMALLER = 0.5
"""The same of the smaller program, where it may do less: one process, or no loop found."""


def require_names(first: Trace, other: Trace) -> None:
    """Refuse a run of another program, by the names in its trace."""
    found = difference(first, other)
    if found is not None:
        raise PopmodelError(f"{_apart(first, other)}: {found}", _HINT)


def require_places(first: Trace, structure: Structure, other: Trace, found: Structure) -> None:
    """Refuse a run of another program, by the order of its calls and regions."""
    mine, theirs = keys(structure), keys(found)
    blocks = SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    same, sizes = sum(block.size for block in blocks), (len(mine), len(theirs))
    comparable = all(
        one.loop is not None and one.program.processes > 1 for one in (structure, found)
    )
    enough = _IN_COMMON * max(sizes) if comparable else _OF_THE_SMALLER * min(sizes)
    if same < enough:
        raise PopmodelError(
            f"{_apart(first, other)}: only {same} of its {len(theirs)} calls and parallel regions "
            f"are, in their order, among the {len(mine)} there",
            _HINT,
        )


def _apart(first: Trace, other: Trace) -> str:
    return f"{other.path}: not the program of {first.path}"
