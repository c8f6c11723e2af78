"""What measuring finds here: counters that may be read, and what others take of the CPUs."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import time
from collections.abc import Iterable
from pathlib import Path

from popmodel.base.values import NamedTuple, dataclass

# Whether this process may read the hardware's counters, asked of the kernel itself.
#
# Settings tell only half: a virtual machine may have no counters, a container may forbid the call.
# So
# one counter is opened and read, as in perf_event_open(2).


_CALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_HARDWARE, _INSTRUCTIONS = 0, 1  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS
_SIZE = 64  # PERF_ATTR_SIZE_VER0: the first form of the structure, which every kernel takes
_USER_ONLY = 1 << 5 | 1 << 6  # exclude_kernel, exclude_hv: what the strictest usual setting allows

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


def refusal() -> int | None:
    """Say why instructions cannot be counted: an error number; None if they can.

    ``ENODATA`` stands for a counter that opens and stays at zero, as some virtual machines have it.
    """
    number = _CALL.get(platform.machine())
    if number is None:
        return errno.ENOSYS
    attributes = struct.pack("=IIQQQQQ", _HARDWARE, _SIZE, _INSTRUCTIONS, 0, 0, 0, _USER_ONLY)
    library = ctypes.CDLL(None, use_errno=True)
    # This process, any CPU, no group, no flags.
    descriptor = library.syscall(number, attributes.ljust(_SIZE, b"\0"), 0, -1, -1, 0)
    if descriptor < 0:
        return ctypes.get_errno()
    try:
        (counted,) = struct.unpack("=Q", os.read(descriptor, 8))
    except OSError as error:
        return error.errno
    finally:
        os.close(descriptor)
    return None if counted > 0 else errno.ENODATA


def paranoia() -> int | None:
    """Return the kernel's setting ``perf_event_paranoid``: 2 and less let users count their own."""
    try:
        return int(PARANOID.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


# How quiet this machine is now: what others take of the CPUs that this process may use.


STAT = Path("/proc/stat")

_QUANTUM = 1e-3  # seconds of the piece of work whose time is watched


class Usage(NamedTuple):
    """Time that CPUs spent since the machine started, in seconds, summed over CPUs."""

    busy: float
    stolen: float


@dataclass(frozen=True)
class Disturbance:
    """What disturbed a second of work."""

    load: float  # Processes that wanted to run, average of the last minute
    # Shares of the CPUs that other processes and other virtual machines took, 0 to 1.
    foreign: float
    steal: float
    # How much longer the same piece of work took at the 90th percentile than at the 10th, as a
    # fraction.
    spread: float


def measure(seconds: float = 1.0) -> Disturbance:
    """Work for a time and watch what comes between."""
    cpus = os.sched_getaffinity(0)
    begin, own, before = time.monotonic(), time.process_time(), usage(STAT.read_text(), cpus)
    times = sorted(_quanta(begin + seconds))
    wall = time.monotonic() - begin
    own, after = time.process_time() - own, usage(STAT.read_text(), cpus)
    return Disturbance(
        load=os.getloadavg()[0],
        foreign=_share(after.busy - before.busy - own, wall * len(cpus)),
        steal=_share(after.stolen - before.stolen, wall * len(cpus)),
        spread=times[len(times) * 9 // 10] / times[len(times) // 10] - 1,
    )


def usage(stat: str, cpus: Iterable[int], ticks: int | None = None) -> Usage:
    """Read how busy some CPUs were from the text of ``/proc/stat``."""
    ticks = ticks or os.sysconf("SC_CLK_TCK")
    names = {f"cpu{cpu}" for cpu in cpus}
    busy = stolen = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name in names:
            user, nice, system, _idle, _waiting, hard, soft, steal = map(int, fields[:8])
            busy += user + nice + system + hard + soft
            stolen += steal
    return Usage(busy / ticks, stolen / ticks)


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole))


def _quanta(until: float) -> list[float]:
    """Times of one piece of work, repeated until a time; at least ten."""
    rounds = 10_000
    while (taken := _timed(rounds)) < _QUANTUM:
        rounds = max(rounds + 1, min(2 * rounds, int(rounds * _QUANTUM / taken) + 1))
    times: list[float] = []
    while len(times) < 10 or time.monotonic() < until:
        times.append(_timed(rounds))
    return times


def _timed(rounds: int) -> float:
    begin = time.perf_counter()
    for _ in range(rounds):
        pass
    return time.perf_counter() - begin
