"""The tables ``calibration`` and ``learnt`` of a signature: what measured runs have taught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from popmodel.base.documents import (
    Flag,
    Items,
    NamedShape,
    Real,
    ShapeError,
    TableShape,
    WholeShape,
    shown,
)
from popmodel.base.values import dataclass
from popmodel.machines.quantity import Quantity
from popmodel.model.grammar.reading import GrammarReading, Path
from popmodel.model.uncertainty import RESIDUAL, Calibration, Drift, unpacked

# Reads the table ``calibration`` of a signature: what measured runs have taught.


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


# The runs that a signature was learnt from, its table ``learnt``: what protects predictions.


_SHAPE = TableShape(
    {
        "openmp": Flag(),
        "runs": Items(
            TableShape(
                {
                    "P": WholeShape(1),
                    "T": WholeShape(1),
                    "parameters": NamedShape(Real(above=0)),
                    "runtime": Real(above=0),
                    "waited": Real(least=0, most=1),
                    "ideal": Real(above=0),
                    "written": Real(above=0),
                    "left_out": Real(above=0),
                },
                ("P", "T", "ideal", "written"),
            ),
            least=1,
        ),
    },
    ("openmp", "runs"),
)


@dataclass(frozen=True)
class LearntRun:
    """A run that a signature was learnt from."""

    processes: int
    threads: int
    ideal: float  # Replay of its trace on the ideal network, s
    written: float  # Replay of the signature with as many processes and threads, s
    parameters: Mapping[str, float] = field(default_factory=dict)
    runtime: float | None = None  # As measured, s; None where the trace has no times
    waited: float = 0.0  # Share of the time ready to run that threads waited for a CPU
    # Replay of the signature that is learnt without runs of this configuration, over `ideal`; None
    # with fewer than three configurations, or where what is learnt from the others cannot run.
    left_out: float | None = None

    @property
    def configuration(self) -> tuple[Any, ...]:
        """P, T and parameters: what makes runs repeats of each other."""
        return self.processes, self.threads, *sorted(self.parameters.items())

    @property
    def cores(self) -> int:
        return self.processes * self.threads

    @property
    def name(self) -> str:
        """The run in words: ``8 x 2, N = 100``."""
        values = "".join(f", {name} = {value:g}" for name, value in self.parameters.items())
        return f"{self.processes} x {self.threads}{values}"

    def entries(self) -> dict[str, Any]:
        found: dict[str, Any] = {"P": self.processes, "T": self.threads}
        found |= {"parameters": dict(self.parameters)} if self.parameters else {}
        for name in ("runtime", "waited", "ideal", "written", "left_out"):
            if value := getattr(self, name):
                found[name] = float(f"{value:.6g}")
        return found


@dataclass(frozen=True)
class LearntRuns:
    """All runs that a signature was learnt from."""

    openmp: bool  # Whether some run had parallel regions or several threads in a process
    runs: tuple[LearntRun, ...]

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of every parameter."""
        values = {
            name: [run.parameters[name] for run in self.runs] for name in self.runs[0].parameters
        }
        return {name: (min(seen), max(seen)) for name, seen in values.items()}

    def entries(self) -> dict[str, Any]:
        return {"openmp": self.openmp, "runs": [run.entries() for run in self.runs]}


def learnt_runs(
    reading: GrammarReading, params: Mapping[str, Any], table: Mapping[str, Any]
) -> LearntRuns:
    try:
        read = _SHAPE.read(table)
        for number, row in enumerate(read["runs"]):
            if row.get("parameters", {}).keys() != params.keys():
                names = ", ".join(params) or "none"
                problem = f"must have the parameters of the signature ({names})"
                raise ShapeError(problem, f"runs[{number}]")
    except ShapeError as error:
        hint = error.hint or "find the signature in the runs again"
        raise reading.error(("learnt",), f"learnt: {error}", hint) from None
    rows = ({"processes": row.pop("P"), "threads": row.pop("T"), **row} for row in read["runs"])
    return LearntRuns(read["openmp"], tuple(LearntRun(**row) for row in rows))
