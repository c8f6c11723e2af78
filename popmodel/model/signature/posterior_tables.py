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
    RowShape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    record,
)
from popmodel.base.values import dataclass
from popmodel.machines.quantity import Quantity
from popmodel.model.signature.reading import GrammarReading, SignatureError
from popmodel.model.uncertainty import RESIDUAL, Calibration, Drift, unpacked

# Reads the table ``calibration`` of a signature: what measured runs have taught.


_AT, _AGAIN = ("calibration",), "calibrate the signature again"
_POSITIVE, _NOT_NEGATIVE = Real(above=0), Real(least=0)
_SAME = 1e-6  # relative: values that differ by less were written from the same number

_SCORE = {"mean": Real(), "deviation": _POSITIVE, "value": _NOT_NEGATIVE}
"""What a score has; a value only that of a constant of the program."""
_CALIBRATION = record(
    {
        "machine": Text(),
        "machine_digest": Text(),
        "own": _POSITIVE,
        "noise": _NOT_NEGATIVE,
        "terms": NamedShape(_POSITIVE),
        "drifts": NamedShape(record({"deviation": _NOT_NEGATIVE, "origin": Real()})),
        "hull": NamedShape(RowShape(_POSITIVE, _POSITIVE)),
        "runs": NamedShape(Text()),
        "scores": NamedShape(TableShape(_SCORE, ("mean", "deviation"))),
        "tied": Text(),
    }
)


_NONE: Mapping[str, Any] = {name: {} for name in ("terms", "drifts", "hull", "runs", "scores")}


def calibration(
    reading: GrammarReading,
    inputs: Mapping[str, Mapping[str, Quantity]],
    table: Mapping[str, Any],
) -> Calibration:
    places = {".".join(map(str, path[1:])): path for path in reading.lines if path[0] == _AT[0]}

    def wrong(place: str, problem: str, hint: str = _AGAIN) -> SignatureError:
        around = max((known for known in places if place.startswith(known)), key=len, default="")
        return reading.error(places.get(around, _AT), f"{place} {problem}", hint)

    try:
        read = _CALIBRATION.read({**_NONE, **table})
        tied = unpacked(read["tied"])
    except ShapeError as error:
        raise wrong(error.path, error.problem, error.hint or _AGAIN) from None
    except ValueError as error:
        raise wrong("tied", str(error)) from None
    scores, terms, drifts = read["scores"], read["terms"], read["drifts"]
    if len(tied) != len(scores):
        raise wrong("tied", f"is of {len(tied)} scores, the file has {len(scores)}")
    for name, (low, high) in read["hull"].items():
        if low > high:
            raise wrong(f"hull.{name}", f"must be [smallest, largest], not [{low:g}, {high:g}]")
    changed = []
    for name, score in scores.items():
        place = f"scores.{name}"
        kind, doubling, _ = name.removeprefix(RESIDUAL).partition("[")
        if name.startswith(RESIDUAL) and name not in terms and not (doubling and kind in drifts):
            raise wrong(place, "is not among terms and drifts")
        group, _, key = name.partition(".")
        if group not in inputs:
            continue
        if key not in inputs[group]:
            back = f"put it back, or {_AGAIN}"
            raise wrong(place, f"is calibrated, but {group} has no {key}", back)
        if "value" not in score:
            raise wrong(f"{place}.value", "is missing")
        now, then = inputs[group][key], score["value"]
        if not now.is_uncertain or not abs(now.value - then) <= _SAME * then:
            changed.append(name)  # by hand
    known = Calibration(
        read["machine"],
        read["machine_digest"],
        tuple(scores),
        np.array([score["mean"] for score in scores.values()]),
        np.array([score["deviation"] for score in scores.values()])[:, None] * tied,
        read["own"],
        read["noise"],
        terms,
        {name: Drift(**drift) for name, drift in drifts.items()},
        read["hull"],
        read["runs"],
        tuple(changed),
    )
    return known.only(set(known.names) - set(changed)) if changed else known


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
