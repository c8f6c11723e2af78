"""What is measured of a run only to say why it loses time: no efficiency is computed from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike, distinct
from popmodel.kernel import _kernel
from popmodel.network.network import Network
from popmodel.simulator import replay
from popmodel.simulator.program import at_once
from popmodel.trace.calls import call_times
from popmodel.trace.caveats import crowding, first_values, waiting
from popmodel.trace.codes import Event
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.simulator import Program
    from popmodel.trace import Trace
    from popmodel.trace.intervals import Intervals
    from popmodel.trace.regions import ParallelRegions

_NS = 1e9
WAITED = 0.1
"""Share of the time that threads wait for a CPU above which a run is disturbed."""
USUAL = Network(name="usual", latency=2e-6, bandwidth=10e9)
"""What latency and bandwidth are compared on: an interconnect of a cluster."""
SLOW = {
    True: Network(name="slow memory", latency=5e-6, bandwidth=1e9),
    False: Network(name="gigabit Ethernet", latency=50e-6, bandwidth=125e6),
}
"""Networks slower than those that programs run on, inside one node or not: what takes longer than
on them is not the network's doing."""


@dataclass(frozen=True)
class SerialCode:
    """Useful time of masters between two parallel regions."""

    # Names of the regions; empty at the begin and at the end of the run.
    after: str
    before: str
    count: int  # Of such stretches, over processes
    time: float  # Useful time, summed over processes, s


@dataclass(frozen=True)
class OtherNetworks:
    """Runtimes of the run on networks other than the ideal one, s."""

    slow: float  # On the network of `SLOW` that suits the run
    # On the network `USUAL` without its other parameter.
    latency: float
    bandwidth: float
    # As `bandwidth`, but no blocking send holds up the receives beside it; None where there are no
    # such sends.
    at_once: float | None = None


@dataclass(frozen=True)
class Crowd:
    """Threads that may use fewer processors than there are threads to use them."""

    # Of the process that is worst off: its threads, and how many threads share how many processors.
    # Where only its own do, the process is bound too narrowly.
    threads: int
    sharing: int
    cpus: int


@dataclass(frozen=True)
class Evidence:
    """What is known about the causes of losses."""

    calls: int = 0  # Calls of MPI
    serial: tuple[SerialCode, ...] = ()  # The longest first
    # None where transfer costs little, or the run cannot be replayed.
    networks: OtherNetworks | None = None
    # None where threads have enough processors, or nothing is known about that.
    crowd: Crowd | None = None
    delayed: bool = False  # Whether threads waited for CPUs noticeably, for whatever reason
    # Share of the time in which threads were ready to run that they waited for a CPU.
    waited: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether threads lacked CPUs, or waited for them: the times are not the program's."""
        return self.crowd is not None or self.waited > WAITED


def gather(trace: Trace, serial: tuple[SerialCode, ...], program: Program | None) -> Evidence:
    """Gather the evidence of a run."""
    delayed = bool(crowding(trace))
    return Evidence(
        calls=int(call_times(trace).calls.sum()),
        serial=serial,
        networks=None if program is None else _other_networks(program),
        crowd=_crowd(trace.whole or trace) if delayed else None,
        delayed=delayed,
        waited=waiting(trace),
    )


def serial_code(trace: Trace, running: Intervals, found: ParallelRegions) -> tuple[SerialCode, ...]:
    """Useful time of masters between parallel regions, by the regions before and after."""
    regions = found.on_master
    if not len(regions):
        return ()
    location = regions.location
    label = found.label
    first = np.ones(len(regions), dtype=bool)
    first[1:] = location[1:] != location[:-1]
    last = np.append(first[1:], True)
    begin = np.full(len(regions), trace.begin, dtype=np.int64)
    begin[~first] = regions.end[np.flatnonzero(~first) - 1]
    after = np.full(len(regions), -1, dtype=np.int64)
    after[~first] = label[np.flatnonzero(~first) - 1]
    final = np.flatnonzero(last)
    parts = (
        (location, begin, regions.begin, after, label),
        (
            location[final],
            regions.end[final],
            np.full(len(final), trace.end, dtype=np.int64),
            label[final],
            np.full(len(final), -1, dtype=np.int64),
        ),
    )
    where, begin, end, after, before = (
        np.concatenate(columns).astype(np.int64) for columns in zip(*parts, strict=True)
    )
    useful = running.inside(where, begin, np.maximum(begin, end))
    distinct, index = alike(after, before)
    time = np.bincount(index, useful, len(distinct))
    count = np.bincount(index, minlength=len(distinct))
    names = [*found.names, ""]  # -1 is the last
    serial = [
        SerialCode(names[after], names[before], int(count[row]), float(time[row]) / _NS)
        for row, (after, before) in enumerate(distinct.tolist())
        if time[row]
    ]
    return tuple(sorted(serial, key=lambda one: (-one.time, one.after, one.before)))


def _other_networks(program: Program) -> OtherNetworks:
    one_node = len(distinct(program.nodes)) <= 1
    runtimes = []
    for network in (
        SLOW[one_node],
        USUAL.with_(bandwidth=float("inf")),
        USUAL.with_(latency=0.0),
    ):
        _kernel.trim()  # the next replay hardly fits into what the one before has freed
        runtimes.append(replay(program, network).runtime)
    exchanging = at_once(program)
    exchanged = None if exchanging is None else replay(exchanging, network).runtime
    slow, latency, bandwidth = runtimes
    return OtherNetworks(slow, latency, bandwidth, exchanged)


def _crowd(trace: Trace) -> Crowd | None:
    cpus, sharing = (first_values(trace, mark) for mark in (Event.CPUS, Event.SHARING))
    crowded = np.flatnonzero((cpus > 0) & (sharing > cpus))
    if not len(crowded):
        return None
    worst = int(crowded[np.argmax(sharing[crowded] / cpus[crowded])])
    process = int(np.searchsorted(trace.process_offsets, worst, side="right")) - 1
    threads = int(trace.process_offsets[process + 1] - trace.process_offsets[process])
    return Crowd(threads, int(sharing[worst]), int(cpus[worst]))
