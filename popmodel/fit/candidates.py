"""Forms that a law may take, with how likely physics makes them before any run is looked at.

A form is a sum of one or two terms: products of powers and logarithms of P, T and parameters, or
any formula. Per process and execution, work that is shared out falls as 1/P, the faces of blocks as
P**(-2/3) in three dimensions and P**(-1/2) in two, replicated work stays, trees grow as log2 P,
what every process does for every other as P, along a dimension of a square grid as sqrt P. Simple
forms come first: one integer power of each variable, P and T alike; then a part that stays beside
it, or that goes otherwise with one variable.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations
from itertools import product as every
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.expressions import Expression, parse
from popmodel.fit.samples import Array, LawPoints

Factor = tuple[Fraction, int]
"""Power of a variable, and of its binary logarithm."""
Factors = Mapping[str, Factor]
"""By variable."""

_LARGEST_DENOMINATOR = 12


class LawTerm(NamedTuple):
    """A term without its coefficient."""

    text: str  # In the grammar of signatures: ``N**3/P``
    factors: Factors | None  # What it is a product of; None for any other formula

    @property
    def names(self) -> frozenset[str]:
        """Variables that it depends on."""
        return frozenset(self.factors) if self.factors is not None else _parsed(self.text).names

    def at(self, configuration: Mapping[str, Any]) -> Array:
        """Compute the term for numbers or arrays of one shape."""
        shape = np.broadcast_shapes(*(np.shape(value) for value in configuration.values()))
        if self.factors is None or not self.factors.keys() <= configuration.keys():
            value = _parsed(self.text).evaluate(configuration)
            return np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        product = np.ones(shape)
        for name, (power, logs) in self.factors.items():
            value = np.asarray(configuration[name], dtype=np.float64)
            product = product * value ** float(power)
            if logs:
                product = product * np.log2(value) ** logs
        return product

    def relative_to(self, reference: Mapping[str, float]) -> str:
        """Formula of the term over its value at a configuration: ``(N/64)**3*8/P``; "1" for 1."""
        if not self.names:
            return "1"
        if self.factors is None or any(logs for _, logs in self.factors.values()):
            value = float(self.at(reference))
            inner = self.text if self.factors is not None else f"({self.text})"
            return inner if value == 1 else f"{inner}/{number(value)}"
        return "*".join(
            _power_of_ratio(name, power, reference[name])
            for name, (power, _) in self.factors.items()
        )


def number(value: float) -> str:
    """A number as formulas have it: no digits beyond those that matter."""
    return f"{value:.12g}"


def _power_of_ratio(name: str, power: Fraction, reference: float) -> str:
    shown = number(reference)
    if reference == 1:
        ratio = name if power > 0 else f"1/{name}"
    else:
        ratio = f"{name}/{shown}" if power > 0 else f"{shown}/{name}"
    size = abs(power)
    if size == 1:
        return f"({ratio})"
    if size == Fraction(1, 2):
        return f"sqrt({ratio})"
    return f"({ratio})**{size if size.denominator == 1 else f'({size})'}"


def product_of(factors: Factors) -> LawTerm:
    """Return the term that is a product of powers, with its shortest text."""
    kept = {name: factors[name] for name in sorted(factors, key=_rank) if any(factors[name])}
    above: list[str] = []
    below: list[str] = []
    for name, (power, logs) in kept.items():
        if power:
            (above if power > 0 else below).append(_power(name, abs(power)))
        if logs:
            above.append(f"log2({name})" + (f"**{logs}" if logs > 1 else ""))
    text = "*".join(above) or "1"
    if below:
        joined = "*".join(below)
        text += f"/({joined})" if len(below) > 1 else f"/{joined}"
    return LawTerm(text, kept)


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    if power == Fraction(1, 2):
        return f"sqrt({name})"
    return f"{name}**{power if power.denominator == 1 else f'({power})'}"


@cache
def read_form(text: str) -> tuple[LawTerm, ...]:
    """Read a sum of terms: ``1/P + log2(P)``."""
    parse(text)
    terms = tuple(_term(node) for node in _summands(ast.parse(text.strip(), mode="eval").body))
    if len(terms) > 2:
        raise ValueError(f"{text}: a form has at most two terms")
    return terms


def form_text(terms: tuple[LawTerm, ...]) -> str:
    """The form that terms make: ``1/P + 1``."""
    return " + ".join(term.text for term in terms)


def _summands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_summands(node.left), *_summands(node.right)]
    return [node]


def _term(node: ast.expr) -> LawTerm:
    try:
        powers = _powers(node, Fraction(1))
    except ValueError:
        return LawTerm(ast.unparse(node), None)
    if any(logs.denominator != 1 or logs < 0 for _, logs in powers.values()):
        return LawTerm(ast.unparse(node), None)
    return product_of({name: (power, int(logs)) for name, (power, logs) in powers.items()})


def _rank(name: str) -> tuple[int, str]:
    """Parameters first, then P, then T."""
    return {"P": 1, "T": 2}.get(name, 0), name


def _powers(node: ast.expr, power: Fraction) -> dict[str, tuple[Fraction, Fraction]]:
    """Powers of variables, and of their logarithms, that make a formula raised to a power.

    A ValueError where it is no product of these.
    """
    match node:
        case ast.Constant(value=1):
            return {}
        case ast.Name(id=name):
            return {name: (power, Fraction(0))}
        case ast.Call(func=ast.Name(id="log2"), args=[ast.Name(id=name)]):
            return {name: (Fraction(0), power)}
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            return _powers(inner, power / 2)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            both = _powers(left, power)
            sign = 1 if isinstance(op, ast.Mult) else -1
            for name, (own, logs) in _powers(right, power * sign).items():
                other, other_logs = both.get(name, (Fraction(0), Fraction(0)))
                both[name] = (other + own, other_logs + logs)
            return both
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _powers(left, power * _constant(right))
    raise ValueError(ast.unparse(node))


def _constant(node: ast.expr) -> Fraction:
    expression = parse(ast.unparse(node))
    if expression.names or expression.calls:
        raise ValueError(ast.unparse(node))
    value = float(expression.evaluate({}))
    near = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if not math.isclose(float(near), value, rel_tol=1e-9, abs_tol=1e-12):
        raise ValueError(ast.unparse(node))
    return near


@cache
def _parsed(text: str) -> Expression:
    return parse(text)


def _priors(powers: Mapping[str, float]) -> dict[Factor, float]:
    """Factors as ``-1/2`` or ``-1 log``, by how unlikely they are: a logarithm."""
    found = {}
    for text, prior in powers.items():
        power, _, log = text.partition(" ")
        found[Fraction(power), int(bool(log))] = prior
    return found


PROCESSES = _priors(
    {
        "-1": 0, "0": 0, "-2/3": -1, "-1/2": -1, "0 log": -0.5, "1": -1.5, "1/2": -1.5,
        "-1 log": -1, "-1/3": -1.5, "-2": -2, "3/2": -6, "2": -6,
    }
)  # fmt: skip
"""Of a quantity per process."""
THREADS = _priors({"-1": 0, "0": 0, "0 log": -0.5, "1": -1.5})
PARAMETERS = _priors(
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


class Form(NamedTuple):
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
    forms: dict[tuple[str, ...], Form] = {}

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
            forms[tuple(sorted(term.text for term in form))] = Form(form, _ALONE - 0.25 * i)
    for term in terms.values():
        forms[term.text,] = Form((term,), prior_of(term))
    order = sorted(terms.values(), key=lambda term: term.text not in likely)
    crowd = -math.log(max(len(terms) / _FEW_TERMS, 1.0)) if likely else 0.0
    for pair in combinations(order, 2):
        key = tuple(sorted(term.text for term in pair))
        is_near = pair[0].text in likely or _differ(*pair) == 1
        if is_near and key not in forms:
            forms[key] = Form(pair, prior_of(*pair) + crowd)
    return tuple(forms.values())


def given(forms: Sequence[str], hints: Sequence[str] = ()) -> tuple[Form, ...]:
    """Return forms that the caller names, hints among them first."""
    texts = list(dict.fromkeys(form_text(read_form(text)) for text in (*hints, *forms)))
    own = [form_text(read_form(text)) for text in hints]
    return tuple(
        Form(read_form(text), _ALONE - 0.25 * own.index(text) if text in own else 0.0)
        for text in texts
    )


def _differ(first: LawTerm, second: LawTerm) -> int:
    """Number of variables in which two products differ; other formulas are of one variable."""
    if first.factors is None or second.factors is None:
        return 1
    names = {*first.factors, *second.factors}
    return sum(first.factors.get(name) != second.factors.get(name) for name in names)


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
    products = []
    for factors in every(*(choice.items() for choice in choices)):
        prior = sum(value for _, value in factors)
        if prior >= _LEAST_PRODUCT:
            powers = dict(zip(varied, (factor for factor, _ in factors), strict=True))
            products.append((product_of(powers | dict(fixed)), prior))
    return tuple(products)


def is_of_grid(name: str) -> bool:
    """Whether a parameter is an extent of a grid: P and N determine it."""
    return _OF_GRIDS.fullmatch(name) is not None


# Work whose cost rises where its data leave a cache. Of data of W beyond a capacity C, the part
# W**q/(W**q + C**q) comes from the memory behind the cache: none far below, all far above, half
# where both are equal. Seconds are those of the work in the cache and, of that part, more. What W
# is in bytes nobody has to know: it goes with the work of a run, where processes share the cache,
# or with that of a process or thread, where each has its own. C lies between the sizes measured.

_STEEP = (1, 2, 4)
"""Exponents q that are tried: from random to nearly regular use of the data."""
_DIGITS = 3
_MOST_CAPACITIES = 12
"""Capacities that are tried at most."""


def edged(points: LawPoints, works: Sequence[Form]) -> list[Form]:
    """Return forms of work with an edge of a cache."""
    forms: list[Form] = []
    for form in works:
        (work,) = form.terms
        factors = work.factors or {}
        whole = product_of({name: one for name, one in factors.items() if name not in ("P", "T")})
        # what the data may go with: the work of a process, that of all where the problem grows
        sizes = [work, *([whole] if whole.names and whole.text != work.text else [])]
        for size in sizes:
            over = size.text if size.text.isidentifier() else f"({size.text})"
            for capacity in _capacities(size.at(points.configurations)):
                for steep in _STEEP:
                    beyond = f"({number(capacity)}/{over})" + (f"**{steep}" if steep > 1 else "")
                    edge = LawTerm(f"{work.text}/(1 + {beyond})", None)
                    forms.append(Form((work, edge), LAST))
    return forms


def _capacities(sizes: Array) -> list[float]:
    """Middles between neighbouring sizes, on a logarithmic scale."""
    different = np.unique(sizes[sizes > 0])
    middles = np.sqrt(different[:-1] * different[1:]).tolist()
    step = math.ceil(len(middles) / _MOST_CAPACITIES) or 1
    return [float(f"{one:.{_DIGITS}g}") for one in middles[::step]]
