"""What a raw file of the tracer holds: the numbers of ``microbench/tracer/record.h``.

That header explains them; a test holds the two together.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import numpy as np

MAGIC = b"popmodel"
MARK = 0x01020304
VERSION = 2
LATEST = 1 << 62
"""The largest time that a clock may show, ns: 146 years after the start of a host, or 2116."""

HEADER = struct.Struct("=8s6I2Q16x")
"""Magic, mark, version, header size, record size, process, thread, thread id, begin."""

RECORD = np.dtype(
    [
        ("time", np.uint64),
        ("kind", np.uint16),
        ("call", np.uint16),
        ("a", np.uint32),
        ("b", np.int64),
        ("c", np.int64),
    ]
)


class Kind(IntEnum):
    """Kinds of records."""

    ENTER = 1
    LEAVE = 2
    SEND = 3
    POST = 4
    RECEIVE = 5
    RECEIVED = 6
    ROOT = 7
    COLLECT = 8
    COLLECTED = 9
    PARALLEL_BEGIN = 16
    PARALLEL_END = 17
    TASK_BEGIN = 18
    TASK_END = 19
    OMP_ENTER = 20
    OMP_LEAVE = 21
    TASK_CREATE = 22
    TASK_RUN = 23
    TASK_STOP = 24
    GUARDED = 25
    HELD = 26
    USER_BEGIN = 32
    USER_END = 33
    TRACING = 34
    LEFT_OUT = 35
    COUNTERS = 40
    FLUSH_BEGIN = 48
    FLUSH_END = 49
    END = 63


SITE_SHIFT = 48
"""Field `c` of an ENTER has the number of the call site above these bits, and below them bytes."""


class Construct(IntEnum):
    """Constructs of OpenMP in OMP_ENTER and OMP_LEAVE."""

    BARRIER = 1
    IMPLICIT_BARRIER = 2
    CRITICAL_WAIT = 3
    CRITICAL_HOLD = 4
    LOCK_WAIT = 5
    LOCK_HOLD = 6
    SINGLE = 7
    SCHEDULING = 8
    SECTIONS = 9
    ORDERED = 10
    TASKWAIT = 11
    TASKGROUP = 12
    JOIN = 13


class Left(IntEnum):
    """Kinds of calls that LEFT_OUT says are not recorded."""

    LEFT_TESTS = 1
    LEFT_CHUNKS = 2
    LEFT_SINGLES = 3
    LEFT_RMA = 4
    LEFT_IO = 5


class Guard(IntEnum):
    """What GUARDED and HELD sum up."""

    LOCKS = 1
    CRITICALS = 2
    ATOMICS = 3


IS_KIND = np.zeros(1 << 16, dtype=bool)
"""Whether a number is a kind of record."""
IS_KIND[list(Kind)] = True
