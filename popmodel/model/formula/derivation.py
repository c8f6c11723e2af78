"""The formula of the runtime or of a metric, as a person would write it down.

One expression of everything has hundreds of terms. Here it is a list of short equations: the metric
by its family's definition, what it needs of the run, the times of a process, those of each item of
the program, the names of the signature, and the laws of the machine; each refers to the next ones
by name, down to the symbols that have values. The equations are traced (`expressions.traced`)
through the code that also predicts, and each printed equation is evaluated again and compared.

Where the replay decides a predicted value, the formula is still that of the closed form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from popmodel.errors import UsageError
from popmodel.expressions import parse
from popmodel.expressions.elementary import Value
from popmodel.expressions.traced import Traced, exact
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.metrics.family import Family
from popmodel.metrics.hierarchy import load_families
from popmodel.metrics.observables import AGGREGATES
from popmodel.model.elasticity import elasticities
from popmodel.model.formula import notation
from popmodel.model.prediction import MAIN_FAMILY, Elasticity
from popmodel.model.run import grid
from popmodel.model.run.course import closed_form
from popmodel.model.run.observe import Modelled, observe
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.performance import Model
from popmodel.model.run.placement import WHOLE, Allocation, Placement
from popmodel.model.run.work import Work
from popmodel.model.signature.program import Item, Loop, Signature
from popmodel.model.study import Evaluation, Study
from popmodel.model.symbols import SYMBOLS, explain, short_name
from popmodel.model.terms.critical import random_round
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.uncertainty import nominal
from popmodel.units import format_size, format_time, plural

SCHEMA = "popmodel/formula/1"
RUNTIME = "runtime"

_TOLERANCE = 1e-9
FUNCTIONS: Mapping[str, Callable[..., Any]] = {"q": expected_maximum, "mva": random_round}
"""What formulas call by name beside the functions of the grammar."""

_ARGUMENTS: Mapping[str, int] = {"q": 1, "mva": 3}

WORK: Mapping[str, tuple[str, str, str]] = {
    "serial": ("t_serial", "s", "code of the master outside parallel regions"),
    "share": ("t_share", "s", "useful time in parallel regions, average thread"),
    "stretched": ("t_busiest", "s", "useful time in parallel regions, busiest thread"),
    "overhead": ("t_overhead", "s", "OpenMP constructs"),
    "synchronising": ("t_sync", "s", "OpenMP constructs in which threads wait"),
    "single_thread": ("t_single", "s", "parallel loops with one thread"),
    "waiting": ("t_waiting", "s", "waiting that no network removes"),
    "transfer": ("t_transfer", "s", "messages and collectives"),
    "steps": ("n_meet", "1", "how often processes meet"),
    "serial_cycles": ("c_serial", "cycle", "cycles of the master outside parallel regions"),
    "region_cycles": ("c_region", "cycle", "cycles of a thread in parallel regions"),
    "flops": ("n_flop", "1", "floating-point operations"),
    "memory_bytes": ("n_bytes", "B", "traffic to memory"),
    "instructions": ("n_instr", "instructions", "instructions of all threads in useful time"),
}
"""Parts of the work of a process: name in formulas, unit, meaning."""


_WHERE: Mapping[str, str] = {
    "inter": "between nodes",
    "intra": "inside a node",
    "socket": "inside a socket",
}


class FormulaError(AssertionError):
    """A printed formula does not give the predicted value: a term computes on two ways."""


@dataclass(frozen=True)
class Equation:
    """A name and what it is equal to.

    Attributes
    ----------
    name : str
        Left-hand side.
    formula : sympy.Expr
        Right-hand side, in names of other equations and of symbols.
    value : float
        In SI units.
    unit : str
        SI unit; 1 for ratios and counts.
    meaning : str
        What it is.
    kind : {'metric', 'run', 'process', 'item', 'signature', 'machine'}
        What it is about.
    """

    name: str
    formula: Any
    value: float
    unit: str
    meaning: str
    kind: str

    @property
    def text(self) -> str:
        """Right-hand side in the grammar of `popmodel.expressions`."""
        return notation.text(self.formula)

    def to_dict(self) -> dict[str, Any]:
        """Give the equation as JSON types."""
        return {
            "name": self.name,
            "text": self.text,
            "latex": f"{notation.latex_name(self.name)} = {notation.latex(self.formula)}",
            "value": self.value,
            "unit": self.unit,
            "meaning": self.meaning,
            "kind": self.kind,
        }


KINDS = ("metric", "run", "process", "item", "signature", "machine")
"""Kinds of equations in display order."""


@dataclass(frozen=True)
class Given:
    """A symbol that has a value.

    Attributes
    ----------
    name : str
        Name in formulas.
    path : str
        Where the value comes from: a path in the profile, ``params.NAME``, or the name itself.
    meaning, unit : str
        What it is, in which SI unit.
    quantity : Quantity
        Its value, interval and origin.
    """

    name: str
    path: str
    meaning: str
    unit: str
    quantity: Quantity

    def to_dict(self) -> dict[str, Any]:
        """Give the symbol as JSON types."""
        return {
            "name": self.name,
            "latex": notation.latex_name(self.name),
            "path": self.path,
            "meaning": self.meaning,
            "unit": self.unit,
            "value": self.quantity.value,
            "low": self.quantity.low,
            "high": self.quantity.high,
            "origin": self.quantity.origin,
        }


@dataclass(frozen=True)
class Formula:
    """A quantity with the equations that give it; made by `derive`.

    Attributes
    ----------
    signature, profile : Signature, Profile
        Program and machine.
    settings : mapping of str to float
        Value of every parameter of the application.
    placement : Placement
        Processes, threads, nodes.
    metric : str
        ``runtime``, or FAMILY.METRIC.
    title : str
        Name for people.
    equations : tuple of Equation
        The first is that of the quantity; the others follow by `KINDS`.
    symbols : tuple of Given
        Every name that no equation defines.
    elasticities : tuple of Elasticity
        Of the quantity, the largest first; empty if it is not positive.
    notes : tuple of str
        Remarks for the reader.
    """

    signature: Signature
    profile: Profile
    settings: Mapping[str, float]
    placement: Placement
    metric: str
    title: str
    equations: tuple[Equation, ...]
    symbols: tuple[Given, ...]
    elasticities: tuple[Elasticity, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/formula/1``, without provenance."""
        first = self.equations[0].to_dict()
        return {
            "schema": SCHEMA,
            "application": {
                "name": self.signature.name,
                "path": self.signature.path,
                "bundled": self.signature.is_bundled,
                "settings": dict(self.settings),
            },
            "machine": {
                "name": self.profile.name,
                "path": self.profile.path,
                "preset": self.profile.is_preset,
                "origin": self.profile.origin,
            },
            "processes": self.placement.processes,
            "threads": self.placement.threads,
            "metric": self.metric,
            "title": self.title,
            **{key: first[key] for key in ("text", "latex", "value", "unit")},
            "parts": [one.to_dict() for one in self.equations],
            "symbols": [one.to_dict() for one in self.symbols],
            "elasticities": [one.to_dict() for one in self.elasticities],
            "notes": list(self.notes),
        }


