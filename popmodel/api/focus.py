"""Which part of a run users ask for: a window, a region, all of it, or some of its iterations.

Iterations are known from the structure of a run only; all else a trace tells by itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from popmodel.errors import PartError, TraceError, UsageError
from popmodel.trace.part import TracePart, Window
from popmodel.units import count, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

Foa: TypeAlias = str
"""Focus of analysis: ``auto``, times as ``0.8s..1.2s``, or ``iterations=10..20``."""

_EXAMPLES = "try --foa auto, --foa 0.8s..1.2s or --foa iterations=10..20"
_NO_ITERATIONS = "no iterations found: nothing repeats in its MPI calls and parallel regions"
_INSTEAD = "choose a part with --window, for example --window 1s:2s"


@dataclass(frozen=True)
class Asked:
    """The part that is asked for, of any run."""

    part: TracePart  # What can be told without a run
    auto: bool = False  # Whether it is the focus of analysis that the structure of the run suggests
    # Or these iterations, from 1; a last one of None is that of the run.
    first: int | None = None
    last: int | None = None

    @classmethod
    def of(
        cls,
        window: Window | None = None,
        region: str | None = None,
        from_start: bool = False,
        foa: Foa | None = None,
    ) -> Asked:
        """Read what a user asks for."""
        if foa is None:
            return cls(TracePart.of(window, region, from_start))
        for given, option in ((window is not None, "--window"), (from_start, "--from-start")):
            if given:
                raise UsageError(f"--foa cannot be combined with {option}", "leave one of them out")
        text = foa.strip() if isinstance(foa, str) else ""
        if text == "auto":
            return cls(TracePart(region=region), auto=True)
        name, equals, numbers = text.partition("=")
        if equals and name.strip() == "iterations":
            return cls(TracePart(region=region), False, *_iterations(foa, numbers))
        begin, dots, end = text.partition("..")
        if equals or not dots:
            raise UsageError(f"--foa {foa}: must be auto, BEGIN..END or iterations=A..B", _EXAMPLES)
        try:
            return cls(TracePart.of((begin, end), region))
        except UsageError as error:
            problem = error.message.partition(": ")[2]
            raise UsageError(f"--foa {foa}: {problem}", _EXAMPLES) from None

    def of_run(self, trace: Trace) -> TracePart:
        """The part of a run."""
        if not self.auto and self.first is None:
            return self.part
        found = _found(trace)
        number = found.iterations.shape[0] - 1
        if self.auto:
            focus = found.focus
            why = f"{_named(focus.first + 1, focus.last + 1)} of {count(number)}, the focus"
            why += _doubt(found)
            return TracePart(focus.begin, focus.end, self.part.region, why=why)
        first, last = self._iterations(trace, number)
        begins = found.iterations.max(axis=1)
        why = f"{_named(first, last)} of {count(number)}{_doubt(found)}"
        return TracePart(int(begins[first - 1]), int(begins[last]), self.part.region, why=why)

    def on_sequences(self, trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """When the iterations that are asked for begin and end on each sequence of a run, ns.

        None where no iterations are asked for. Raises as `of_run`.
        """
        if not self.auto and self.first is None:
            return None
        found = _found(trace)
        first, last = found.focus.first + 1, found.focus.last + 1
        if not self.auto:
            first, last = self._iterations(trace, found.iterations.shape[0] - 1)
        return found.iterations[first - 1], found.iterations[last]

    def _iterations(self, trace: Trace, number: int) -> tuple[int, int]:
        """First and last of the iterations, from 1, of a run that has so many."""
        last = number if self.last is None else self.last
        if last > number:
            raise PartError(
                trace.path,
                f"no iteration {count(last)}: the run has {plural(number, 'iteration')}",
                hint="popmodel structure shows them",
            )
        return self.first or 1, last


def _found(trace: Trace) -> Structure:
    """Structure of a run that has iterations."""
    found, _ = structure_of(trace)
    if found.loop is None or found.iterations.shape[0] < 2:
        raise TraceError(trace.path, _NO_ITERATIONS, hint=_INSTEAD)
    return found


def _doubt(structure: Structure) -> str:
    """How sure iterations are, where they are not."""
    from popmodel.structure.structure import LIKELY, certainty

    if structure.confidence >= LIKELY:
        return ""
    return f", confidence {certainty(structure.confidence)}"


def structure_of(trace: Trace) -> tuple[Structure, Trace]:
    """Structure of a run, and what it is of: the whole run, where a window of one is given."""
    from popmodel.structure.iterations import find

    pieces = trace.pieces
    whole = trace if pieces is None or len(pieces) > 1 else trace.whole or trace
    return find(whole), whole


def _iterations(foa: str, text: str) -> tuple[int, int | None]:
    """First and last of ``10..20``, ``10..``, ``..20`` or ``10``."""
    found = re.fullmatch(r"\s*([1-9]\d{0,17})?\s*(\.\.)?\s*([1-9]\d{0,17})?\s*", text)
    if found is None or not (found[1] or found[3]) or (found[3] and not found[2]):
        raise UsageError(
            f"--foa {foa}: iterations must be whole numbers from 1, as A..B",
            "try --foa iterations=10..20",
        )
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else None if found[2] else first
    if last is not None and last < first:
        raise UsageError(
            f"--foa {foa}: the last iteration is before the first", "try --foa iterations=10..20"
        )
    return first, last


def _named(first: int, last: int) -> str:
    if first == last:
        return f"iteration {count(first)}"
    return f"iterations {count(first)} to {count(last)}"
