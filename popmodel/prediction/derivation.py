"""The formula of the runtime or of a metric, as a person would write it down.

One expression of everything has hundreds of terms. Here it is a list of short equations: the metric
by its family's definition, what it needs of the run, the times of a process, those of each item of
the program, the names of the signature, and the laws of the machine; each refers to the next ones
by name, down to the symbols that have values. The equations are traced (`expressions.traced`)
through the code that also predicts, and each printed equation is evaluated again and compared.

Predictions show the replay of a run: its formula is the closed form with every delay times the
factor that the replay found, a symbol of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from sympy.core.exprtools import factor_terms
from sympy.core.symbol import Symbol
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.expressions import Takes, parse
from popmodel.base.expressions.elementary import TracedExpression, Value, exact
from popmodel.base.units import format_size, format_time, plural
from popmodel.base.values import dataclass, document, fields_of
from popmodel.efficiency.family import AGGREGATES, Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import TIERS
from popmodel.model.predictor import Study
from popmodel.model.replayed_run import ReplayAgreement
from popmodel.model.run.process_placement import WHOLE, Allocation, Placement
from popmodel.model.run.work import (
    AVERAGED,
    WORK,
    Change,
    Correction,
    Delays,
    ModelledObservables,
    RunWork,
    closed_delays,
    closed_form,
    corrected,
    observe,
)
from popmodel.model.signature.application import Signature, names
from popmodel.model.symbols import SYMBOLS, explain, not_modelled, short_name
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.terms.openmp import random_round
from popmodel.model.uncertainty import nominal
from popmodel.prediction.causes import Elasticity, elasticities
from popmodel.prediction.prediction import MAIN_FAMILY, subject

SCHEMA = "popmodel/formula/1"
RUNTIME = "runtime"
FUNCTIONS: Mapping[str, Callable[..., Any]] = {"q": expected_maximum, "mva": random_round}
"""What formulas call by name beside the functions of the grammar."""
KINDS = ("metric", "run", "process", "item", "signature", "machine")
"""Kinds of equations in display order."""

_TOLERANCE = 1e-9
_DELAYS: Mapping[str, str] = {
    "unequal": "extra computation of the slowest process",
    "waiting": "waiting that no network removes",
    "transfer": "messages and collectives",
}
_ARGUMENTS: Mapping[str, Takes] = {"q": Takes(1), "mva": Takes(3)}


class FormulaError(AssertionError):
    """A printed formula does not give the predicted value: a term computes on two ways."""


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
        """Right-hand side in the grammar of `popmodel.base.expressions`."""
        return text(self.formula)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "text": self.text,
            "latex": f"{latex_name(self.name)} = {latex(self.formula)}",
            **fields_of(self, "value", "unit", "meaning", "kind"),
        }


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
        return {
            "name": self.name,
            "latex": latex_name(self.name),
            **fields_of(self, "path", "meaning", "unit"),
            **fields_of(self.quantity, "value", "low", "high", "origin"),
        }


@dataclass(frozen=True)
class Formula:
    """A quantity with the equations that give it; made by `derive`."""

    # Program and machine.
    signature: Signature
    profile: Profile
    settings: Mapping[str, float]  # Value of every parameter of the application
    placement: Placement  # Processes, threads, nodes
    metric: str  # ``runtime``, or FAMILY.METRIC
    title: str  # Name for people
    # The first is that of the quantity; the others follow by `KINDS`.
    equations: tuple[FormulaEquation, ...]
    symbols: tuple[GivenSymbol, ...]  # Every name that no equation defines
    # Of the quantity, the largest first; empty if it is not positive.
    elasticities: tuple[Elasticity, ...]
    notes: tuple[str, ...]  # Remarks for the reader

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/formula/1``, without provenance."""
        first = self.equations[0].to_dict()
        return document(
            SCHEMA,
            **subject(self.signature, self.profile, self.settings),
            **fields_of(self.placement, "processes", "threads"),
            **fields_of(self, "metric", "title"),
            **{key: first[key] for key in ("text", "latex", "value", "unit")},
            parts=self.equations,
            **fields_of(self, "symbols", "elasticities", "notes"),
        )