class Notebook:
    """Collects symbols and equations while a model is traced.

    Parameters
    ----------
    profile : Profile
        Names some quantities by the thread counts that it has.
    quantities : mapping of str to Quantity
        By path: what may become a symbol.
    units : mapping of str to str
        By path: units that the signature states for parameters.
    """

    def __init__(
        self, profile: Profile, quantities: Mapping[str, Quantity], units: Mapping[str, str]
    ) -> None:
        self.profile = profile
        self.quantities = quantities
        self.units = units
        self.equations: dict[str, Equation] = {}
        self.symbols: dict[str, Given] = {}
        self._by_path: dict[str, Traced] = {}

    def __getitem__(self, path: str) -> Traced:
        """Give a quantity as a symbol."""
        if path not in self._by_path:
            quantity = self.quantities[path]
            known = explain(path)
            unit = self.units.get(path, "") if known is None else known.unit
            self._by_path[path] = self.given(
                self._short(path), path, self._meaning(path), unit, quantity
            )
        return self._by_path[path]

    def given(self, name: str, path: str, meaning: str, unit: str, quantity: Quantity) -> Traced:
        """Give a new symbol."""
        name = self._free(name)
        self.symbols[name] = Given(name, path, meaning, unit, quantity)
        return Traced(quantity.value, notation.symbol(name, quantity.value))

    def define(
        self, name: str, value: Value, unit: str, meaning: str, kind: str, *, always: bool = False
    ) -> Value:
        """Give a value a name of its own.

        A number, or what has a name already, stays as it is, unless ``always``.
        """
        if not always and (not isinstance(value, Traced) or value.formula.is_Atom):
            return value
        formula = notation.tidy(value.formula if isinstance(value, Traced) else exact(value))
        number = float(value)
        for known in self.equations.values():
            if known.formula == formula and known.meaning == meaning and known.kind == kind:
                return Traced(number, notation.symbol(known.name, number))
        name = self._free(name)
        self.equations[name] = Equation(name, formula, number, unit, meaning, kind)
        return Traced(number, notation.symbol(name, number))

    def work(self, work: Work, item: str, kind: str) -> Work:
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
        table = self.profile.document["net"][found[1]]["classes"]
        upto = None if found[2] is None else table[int(found[2])].get("upto")
        least = table[int(found[2]) - 1]["upto"] if found[2] not in (None, "0") else None
        sizes = "" if upto is None else f", up to {format_size(upto)}"
        if upto is None and least is not None:
            sizes = f", above {format_size(least)}"
        return f"{known.meaning}, {_WHERE[found[1]]}{sizes}"

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
            return name if self.profile.size_classes(tier) > 1 else name.removesuffix("_1")
        return name

    def _free(self, name: str) -> str:
        taken = self.symbols.keys() | self.equations.keys() | FUNCTIONS.keys()
        number = 2
        free = name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free


