"""Forms that a law may take, with how likely physics makes them before any run is looked at.

Per process and execution: work that is shared out falls as 1/P, the faces of blocks as P**(-2/3) in
three dimensions and P**(-1/2) in two, replicated work stays, trees grow as log2 P, what every
process does for every other as P, along a dimension of a square grid as sqrt P. Simple forms come
first: one integer power of each variable, P and T alike; then a part that stays beside it, or that
goes otherwise with one variable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from itertools import product as every

import numpy as np

from popmodel.fit.samples import LawPoints
from popmodel.fit.terms import Factors, LawTerm, form_text, read_form
from popmodel.fit.terms import product as product_of
from popmodel.values import dataclass

Factor = tuple[Fraction, int]


def _factors(powers: Mapping[str, float]) -> dict[Factor, float]:
    """Factors as ``-1/2`` or ``-1 log``, by how unlikely they are: a logarithm."""
    found = {}
    for text, prior in powers.items():
        power, _, log = text.partition(" ")
        found[Fraction(power), int(bool(log))] = prior
    return found


PROCESSES = _factors(
    {
        "-1": 0, "0": 0, "-2/3": -1, "-1/2": -1, "0 log": -0.5, "1": -1.5, "1/2": -1.5,
        "-1 log": -1, "-1/3": -1.5, "-2": -2, "3/2": -6, "2": -6,
    }
)  # fmt: skip
"""Of a quantity per process."""
THREADS = _factors({"-1": 0, "0": 0, "0 log": -0.5, "1": -1.5})
PARAMETERS = _factors(
    {
        "1": 0, "2": 0, "3": 0, "0": -0.5, "1 log": -1, "0 log": -1.5, "1/2": -2, "2/3": -2,
        "1/3": -2, "3/2": -2,
    }
)  # fmt: skip
SIDES = ("2**floor(log2(P)/2)", "2**ceiling(log2(P)/2)")
"""Rows and columns of a grid of P processes, for powers of two: they double in turns."""
LEAST_STEPS = 3
"""Numbers of processes, all powers of two, that may show such steps."""
_STEPS = -2.0
_FEW_PARAMETERS = {factor: prior for factor, prior in PARAMETERS.items() if prior >= -0.5}
_MANY = 400  # products of one factor of each variable
_FEW_TERMS = 40  # among more, each second term is less likely
_LEAST_PRODUCT = -6.0  # prior of a product that is tried at all where there are many
_OF_GRIDS = re.compile(r"[nP]\d")  # local extents and dimensions: P and N determine them
_NOT_HINTED = -2.5
_SUM = 0.5  # of what is suggested and a second term
_ALONE = 0.0  # of what is suggested, without one
_STAYS = -0.5  # of what stays alone
_OTHER_SUM = -0.5  # of two terms none of which stays
_STEPS_BESIDE = -0.5  # for each variable beyond the first in which a second term differs
LAST = -4.0  # of edges of caches
_NORMAL_POWERS = ("0", "1/4", "1/3", "1/2", "2/3", "3/4", "1", "5/4", "4/3", "3/2", "2", "5/2", "3")
_NORMAL_LOGS = (0, 1, 2)


@dataclass(frozen=True)
class Form:
    """A sum of one or two terms."""

    terms: tuple[LawTerm, ...]  # One or two
    prior: float  # Logarithm of how likely it is before any run

    @property
    def text(self) -> str:
        """As ``1/P + 1``."""
        return form_text(self.terms)


def physical(points: LawPoints, hints: Sequence[str]) -> tuple[Form, ...]:
    """Return the forms that physics suggests for what varies between points.

    Terms of a sum differ in one variable, those beside a likely one in any.
    """
    processes = points.configurations["P"].astype(np.int64)
    in_steps = len(np.unique(processes)) >= LEAST_STEPS and not (processes & (processes - 1)).any()
    return _physical(tuple(points.varied), tuple(hints), in_steps)


@lru_cache(maxsize=64)
def _physical(names: tuple[str, ...], hints: tuple[str, ...], in_steps: bool) -> tuple[Form, ...]:
    """The forms of `physical`, which many laws of the same runs have in common."""
    varied = [name for name in names if not is_of_grid(name)]
    fixed = _fixed(hints, varied)
    hinted = [read_form(text) for text in hints]
    stays = product_of(_fixed(hints, names))
    likely = {terms[0].text: -0.25 * i for i, terms in reversed([*enumerate(hinted)])
              if len(terms) == 1}  # fmt: skip
    products = _products(tuple(varied), tuple(fixed.items()))
    own = {term.text: prior for term, prior in products}
    if not hints and "P" in varied:
        divided = {"P": (Fraction(-1), 0), **({"T": (Fraction(-1), 0)} if "T" in varied else {})}
        likely = {
            term.text: -1.5 for term, _ in products
            if all((term.factors or {}).get(name) == factor for name, factor in divided.items())
        }  # fmt: skip
    terms = {term.text: term for term, _ in products}
    if in_steps:
        rest = product_of(fixed).text
        for side in SIDES:
            text = f"1/{side}" if rest == "1" else f"{rest}/{side}"
            (term,) = read_form(text)
            terms[term.text], own[term.text] = term, _STEPS
    for first in (*(terms[0] for terms in hinted if len(terms) == 1), stays):
        terms.setdefault(first.text, first)
    found: dict[tuple[str, ...], Form] = {}

    def prior_of(*sum_: LawTerm) -> float:
        bonus = [likely[term.text] for term in sum_ if term.text in likely]
        others = sum(own.get(term.text, 0.0) for term in sum_ if term.text not in likely)
        if len(sum_) == 1:
            plain = _STAYS if sum_[0].text == stays.text else _NOT_HINTED + others + _SUM
            return bonus[0] + _ALONE if bonus else plain
        mixed = 0.0 if stays.text in (sum_[0].text, sum_[1].text) or bonus else _OTHER_SUM
        far = _STEPS_BESIDE * max(_differ(*sum_) - 1, 0)
        return (max(bonus) if bonus else _NOT_HINTED) + _SUM + others + mixed + far

    for i, form in enumerate(hinted):
        if len(form) == 2:
            found[tuple(sorted(term.text for term in form))] = Form(form, _ALONE - 0.25 * i)
    for term in terms.values():
        found[term.text,] = Form((term,), prior_of(term))
    order = sorted(terms.values(), key=lambda term: term.text not in likely)
    crowd = -math.log(max(len(terms) / _FEW_TERMS, 1.0)) if likely else 0.0
    for pair in combinations(order, 2):
        key = tuple(sorted(term.text for term in pair))
        is_near = pair[0].text in likely or _differ(*pair) == 1
        if is_near and key not in found:
            found[key] = Form(pair, prior_of(*pair) + crowd)
    return tuple(found.values())


def given(forms: Sequence[str], hints: Sequence[str] = ()) -> tuple[Form, ...]:
    """Return forms that the caller names, hints among them first."""
    texts = list(dict.fromkeys(form_text(read_form(text)) for text in (*hints, *forms)))
    own = [form_text(read_form(text)) for text in hints]
    return tuple(
        Form(read_form(text), _ALONE - 0.25 * own.index(text) if text in own else 0.0)
        for text in texts
    )


def normal(variable: str, factors: Factors) -> tuple[Form, ...]:
    """Return the performance-model normal form of one term, with and without a constant.

    ``x**i log2(x)**j``, A. Calotoiu et al., SC 2013; powers from -3 to 3, as a quantity per process
    may fall.
    """
    powers = [Fraction(sign + power) for power in _NORMAL_POWERS for sign in ("", "-")]
    stays = product_of(factors)
    found: dict[str, Form] = {}
    for power, logs in every(powers, _NORMAL_LOGS):
        if power or logs:
            term = product_of({**factors, variable: (power, logs)})
            for form in (Form((term,), LAST), Form((term, stays), LAST)):
                found.setdefault(form.text, form)
    return tuple(found.values())


def _differ(first: LawTerm, second: LawTerm) -> int:
    """Number of variables in which two products differ; other formulas are of one variable."""
    if first.factors is None or second.factors is None:
        return 1
    one, other = first.factors or {}, second.factors or {}
    return sum(one.get(name) != other.get(name) for name in {*one, *other})


def _fixed(hints: Sequence[str], varied: Iterable[str]) -> dict[str, Factor]:
    """What the first hint says of the variables that do not vary."""
    factors: Factors = (read_form(hints[0])[0].factors or {}) if hints else {}
    return {
        name: factor
        for name, factor in factors.items()
        if name not in varied and not is_of_grid(name)
    }


@lru_cache(maxsize=16)
def _products(
    varied: tuple[str, ...], fixed: tuple[tuple[str, Factor], ...]
) -> tuple[tuple[LawTerm, float], ...]:
    """Products of a factor of each variable, with their priors."""
    own = {"P": PROCESSES, "T": THREADS}
    choices = [own.get(name, PARAMETERS) for name in varied]
    if np.prod([len(factors) for factors in choices]) > _MANY:
        choices = [own.get(name, _FEW_PARAMETERS) for name in varied]
    found = []
    for factors in every(*(choice.items() for choice in choices)):
        prior = sum(value for _, value in factors)
        if prior >= _LEAST_PRODUCT:
            powers = dict(zip(varied, (factor for factor, _ in factors), strict=True))
            found.append((product_of(powers | dict(fixed)), prior))
    return tuple(found)


def is_of_grid(name: str) -> bool:
    """Whether a parameter is an extent of a grid: P and N determine it."""
    return _OF_GRIDS.fullmatch(name) is not None
