"""Whether this process may read the hardware's counters, asked of the kernel itself.

Settings tell only half: a virtual machine may have no counters, a container may forbid the call. So
one counter is opened and read, as in perf_event_open(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from pathlib import Path

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