@dataclass(frozen=True, kw_only=True)
class _NamedParameters(Parameters):
    """Values of the machine as symbols, and laws over them by names of their own."""

    notebook: Notebook

    def frequency(self, active: int) -> Value:
        meaning = f"clock with {active} active cores of a node"
        return self._law(f"f_{active}", super().frequency(active), "Hz", meaning)

    def bandwidth(self, active: int) -> Value:
        meaning = f"memory bandwidth of {active} active cores of a domain"
        return self._law(f"b_{active}", super().bandwidth(active), "B/s", meaning)

    def overhead(self, construct: str, threads: int) -> Value:
        meaning = f"overhead of {construct} at {threads} threads"
        return self._law(f"O_{construct}", super().overhead(construct, threads), "s", meaning)

    def _law(self, name: str, value: Value, unit: str, meaning: str) -> Value:
        return self.notebook.define(name, value, unit, meaning, "machine")


@dataclass(frozen=True, kw_only=True)
class _NamedModel(Model):
    """A model that gives the work of every item a name."""

    notebook: Notebook = field(repr=False)

    def work_of(self, item: Item) -> Work:
        work = super().work_of(item)
        return work if isinstance(item, Loop) else self.notebook.work(work, item.name, "item")


def choose(asked: str, families: Mapping[str, Family], main: str) -> tuple[Family | None, str]:
    """Find the metric that was asked for.

    Parameters
    ----------
    asked : str
        ``runtime``, a metric's id or name, or FAMILY.METRIC.
    families : mapping of str to Family
        Where to look.
    main : str
        Family to take if several have the metric.

    Returns
    -------
    family : Family or None
        None for the runtime.
    metric : str

    Raises
    ------
    UsageError
        If there is none; the hint has near names.
    """
    from difflib import get_close_matches

    from popmodel.metrics.explain import explain as explain_metric

    if asked == RUNTIME:
        return None, RUNTIME
    try:
        found = explain_metric(asked, families)
    except UsageError as error:
        near = get_close_matches(asked, [RUNTIME], 1)
        hint = f"did you mean {RUNTIME}?" if near else error.hint
        raise UsageError(f"--formula: {error.message}", hint) from None
    having = [definition.family for definition in found.definitions]
    return families[main if main in having else having[0]], found.metric


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
    """Give the formula of what `popmodel.model.predict.predict` says of a run.

    Parameters
    ----------
    signature, profile : Signature, Profile
        Application and machine.
    processes, threads : int
        P, and T per process.
    asked : str
        ``runtime``, a metric's id or name, or FAMILY.METRIC.
    settings : mapping of str to float, optional
        Values instead of the signature's parameters.
    allocation : Allocation, optional
        What of the machine may be used; all of it by default.

    Raises
    ------
    UsageError
        If there is no such metric or it has no value, or the run is not possible.
    MissingQuantity
        If the machine profile does not know something that the application needs.
    FormulaError
        If the printed equations do not give the predicted value.
    """
    family, metric = choose(asked, load_families(), MAIN_FAMILY)
    study = Study(signature, profile, settings or {}, draws=0, seed=0, allocation=allocation)
    placement = study.admit_or_advise(processes, threads)
    found = derive(study, placement, family, metric)
    _, agreement, _ = study.checked(placement, study.run(placement, study.sources()))
    if agreement is None or not agreement.trusts_replay:
        return found  # the prediction is the closed form, too
    remark = (
        "the formula is that of the closed form; popmodel predict shows the replay, which gives "
        f"a runtime of {format_time(agreement.replay.runtime)}"
    )
    return replace(found, notes=(*found.notes, remark))


