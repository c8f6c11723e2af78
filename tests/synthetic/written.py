"""Lines of a Paraver trace, its labels and its names, as Extrae writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

POINT_TO_POINT, COLLECTIVE, OTHER = 50000001, 50000002, 50000003
PARALLEL, OUTLINED, USER = 60000001, 60000018, 60000019
CALLER, CALLER_LINE = 70000001, 80000001
INSTRUCTIONS, CYCLES = 42000050, 42000059
SENT, RECEIVED, ROOT, COMMUNICATOR = 50100001, 50100002, 50100003, 50100004

CALLS: Mapping[str, tuple[int, int, int]] = {
    "Send": (POINT_TO_POINT, 1, 4),
    "Recv": (POINT_TO_POINT, 2, 3),
    "Isend": (POINT_TO_POINT, 3, 10),
    "Irecv": (POINT_TO_POINT, 4, 11),
    "Wait": (POINT_TO_POINT, 5, 8),
    "Waitall": (POINT_TO_POINT, 6, 8),
    "Sendrecv": (POINT_TO_POINT, 41, 16),
    "Bcast": (COLLECTIVE, 7, 13),
    "Barrier": (COLLECTIVE, 8, 5),
    "Reduce": (COLLECTIVE, 9, 13),
    "Allreduce": (COLLECTIVE, 10, 13),
    "Alltoall": (COLLECTIVE, 11, 13),
    "Gather": (COLLECTIVE, 13, 13),
    "Scatter": (COLLECTIVE, 15, 13),
    "Allgather": (COLLECTIVE, 17, 13),
    "Init": (OTHER, 31, 15),
    "Finalize": (OTHER, 32, 15),
}
"""Type and value of the event of each call, and the state of a process in it."""

_TYPES = {
    POINT_TO_POINT: "MPI Point-to-point",
    COLLECTIVE: "MPI Collective Comm",
    OTHER: "MPI Other",
    SENT: "Send Size in MPI Global OP",
    RECEIVED: "Recv Size in MPI Global OP",
    ROOT: "Root in MPI Global OP",
    COMMUNICATOR: "Communicator in MPI Global OP",
    INSTRUCTIONS: "PAPI_TOT_INS [Instr completed]",
    CYCLES: "PAPI_TOT_CYC [Total cycles]",
}
_STATES = """Idle|Running|Not created|Waiting a message|Blocking Send|Synchronization|Test/Probe
Scheduling and Fork/Join|Wait/WaitAll|Blocked|Immediate Send|Immediate Receive|I/O
Group Communication|Tracing Disabled|Others|Send Receive"""

ROOTED = frozenset({"Bcast", "Reduce", "Gather", "Scatter"})

Record = tuple[int, int, str]  # time, order of kinds at one time, line


class Lines:
    """Records of the processes of a run: times in ns, processes and threads from 0."""

    def __init__(self, processes: int, threads: int) -> None:
        self._processes, self._threads = processes, threads
        self._where = [
            [f"{p * threads + t + 1}:1:{p + 1}:{t + 1}:" for t in range(threads)]
            for p in range(processes)
        ]
        self._records: list[Record] = []
        self._communicators: dict[tuple[int, ...], int] = {tuple(range(processes)): 1}
        self._values: dict[int, dict[str, int]] = {}

    def state(self, process: int, thread: int, begin: int, end: int, state: int) -> None:
        """Add a state, unless it is empty."""
        if end > begin:
            line = f"1:{self._where[process][thread]}{begin}:{end}:{state}\n"
            self._records.append((begin, 0, line))

    def event(self, process: int, thread: int, time: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Add events of one time."""
        values = "".join([f":{type_}:{value}" for type_, value in pairs])
        line = f"2:{self._where[process][thread]}{time}{values}\n"
        self._records.append((time, 1, line))

    def message(
        self, sent: tuple[int, int, int], received: tuple[int, int, int], size: int, tag: int
    ) -> None:
        """Add a message: process, logical and physical time on either side."""
        ends = [f"{self._where[p][0]}{logical}:{done}" for p, logical, done in (sent, received)]
        self._records.append((sent[2], 2, f"3:{ends[0]}:{ends[1]}:{size}:{tag}\n"))

    def communicator(self, members: tuple[int, ...]) -> int:
        """Number of the communicator that has these members."""
        return self._communicators.setdefault(members, len(self._communicators) + 1)

    def value(self, type_: int, name: str) -> int:
        """Value of an event type that has a name."""
        mine = self._values.setdefault(type_, {})
        return mine.setdefault(name, len(mine) + 1)

    def text(self, end: int) -> str:
        """The trace."""
        cpus = self._processes * self._threads
        tasks = ",".join([f"{self._threads}:1"] * self._processes)
        counts = f"{self._processes}({tasks}),{len(self._communicators)}"
        header = [f"#Paraver (20/11/2026 at 12:00):{end}_ns:1({cpus}):1:{counts}\n"]
        for members, number in self._communicators.items():
            listed = "".join(f":{member + 1}" for member in members)
            header.append(f"c:1:{number}:{len(members)}{listed}\n")
        self._records.sort(key=lambda record: record[:2])
        return "".join([*header, *[line for *_, line in self._records]])

    def labels(self) -> str:
        """What the numbers mean."""
        states = [name for line in _STATES.splitlines() for name in line.split("|")]
        blocks = ["STATES\n" + "".join(f"{n}    {name}\n" for n, name in enumerate(states))]
        names = {
            **_TYPES,
            PARALLEL: "Parallel (OMP)",
            OUTLINED: "Executed OpenMP parallel function",
            USER: "User function",
            CALLER: "Caller at level 1",
            CALLER_LINE: "Caller line at level 1",
        }
        values: dict[int, dict[str, int]] = {
            PARALLEL: {"REGION (open)": 3},
            **{
                type_: {f"MPI_{name}": value for name, (t, value, _) in CALLS.items() if t == type_}
                for type_ in (POINT_TO_POINT, COLLECTIVE, OTHER)
            },
            **self._values,
        }
        for type_, name in names.items():
            listed = "".join(f"{value} {each}\n" for each, value in values.get(type_, {}).items())
            end = "Outside MPI" if type_ in (POINT_TO_POINT, COLLECTIVE, OTHER) else "End"
            block = f"EVENT_TYPE\n0    {type_}    {name}\n"
            blocks.append(f"{block}VALUES\n0 {end}\n{listed}" if listed else block)
        return "\n\n".join(blocks)

    def write(self, path: Path, end: int) -> None:
        """Write the trace and its labels."""
        path.write_text(self.text(end))
        path.with_suffix(".pcf").write_text(self.labels())
        path.with_suffix(".row").write_text(self._row())

    def _row(self) -> str:
        names = [
            f"THREAD 1.{p + 1}.{t + 1}\n"
            for p in range(self._processes)
            for t in range(self._threads)
        ]
        return f"LEVEL THREAD SIZE {len(names)}\n{''.join(names)}"


def call_site(lines: Lines, site: tuple[str, str, int]) -> Sequence[tuple[int, int]]:
    """Events that tell from where a call comes."""
    function, file, line = site
    return (
        (CALLER, lines.value(CALLER, function)),
        (CALLER_LINE, lines.value(CALLER_LINE, f"{line} ({file}, app)")),
    )


def amounts(name: str, size: int, members: int, is_root: bool) -> tuple[int, int]:
    """Bytes sent and received in a collective: `size` is what one gives to (one) other."""
    match name:
        case "Bcast":
            return (size, 0) if is_root else (0, size)
        case "Reduce":
            return (0, size) if is_root else (size, 0)
        case "Gather":
            return size, size * members if is_root else 0
        case "Scatter":
            return size * members if is_root else 0, size
        case "Alltoall" | "Allgather":
            return size, size * members
        case "Barrier":
            return 0, 0
    return size, size
