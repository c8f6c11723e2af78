"""Streams of devices such as GPUs: what they run, and when threads call the device's runtime.

A device executes what threads put into its *streams*. A reader gives them as `DeviceRows` by
`Records.devices`, whatever rows its format has for them: they are no threads. Times are those of
the trace; a part of a run has what lies in it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import dataclass
from popmodel.traces.intervals import Intervals, Spans, TracePieces, alone, joined
from popmodel.traces.tables import location_of_row, offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


KERNEL, COPY, COLLECTIVE = range(3)
"""What a stream does: a kernel; a copy or memset; a collective of the device's library (NCCL)."""

_WAITS = re.compile(
    r"(cuda|hip|cu)(\w*Synchronize|Memcpy(?!\w*Async)\w*)"
    r"|cl(Finish|WaitForEvents)",
    re.IGNORECASE,
)
"""Calls of device runtimes that return when the device is done."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """The streams of a run's devices, and the calls of threads to the runtime of the device."""

    names: tuple[str, ...]  # Of the R streams
    # int32[R]: The device of each stream, an index into `devices`, and the process it works for.
    device: NDArray[np.int32]
    process: NDArray[np.int32]
    devices: tuple[str, ...]  # Names of the D devices
    # Of R locations; kinds are `KERNEL`, `COPY` and `COLLECTIVE`. Those of a stream do not overlap.
    activity: Spans
    # Of the L threads, none without streams; the kind is an index into `call_names`.
    calls: Spans
    call_names: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # Rows of devices that are no streams: sampled counters
    # What has to be known of the threads that use the devices, a clause; empty for nothing.
    note: str = ""

    @classmethod
    def none(cls, locations: int) -> DeviceRows:
        nothing = np.empty(0, np.int32)
        return cls((), nothing, nothing, (), Spans.none(0), Spans.none(locations))

    def __bool__(self) -> bool:
        return bool(self.names)

    def cut(self, pieces: TracePieces) -> DeviceRows:
        """What lies in some pieces of the run."""
        return replace(self, activity=self.activity.cut(pieces), calls=self.calls.cut(pieces))

    def contents(self) -> list[dict[str, Any]]:
        """What each device holds, for JSON; time with a kernel in seconds."""
        streams = np.bincount(self.device, minlength=len(self.devices))
        device = self.device[self.activity.location]
        kinds = ("kernels", "copies", "collectives")
        count = np.zeros((len(self.devices), len(kinds)), np.int64)
        np.add.at(count, (device, self.activity.what), 1)
        busy = (self.kernels().total() / 1e9).tolist()
        return [
            {
                "name": name,
                "streams": int(streams[number]),
                **dict(zip(kinds, count[number].tolist(), strict=True)),
                "busy": busy[number],
            }
            for number, name in enumerate(self.devices)
        ]

    def kernels(self) -> Intervals:
        """When each of the D devices runs kernels, whatever stream they are in."""
        return self._any_stream(self.activity.what == KERNEL)

    def transfers(self) -> Intervals:
        """When each of the D devices copies or communicates and runs no kernel."""
        return alone([self._any_stream(self.activity.what != KERNEL)], [self.kernels()])

    def _any_stream(self, chosen: NDArray[np.bool_]) -> Intervals:
        """Union of some activities over the streams of each device."""
        device = self.device[location_of_row(self.activity.offsets)]
        unions = [
            joined(self.activity.begin[mine], self.activity.end[mine])
            for mine in (chosen & (device == number) for number in range(len(self.devices)))
        ]
        counts = np.array([len(begin) for begin, _ in unions], np.int64)
        begin, end = np.concatenate([np.empty((2, 0), np.int64), *unions], axis=1)
        return Intervals(offsets_of(counts), begin, end)

    def waits(self) -> Spans:
        """Calls in which threads wait for a device (synchronising calls)."""
        waiting = np.array([_WAITS.match(name) is not None for name in self.call_names], bool)
        rows = np.flatnonzero(waiting[self.calls.what])
        calls = self.calls
        offsets = np.searchsorted(rows, calls.offsets)
        return Spans(offsets, calls.begin[rows], calls.end[rows], calls.what[rows])