def derive(
    study: Study, placement: Placement, family: Family | None, metric: str = RUNTIME
) -> Formula:
    """Give the formula of the runtime or of a metric at some P and T.

    Parameters
    ----------
    study : Study
        Program and machine.
    placement : Placement
        P and T.
    family : Family or None
        None for the runtime.
    metric : str
        A metric of the family.

    Raises
    ------
    UsageError
        If the metric has no value here.
    FormulaError
        If the printed equations do not give the predicted value.
    """
    run = study.run(placement, study.sources(draws=0))
    expected = _result(family, metric)(run.modelled)
    units = {f"params.{name}": unit for name, unit in study.signature.units.items()}
    notebook = Notebook(study.profile, _quantities(study), units)
    aggregates = _aggregates(study, placement, notebook)
    if family is None:
        meaning = AGGREGATES[RUNTIME].meaning
        head = notebook.define(RUNTIME, aggregates[RUNTIME], "s", meaning, "metric", always=True)
    else:
        head = _metric(family, metric, aggregates, notebook)
    equations, symbols = _reachable(notebook, head.formula.name)
    _check(equations, symbols, nominal(expected), nominal(run.modelled.runtime))
    notes = _notes(placement, run, equations)
    try:
        found = elasticities(study, placement, _result(family, metric))
    except ValueError as problem:  # an additive efficiency may fall to zero and below
        found, notes = (), (*notes, str(problem))
    return Formula(
        study.signature,
        study.profile,
        {name: quantity.value for name, quantity in study.params.items()},
        placement,
        RUNTIME if family is None else f"{family.id}.{metric}",
        "Runtime" if family is None else family.metrics[metric].name,
        equations,
        symbols,
        found,
        notes,
    )


def _result(family: Family | None, metric: str) -> Callable[[Modelled], Value]:
    """What to compute from a run; an error if it has no value."""

    def result(modelled: Modelled) -> Value:
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


