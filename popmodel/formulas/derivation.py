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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.efficiency.aggregates import AGGREGATES
from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.errors import UsageError, did_you_mean
from popmodel.expressions import Takes, parse
from popmodel.expressions.elementary import Value
from popmodel.expressions.traced import TracedExpression
from popmodel.formulas.notebook import FUNCTIONS, KINDS, FormulaEquation, GivenSymbol, Notebook
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.model.evaluation import ModelEvaluation
from popmodel.model.replayed.agreement import ReplayAgreement
from popmodel.model.run.course import (
    AVERAGED,
    Change,
    Correction,
    Delays,
    closed_delays,
    closed_form,
    corrected,
)
from popmodel.model.run.observe import ModelledObservables, observe
from popmodel.model.run.placement import WHOLE, Allocation, Placement
from popmodel.model.signature.names import names
from popmodel.model.signature.program import Signature
from popmodel.model.study import Study
from popmodel.model.symbols import SYMBOLS, not_modelled
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.uncertainty import nominal
from popmodel.plain import document, fields_of
from popmodel.prediction.causes import elasticities
from popmodel.prediction.prediction import MAIN_FAMILY, Elasticity, subject
from popmodel.units import format_time
from popmodel.values import dataclass

SCHEMA = "popmodel/formula/1"
RUNTIME = "runtime"

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
    """Return the formula of what `popmodel.prediction.predict.predict` says of a run."""
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
    return derived(traced(study, placement, agreement), family, metric)


@dataclass(frozen=True)
class Basis:
    """A run whose scalars are traced: what all formulas of it rest on; made by `traced`."""

    study: Study  # Program and machine
    placement: Placement  # P and T
    agreement: ReplayAgreement | None  # A replay of this placement
    run: ModelEvaluation  # As predicted
    notebook: Notebook  # Names and equations up to the scalars
    aggregates: Mapping[str, Value]  # The scalars


def traced(study: Study, placement: Placement, agreement: ReplayAgreement | None = None) -> Basis:
    """Trace a run once, for the formulas of several metrics; parameters as of `derive`."""
    run = study.run(placement, study.sources(draws=0), agreement=agreement)
    paths = study.signature.paths
    units = {paths[name]: unit for name, unit in study.signature.units.items()}
    notebook = Notebook(study.profile, _quantities(study), units)
    aggregates = _aggregates(study, placement, notebook, agreement)
    return Basis(study, placement, agreement, run, notebook, aggregates)


def derived(basis: Basis, family: Family | None, metric: str = RUNTIME) -> Formula:
    """Return the formula of the runtime or of a metric of a traced run; errors as of `derive`."""
    study, placement, agreement = basis.study, basis.placement, basis.agreement
    run, aggregates = basis.run, basis.aggregates
    expected = _result(family, metric)(run.modelled)
    notebook = basis.notebook.copy()
    if family is None:
        meaning = AGGREGATES[RUNTIME].meaning
        head = notebook.write(RUNTIME, aggregates[RUNTIME], "s", meaning, "metric")
    else:
        head = _metric(family, metric, aggregates, notebook)
    equations, symbols = _reachable(notebook, head.formula.name)
    _check(equations, symbols, nominal(expected), nominal(run.modelled.runtime))
    notes = _notes(placement, run, equations, agreement)
    try:
        found = elasticities(study, placement, _result(family, metric), agreement)
    except ValueError as problem:  # an additive efficiency may fall to zero and below
        found, notes = (), (*notes, str(problem))
    return Formula(
        study.signature,
        study.profile,
        study.values,
        placement,
        RUNTIME if family is None else f"{family.id}.{metric}",
        "Runtime" if family is None else family.metrics[metric].name,
        equations,
        symbols,
        found,
        notes,
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
    parameters = replace(plain.point.parameters, values=notebook.__getitem__, named=notebook.law)
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

    def symbols(delay: str) -> Change:
        meaning = _DELAYS[delay]
        change: Change = getattr(correction, delay)
        number, time = nominal(change.factor), nominal(change.seconds)
        factor: Value = number
        seconds: Value = time
        if number != 1:
            factor = notebook.given(
                f"rho_{delay}",
                f"replay.{delay}",
                f"{meaning}: replay over closed form",
                "1",
                Quantity(number, origin="replay"),
            )
        if time:
            seconds = notebook.given(
                f"extra_{delay}",
                f"replay.{delay}",
                f"{meaning}: replay less closed form",
                "s",
                Quantity(time, origin="replay"),
            )
        return Change(factor, seconds)

    computation = correction.computation
    if computation != 1:
        computation = notebook.given(
            "rho_computation",
            "replay.computation",
            "computation of an average process: replay over closed form",
            "1",
            Quantity(nominal(computation), origin="replay"),
        )
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


def _reachable(
    notebook: Notebook, head: str
) -> tuple[tuple[FormulaEquation, ...], tuple[GivenSymbol, ...]]:
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
    equations: Sequence[FormulaEquation],
    symbols: Sequence[GivenSymbol],
    expected: float,
    runtime: float,
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


def _notes(
    placement: Placement,
    run: ModelEvaluation,
    equations: Sequence[FormulaEquation],
    agreement: ReplayAgreement | None,
) -> tuple[str, ...]:
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
    if run.machine.left_out:
        notes.append(not_modelled(run.machine.left_out))
    return tuple(notes)
