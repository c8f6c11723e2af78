"""Replays of a traced run on networks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.efficiency.measure import runtime
from popmodel.errors import ReplayError
from popmodel.network.network import PRESETS, Network
from popmodel.report.replay import document
from popmodel.simulator import Execution, from_trace
from popmodel.simulator import replay as carry_out
from popmodel.trace import read
from popmodel.trace.caveats import caveats
from popmodel.trace.focus import Focus, focused
from popmodel.trace.part import Part, Window
from popmodel.values import dataclass

__all__ = ["Replays", "replay"]


@dataclass(frozen=True)
class Replays:
    """A run replayed on one or several networks; made by `replay`.

    Attributes
    ----------
    trace : str
        The trace.
    measured : float
        Its runtime as measured, s.
    outcomes : tuple of (Network, Execution or ReplayError)
        For each network what came out, or what stopped the replay.
    window : Focus
        What of the trace was replayed.
    caveats, notes : tuple of str
        What has to be known before the numbers are read; what was left out or taken as local.
    """

    trace: str
    measured: float
    outcomes: tuple[tuple[Network, Execution | ReplayError], ...]
    window: Focus
    caveats: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def failures(self) -> Mapping[int, ReplayError]:
        """What stopped replays, by their number from 1."""
        return {
            number: outcome
            for number, (_, outcome) in enumerate(self.outcomes, start=1)
            if isinstance(outcome, ReplayError)
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/replay/1``, without provenance."""
        replays = [
            (network, outcome.message if isinstance(outcome, ReplayError) else outcome)
            for network, outcome in self.outcomes
        ]
        return document(self.trace, self.measured, self.notes, replays, self.window, self.caveats)


def replay(
    trace: str | os.PathLike[str],
    networks: Sequence[Network] = (PRESETS["ideal"],),
    *,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    application: int = 1,
    cache: bool = True,
) -> Replays:
    """Simulate a traced run on networks.

    Parameters
    ----------
    trace : path
        The trace.
    networks : sequence of Network
        By default the ideal one, without latency and with infinite bandwidth.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an end that is left out, or None, is the trace's.
    region : str, optional
        Analyse the occurrences of a region, one after the other.
    from_start : bool
        Analyse the whole run. By default it is the part from the end of MPI_Init of the last rank
        to the begin of MPI_Finalize of the first.
    application : int
        Which application of the trace, from 1.
    cache : bool
        Whether to keep the parsed trace, and to use one that is kept.

    Raises
    ------
    FileError
        If the trace cannot be read.
    ReplayError
        If the only replay stops, for instance in a deadlock. Of several replays each has its own.
    """
    path = os.fspath(trace)
    part = Part.of(window, region, from_start)
    source, focus = focused(read(path, application=application, cache=cache), part)
    program = from_trace(source)
    outcomes: list[tuple[Network, Execution | ReplayError]] = []
    for network in networks:
        try:
            outcomes.append((network, carry_out(program, network)))
        except ReplayError as error:
            if len(networks) == 1:
                raise
            outcomes.append((network, error))
    said = tuple(caveats(source, focus))
    return Replays(path, runtime(source), tuple(outcomes), focus, said, program.notes)
