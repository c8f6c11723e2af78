"""Calibrate a signature by measured runs: everything that is said of it, put together.

The fit becomes a signature that predictions take: constants have the values and intervals that the
runs left, so that a reader sees them; what is known of the machine and of the laws, and how all
depends on each other, is beside them. As a file it is the original, comments and order kept, with
what runs have taught: numbers stand where the old ones did, each with the runs as its source; all
that ties them to each other, to the machine and to the laws is in a table at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.arrays import one_thread
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.fit.cross_validation import (
    LeftOut,
    ResidualTerm,
    error_scale,
    left_out,
    sizes_left_out,
    with_terms,
)
from popmodel.fit.initial_values import with_growth
from popmodel.fit.law import FIT
from popmodel.fit.problem import DISTURBED, problem
from popmodel.fit.samples import Interval
from popmodel.fit.scores import CalibrationFit, Outlier, noise_of, relevant, robust
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import END, FIELDS, Quantity
from popmodel.machines.register import find
from popmodel.model.model_error import DRIFTS, RESIDUALS, own_deviation
from popmodel.model.run.process_placement import WHOLE, Allocation
from popmodel.model.signature.application import SET, Signature
from popmodel.model.symbols import LAWS, label
from popmodel.model.uncertainty import (
    RESIDUAL,
    Calibration,
    deviation_of,
    group,
    packed,
    root_of,
    spread,
)
from popmodel.runs.measurement import MeasuredRow

OF_ONE = " of "
"""What stands in the name of a score between a law and the split whose own error it is."""
PROGRAM = ("params", "constants", "imbalance")
"""Tables of a signature with numbers that runs may calibrate."""
IDENTIFIED = 0.3
"""Part of the prior deviation that must be gone for a value to count as told by the runs: of two
inputs that only act together, such as a rate and a count, each is narrowed by less."""
_BOUND = 1.5  # in ends of the interval that was stated before
_UNTOUCHED = 0.02  # of a score: what is moved and narrowed by less was not learnt
_DIGITS = 9
"""Significant digits in a file: what is read back gives the same predictions to 1e-6."""
_ENDS = np.array([0.0, -1.0, 1.0])


class Identifiability(NamedTuple):
    """What runs tell of a quantity or a law: not of what a split has for itself."""

    name: str  # Of its score
    learnt: float  # By what part runs narrowed it, 0 to 1
    at_bound: bool  # Whether it lies far outside of the interval that was stated before

    @property
    def is_identifiable(self) -> bool:
        """Whether the runs tell enough of it for a value."""
        return self.learnt >= IDENTIFIED


@dataclass(frozen=True)
class Calibrated:
    """A signature that runs have calibrated."""

    signature: Signature  # With what the runs left of its constants, of the machine and of the laws
    before: Signature  # As it was given
    profile: Profile  # The machine of the runs
    runs: tuple[MeasuredRow, ...]  # The runs
    fit: CalibrationFit  # The scores behind it
    outliers: tuple[Outlier, ...]  # Runs that do not fit the others
    terms: tuple[ResidualTerm, ...]  # Residual terms that the runs might have asked for
    left_out: tuple[LeftOut, ...]  # Every configuration foretold from the others
    # Every configuration foretold from those with other parameters; empty if all have the same.
    sizes_left_out: tuple[LeftOut, ...]
    inputs: tuple[Identifiability, ...]  # What the runs tell of each input
    # By how much configurations that are left out miss what the others announce of them, at least
    # 1: intervals of the calibrated signature are as much wider.
    error_scale: float = 1.0


def calibrate(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    settings: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
) -> Calibrated:
    """Calibrate a signature."""
    grown = with_growth(signature, runs)
    first = problem(grown, profile, runs, settings or {}, allocation)
    first = first.replayed(np.zeros(len(first.names)))
    noise = noise_of(first)
    with one_thread():
        fitted, outliers = robust(relevant(first, noise), noise)
        fitted, terms = with_terms(fitted)
        foretold, sizes = left_out(fitted), sizes_left_out(fitted)
    # whatever disturbs a run makes it longer
    longer = {outlier.run for outlier in outliers if outlier.factor > 1}
    longer |= {number for number, run in enumerate(runs) if run.disturbed}
    scale = error_scale(fitted, foretold, longer)
    names = fitted.problem.names
    narrowed = 1 - np.sqrt(np.diag(fitted.covariance)) / fitted.problem.prior
    inputs = (
        Identifiability(name, float(learnt), bool(abs(mean) > _BOUND * END))
        for name, learnt, mean in zip(names, narrowed, fitted.means, strict=True)
        if OF_ONE not in name and not name.startswith((RESIDUAL, DISTURBED))
    )
    return Calibrated(
        calibrated_signature(fitted, scale),
        signature,
        profile,
        tuple(runs),
        fitted,
        outliers,
        terms,
        tuple(foretold),
        tuple(sizes),
        tuple(inputs),
        scale,
    )


def calibrated_signature(fitted: CalibrationFit, error_scale: float = 1.0) -> Signature:
    """Return the signature that runs have calibrated, wider by a scale of the errors found.

    Names that runs tell nothing of are left out, but for times that may be missing. Scores of what
    has a size of its own have larger units instead of wider deviations.
    """
    problem, means = fitted.problem, fitted.means
    factors = np.full(len(means), error_scale)
    for kind, size in problem.sizes.items():
        columns = problem.of_size(kind)
        problem = problem.with_size(kind, size * error_scale)
        means = np.where(columns, means / error_scale, means)
        factors[columns] = 1.0
    moved = np.abs(fitted.means / problem.prior) > _UNTOUCHED
    narrowed = np.sqrt(np.diag(fitted.covariance)) / problem.prior < 1 - _UNTOUCHED
    taught = problem.positive | moved | narrowed
    taught[len(taught) - len(problem.outliers) :] = False
    names = tuple(name for name, able in zip(problem.names, taught, strict=True) if able)
    covariance = (fitted.covariance * np.outer(factors, factors))[np.ix_(taught, taught)]
    means = means[taught].copy()
    deviations = np.sqrt(np.diag(covariance))
    signature, scale = problem.signature, np.ones(len(names))
    tables: dict[str, dict[str, Quantity]] = {
        table: dict(getattr(signature, table)) for table in PROGRAM
    }
    for number, name in enumerate(names):
        table, _, key = name.partition(".")
        if key in tables.get(table, ()):
            quantity = tables[table][key]
            value, low, high = _at(quantity, means[number], deviations[number])
            tables[table][key] = replace(quantity, value=value, low=low, high=high, origin=FIT)
            means[number], scale[number] = 0.0, 1 / deviations[number]
    known = Calibration(
        problem.profile.name,
        problem.profile.digest,
        names,
        means,
        root_of(covariance * np.outer(scale, scale)),
        problem.own,
        fitted.noise,
        {name: unit for name, unit in problem.residuals.items() if name in names},
        problem.drifts,
        problem.hull,
        {run.digest: run.place for run in problem.runs},
    )
    return replace(
        signature,
        params=tables["params"],
        constants=tables["constants"],
        imbalance=tables["imbalance"],
        calibration=known,
    )


def _at(quantity: Quantity, mean: float, deviation: float) -> Interval:
    """A quantity at another score, with the interval that the deviation of it leaves."""
    return Interval(*(float(end) for end in spread(quantity, mean + END * deviation * _ENDS)))


class Learnt(NamedTuple):
    """An input before and after the calibration."""

    name: str  # Of its score
    label: str  # For people
    # What it belongs to: the signature, the profile, a law in all splits or in one, a time that the
    # signature lacks, or a drift of computing.
    kind: str
    unit: str  # SI unit of the numbers; empty for a factor on what was there before
    # What was known of it.
    before: Interval
    after: Interval


def learnt_values(fitted: CalibrationFit, signature: Signature) -> tuple[Learnt, ...]:
    """Return every input that a calibrated signature knows more of than before."""
    known = signature.calibration
    assert known is not None
    groups: dict[str, list[Quantity]] = {}
    for path, quantity in fitted.problem.configurations[0].study.quantities.items():
        if quantity.is_uncertain:
            groups.setdefault(group(path), []).append(quantity)
    scores = zip(known.names, known.means.tolist(), known.deviations.tolist(), strict=True)
    return tuple(
        _learnt(name, mean, deviation, known, groups)
        if name.partition(".")[0] not in PROGRAM
        else _of_program(name, fitted.problem.signature, signature)
        for name, mean, deviation in scores
    )


def _of_program(name: str, before: Signature, after: Signature) -> Learnt:
    table, _, key = name.partition(".")
    old, new = (
        Interval(
            quantity.value,
            quantity.value if quantity.low is None else quantity.low,
            quantity.value if quantity.high is None else quantity.high,
        )
        for quantity in (getattr(before, table)[key], getattr(after, table)[key])
    )
    text = label(name) if table != "imbalance" else f"{key} of the imbalance"
    return Learnt(name, text, "program", before.units.get(key, "1"), old, new)


def _learnt(
    name: str,
    mean: float,
    deviation: float,
    known: Calibration,
    groups: Mapping[str, list[Quantity]],
) -> Learnt:
    """What is known of a machine, a law, a missing time or a drift."""
    if name in RESIDUALS:
        term, unit = RESIDUALS[name], known.residuals[name]
        ends = (unit * max(mean + END * step * deviation, 0.0) for step in _ENDS.tolist())
        nothing = Interval(0.0, 0.0, 0.0)
        return Learnt(name, term.meaning, "term", term.unit, nothing, Interval(*ends))
    path, _, split = name.partition(OF_ONE)
    if name.startswith(RESIDUAL):
        kind, _, doubling = name.removeprefix(RESIDUAL).partition("[")
        size = before = known.drifts[kind].deviation
        text, kind = f"{DRIFTS[kind]}, doubling {doubling.removesuffix(']')}", "drift"
    elif path in LAWS and split:
        law, kind = LAWS[path], "split"
        size, before = own_deviation(law, known.own), law.spread * math.sqrt(law.own)
        text = f"{law.meaning}, {split} only"
    elif path in LAWS:
        law, kind = LAWS[path], "law"
        size = before = law.spread * math.sqrt(1 - law.own)
        text = law.meaning
    else:
        return _of_machine(name, mean, deviation, groups[name])
    after = _factor(size * mean, size * deviation)
    return Learnt(name, text, kind, "", _factor(0.0, before), after)


def _of_machine(name: str, mean: float, deviation: float, members: Sequence[Quantity]) -> Learnt:
    first = members[0]
    text = label(name).removesuffix(f" ({name})")
    old = _at(first, 0.0, deviation_of(name, first))
    new = _at(first, mean, deviation)
    if len(members) > 1:  # a table: all of its entries vary together
        old, new = (Interval(*(end / first.value for end in ends)) for ends in (old, new))
        return Learnt(name, text, "machine", "", old, new)
    parameter = find(name)
    unit = "" if parameter is None else parameter.unit
    return Learnt(name, text, "machine", unit or "1", old, new)


def _factor(mean: float, deviation: float) -> Interval:
    return Interval(*(math.exp(mean + END * step * deviation) for step in _ENDS.tolist()))


def text_of(
    original: str, before: Signature, after: Signature, values: Sequence[Learnt], day: date
) -> str:
    """Return the text of a calibrated signature.

    What an earlier calibration left in the text is replaced.
    """
    import tomlkit

    known = after.calibration
    assert known is not None
    document: Any = tomlkit.parse(original)
    document.pop("calibration", None)
    source = f"fit to {plural(len(known.runs), 'run')} of {day.isoformat()}"
    for table in PROGRAM:
        old: dict[str, Quantity] = getattr(before, table)
        for key, quantity in getattr(after, table).items():
            if quantity != old.get(key):
                _put(document[table], key, quantity, source)
    text = tomlkit.dumps(document).rstrip("\n")
    return f"{text}\n\n{_table(known, values, day)}"


def _put(table: Any, key: str, quantity: Quantity, source: str) -> None:
    """Write a number where another one, or a table with it, stands; its comment stays."""
    from tomlkit.items import InlineTable, Table

    entries: dict[str, Any] = {"value": _rounded(quantity.value)}
    if quantity.low is not None and quantity.high is not None:
        entries |= {"low": _rounded(quantity.low), "high": _rounded(quantity.high)}
    stated = quantity.source
    other = stated if stated not in (None, SET) else "set when it was calibrated"
    entries |= {"origin": quantity.origin, "source": source if quantity.origin == FIT else other}
    given = table.get(key)
    if given is None:
        table[key] = _inline(entries)
        return
    if isinstance(given, InlineTable | Table) and "unit" in given:
        entries["unit"] = given["unit"]
    if isinstance(given, Table):  # [constants.rate]: its lines, and what stands between them
        for name in FIELDS:
            if name in entries:
                given[name] = entries[name]
            else:
                given.pop(name, None)
        return
    table[key] = _inline(entries)
    table[key].trivia.comment_ws = given.trivia.comment_ws
    table[key].trivia.comment = given.trivia.comment


def _inline(entries: Mapping[str, Any]) -> Any:
    """Return a table on one line, with blanks inside of its braces."""
    import tomlkit

    inside = ", ".join(
        f"{tomlkit.key(name).as_string()} = {tomlkit.item(value).as_string()}"
        for name, value in entries.items()
    )
    return tomlkit.parse(f"it = {{ {inside} }}")["it"]


def _table(known: Calibration, values: Sequence[Learnt], day: date) -> str:
    """The table ``calibration``."""
    import tomlkit

    table = tomlkit.table()
    table["machine"] = known.machine
    table["machine_digest"] = known.machine_digest
    table["own"] = _rounded(known.own)
    table["own"].comment("own part of the error of loops, relative to that without runs")
    table["noise"] = _rounded(known.noise)
    table["noise"].comment(f"runs vary by {100 * known.noise:.2g} %")
    hull = {name: [_whole(end) for end in ends] for name, ends in known.hull.items()}
    table["hull"] = _inline(hull)
    if known.residuals:
        table["terms"] = _inline({name: _rounded(unit) for name, unit in known.residuals.items()})
    if known.drifts:
        drifts = {
            name: _inline(
                {"deviation": _rounded(drift.deviation), "origin": _rounded(drift.origin)}
            )
            for name, drift in known.drifts.items()
        }
        table["drifts"] = _inline(drifts)
    table["tied"] = packed(known.root)
    runs = tomlkit.table()
    runs.update(known.runs)
    table["runs"] = runs
    scores = tomlkit.table()
    for value, mean, deviation in zip(values, known.means, known.deviations, strict=True):
        entry = {"mean": _rounded(float(mean)), "deviation": _rounded(float(deviation))}
        if value.kind == "program":
            entry["value"] = _rounded(value.after.value)
        scores[value.name] = _inline(entry)
        scores[value.name].comment(_meaning(value))
    table["scores"] = scores
    document = tomlkit.document()
    document.add(
        tomlkit.comment(f"What runs have taught, {day.isoformat()}, by popmodel signature from:")
    )
    document.add(tomlkit.comment("predictions draw from it, so leave it with the numbers above."))
    document["calibration"] = table
    return tomlkit.dumps(document)


def _meaning(value: Learnt) -> str:
    """What a score stands for, in a comment: ``law of loops: times 1.08, 1.02 to 1.15``."""
    unit = f" {value.unit}" if value.unit not in ("", "1") else ""
    times = "" if value.unit else "times "
    text = f"{value.label}: {times}{_shown(value.after)}{unit}"
    is_new = value.unit == "" or value.kind == "term"
    return text if is_new else f"{text}; was {_shown(value.before)}"


def _shown(value: Interval) -> str:
    if value.low == value.high:
        return f"{value.value:.4g}"
    return f"{value.value:.4g}, {value.low:.4g} to {value.high:.4g}"


def _rounded(value: float) -> float | int:
    return _whole(float(f"{value:.{_DIGITS}g}"))


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() and abs(value) < 10**_DIGITS else float(value)
