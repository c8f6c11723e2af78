"""Time-independent traces of one collective each, whose processes arrive at different times.

``tests/data/smpi/cells.json`` holds SimGrid's runtimes of them: collective, processes, bytes (of
the vector, or of one process or peer), network (`oracle.smpi.NETWORKS`), selector and seconds, by
``smpirun -replay`` of SimGrid 3.32 with its options of SMPI as they are by default, network model
CM02 without factors, and ``surf/precision`` 1e-13.
"""

_BYTES = "6"  # MPI_BYTE


def amount(size: int, sender: int, receiver: int) -> int:
    """Bytes from one process to another where they differ, some of them none."""
    return size * ((sender * 5 + receiver * 3) % 7)


def action(kind: str, processes: int, size: int, rank: int) -> str:
    """The collective as a process calls it; the root is in the middle."""
    root, each = processes // 2, " ".join([str(size)] * processes)
    both = f"{_BYTES} {_BYTES}"
    other = [size * (one * 3 % 5 + 1) for one in range(processes)]  # by process
    uneven, mine = " ".join(map(str, other)), other[rank]
    known = uneven if rank == root else " ".join("0" * processes)  # to the root
    sent = [amount(size, rank, one) for one in range(processes)]
    received = [amount(size, one, rank) for one in range(processes)]
    return {
        "barrier": "barrier",
        "bcast": f"bcast {size} {root} {_BYTES}",
        "reduce": f"reduce {size} 0 {root} {_BYTES}",
        "allreduce": f"allreduce {size} 0 {_BYTES}",
        "scan": f"scan {size} 0 {_BYTES}",
        "exscan": f"exscan {size} 0 {_BYTES}",
        "gather": f"gather {size} {size} {root} {both}",
        "gatherv": f"gatherv {size} {each} {root} {both}",
        "uneven gatherv": f"gatherv {mine} {known} {root} {both}",
        "scatter": f"scatter {size} {size} {root} {both}",
        "scatterv": f"scatterv {each} {size} {root} {both}",
        "uneven scatterv": f"scatterv {known} {mine} {root} {both}",
        "allgather": f"allgather {size} {size} {both}",
        "allgatherv": f"allgatherv {size} {each} {both}",
        "uneven allgatherv": f"allgatherv {mine} {uneven} {both}",
        "reducescatter": f"reducescatter {each} 0 {_BYTES}",
        "uneven reducescatter": f"reducescatter {uneven} 0 {_BYTES}",
        "alltoall": f"alltoall {size} {size} {both}",
        "alltoallv": f"alltoallv {size * processes} {each} {size * processes} {each} {both}",
        "uneven alltoallv": f"alltoallv {sum(sent)} {' '.join(map(str, sent))} "
        f"{sum(received)} {' '.join(map(str, received))} {both}",
    }[kind]


def cell(kind: str, processes: int, size: int) -> str:
    """A trace of all processes."""
    lines = [f"{rank} init" for rank in range(processes)]
    for rank in range(processes):
        lines.append(f"{rank} compute {rank * 7919 % 1000 * 1000}")
        lines.append(f"{rank} {action(kind, processes, size, rank)}")
        lines.append(f"{rank} compute {rank * 31 % 17 * 1000}")
    return "\n".join([*lines, *(f"{rank} finalize" for rank in range(processes))]) + "\n"
