"""Makes ``tests/data/offload.2``: two ranks that offload to a GPU each, as Extrae would write it.

    python tests/traces/made_offload.py tests/data/offload.2.prv.gz

In each of twelve steps a rank prepares the step, launches a kernel, waits for it, copies its result
in a second stream while the first one runs a short kernel, waits, and takes part in a reduction.
"""

import sys
from pathlib import Path

from popmodel.traces.codes import MOVING, OTHER, RUNNING, SYNCHRONISING, TOGETHER
from popmodel.traces.paraver.labels import legend
from popmodel.traces.paraver.writer import TraceWriter

MS, US = 1_000_000, 1_000
CALL, TRANSFER, SIZE, KERNEL = 63000000, 63000001, 63000002, 63000006
LAUNCH, COPY, WAIT = 1, 3, 4
CALLS = {0: "End", LAUNCH: "cudaLaunch", COPY: "cudaMemcpyAsync", WAIT: "cudaDeviceSynchronize"}
KERNELS = {0: "End", 1: "stencil", 2: "norm"}
STEPS = 12
KERNEL_TIMES = (5 * MS, 6 * MS)  # of the two ranks: uneven


def write(path: Path) -> None:
    """Write the trace."""
    names = legend({}, counters=False)
    labels = type(names)(
        {**names.states, MOVING: "Memory transfer"},
        {
            **names.event_types,
            CALL: "CUDA library call",
            TRANSFER: "CUDA memory transfer",
            SIZE: "CUDA memory transfer size",
            KERNEL: "CUDA kernel",
        },
        {**names.event_values, CALL: CALLS, KERNEL: KERNELS},
    )
    rows = [
        name
        for rank in (1, 2)
        for name in (f"THREAD 1.{rank}.1", f"CUDA-D{rank}.S1-n1", f"CUDA-D{rank}.S2-n1")
    ]
    writer = TraceWriter([3, 3], communicators={1: [0, 1]}, labels=labels, names=rows)
    times = [0, 0]
    _mpi(writer, times, 50000003, 31, 1 * MS, OTHER)
    for _ in range(STEPS):
        for rank in (0, 1):
            times[rank] = _step(writer, rank, times[rank])
        _mpi(writer, times, 50000002, 10, 50 * US, TOGETHER)
    _mpi(writer, times, 50000003, 32, 1 * MS, OTHER)
    writer.write(path)


def _step(writer: TraceWriter, rank: int, time: int) -> int:
    """One step of a rank; when it ends."""
    writer.state(rank, 0, time, time + MS, RUNNING)
    launched = _call(writer, rank, time + MS, LAUNCH, 20 * US, OTHER)
    begin = launched + 10 * US
    done = _kernel(writer, rank, begin, 1, KERNEL_TIMES[rank])
    time = _call(writer, rank, launched, WAIT, done + 5 * US - launched, SYNCHRONISING)
    writer.state(rank, 0, time, time + 500 * US, RUNNING)
    time = _call(writer, rank, time + 500 * US, COPY, 20 * US, OTHER)
    time = _call(writer, rank, time, LAUNCH, 20 * US, OTHER)
    _kernel(writer, rank, time, 2, 400 * US)
    copied = time + 1200 * US
    writer.state(rank, 2, time, copied, MOVING)
    writer.event(rank, 2, time, [(TRANSFER, 1), (SIZE, 8 << 20)])
    writer.event(rank, 2, copied, [(TRANSFER, 0)])
    return _call(writer, rank, time, WAIT, copied + 5 * US - time, SYNCHRONISING)


def _call(writer: TraceWriter, rank: int, begin: int, call: int, lasts: int, state: int) -> int:
    writer.event(rank, 0, begin, [(CALL, call)])
    writer.event(rank, 0, begin + lasts, [(CALL, 0)])
    writer.state(rank, 0, begin, begin + lasts, state)
    return begin + lasts


def _kernel(writer: TraceWriter, rank: int, begin: int, kernel: int, lasts: int) -> int:
    writer.event(rank, 1, begin, [(KERNEL, kernel)])
    writer.event(rank, 1, begin + lasts, [(KERNEL, 0)])
    writer.state(rank, 1, begin, begin + lasts, RUNNING)
    return begin + lasts


def _mpi(
    writer: TraceWriter, times: list[int], type_: int, call: int, lasts: int, state: int
) -> None:
    """A call of all ranks, which ends `lasts` after the last has entered it."""
    end = max(times) + lasts
    for rank in (0, 1):
        told = [(50100001, 8), (50100002, 8), (50100004, 1)] if type_ == 50000002 else []
        writer.event(rank, 0, times[rank], [(type_, call), *told])
        writer.event(rank, 0, end, [(type_, 0)])
        writer.state(rank, 0, times[rank], end, state)
        times[rank] = end


if __name__ == "__main__":
    write(Path(sys.argv[1]))
