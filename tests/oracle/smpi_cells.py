"""Time-independent traces of one collective each, whose processes arrive at different times.

``tests/data/smpi/cells.json`` holds SimGrid's runtimes of them: collective, processes, bytes (of
the vector, or of one process or peer), network (`oracle.smpi.NETWORKS`), selector and seconds, by
``smpirun -replay`` of SimGrid 3.32 with its options of SMPI as they are by default, network model
CM02 without factors, and ``surf/precision`` 1e-13.
"""

from __future__ import annotations

_BYTES = "6"  # MPI_BYTE


def action(kind: str, processes: int, size: int) -> str:
    """The collective as every process calls it; the root is in the middle."""
    root, each = processes // 2, " ".join([str(size)] * processes)
    return {
        "barrier": "barrier",
        "bcast": f"bcast {size} {root} {_BYTES}",
        "reduce": f"reduce {size} 0 {root} {_BYTES}",
        "allreduce": f"allreduce {size} 0 {_BYTES}",
        "scan": f"scan {size} 0 {_BYTES}",
        "exscan": f"exscan {size} 0 {_BYTES}",
        "gather": f"gather {size} {size} {root} {_BYTES} {_BYTES}",
        "gatherv": f"gatherv {size} {each} {root} {_BYTES} {_BYTES}",
        "scatter": f"scatter {size} {size} {root} {_BYTES} {_BYTES}",
        "scatterv": f"scatterv {each} {size} {root} {_BYTES} {_BYTES}",
        "allgather": f"allgather {size} {size} {_BYTES} {_BYTES}",
        "allgatherv": f"allgatherv {size} {each} {_BYTES} {_BYTES}",
        "reducescatter": f"reducescatter {each} 0 {_BYTES}",
        "alltoall": f"alltoall {size} {size} {_BYTES} {_BYTES}",
        "alltoallv": f"alltoallv {size * processes} {each} {size * processes} {each} "
        f"{_BYTES} {_BYTES}",
    }[kind]


def cell(kind: str, processes: int, size: int) -> str:
    """A trace of all processes."""
    lines = [f"{rank} init" for rank in range(processes)]
    for rank in range(processes):
        lines.append(f"{rank} compute {rank * 7919 % 1000 * 1000}")
        lines.append(f"{rank} {action(kind, processes, size)}")
        lines.append(f"{rank} compute {rank * 31 % 17 * 1000}")
    return "\n".join([*lines, *(f"{rank} finalize" for rank in range(processes))]) + "\n"
