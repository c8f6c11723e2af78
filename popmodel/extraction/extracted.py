"""The signature of a run that was traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from popmodel.extraction.assumed import amounts, let
from popmodel.extraction.fidelity import Fidelity, kept
from popmodel.extraction.outline import Repeat, walk
from popmodel.extraction.outlining import laid_out
from popmodel.extraction.rendering import Draft, rendered
from popmodel.structure.find import find
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.extraction.amounts import Amount, Key
    from popmodel.extraction.outline import Outline
    from popmodel.trace import Trace

__all__ = ["Extracted", "Run", "signature_from"]


@dataclass(frozen=True)
class Run:
    """A run that was traced.

    Attributes
    ----------
    trace : Trace
        The trace, or the part of it that is meant.
    parameters : mapping of str to float
        Problem parameters of the run.
    """

    trace: Trace
    parameters: Mapping[str, float] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a process; the most if they differ."""
        return int(max(self.trace.threads))

    def to_dict(self) -> dict[str, Any]:
        """Return what it is as JSON types."""
        return {
            "trace": self.trace.path,
            "processes": self.trace.processes,
            "threads": self.threads,
            "parameters": dict(self.parameters),
        }


@dataclass(frozen=True)
class Extracted:
    """A signature, and what it rests on.

    Attributes
    ----------
    name : str
        Of the application.
    text : str
        The signature as TOML.
    runs : tuple of Run
        What it was found in; the times and messages of the first are kept.
    outline : Outline
        Its program.
    fidelity : Fidelity
        What of its times is kept, and what its replay gives.
    amounts : mapping of Key to Amount
        What was found, with where it comes from.
    notes : tuple of str
        What could not be known or is not as it was traced, one line each.
    """

    name: str
    text: str
    runs: tuple[Run, ...]
    outline: Outline
    fidelity: Fidelity
    amounts: Mapping[Key, Amount]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as JSON types."""
        return {
            "application": self.name,
            "runs": [run.to_dict() for run in self.runs],
            "loops": sum(isinstance(node, Repeat) for node in walk(self.outline.body)),
            "phases": [self._phase(point) for point in range(len(self.outline.points))],
            "constants": [
                one.to_dict() for amount in self.amounts.values() for one in amount.constants
            ],
            "laws": [],
            "replay": {
                "traced": self.fidelity.traced.to_dict(),
                "written": self.fidelity.written.to_dict(),
                "recorded": len(self.fidelity.recorded),
            },
            "notes": list(self.notes),
            "signature": self.text,
        }

    def _phase(self, point: int) -> dict[str, Any]:
        one, amount = self.fidelity.descriptions[point], self.amounts["seconds", point]
        return {
            "label": self.outline.labels[point],
            "parallel": self.outline.teams[point] is not None,
            "seconds": one.mean,
            "low": one.low,
            "high": one.high,
            "executions": one.executions,
            "total": self.outline.points[point].total,
            "persistent_cv": one.persistent_cv,
            "transient_cv": one.transient_cv,
            "formula": str(amount.formula),
            "recorded": point in self.fidelity.recorded,
        }


def signature_from(
    runs: Sequence[Run | Trace], *, name: str | None = None, scaling: str = "strong"
) -> Extracted:
    """Find the signature of a program that was traced.

    Parameters
    ----------
    runs : sequence of Run or Trace
        Its runs, or the parts of them that are meant.
    name : str, optional
        Of the application; default: that of the first trace.
    scaling : {"strong", "weak"}
        What is assumed where the runs say nothing.

    Raises
    ------
    PopmodelError
        If a signature cannot say what the program does.
    """
    every = tuple(run if isinstance(run, Run) else Run(run) for run in runs)
    trace, threads = every[0].trace, every[0].threads
    structure = find(trace)
    outline, changed = laid_out(structure, trace)
    fidelity = kept(structure.program, changed.program, changed.events, outline.points)
    processes = structure.program.processes
    found = amounts(outline, fidelity.descriptions, processes, scaling)
    called = name or _name_of(trace.path)
    notes = (*structure.notes, *outline.notes)
    draft = Draft(
        name=called,
        head=_head(called, trace, processes, threads, fidelity, notes),
        params={},
        let=let(outline, processes, threads, scaling),
        limits={},
        decomp={},
        amounts=found,
        processes=processes,
    )
    text = rendered(draft, outline, fidelity)
    return Extracted(called, text, every, outline, fidelity, found, notes)


def _name_of(path: str) -> str:
    return PurePath(path).name.partition(".prv")[0] or "app"


def _head(
    name: str,
    trace: Trace,
    processes: int,
    threads: int,
    fidelity: Fidelity,
    notes: Sequence[str],
) -> tuple[str, ...]:
    size = plural(processes, "process", "processes")
    size += f" x {plural(threads, 'thread')}" if threads > 1 else ""
    traced, written = fidelity.traced, fidelity.written
    recorded = len(fidelity.recorded)
    return (
        f"Signature of {name}, found by popmodel in {PurePath(trace.path).name} ({size}).",
        f"Replayed on the ideal network, the trace takes {traced.runtime:.6g} s and these times "
        f"{written.runtime:.6g} s; parallel efficiency {traced.parallel:.3f} and "
        f"{written.parallel:.3f}. Recorded times are kept of {recorded} of "
        f"{plural(len(fidelity.descriptions), 'phase')}.",
        *(f"Note: {note}." for note in notes),
    )