def choose(asked: str, families: Mapping[str, Family], main: str) -> tuple[Family | None, str]:
    """Find the metric that was asked for."""
    from popmodel.efficiency.explain import explain as explain_metric

    if asked == RUNTIME:
        return None, RUNTIME
    try:
        found = explain_metric(asked, families)
    except UsageError as error:
        hint = did_you_mean(asked, [RUNTIME], "") or error.hint
        raise UsageError(f"--formula: {error.message}", hint) from None
    having = [definition["family"] for definition in found["definitions"]]
    return families[main if main in having else having[0]], found["metric"]


def formula(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    asked: str = RUNTIME,
    settings: Mapping[str, float] | None = None,
    *,
    allocation: Allocation = WHOLE,
) -> Formula:
    """Return the formula of what `popmodel.prediction.prediction.predict` says of a run."""
    family, metric = choose(asked, load_families(), MAIN_FAMILY)
    study = Study(signature, profile, settings or {}, draws=0, seed=0, allocation=allocation)
    placement = study.admit_or_advise(processes, threads)
    agreement = study.outcome(placement, study.sources()).agreement
    return derive(study, placement, family, metric, agreement)


def derive(
    study: Study,
    placement: Placement,
    family: Family | None,
    metric: str = RUNTIME,
    agreement: ReplayAgreement | None = None,
) -> Formula:
    """Return the formula of the runtime or of a metric at some P and T."""
    run = study.run(placement, study.sources(draws=0), agreement=agreement)
    result = _result(family, metric)
    expected = nominal(result(run.modelled))
    paths = study.signature.paths
    units = {paths[name]: unit for name, unit in study.signature.units.items()}
    notebook = Notebook(study.profile, _quantities(study), units)
    aggregates = _aggregates(study, placement, notebook, agreement)
    if family is None:
        meaning = AGGREGATES[RUNTIME].meaning
        head = notebook.write(RUNTIME, aggregates[RUNTIME], "s", meaning, "metric")
    else:
        head = _metric(family, metric, aggregates, notebook)
    equations, symbols = notebook.reachable(head.formula.name)
    _check(equations, symbols, expected, nominal(run.modelled.runtime))
    notes = _notes(placement, equations, agreement)
    if run.machine.left_out:
        notes.append(not_modelled(run.machine.left_out))
    try:
        sensitive = elasticities(study, placement, result, agreement)
    except ValueError as problem:  # an additive efficiency may fall to zero and below
        sensitive = ()
        notes.append(str(problem))
    return Formula(
        study.signature,
        study.profile,
        study.values,
        placement,
        RUNTIME if family is None else f"{family.id}.{metric}",
        "Runtime" if family is None else family.metrics[metric].name,
        equations,
        symbols,
        sensitive,
        tuple(notes),
    )


def _result(family: Family | None, metric: str) -> Callable[[ModelledObservables], Value]:
    """What to compute from a run; an error if it has no value."""

    def result(modelled: ModelledObservables) -> Value:
        if family is None:
            return modelled.runtime
        sampled = family.evaluate_samples(modelled.aggregates, modelled.absent)
        if metric not in sampled.values:
            raise UsageError(
                f"--formula: {family.id}.{metric} has no value: {sampled.absent[metric]}",
                "popmodel predict lists the metrics that have one",
            )
        return sampled.values[metric]

    return result


def _quantities(study: Study) -> dict[str, Quantity]:
    """The inputs, those that a what-if factor changes with their changed value."""
    drawn = study.sources(draws=0)
    changed = {
        path: replace(study.quantities[path], value=float(drawn[path]), low=None, high=None)
        for path in study.factors
    }
    return {**study.quantities, **changed}