def _aggregates(study: Study, placement: Placement, notebook: Notebook) -> dict[str, Value]:
    """The scalars of a run over named times, which the notebook defines."""
    signature = study.signature
    request = {
        name: notebook.given(
            name, name, SYMBOLS[name].meaning, "1", Quantity(float(number), origin="request")
        )
        for name, number in (("P", placement.processes), ("T", placement.threads))
    }
    inputs = {**request, **{name: notebook[f"params.{name}"] for name in study.params}}
    numbers, _ = grid.names(signature, placement.processes, placement.threads, inputs)
    values = dict(inputs)
    for name, value in numbers.items():
        if name not in inputs:
            meaning = SYMBOLS[name].meaning if name in SYMBOLS else "defined in the signature"
            values[name] = notebook.define(name, value, "", meaning, "signature", always=True)
    plain = study.model(placement, study.sources(draws=0))
    parameters = _NamedParameters(
        **{**vars(plain.parameters), "values": notebook.__getitem__}, notebook=notebook
    )
    model = _NamedModel(
        **{**vars(plain), "parameters": parameters, "values": values}, notebook=notebook
    )
    work = notebook.work(model.work(), "", "process")
    # the fields of a placement are whole numbers everywhere else
    traced: Any = replace(placement, processes=request["P"], threads=request["T"])  # type: ignore[arg-type]
    spread = {
        name: notebook.define(
            f"sigma_{name[0]}", value, "1", f"{SYMBOLS[f'imbalance.{name}'].meaning}", "run"
        )
        for name, value in study.spread(traced, notebook).items()
    }
    course = closed_form(work, traced.processes, spread, has_mpi=study.has_mpi)
    return observe(work, traced, course, has_mpi=study.has_mpi).aggregates


def _metric(family: Family, id: str, aggregates: Mapping[str, Value], notebook: Notebook) -> Traced:
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
    traced: Traced = notebook.define(id, value, "1", metric.name, "metric", always=True)
    return traced


def _reachable(notebook: Notebook, head: str) -> tuple[tuple[Equation, ...], tuple[Given, ...]]:
    """The equations and symbols that a name rests on: the name first, what is in it later."""
    needed: set[str] = set()
    waiting = [head]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            if name in notebook.equations:
                waiting += [one.name for one in notebook.equations[name].formula.free_symbols]
    symbols = tuple(one for name, one in notebook.symbols.items() if name in needed)
    equations = [one for name, one in notebook.equations.items() if name in needed]
    # a metric was written down after those in it
    metrics = [one for one in reversed(equations) if one.kind == "metric"]
    others = [one for one in equations if one.kind != "metric"]
    return (*metrics, *sorted(others, key=lambda one: KINDS.index(one.kind))), symbols


def _check(
    equations: Sequence[Equation], symbols: Sequence[Given], expected: float, runtime: float
) -> None:
    """Evaluate what is printed and compare it with what was computed and predicted."""
    values = {one.name: one.quantity.value for one in symbols}
    values |= {one.name: one.value for one in equations}
    head = equations[0]
    pairs = [(head.name, head.value, expected, head.unit)]
    for one in equations:
        printed = parse(one.text, _ARGUMENTS).evaluate(values, FUNCTIONS)
        pairs.append((one.name, float(printed), one.value, one.unit))
    for name, first, second, unit in pairs:
        # differences of times may cancel; they are as exact as the times themselves
        scale = max(abs(second), {"s": runtime, "1": 1.0}.get(unit, 0.0))
        if not abs(first - second) <= _TOLERANCE * scale:
            raise FormulaError(f"{name} is {second:.12g}, but its formula gives {first:.12g}")


def _notes(placement: Placement, run: Evaluation, equations: Sequence[Equation]) -> tuple[str, ...]:
    processes, threads = placement.processes, placement.threads
    notes = [
        "of every maximum, threshold and choice the formula has the side that holds at "
        f"P = {processes} and T = {threads}, and the numbers of rounds, neighbours, competing "
        "messages and active cores are those of this split: it is valid near this point"
    ]
    if any("q(" in one.text for one in equations):
        notes.append(
            "q(n) is the expected maximum of n standard normal values: "
            f"q({processes}) = {expected_maximum(processes):.4g}"
        )
    if any("mva(" in one.text for one in equations):
        notes.append(
            "mva(n, Z, S) is the mean time between two entries of a thread to a critical section, "
            "of n threads with Z outside and S inside, by mean value analysis"
        )
    if run.left_out:
        notes.append(f"unknown of the machine and left out: {', '.join(sorted(run.left_out))}")
    return tuple(notes)


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "item"
