"""Devices such as GPUs: what they do, what threads lose to them, and why devices stand idle.

A device is useful while it runs a kernel in any of its streams. It is active when it copies or
communicates as well. Of a thread, time in calls of the device's runtime is not useful; inside MPI
it is MPI's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.loss_causes import Remark, RemarkLoss, percent
from popmodel.traces.codes import BLOCKED, MOVING, SYNCHRONISING, WAITING
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.runtime import state_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces import Trace
    from popmodel.traces.regions import ParallelRegions

    Times = NDArray[np.float64]

_NS = 1e9
_WAITING = (WAITING, SYNCHRONISING, BLOCKED, MOVING)
"""States that are waits for a device where no call of its runtime is recorded."""


@dataclass(frozen=True, eq=False)
class DeviceTimes:
    """Times of the D devices of a run, and of its T threads and P processes, s."""

    names: tuple[str, ...]  # Of the devices
    # int64[D]: Streams of each; kernels, copies and collectives in them.
    streams: NDArray[np.int64]
    activities: NDArray[np.int64]
    # float64[D]: Time with a kernel in any stream; with copies or collectives and no kernel.
    kernels: Times
    transfers: Times
    # float64[D]: Time without either between the first and the last activity; how many such gaps.
    gap_time: Times
    gaps: NDArray[np.int64]
    # float64[T]: Time in calls of the device's runtime outside MPI; the part of it in which the
    # thread waits for the device (synchronising calls).
    in_calls: Times
    waits: Times
    # float64[T]: The part of `in_calls` outside parallel regions.
    in_serial_calls: Times
    outside_mpi: Times  # float64[P]: Wall time of masters outside MPI calls

    def aggregates(self, threads: NDArray[np.int64]) -> dict[str, float]:
        """Scalars that formulas use; `threads` are those of each process."""
        active = self.kernels + self.transfers
        return {
            "devices": float(len(self.names)),
            "device_useful_sum": float(self.kernels.sum()),
            "device_useful_max": float(self.kernels.max()),
            "device_active_max": float(active.max()),
            "in_device_calls_sum": float(self.in_calls.sum()),
            "host_outside_mpi_mean": float(threads @ self.outside_mpi) / float(threads.sum()),
        }

    def of_threads(self) -> dict[str, list[float]]:
        """What threads lose to devices, for JSON."""
        return {"in_device_calls": self.in_calls.tolist(), "device_waits": self.waits.tolist()}

    def to_list(self) -> list[dict[str, Any]]:
        """What each device does, for JSON."""
        columns = ("streams", "activities", "kernels", "transfers", "gap_time", "gaps")
        values = zip(*(getattr(self, name).tolist() for name in columns), strict=True)
        return [
            {"name": name, **dict(zip(columns, row, strict=True))}
            for name, row in zip(self.names, values, strict=True)
        ]


def measure_devices(trace: Trace, regions: ParallelRegions) -> DeviceTimes | None:
    """Measure devices; None without any."""
    rows = trace.devices
    if not rows.names:
        return None
    kernels, transfers = rows.kernels(), rows.transfers()
    gaps = _gaps(kernels, transfers)
    in_mpi = trace.calls().intervals()
    in_regions = [regions.on_master, regions.in_function]
    calls, waits = _device_calls(trace, [in_mpi], in_regions)
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    outside = state_times(trace)[1] - alone([in_mpi], []).total()
    return DeviceTimes(
        names=rows.devices,
        streams=np.bincount(rows.device, minlength=len(rows.devices)),
        activities=np.bincount(rows.device[rows.activity.location], minlength=len(rows.devices)),
        kernels=kernels.total() / _NS,
        transfers=transfers.total() / _NS,
        gap_time=gaps.total() / _NS,
        gaps=np.diff(gaps.offsets),
        in_calls=calls.total() / _NS,
        waits=waits.total() / _NS,
        in_serial_calls=alone([calls], in_regions).total() / _NS,
        outside_mpi=np.maximum(outside[masters], 0) / _NS,
    )


def _device_calls(
    trace: Trace, in_mpi: list[Intervals], in_regions: list[Intervals]
) -> tuple[Intervals, Intervals]:
    """When threads are in calls of the runtime of a device outside MPI, and in those that wait.

    Where the trace has no such call at all, masters outside of parallel regions are taken to wait
    for devices while they are in a state of waiting.
    """
    if len((trace.whole or trace).devices.calls):
        rows = trace.devices
        return alone([rows.calls], in_mpi), alone([rows.waits()], in_mpi)
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    states = [trace.records.in_state(state).at(masters) for state in _WAITING]
    waits = alone(states, [*in_mpi, *in_regions])
    return waits, waits


def _gaps(kernels: Intervals, transfers: Intervals) -> Intervals:
    """When a device does nothing between two things that it does."""
    active = alone([kernels, transfers], [])
    last, first = active.end[:-1], active.begin[1:]
    location = active.location
    idle = np.flatnonzero((location[1:] == location[:-1]) & (first > last))
    offsets = np.searchsorted(location[idle], np.arange(len(active.offsets)))
    return Intervals(offsets, last[idle], first[idle])


# Why devices lose time.


def _devices(loss: RemarkLoss) -> DeviceTimes:
    devices = loss.run.observables.devices
    if devices is None:
        raise ValueError("a family of devices has values in a run without any")
    return devices


def launch_gaps(loss: RemarkLoss) -> Remark:
    """Say how long even the busiest device stands idle, and where."""
    devices, runtime = _devices(loss), loss.run.observables.runtime
    active = devices.kernels + devices.transfers
    busiest = int(active.argmax())
    gaps, between = int(devices.gaps[busiest]), float(devices.gap_time[busiest])
    idle = max(runtime - float(active[busiest]), 0.0)
    where = "before its first kernel or copy and after its last"
    if gaps:
        where = (
            f"{format_time(between, digits=3)} of it in {plural(gaps, 'gap')} "
            f"({format_time(between / gaps, digits=3)} each)"
        )
    return Remark(
        f"Even {devices.names[busiest]}, the busiest device, idles "
        f"{format_time(idle, digits=3)}, {where}.",
        "Launch ahead, without synchronising calls between; join short kernels (graphs).",
    )


def device_copies(loss: RemarkLoss) -> Remark:
    """Name the device with most copies beside kernels that could overlap."""
    devices = _devices(loss)
    most = int(devices.transfers.argmax())
    time, active = (
        float(devices.transfers[most]),
        float((devices.kernels + devices.transfers)[most]),
    )
    return Remark(
        f"{devices.names[most]} copies or communicates for {format_time(time, digits=3)} "
        f"({percent(time / active)} of its active time) without a kernel.",
        "Overlap them: pinned memory, asynchronous copies.",
    )


def device_imbalance(loss: RemarkLoss) -> Remark:
    """Name the busiest and the idlest device."""
    devices = _devices(loss)
    most, least = int(devices.kernels.argmax()), int(devices.kernels.argmin())
    above = float(devices.kernels[most] / devices.kernels.mean()) - 1
    return Remark(
        f"{devices.names[most]} runs kernels for "
        f"{format_time(float(devices.kernels[most]), digits=3)} ({percent(above)} above the mean), "
        f"{devices.names[least]} for {format_time(float(devices.kernels[least]), digits=3)}.",
        loss.advice,
    )
