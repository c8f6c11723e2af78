"""Equations and symbols, collected while a model is traced, as text and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from sympy.core.exprtools import factor_terms
from sympy.core.symbol import Symbol
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from popmodel.efficiency.aggregates import AGGREGATES
from popmodel.expressions.elementary import Value
from popmodel.expressions.traced import TracedExpression, exact
from popmodel.machine.parameter import TIERS
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.model.run.work import RunWork
from popmodel.model.symbols import explain, short_name
from popmodel.model.terms.critical import random_round
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.plain import fields_of
from popmodel.units import format_size, plural
from popmodel.values import dataclass

# Formulas as text and as LaTeX.
#
# The text is what `popmodel.expressions` reads: what is printed can be evaluated again.


_LONGEST_SYMBOL = 2  # letters; longer names are words
_KNOWN = 1024  # formulas: the metrics of a run share most of theirs
_GREEK = ("alpha", "beta", "gamma", "kappa", "lambda", "sigma")


class _TextPrinter(StrPrinter):  # type: ignore[misc]
    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))


class _LatexPrinter(LatexPrinter):  # type: ignore[misc]
    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:  # noqa: ARG002
        return latex_name(expr.name)

    def _print_Float(self, expr: Any) -> str:
        mantissa, _, exponent = repr(float(expr)).partition("e")
        return mantissa if not exponent else rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


@lru_cache(maxsize=_KNOWN, typed=True)
def text(formula: Any) -> str:
    """Return a SymPy expression as text in the grammar of `popmodel.expressions`."""
    return str(_TextPrinter().doprint(formula))


@lru_cache(maxsize=_KNOWN, typed=True)
def latex(formula: Any) -> str:
    """Return a SymPy expression as LaTeX."""
    return str(_LatexPrinter({"mul_symbol": r" \, "}).doprint(formula))


@lru_cache(maxsize=_KNOWN, typed=True)
def tidy(formula: Any) -> Any:
    """Take out common factors of a sum where that makes the expression shorter."""
    factored = factor_terms(formula)
    return factored if len(text(factored)) < len(text(formula)) else formula


@lru_cache(maxsize=1024)
def latex_name(name: str) -> str:
    """Return a name as LaTeX: a letter or two with subscripts, or words as words."""
    head, *below = name.split("_")
    if name in AGGREGATES or (len(head) > _LONGEST_SYMBOL and head not in _GREEK):
        return rf"\text{{{name.replace('_', ' ')}}}"
    split = re.fullmatch(r"([A-Za-z]+)(\d+)", head)
    if split:
        head, below = split[1], [split[2], *below]
    if not below:
        return _upright(head)
    return f"{_upright(head)}_{{{','.join(_upright(part) for part in below if part)}}}"


def symbol(name: str, value: float) -> Symbol:
    """Return the SymPy symbol of a name, positive if its value is."""
    return Symbol(name, positive=True) if value > 0 else Symbol(name, real=True)


def _upright(word: str) -> str:
    if word in _GREEK:
        return rf"\{word}"
    return word if len(word) == 1 or word.isdigit() else rf"\mathrm{{{word}}}"


# Equations and symbols, collected while a model is traced.


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"q": expected_maximum, "mva": random_round}
"""What formulas call by name beside the functions of the grammar."""

WORK: Mapping[str, tuple[str, str, str]] = {
    "serial": ("t_serial", "s", "code of the master outside parallel regions"),
    "stated": ("t_stated", "s", "code of the master whose time the signature states"),
    "share": ("t_share", "s", "useful time in parallel regions, average thread"),
    "stretched": ("t_busiest", "s", "useful time in parallel regions, busiest thread"),
    "overhead": ("t_overhead", "s", "OpenMP constructs"),
    "synchronising": ("t_sync", "s", "OpenMP constructs in which threads wait"),
    "awaiting": ("t_await", "s", "waiting for the busiest thread in barriers and locks"),
    "single_thread": ("t_single", "s", "parallel loops with one thread"),
    "waiting": ("t_waiting", "s", "waiting that no network removes"),
    "transfer": ("t_transfer", "s", "messages and collectives"),
    "measured": ("t_measured", "s", "collectives by their measured times"),
    "steps": ("n_meet", "1", "how often processes meet"),
    "serial_cycles": ("c_serial", "cycle", "cycles of the master outside parallel regions"),
    "region_cycles": ("c_region", "cycle", "cycles of a thread in parallel regions"),
    "flops": ("n_flop", "1", "floating-point operations"),
    "memory_bytes": ("n_bytes", "B", "traffic to memory"),
    "instructions": ("n_instr", "instructions", "instructions of all threads in useful time"),
}
"""Parts of the work of a process: name in formulas, unit, meaning."""


@dataclass(frozen=True)
class FormulaEquation:
    """A name and what it is equal to."""

    name: str  # Left-hand side
    formula: Any  # Right-hand side, in names of other equations and of symbols
    value: float  # In SI units
    unit: str  # SI unit; 1 for ratios and counts
    meaning: str  # What it is
    kind: str  # What it is about

    @property
    def text(self) -> str:
        """Right-hand side in the grammar of `popmodel.expressions`."""
        return text(self.formula)

    def to_dict(self) -> dict[str, Any]:
        """Return the equation as JSON types."""
        return {
            "name": self.name,
            "text": self.text,
            "latex": f"{latex_name(self.name)} = {latex(self.formula)}",
            **fields_of(self, "value", "unit", "meaning", "kind"),
        }


KINDS = ("metric", "run", "process", "item", "signature", "machine")
"""Kinds of equations in display order."""


@dataclass(frozen=True)
class GivenSymbol:
    """A symbol that has a value."""

    name: str  # Name in formulas
    # Where the value comes from: a path in the profile, ``params.NAME``, or the name itself.
    path: str
    # What it is, in which SI unit.
    meaning: str
    unit: str
    quantity: Quantity  # Its value, interval and origin

    def to_dict(self) -> dict[str, Any]:
        """Return the symbol as JSON types."""
        return {
            "name": self.name,
            "latex": latex_name(self.name),
            **fields_of(self, "path", "meaning", "unit"),
            **fields_of(self.quantity, "value", "low", "high", "origin"),
        }


class Notebook:
    """Collects symbols and equations while a model is traced."""

    def __init__(
        self, profile: Profile, quantities: Mapping[str, Quantity], units: Mapping[str, str]
    ) -> None:
        self.profile = profile
        self.quantities = quantities
        self.units = units
        self.equations: dict[str, FormulaEquation] = {}
        self.symbols: dict[str, GivenSymbol] = {}
        self._by_path: dict[str, TracedExpression] = {}

    def copy(self) -> Notebook:
        """Return another notebook with what this one has so far."""
        other = Notebook(self.profile, self.quantities, self.units)
        other.equations, other.symbols = dict(self.equations), dict(self.symbols)
        other._by_path = dict(self._by_path)
        return other

    def __getitem__(self, path: str) -> TracedExpression:
        """Return a quantity as a symbol."""
        if path not in self._by_path:
            quantity = self.quantities[path]
            known = explain(path)
            unit = self.units.get(path, "") if known is None else known.unit
            self._by_path[path] = self.given(
                self._short(path), path, self._meaning(path), unit, quantity
            )
        return self._by_path[path]

    def given(
        self, name: str, path: str, meaning: str, unit: str, quantity: Quantity
    ) -> TracedExpression:
        """Return a new symbol."""
        name = self._free(name)
        self.symbols[name] = GivenSymbol(name, path, meaning, unit, quantity)
        return TracedExpression(quantity.value, symbol(name, quantity.value))

    def define(self, name: str, value: Value, unit: str, meaning: str, kind: str) -> Value:
        """Return a value with a name of its own; a number, or what has a name, as it is."""
        if not isinstance(value, TracedExpression) or value.formula.is_Atom:
            return value
        return self.write(name, value, unit, meaning, kind)

    def write(
        self, name: str, value: Value, unit: str, meaning: str, kind: str
    ) -> TracedExpression:
        """Return a value with a name of its own, whatever it is."""
        formula = tidy(value.formula if isinstance(value, TracedExpression) else exact(value))
        number = float(value)
        for known in self.equations.values():
            if known.formula == formula and known.meaning == meaning and known.kind == kind:
                return TracedExpression(number, symbol(known.name, number))
        name = self._free(name)
        self.equations[name] = FormulaEquation(name, formula, number, unit, meaning, kind)
        return TracedExpression(number, symbol(name, number))

    def law(self, name: str, value: Value, unit: str, meaning: str) -> Value:
        """Return a law of the machine a name of its own."""
        return self.define(name, value, unit, meaning, "machine")

    def work(self, work: RunWork, item: str, kind: str) -> RunWork:
        """Name the parts of a piece of work."""
        named: dict[str, Any] = {}
        about = f"{item}: " if item else ""
        for entry in fields(work):
            name, unit, meaning = WORK[entry.name]
            full = f"{name}_{_identifier(item)}" if item else name
            named[entry.name] = self.define(
                full, getattr(work, entry.name), unit, about + meaning, kind
            )
        return replace(work, **named)

    def _meaning(self, path: str) -> str:
        """What a quantity is, with the entry of its table."""
        known = explain(path)
        if known is None:
            return "parameter of the application"
        measured = self._construct(path)
        if measured is not None:
            return f"overhead of {measured[0]} at {plural(measured[1], 'thread')}"
        counted = re.fullmatch(r"core\.freq\.(\d+)", path)
        if counted is not None:
            return f"clock at {plural(int(counted[1]), 'active core')} of a node"
        found = re.fullmatch(r"net\.(\w+)\.(?:classes\[(\d+)\]\.)?\w+", path)
        if found is None:
            return known.meaning
        bounds = self.profile.class_bounds(found[1])
        upto = None if found[2] is None else bounds[int(found[2])]
        least = bounds[int(found[2]) - 1] if found[2] not in (None, "0") else None
        sizes = "" if upto is None else f", up to {format_size(upto)}"
        if upto is None and least is not None:
            sizes = f", above {format_size(least)}"
        return f"{known.meaning}, {TIERS[found[1]]}{sizes}"

    def _construct(self, path: str) -> tuple[str, int] | None:
        """Construct and thread count of a measured overhead."""
        found = re.fullmatch(r"openmp\.(\w+)\.seconds\[(\d+)\]", path)
        return found and (found[1], self.profile.thread_counts(found[1])[int(found[2])])

    def _short(self, path: str) -> str:
        measured = self._construct(path)
        if measured is not None:  # by threads rather than by the position in the table
            return f"O_{measured[0]}_{measured[1]}"
        name = short_name(path)
        if path.startswith("net.") and name.endswith("_1"):
            tier = path.split(".")[1]
            return name if len(self.profile.class_bounds(tier)) > 1 else name.removesuffix("_1")
        return name

    def _free(self, name: str) -> str:
        taken = self.symbols.keys() | self.equations.keys() | FUNCTIONS.keys()
        number = 2
        free = name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "item"
