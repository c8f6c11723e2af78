"""What has to be known of a run before its numbers are read, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.trace.left_out import left_out
from popmodel.trace.processors import crowding

if TYPE_CHECKING:
    from popmodel.trace.focus import Focus
    from popmodel.trace.trace import Trace

__all__ = ["caveats"]


def caveats(trace: Trace, window: Focus) -> tuple[str, ...]:
    """What every command says first of a run that it analyses, the most important first.

    Parameters
    ----------
    trace : Trace
        The run, or the window of it that is analysed.
    window : Focus
        Which window that is.
    """
    return (*crowding(trace), *window.caveats, *left_out(trace))