def _aggregates(
    study: Study, placement: Placement, notebook: Notebook, agreement: ReplayAgreement | None
) -> dict[str, Value]:
    """The scalars of a run over named times, which the notebook defines."""
    signature = study.signature
    request = {
        name: notebook.given(
            name, name, SYMBOLS[name].meaning, "1", Quantity(float(number), origin="request")
        )
        for name, number in (("P", placement.processes), ("T", placement.threads))
    }
    inputs = {**request, **{name: notebook[path] for name, path in signature.paths.items()}}
    numbers, _ = names(signature, placement.processes, placement.threads, inputs)
    values = dict(inputs)
    for name, value in numbers.items():
        if name not in inputs:
            meaning = SYMBOLS[name].meaning if name in SYMBOLS else "defined in the signature"
            values[name] = notebook.write(name, value, "", meaning, "signature")
    plain = study.model(placement, study.sources(draws=0))
    parameters = replace(
        plain.point.parameters,
        values=notebook.__getitem__,
        named=partial(notebook.define, kind="machine"),
    )
    point = replace(plain.point, parameters=parameters, values=values)
    tree = replace(plain, point=point).work()
    named = tree.mapped(lambda node: notebook.work(node.work, node.item.name, "item"))
    work = notebook.work(named.total, "", "process")
    # the fields of a placement are whole numbers everywhere else
    traced: Any = replace(placement, processes=request["P"], threads=request["T"])  # type: ignore[arg-type]
    spread = {
        name: value
        if name == AVERAGED
        else notebook.define(
            f"sigma_{name[0]}", value, "1", f"{SYMBOLS[f'imbalance.{name}'].meaning}", "run"
        )
        for name, value in named.spread(study.spread(traced, notebook)).items()
    }
    if agreement is None:
        course = closed_form(work, traced.processes, spread, has_mpi=study.has_mpi)
    else:
        found = closed_delays(work, traced.processes, spread)
        delays = Delays(
            *(
                notebook.define(
                    f"delay_{name}", getattr(found, name), "s", f"{meaning}, closed form", "run"
                )
                for name, meaning in _DELAYS.items()
            )
        )
        work, course = corrected(work, delays, _named(agreement.correction, notebook))
    return observe(work, traced, course, has_mpi=study.has_mpi).aggregates


def _named(correction: Correction, notebook: Notebook) -> Correction:
    """The correction by a replay as symbols."""

    def symbol_of(name: str, value: Value, neutral: float, meaning: str, unit: str) -> Value:
        number = nominal(value)
        if number == neutral:
            return number
        path = f"replay.{name.partition('_')[2]}"
        return notebook.given(name, path, meaning, unit, Quantity(number, origin="replay"))

    def symbols(delay: str) -> Change:
        change: Change = getattr(correction, delay)
        over, less = (f"{_DELAYS[delay]}: replay {word} closed form" for word in ("over", "less"))
        return Change(
            symbol_of(f"rho_{delay}", change.factor, 1, over, "1"),
            symbol_of(f"extra_{delay}", change.seconds, 0, less, "s"),
        )

    meaning = "computation of an average process: replay over closed form"
    computation = symbol_of("rho_computation", correction.computation, 1, meaning, "1")
    return Correction(symbols("unequal"), symbols("waiting"), symbols("transfer"), computation)


def _metric(
    family: Family, id: str, aggregates: Mapping[str, Value], notebook: Notebook
) -> TracedExpression:
    """A metric by the definition of its family; what it needs is defined as well."""
    metric = family.metrics[id]
    values = {
        name: _metric(family, name, aggregates, notebook)
        if name in family.metrics
        else notebook.define(
            name, aggregates[name], AGGREGATES[name].unit, AGGREGATES[name].meaning, "run"
        )
        for name in sorted(metric.formula.names)
    }
    value = metric.formula.evaluate(values)
    return notebook.write(id, value, "1", metric.name, "metric")


