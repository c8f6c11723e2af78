"""The signature of a run that was traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from popmodel.extraction.assumed import amounts, let
from popmodel.extraction.fidelity import Fidelity, kept
from popmodel.extraction.outlining import laid_out
from popmodel.extraction.rendering import Draft, rendered
from popmodel.structure.find import find
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.extraction.amounts import Amount, Key
    from popmodel.extraction.outline import Outline
    from popmodel.trace import Trace

__all__ = ["Extracted", "signature_from"]


@dataclass(frozen=True)
class Extracted:
    """A signature, and what it rests on.

    Attributes
    ----------
    name : str
        Of the application.
    text : str
        The signature as TOML.
    traces : tuple of str
        The runs.
    processes, threads : int
        Of the run whose times and messages are kept.
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
    traces: tuple[str, ...]
    processes: int
    threads: int
    outline: Outline
    fidelity: Fidelity
    amounts: Mapping[Key, Amount]
    notes: tuple[str, ...]


def signature_from(
    traces: Sequence[Trace], *, name: str | None = None, scaling: str = "strong"
) -> Extracted:
    """Find the signature of a program that was traced.

    Parameters
    ----------
    traces : sequence of Trace
        Its runs, or the parts of them that are meant.
    name : str, optional
        Of the application; default: that of the first trace.
    scaling : {"strong", "weak"}
        What is assumed where one run says nothing.

    Raises
    ------
    PopmodelError
        If a signature cannot say what the program does.
    """
    trace = traces[0]
    structure = find(trace)
    outline, changed = laid_out(structure, trace)
    fidelity = kept(structure.program, changed.program, changed.events, outline.points)
    processes = structure.program.processes
    threads = int(max(trace.threads))
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
    return Extracted(
        called, text, (trace.path,), processes, threads, outline, fidelity, found, notes
    )


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
