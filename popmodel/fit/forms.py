"""Forms that a law may take: those that physics suggests first, a normal form as the last resort.

Per process and execution: work that is shared out falls as 1/P, the faces of blocks as P**(-2/3) in
three dimensions and P**(-1/2) in two, replicated work stays, trees grow as log2 P, what every
process does for every other as P, along a dimension of a square grid as sqrt P.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations, product

import numpy as np

from popmodel.fit.samples import Points
from popmodel.fit.terms import Factors, Term, form_text, read_form
from popmodel.fit.terms import product as product_of
from popmodel.values import dataclass

Factor = tuple[Fraction, int]

ONE: Factor = (Fraction(0), 0)


def _powers(*powers: str) -> tuple[Factor, ...]:
    return tuple((Fraction(power), 0) for power in powers)


PROCESSES: tuple[Factor, ...] = (
    *_powers("-1", "0", "-2/3", "-1/2"),
    (Fraction(0), 1),
    *_powers("1/2", "1"),
)
"""Of a quantity per process; the order breaks ties."""
THREADS: tuple[Factor, ...] = (*_powers("-1", "0"), (Fraction(0), 1), *_powers("1"))
PARAMETERS: tuple[Factor, ...] = (
    *_powers("1", "0", "2", "3", "1/2", "2/3", "1/3", "3/2"),
    (Fraction(1), 1),
    (Fraction(0), 1),
)
_FEW_PARAMETERS = _powers("1", "0", "2", "3")
_MANY = 400  # products of one factor of each variable
_OF_GRIDS = re.compile(r"[nP]\d")  # local extents and dimensions: P and N determine them

_NORMAL_POWERS = ("0", "1/4", "1/3", "1/2", "2/3", "3/4", "1", "5/4", "4/3", "3/2", "2", "5/2", "3")
_NORMAL_LOGS = (0, 1, 2)


@dataclass(frozen=True)
class Form:
    """A sum of one or two terms."""

    terms: tuple[Term, ...]  # One or two
    # Its place among the hints, then those with a part that stays; their number if it is none.
    hint: int

    @property
    def text(self) -> str:
        """As ``1/P + 1``."""
        return form_text(self.terms)


def physical(points: Points, hints: Sequence[str], off_axes: bool = False) -> list[Form]:
    """Return the forms that physics suggests for what varies between points."""
    return list(_physical(tuple(points.varied), tuple(hints), off_axes))


@lru_cache(maxsize=64)
def _physical(names: tuple[str, ...], hints: tuple[str, ...], off_axes: bool) -> tuple[Form, ...]:
    """The forms of `physical`, which many laws of the same runs have in common."""
    varied = [name for name in names if not _OF_GRIDS.fullmatch(name)]
    singles = _singles(tuple(varied), tuple(_fixed(hints, varied).items()))
    hinted = [read_form(text) for text in hints]
    stays = product_of(_fixed(hints, names))
    staying = [(terms[0], stays) for terms in hinted if len(terms) == 1]
    texts = list(dict.fromkeys(form_text(terms) for terms in (*hinted, *staying)))
    if off_axes:
        found: Iterable[tuple[Term, ...]] = (
            pair for pair in combinations(singles, 2) if _differ(*pair) > 1
        )
    else:
        found = (
            *hinted,
            *staying,
            *((term,) for term in singles),
            *(pair for pair in combinations(singles, 2) if _differ(*pair) == 1),
        )
    return tuple(_distinct(found, texts))


def stays_for(points: Points, hints: Sequence[str]) -> Term:
    """Return the term that does not depend on what varies between points."""
    return product_of(_fixed(hints, points.varied))


def given(forms: Sequence[str], hints: Sequence[str]) -> list[Form]:
    """Return forms that the caller names, hints among them first."""
    texts = list(dict.fromkeys(form_text(read_form(text)) for text in hints))
    return list(_distinct((read_form(text) for text in (*hints, *forms)), texts))


def normal(variable: str, factors: Factors) -> list[Form]:
    """Return the performance-model normal form of one term, with and without a constant.

    ``x**i log2(x)**j``, A. Calotoiu et al., SC 2013; powers from -3 to 3, as a quantity per process
    may fall.
    """
    powers = [Fraction(sign + power) for power in _NORMAL_POWERS for sign in ("", "-")]
    stays = product_of(factors)
    found: list[tuple[Term, ...]] = []
    for power, logs in product(powers, _NORMAL_LOGS):
        if power or logs:
            term = product_of({**factors, variable: (power, logs)})
            found += [(term,), (term, stays)]
    return list(_distinct(found, ()))


def _distinct(found: Iterable[tuple[Term, ...]], hints: Sequence[str]) -> Iterator[Form]:
    seen: set[frozenset[str]] = set()
    for terms in found:
        key = frozenset(term.text for term in terms)
        if key not in seen and len(key) == len(terms):
            seen.add(key)
            text = form_text(terms)
            yield Form(terms, hints.index(text) if text in hints else len(hints))


def _differ(first: Term, second: Term) -> int:
    """Number of variables in which two products differ."""
    one, other = first.factors or {}, second.factors or {}
    return sum(one.get(name, ONE) != other.get(name, ONE) for name in {*one, *other})


def _fixed(hints: Sequence[str], varied: Sequence[str]) -> dict[str, Factor]:
    """What the first hint says of the variables that do not vary."""
    factors: Factors = (read_form(hints[0])[0].factors or {}) if hints else {}
    return {
        name: factor
        for name, factor in factors.items()
        if name not in varied and not _OF_GRIDS.fullmatch(name)
    }


@cache
def _singles(varied: tuple[str, ...], fixed: tuple[tuple[str, Factor], ...]) -> tuple[Term, ...]:
    own = {"P": PROCESSES, "T": THREADS}
    choices = [own.get(name, PARAMETERS) for name in varied]
    if np.prod([len(one) for one in choices]) > _MANY:
        choices = [own.get(name, _FEW_PARAMETERS) for name in varied]
    return tuple(
        product_of(dict(zip(varied, factors, strict=True)) | dict(fixed))
        for factors in product(*choices)
    )


def are_off_axes(points: Points) -> bool:
    """Whether no point differs from each other in one variable at most."""
    columns = np.array([points.configurations[name] for name in points.varied]).T
    if columns.shape[1] < 2:
        return False
    differing = (columns[:, None, :] != columns[None, :, :]).sum(axis=2)
    return bool((differing.max(axis=1) > 1).all())
