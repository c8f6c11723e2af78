"""Forms of the laws that carry an efficiency along processes or threads.

Every form gives the inverse of an efficiency, ``1/E``, as two terms that are not negative::

    1/E = offset + level ((1 - share) g(x)/g(x_ref) + share h(x)/h(x_ref))

or, of the linear law, E itself. Amdahl's law, the one of pipelines and the linear one are those of
C. Rosas, J. Gimenez and J. Labarta, Supercomput. Front. Innov. 1(2) (2014) 4. The structural ones
have the physical terms of each factor: imbalance by the expected maximum of P values whose spread
grows as P**H, waiting likewise or by the filling of pipelines, transfer by messages, surfaces and
collectives over an ideal runtime that shrinks, computation by what is replicated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

import numpy as np

from popmodel.fit.samples import Array
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.values import dataclass

Axis = Literal["processes", "threads"]

LAWS = ("structural", "amdahl", "pipe", "linear")
"""All laws, in the order in which equally good ones are preferred."""

_GRID: Array = np.linspace(0.0, 1.0, 21)
_SMALL: Array = np.linspace(0.0, 1.0, 41) ** 3
"""What of an amount grows is rather a small share of it."""
_SLOPES: Array = np.linspace(-1.0, 1.0, 81)
_ONLY: Array = np.ones(1)


@dataclass(frozen=True)
class ProjectionTerm:
    """``factor * x**power * log * maximum + plus``."""

    # As in the formula.
    power: float = 0.0
    factor: float = 1.0
    plus: float = 0.0
    # What is added to the binary logarithm of x, by which the power is multiplied; None: it is not.
    logs: float | None = None
    # Whether it is multiplied by q(x), the expected maximum of x standard normal values.
    maximum: bool = False
    above: float = 0.0  # It is 0 up to this x: at 1 where a single one waits for nobody

    def __call__(self, x: Array) -> Array:
        """Compute the term at each x, at least 1."""
        found: Array = self.factor * x**self.power
        if self.logs is not None:
            found = found * (self.logs + np.log2(x))
        if self.maximum:
            found = found * _maximum(x)
        found = found + self.plus
        return np.where(x > self.above, found, 0.0)


def _maximum(x: Array) -> Array:
    """Expected maximum of x standard normal values, between whole numbers interpolated."""
    return np.array([_maximum_of(float(each)) for each in x.ravel()]).reshape(x.shape)


def _maximum_of(x: float) -> float:
    below = int(x)
    low = float(expected_maximum(max(below, 1)))
    if below == x:
        return low
    return low + (x - below) * (float(expected_maximum(below + 1)) - low)


@dataclass(frozen=True)
class ProjectionForm:
    """A form of a law."""

    law: str  # One of `LAWS`
    text: str  # How the loss, or the quantity, grows: ``q(P)*sqrt(P)``
    # The two terms.
    first: ProjectionTerm
    second: ProjectionTerm
    offset: int = 0  # 1 where only what exceeds 1 follows the terms, else 0
    # Shares of the second term at the reference that are possible.
    shares: Array = field(default_factory=lambda: _GRID)
    is_inverse: bool = True  # Whether the terms give 1/E, not E

    def relative(self, x: Array, reference: float, share: Array | float) -> Array:
        """Sum of the terms, each over its value at the reference where that is not 0.

        Shape of the shares, then that of x.
        """
        at = np.asarray(share, dtype=np.float64)[..., None]
        home = np.array([reference])
        first, second = (
            term(x) / np.where(term(home) == 0, 1.0, term(home))
            for term in (self.first, self.second)
        )
        terms: Array = (1 - at) * first + at * second
        return terms

    def logarithm(self, level: Array, relative: Array) -> Array:
        """Logarithm of E; NaN where a linear law has no value above 0."""
        total = self.offset + level * relative
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(np.where(total > 0, total, np.nan))
        return -logs if self.is_inverse else logs


_ONE = ProjectionTerm()

PARAMETRIC: Mapping[str, ProjectionForm] = {
    "amdahl": ProjectionForm("amdahl", "x0/(f + (1 - f)*x)", _ONE, ProjectionTerm(1)),
    "pipe": ProjectionForm(
        "pipe", "x0*x/((1 - f) + f*(2*x - 1))", ProjectionTerm(-1), ProjectionTerm(-1, -1, 2)
    ),
    "linear": ProjectionForm(
        "linear", "x0 + f*x", _ONE, ProjectionTerm(1), shares=_SLOPES, is_inverse=False
    ),
}
"""The laws of two constants."""

ANCHORED: Mapping[str, ProjectionForm] = {
    "amdahl": ProjectionForm(
        "amdahl", "1/(f + (1 - f)*x)", _ONE, ProjectionTerm(1, 1, -1), 1, _ONLY
    ),
    "pipe": ProjectionForm(
        "pipe", "x/((1 - f) + f*(2*x - 1))", _ONE, ProjectionTerm(-1, -1, 1), 1, _ONLY
    ),
}
"""What a single run leaves of the laws: an efficiency that is 1 at x = 1."""

_ALONE = (
    "P - 1",
    ProjectionTerm(1, 1, -1),
)  # one process has work that the others have not; a pipeline
_WAITING = (
    ("q(P)", ProjectionTerm(maximum=True)),
    ("q(P)*P**(1/4)", ProjectionTerm(1 / 4, maximum=True)),
    ("q(P)*sqrt(P)", ProjectionTerm(1 / 2, maximum=True)),
)
_FILLING = (("sqrt(P) - 1", ProjectionTerm(1 / 2, 1, -1)), _ALONE)
_MESSAGES: Mapping[str, Sequence[tuple[str, ProjectionTerm]]] = {
    "strong": (
        ("P**(1/3)", ProjectionTerm(1 / 3)),
        ("sqrt(P)", ProjectionTerm(1 / 2)),
        ("P", ProjectionTerm(1)),
        ("P*(1 + log2(P))", ProjectionTerm(1, logs=1)),
    ),
    "weak": (
        ("1 + log2(P)", ProjectionTerm(logs=1)),
        ("sqrt(P)", ProjectionTerm(1 / 2)),
        ("P", ProjectionTerm(1)),
    ),
}
_BY_THREADS = (
    ("1 + log2(T)", ProjectionTerm(logs=1)),
    ("sqrt(T)", ProjectionTerm(1 / 2)),
    ("T", ProjectionTerm(1)),
)
_OF_TEAMS = (
    ("log2(T)", ProjectionTerm(logs=0)),
    ("T - 1", ProjectionTerm(1, 1, -1)),
    ("T*log2(T)", ProjectionTerm(1, logs=0)),
)
_AMOUNTS = (
    ("1/x", ProjectionTerm(-1), _SMALL),
    ("log2(x)", ProjectionTerm(logs=1), _SMALL),
    ("x**(1/3)", ProjectionTerm(1 / 3), _SMALL),
    ("x", ProjectionTerm(1), _SMALL),
    (
        "(1 - 1/x)",
        ProjectionTerm(-1, -1, 1),
        _GRID[:-1],
    ),  # nodes that fill, until all share their memory
)
_RUNTIMES = (
    ("x*log2(x)", ProjectionTerm(1, logs=0), _SMALL[:-1]),
    ("x**(3/2)", ProjectionTerm(3 / 2), _SMALL),
    ("x**2", ProjectionTerm(2), _SMALL),  # a part of the runtime that grows with x
)


def structural(kind: str, axis: Axis, mode: str) -> tuple[ProjectionForm, ...]:
    """Return the forms of a factor."""
    if kind in ("amount", "steady", "runtime"):
        constant = ProjectionForm("structural", "constant", _ONE, _ONE, shares=_ONLY)
        terms: Sequence[tuple[str, ProjectionTerm, Array]] = () if kind == "steady" else _AMOUNTS
        if kind == "runtime" and mode == "strong":
            terms = (*_AMOUNTS, *_RUNTIMES)
        what = "P" if axis == "processes" else "T"
        return (
            constant,
            *(
                ProjectionForm(
                    "structural", f"1 + {text.replace('x', what)}", _ONE, term, 0, shares
                )
                for text, term, shares in terms
            ),
        )
    if kind == "regions":
        along = _OF_TEAMS if axis == "threads" else _MESSAGES[mode][:3]
    elif axis == "threads":
        along = _BY_THREADS if kind == "transfer" else _BY_THREADS[:2]
    elif kind == "balance":
        along = (*_WAITING, _ALONE)
    elif kind == "waiting":
        along = (*_WAITING, *_FILLING)
    else:
        along = _MESSAGES[mode]
    # One process waits for nobody, and a team of one loses nothing to others.
    alone = 1.0 if (kind == "regions") == (axis == "threads") else 0.0
    first = ProjectionTerm(above=alone)
    forms = [ProjectionForm("structural", "constant", first, first, 1, _ONLY)]
    for text, term in along:
        grown = replace(term, above=alone)
        forms.append(ProjectionForm("structural", text, first, grown, 1, _ONLY))
        forms.append(ProjectionForm("structural", f"1 + {text}", first, grown, 1))
    return tuple(forms)


def settled(places: Array, axis: Axis) -> ProjectionForm:
    """Return the form of an amount that the smallest run alone has not: it did not fill a node."""
    low, following = (f"{place:g}" for place in places[:2])
    what = "P" if axis == "processes" else "T"
    text = f"constant from {what} = {following}, another at {low}"
    return ProjectionForm(
        "structural", text, _ONE, ProjectionTerm(above=float(places[0])), shares=_GRID[:-1]
    )