def _check(
    equations: tuple[FormulaEquation, ...],
    symbols: tuple[GivenSymbol, ...],
    expected: float,
    runtime: float,
) -> None:
    """Evaluate what is printed and compare it with what was computed and predicted."""
    values = {given.name: given.quantity.value for given in symbols}
    values |= {equation.name: equation.value for equation in equations}
    head = equations[0]
    pairs = [(head.name, head.value, expected, head.unit)]
    for equation in equations:
        printed = parse(equation.text, _ARGUMENTS).evaluate(values, FUNCTIONS)
        pairs.append((equation.name, float(printed), equation.value, equation.unit))
    for name, first, second, unit in pairs:
        # differences of times may cancel; they are as exact as the times themselves
        scale = max(abs(second), {"s": runtime, "1": 1.0}.get(unit, 0.0))
        if not abs(first - second) <= _TOLERANCE * scale:
            raise FormulaError(f"{name} is {second:.12g}, but its formula gives {first:.12g}")


def _notes(
    placement: Placement,
    equations: tuple[FormulaEquation, ...],
    agreement: ReplayAgreement | None,
) -> list[str]:
    processes, threads = placement.processes, placement.threads
    notes = [
        f"valid near P = {processes}, T = {threads}: maxima, thresholds and choices are resolved "
        "as they hold there; numbers of rounds, neighbours, competing messages and active cores "
        "are those of this split"
    ]
    if agreement is not None and agreement.correction != Correction():
        notes.append(
            "rho_... and extra_... are corrections by a replay of the messages; without them "
            f"the runtime is {format_time(nominal(agreement.closed_form.runtime))}"
        )
    if any("q(" in one.text for one in equations):
        notes.append(
            "q(n) is the expected maximum of n standard normal values: "
            f"q({processes}) = {expected_maximum(processes):.4g}"
        )
    if any("mva(" in one.text for one in equations):
        notes.append(
            "mva(n, Z, S) is the mean time between two entries of a thread into a critical "
            "section, for n threads with times Z outside and S inside it (mean value analysis)"
        )
    return notes


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

    def work(self, work: RunWork, item: str, kind: str) -> RunWork:
        """Name the parts of a piece of work."""
        named: dict[str, Any] = {}
        about = f"{item}: " if item else ""
        for part, value in work._asdict().items():
            name, unit, meaning = WORK[part]
            full = f"{name}_{_identifier(item)}" if item else name
            named[part] = self.define(full, value, unit, about + meaning, kind)
        return work._replace(**named)

    def reachable(self, head: str) -> tuple[tuple[FormulaEquation, ...], tuple[GivenSymbol, ...]]:
        """The equations and symbols that a name rests on: the name first, what is in it later."""
        needed: set[str] = set()
        waiting = [head]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                if name in self.equations:
                    waiting += [used.name for used in self.equations[name].formula.free_symbols]
        symbols = tuple(given for name, given in self.symbols.items() if name in needed)
        equations = [equation for name, equation in self.equations.items() if name in needed]
        # a metric was written down after those in it
        metrics = [equation for equation in reversed(equations) if equation.kind == "metric"]
        others = [equation for equation in equations if equation.kind != "metric"]
        return (*metrics, *sorted(others, key=lambda other: KINDS.index(other.kind))), symbols

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


# Formulas as text, which `popmodel.base.expressions` reads, and as LaTeX.


_LONGEST_SYMBOL = 2  # letters; longer names are words
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


@lru_cache(maxsize=1024, typed=True)
def text(formula: Any) -> str:
    """Return a SymPy expression as text in the grammar of `popmodel.base.expressions`."""
    return str(_TextPrinter().doprint(formula))


@lru_cache(maxsize=1024, typed=True)
def latex(formula: Any) -> str:
    """Return a SymPy expression as LaTeX."""
    return str(_LatexPrinter({"mul_symbol": r" \, "}).doprint(formula))


@lru_cache(maxsize=1024, typed=True)
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
