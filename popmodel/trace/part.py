"""Which part of a run is wanted: a window of time, the occurrences of a region, or all of it."""

from __future__ import annotations

import math
from typing import TypeAlias

from popmodel.errors import UsageError
from popmodel.units import parse_time
from popmodel.values import dataclass

Window: TypeAlias = "str | tuple[float | str | None, float | str | None]"
"""``A:B`` or a pair: times with a unit, or numbers of seconds; an end that is left out (empty, or
None) is that of the trace."""

_NS = 1e9
_EXAMPLES = "try --window 1.5s:3s, --window :2s or --window 500ms:"


@dataclass(frozen=True)
class TracePart:
    """What is wanted of a run; all by default the program, from MPI_Init to MPI_Finalize."""

    # A window of time, ns; None for where the trace begins or ends.
    begin: int | None = None
    end: int | None = None
    # The occurrences of the region of this name; those inside the window where there is one, else
    # those from MPI_Init to MPI_Finalize.
    region: str | None = None
    # The whole run, or all of the region, with the start and the end of MPI.
    from_start: bool = False
    why: str = ""  # What the window is, such as some iterations; empty for times that a user gave

    @classmethod
    def of(
        cls,
        window: Window | None = None,
        region: str | None = None,
        from_start: bool = False,
    ) -> TracePart:
        """Read what a user asks for."""
        if from_start and window is not None:
            raise UsageError(
                "--from-start cannot be combined with --window", "leave one of them out"
            )
        if window is None:
            return cls(region=region, from_start=from_start)
        begin, end = _limits(window)
        return cls(begin, end, region)

    @property
    def has_window(self) -> bool:
        """Whether a window of time is wanted."""
        return self.begin is not None or self.end is not None


PROGRAM = TracePart()
"""What is analysed where nothing else is asked for."""


def _limits(window: Window) -> tuple[int | None, int | None]:
    ends = window.split(":") if isinstance(window, str) else window
    if not isinstance(ends, list | tuple):
        raise UsageError(f"window={window!r}: must be a text or a pair", "try window=(1.5, 3)")
    shown = window if isinstance(window, str) else ":".join(_shown(end) for end in ends)
    if len(ends) != 2:
        raise UsageError(f"--window {shown}: must be BEGIN:END", _EXAMPLES)
    begin, end = (_nanoseconds(each, shown) for each in ends)
    if begin is None and end is None:
        raise UsageError(f"--window {shown}: needs a start or an end", _EXAMPLES)
    if begin is not None and end is not None and begin >= end:
        raise UsageError(f"--window {shown}: must end after it begins", _EXAMPLES)
    return begin, end


def _shown(end: float | str | None) -> str:
    return "" if end is None else str(end)


def _nanoseconds(time: float | str | None, window: str) -> int | None:
    """A time of a window; a plain number is in seconds."""
    if time is None or (isinstance(time, str) and not time.strip()):
        return None
    try:
        seconds = float(time)
    except (TypeError, ValueError):
        try:
            seconds = parse_time(str(time))
        except UsageError as error:
            raise UsageError(f"--window {window}: {error.message}", error.hint) from None
    if not 0 <= seconds < math.inf:
        raise UsageError(f"--window {window}: times must be finite and not negative", _EXAMPLES)
    return round(seconds * _NS)
