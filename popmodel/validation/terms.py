"""Errors by term: useful time, and what each loss takes, in seconds.

A right runtime may come from two wrong terms: then it is right at this size only, and is told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.efficiency import terms as parts
from popmodel.efficiency.terms import FAMILY, FamilyTerm
from popmodel.plain import fields_of
from popmodel.validation.comparison import Repeated, Split
from popmodel.values import dataclass

CANCELLING = 0.05
"""Share of the runtime from which an error of a term is worth a word."""
HIDDEN = 0.5
"""An error of the runtime below this part of that of a term hides it."""


@dataclass(frozen=True)
class TermComparison:
    """One term of one split."""

    term: FamilyTerm  # Which
    seconds: Repeated  # Measured by each run, predicted, and the interval, s
    runtime: float  # Mean measured runtime of these runs, s

    @property
    def error(self) -> float:
        """Predicted less mean measured time, as a part of the measured runtime."""
        return (self.seconds.predicted - self.seconds.mean) / self.runtime

    def to_dict(self) -> dict[str, Any]:
        """Return the term as JSON types."""
        return {"term": self.term.name, **self.seconds.to_dict(), "error": self.error}


@dataclass(frozen=True)
class ByTerm:
    """All terms of one split that both sides know; they add up to the runtime where all are
    known.
    """

    split: Split  # The runs
    terms: tuple[TermComparison, ...]  # In the order of `popmodel.efficiency.terms.TERMS`

    @property
    def cancelling(self) -> tuple[TermComparison, TermComparison] | None:
        """The terms that are most too short and most too long, where they hide each other."""
        shortest = min(self.terms, key=lambda one: one.error)
        longest = max(self.terms, key=lambda one: one.error)
        least = min(-shortest.error, longest.error)
        if least < CANCELLING or abs(self.split.error) >= HIDDEN * max(
            -shortest.error, longest.error
        ):
            return None
        return shortest, longest

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as JSON types."""
        found = self.cancelling
        return {
            **fields_of(self.split, "processes", "threads", "parameters"),
            "region": self.split.region.name,
            "terms": self.terms,
            "cancelling": None if found is None else [one.term.name for one in found],
        }


def by_term(splits: Iterable[Split]) -> tuple[ByTerm, ...]:
    """Compare the terms of every split that has runs with efficiencies."""
    every = (_compared(split) for split in splits)
    return tuple(one for one in every if one is not None)


def _compared(split: Split) -> ByTerm | None:
    pairs = [pair for pair in split.runs if pair.run.metrics.get(FAMILY)]
    if not pairs:
        return None
    predicted = pairs[0].predicted.terms
    measured: list[Mapping[str, Any]] = [
        parts.terms(pair.run.runtime, pair.run.metrics[FAMILY]) for pair in pairs
    ]
    both = {name for name in predicted if all(name in one for one in measured)}
    runtime = sum(pair.run.runtime for pair in pairs) / len(pairs)
    found = []
    for term in parts.leaves(dict.fromkeys(both)):
        one = predicted[term.name]
        times = tuple(float(each[term.name]) for each in measured)
        found.append(TermComparison(term, Repeated(times, one), runtime))
    return ByTerm(split, tuple(found)) if found else None


@dataclass(frozen=True)
class TermErrors:
    """The errors of one term at all tests that have it, as parts of the measured runtimes."""

    term: str  # Its name
    splits: int  # Tests
    # Of the sizes of the errors, and the mean of the errors.
    median_error: float
    largest_error: float
    bias: float


def errors_by_term(found: Iterable[ByTerm]) -> tuple[TermErrors, ...]:
    """Return the errors of every term, in the order of `popmodel.efficiency.terms.TERMS`."""
    errors: dict[str, list[float]] = {term.name: [] for term in parts.TERMS}
    for one in found:
        if one.split.region.is_test:
            for compared in one.terms:
                errors[compared.term.name].append(compared.error)
    return tuple(
        TermErrors(
            name,
            len(some),
            float(np.median(np.abs(some))),
            max(map(abs, some)),
            sum(some) / len(some),
        )
        for name, some in errors.items()
        if some
    )


def sentences(found: Sequence[ByTerm], names: Sequence[str] = ()) -> tuple[str, ...]:
    """Say where a right runtime comes from wrong terms."""
    told = []
    for one in found:
        if one.cancelling is None:
            continue
        short, long = one.cancelling
        told.append(
            f"{one.split.describe(names)}: the runtime is off by {100 * one.split.error:+.1f} % as "
            f"errors cancel: of the runtime, {short.term.label} is {-100 * short.error:.2g} % too "
            f"short and {long.term.label} {100 * long.error:.2g} % too long"
        )
    return tuple(told)
