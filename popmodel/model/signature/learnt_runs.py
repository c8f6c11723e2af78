"""The runs that a signature was learnt from, its table ``learnt``: what protects predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from popmodel.documents import Flag, Items, NamedShape, Real, ShapeError, TableShape, WholeShape
from popmodel.model.grammar.reading import GrammarReading
from popmodel.values import dataclass

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
        """Threads of all processes."""
        return self.processes * self.threads

    @property
    def name(self) -> str:
        """The run in words: ``8 x 2, N = 100``."""
        values = "".join(f", {name} = {value:g}" for name, value in self.parameters.items())
        return f"{self.processes} x {self.threads}{values}"

    def entries(self) -> dict[str, Any]:
        """Return it as the file has it: what is not known is left out."""
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
        """Return the table as the file has it."""
        return {"openmp": self.openmp, "runs": [run.entries() for run in self.runs]}


def learnt_runs(
    reading: GrammarReading, params: Mapping[str, Any], table: Mapping[str, Any]
) -> LearntRuns:
    """Read the table."""
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
