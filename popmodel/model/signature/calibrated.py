"""Reads the table ``calibration`` of a signature: what measured runs have taught."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from popmodel.documents import Real, ShapeError, shown
from popmodel.machine.quantity import Quantity
from popmodel.model.calibration import RESIDUAL, Calibration, Drift, unpacked
from popmodel.model.grammar.reading import GrammarReading
from popmodel.model.grammar.toml_lines import Path

SCORE = ("mean", "deviation", "value")
"""What a score has; a value only that of a constant of the program."""

_AT = ("calibration",)
_AGAIN = "calibrate the signature again"
_ANY, _POSITIVE, _NOT_NEGATIVE = Real(), Real(above=0), Real(least=0)
_SAME = 1e-6  # relative: values that differ by less were written from the same number


def calibration(
    reading: GrammarReading,
    inputs: Mapping[str, Mapping[str, Quantity]],
    table: Mapping[str, Any],
) -> Calibration:
    """Read the table."""
    machine = reading.text(table, (*_AT, "machine"))
    digest = reading.text(table, (*_AT, "machine_digest"))
    scores = reading.table(table, (*_AT, "scores"))
    means = [_number(reading, one, _score(name, "mean"), _ANY) for name, one in scores.items()]
    deviations = [
        _number(reading, one, _score(name, "deviation"), _POSITIVE) for name, one in scores.items()
    ]
    changed = [name for name, one in scores.items() if _is_changed(reading, inputs, name, one)]
    terms = reading.table(table, (*_AT, "terms"))
    drifts = _drifts(reading, reading.table(table, (*_AT, "drifts")))
    for name in scores:
        kind, doubling, _ = name.removeprefix(RESIDUAL).partition("[")
        if name.startswith(RESIDUAL) and name not in terms and not (doubling and kind in drifts):
            problem = f"{name} is not among terms and drifts"
            raise reading.error((*_AT, "scores", name), problem, _AGAIN)
    try:
        tied = unpacked(reading.text(table, (*_AT, "tied")))
    except ValueError as error:
        raise reading.error((*_AT, "tied"), f"tied {error}", _AGAIN) from None
    if len(tied) != len(scores):
        problem = f"tied is of {len(tied)} scores, the file has {len(scores)}"
        raise reading.error((*_AT, "tied"), problem, _AGAIN)
    known = Calibration(
        machine,
        digest,
        tuple(scores),
        np.array(means),
        np.array(deviations)[:, None] * tied,
        _number(reading, table, (*_AT, "own"), _POSITIVE),
        _number(reading, table, (*_AT, "noise"), _NOT_NEGATIVE),
        {name: _number(reading, terms, (*_AT, "terms", name), _POSITIVE) for name in terms},
        drifts,
        _hull(reading, reading.table(table, (*_AT, "hull"))),
        _runs(reading, reading.table(table, (*_AT, "runs"))),
        tuple(changed),
    )
    return known.only(set(known.names) - set(changed)) if changed else known


def _score(name: str, key: str) -> Path:
    return (*_AT, "scores", name, key)


def _number(reading: GrammarReading, table: object, where: Path, bounds: Real) -> float:
    """Read a number of the calibration."""
    name = ".".join(str(part) for part in where[-1:])
    if not isinstance(table, Mapping) or name not in table:
        inside = f" of {where[-2]}" if len(where) > 2 else ""
        raise reading.error(where, f"{name}{inside} is missing", _AGAIN)
    try:
        return bounds.read(table[name])
    except ShapeError as error:
        raise reading.error(where, f"{name} {error.problem}", _AGAIN) from None


def _is_changed(
    reading: GrammarReading, inputs: Mapping[str, Mapping[str, Quantity]], name: str, score: Any
) -> bool:
    """Tell whether a number of the file is not the one that was calibrated any more."""
    where = (*_AT, "scores", name)
    for key in score:
        if key not in SCORE:
            raise reading.error((*where, key), f"unknown key {key!r} in {name}", _AGAIN)
    table, _, key = name.partition(".")
    if table not in inputs:
        return False
    if key not in inputs[table]:
        problem = f"{name} is calibrated, but {table} has no {key}"
        raise reading.error(where, problem, f"put it back, or {_AGAIN}")
    then = _number(reading, score, (*where, "value"), _NOT_NEGATIVE)
    now = inputs[table][key]
    return not now.is_uncertain or not abs(now.value - then) <= _SAME * then


def _drifts(reading: GrammarReading, table: Mapping[str, Any]) -> dict[str, Drift]:
    found = {}
    for name, one in table.items():
        where = (*_AT, "drifts", name)
        deviation = _number(reading, one, (*where, "deviation"), _NOT_NEGATIVE)
        found[name] = Drift(deviation, _number(reading, one, (*where, "origin"), _ANY))
    return found


def _hull(reading: GrammarReading, table: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, ends in table.items():
        where = (*_AT, "hull", name)
        try:
            low, high = (_POSITIVE.read(one) for one in ends)
            if low > high:
                raise ValueError
        except (TypeError, ValueError):
            problem = f"{name} of hull must be [smallest, largest], not {shown(ends)}"
            raise reading.error(where, problem, _AGAIN) from None
        found[name] = (low, high)
    return found


def _runs(reading: GrammarReading, table: Mapping[str, Any]) -> dict[str, str]:
    return {digest: reading.text(table, (*_AT, "runs", digest)) for digest in table}
