"""Writing a replay as a trace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from popmodel.base.errors import ReplayError, UsageError
from popmodel.base.units import plural
from popmodel.simulator.replayer import Replayer
from popmodel.simulator.trace_output import replayed
from popmodel.traces.paraver.writer import SUFFIXES, labels_of
from popmodel.traces.paraver.writer import write_trace as write

if TYPE_CHECKING:
    from popmodel.network.network import Network
    from popmodel.simulator import Program
    from popmodel.traces import Trace


def check_writable(output: str | os.PathLike[str], replays: int) -> None:
    """Make sure, before any work, that a replay can be written as a trace."""
    if not os.fspath(output).endswith(SUFFIXES):
        raise UsageError(f"{os.fspath(output)}: must end in .prv or .prv.gz", "try replayed.prv.gz")
    if replays != 1:
        raise UsageError(
            f"{os.fspath(output)}: one replay makes a trace, not {plural(replays, 'replay')}",
            "give one value to each option of the network",
        )


def write_replay(
    trace: Trace, program: Program, network: Network, output: str | os.PathLike[str]
) -> None:
    """Replay a program once more and write what happens as a Paraver trace."""
    if len(program.threads):
        raise ReplayError(
            f"{trace.path}: not only masters call MPI: such a replay cannot be written as a trace",
            "leave out -o, or name another format",
        )
    moments = Replayer(program).moments(network)
    told = replayed(trace, program, moments.begin, moments.end, 1 / network.cpu_factor)
    write(output, told, labels_of(trace))
