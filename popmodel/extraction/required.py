"""What a program asks of its number of processes, from runs that it refused.

A refusal says one thing: not so many. Programs refuse for few reasons, and those that agree with
every run, made or refused, are all asked for: who takes a number that a program refuses loses more
than who leaves one out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.expressions import parse
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_USUAL = (
    "is_square(P)",
    "log2(P) == floor(log2(P))",
    "P % 2 == 0",
    "P % 3 == 0",
    "P > 1",
)
"""Conditions of programs on squares, powers of two, pairs and planes of processes."""


@dataclass(frozen=True)
class Required:
    """What is asked of runs."""

    conditions: tuple[str, ...]  # As ``limits.require`` of a signature has them
    note: str  # One line, for users


def required(
    made: Sequence[Mapping[str, float]], refused: Sequence[Mapping[str, float]]
) -> Required | None:
    """Find the conditions that hold for all runs that were made, and for none that was refused."""
    taken = {one["P"] for one in made}
    refused = [one for one in refused if one["P"] not in taken]
    if not refused:
        return None
    agreeing = [
        one
        for one in _conditions(made)
        if all(_holds(one, run) for run in made) and not any(_holds(one, run) for run in refused)
    ]
    numbers = sorted({int(one["P"]) for one in refused})
    places = ", ".join(map(str, numbers))
    if not agreeing:
        only = tuple(f"P != {one}" for one in numbers)
        return Required(only, f"P = {places} was refused, for no usual reason: others may be, too")
    asked = " and ".join(agreeing)
    return Required(tuple(agreeing), f"P = {places} was refused: {asked} is asked of others")


def _conditions(made: Sequence[Mapping[str, float]]) -> Iterator[str]:
    yield from _USUAL
    for name in made[0]:
        if name not in ("P", "T"):
            yield f"{name} % P == 0"


def _holds(condition: str, run: Mapping[str, float]) -> bool:
    return bool(np.all(parse(condition).evaluate(run)))
