"""Laws of what several runs send: exact where one formula gives all runs, else with intervals."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from popmodel.expressions import parse
from popmodel.extraction.amounts import Amount, Constant
from popmodel.extraction.moved import UNEVEN, moved
from popmodel.extraction.told import Fitted, exactly, told
from popmodel.extraction.written import number
from popmodel.fitting.counts import exact_law
from popmodel.fitting.formula import FIT
from popmodel.fitting.law import law
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.extraction.amounts import Key
    from popmodel.extraction.beside import Beside
    from popmodel.extraction.moved import Moved
    from popmodel.extraction.outline import Outline
    from popmodel.fitting.samples import Sample

_SAME = 1e-6
"""Relative difference of numbers that are the same."""
_FAR = 1024.0
_OF_RUN = re.compile(r"P\d*|T")
_LAWLESS = 0.3
"""Error of a law, from which there is none."""


@dataclass(frozen=True)
class _Found:
    """An amount, None where there is no law, what is told of it, and what it leaves open."""

    amount: Amount | None
    law: dict[str, Any] | None = None
    notes: tuple[str, ...] = field(default=())


def sized(outline: Outline, runs: Sequence[Beside], assumed: Mapping[Key, Amount]) -> Fitted:
    """Find how sizes and numbers of messages go with P, T and parameters, and those of
    collectives.
    """
    every, notes = moved(outline, runs)
    groups: dict[Any, list[Moved]] = {}
    for one in every:
        known = [(*each.configuration.items(), each.value) for each in one.samples]
        groups.setdefault((tuple(known), one.likely), []).append(one)
    amounts: dict[Key, Amount] = {}
    laws: list[dict[str, Any]] = []
    for members in groups.values():
        first = members[0]
        alike = len(members) - 1
        what = f"{first.what} and {alike} alike" if alike else first.what
        found = _found(first, what, f"b{len(laws) + 1}")
        laws += [found.law] if found.law else []
        notes += [f"{what}: {note}" for note in found.notes]
        for one in members:
            amounts[one.key] = found.amount or Amount(
                assumed[one.key].formula if one.key in assumed else first.samples[0].value,
                note="as in the first run; others follow no law",
            )
    return Fitted(amounts, {}, tuple(laws), tuple(notes))


def _found(one: Moved, what: str, name: str) -> _Found:
    values = [sample.value for sample in one.samples]
    if max(values) - min(values) <= _SAME * max(values):
        return _Found(Amount(_plain(values[0]), note="the same in all runs"))
    exact = exact_law(one.samples, likely=one.likely, rounded=one.unit == "B")
    if exact is not None:
        sure = exact.is_likely or not _is_of_run(exact.text) or exact.checks > 1
        if exact.origin == FIT and sure and _stays_above_0(exact.text, one.samples):
            return _Found(
                Amount(exact.text, note="fit: exact in all runs"),
                {**exactly(what, exact, len(one.samples)), "unit": one.unit},
                exact.notes,
            )
    samples = [
        replace(sample, relative_error=max(sample.relative_error or 0.0, UNEVEN))
        for sample in one.samples
    ]
    found = law(samples, hints=one.likely[:1])
    off = found.error if found.error is not None else 0.0
    if off > _LAWLESS or not found.constants:
        return _Found(None, notes=(f"runs differ by {100 * off:.0f} % from any law",))
    constants = tuple(
        Constant(
            f"{name}_{key}", of.value, of.low, of.high, one.unit if key == "a" else "1",
            of.origin, f"{what}, {of.meaning}",
        )
        for key, of in found.constants.items()
    )  # fmt: skip
    amount = Amount(found.text(f"{name}_"), constants, note=f"{found.origin}: {found.form}")
    return _Found(amount, told(what, one.unit, found, None), found.notes)


def _is_of_run(formula: str) -> bool:
    """Whether it names P, T or an extent of the grid, not parameters of the problem alone."""
    return any(_OF_RUN.fullmatch(name) for name in parse(formula).names)


def _stays_above_0(formula: str, samples: Sequence[Sample]) -> bool:
    """Whether a formula has no value below 0 far beyond the runs."""
    expression = parse(formula)
    return all(
        float(expression.evaluate({**one.configuration, name: value * _FAR})) >= 0
        for one in samples
        for name, value in one.configuration.items()
    )


def _plain(value: float) -> float:
    return int(value) if value == int(value) else number(value)
