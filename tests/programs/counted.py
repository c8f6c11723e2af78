"""What a program asks of MPI and OpenMP, from a source that shares nothing with the tracer.

`counts.c` is loaded into a run of its own, and what it counted is compared with a trace of another
run of the same program: calls and regions of each name, messages and bytes.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from popmodel.traces.calls import CallGroup
from popmodel.traces.codes import Event
from popmodel.traces.paraver.numbers import MPI_TYPES, NUMBERS, PARALLEL
from popmodel.traces.recorded_run import Trace

HERE = Path(__file__).resolve().parent
NOTHING = " (found nothing)"

_LIBRARY = re.compile(r"^\s*(lib(?:mpi|mpich|gomp)[\w-]*\.so[.\d]*) => (/\S+)", re.MULTILINE)
_NAMES = re.compile(r" [TW] (MPI_[A-Z][a-z0-9_]*|mpi_[a-z0-9_]*[a-z0-9]_|GOMP_parallel\w*)(?:@|$)")
_NO_CALLS = re.compile(
    r"MPI_Wti(me|ck)|MPI_Aint_\w+|mpi_(wti(me|ck)|aint_\w+)_|\w+_f(08\w*)?_?|\w+_fn_|\w+_[cf]2[cf]\w*"
    r"|\w+_f(08)?2\w+|GOMP_parallel_end"
)
"""Symbols that return no integer, or are none of a program's calls."""

_UNRECORDED = re.compile(
    r"MPI_(Comm_(rank|size|group|compare|test_inter|remote_\w+|[gs]et_\w+|\w*keyval|delete_attr)"
    r"|(Type|Op|Group|Info|Error|Errhandler|Attr|Keyval|Status|Add_error)_\w+|Get_\w+|Topo_test"
    r"|(Cart|Graph|Dist_graph)_(coords|rank|shift|get|map|neighbors\w*)|(Cart|Graph)dim\w*_get"
    r"|Dims_create|Initialized|Finalized|Query_thread|Is_thread_main|(Un)?[Pp]ack\w*|Address"
    r"|(Alloc|Free)_mem|Win_([gs]et|create_(?!dynamic)|free_|delete_)\w+|File_(get|c2f|set_atom)\w*"
    r"|Reduce_local|Test_cancelled|Pcontrol|Request_get_status|T_\w+|(Free|Delete|Create)_keyval)"
)
"""Calls that wait for nobody and send nothing: the tracer leaves them out."""

_POLLS = re.compile(r"MPI_(Test(all|any|some)?|Im?probe|Wait(any|some)|Request_get_status)")
"""Calls of which a program makes as many as it has time for: no two runs have the same number."""

_NESTED = re.compile(
    r"nested parallel regions (counted as part of the enclosing one)(?: \(([\d,]+)\))?"
)

# Extrae's numbers, which the trace has, do not tell these apart.
_SAME = {"MPI_Init_thread": "MPI_Init"}


class NotCounted(Exception):
    """What a program asks cannot be counted; the message says why, in one line."""


def build(folder: Path, mpicc: Sequence[str], launch: Sequence[str], program: Path) -> Path:
    """Build the counting library for a program.

    Parameters
    ----------
    folder : Path
        Where it is built.
    mpicc : sequence of str
        Compiler wrapper of its MPI.
    launch : sequence of str
        What starts one rank of it: launchers say where their libraries are.
    program : Path
        What is linked with MPI or OpenMP.

    Raises
    ------
    NotCounted
        It cannot be built.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = [*launch, "ldd", str(program)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    libraries = {path for _, path in _LIBRARY.findall(said.stdout)}
    symbols: set[str] = set()
    for path in sorted(libraries):
        said = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=False)
        symbols |= {found[1] for line in said.stdout.splitlines() if (found := _NAMES.search(line))}
    names = {name: shown(name) for name in sorted(symbols) if not _NO_CALLS.fullmatch(name)}
    (folder / "names.h").write_text("".join(f'NAME({a}, "{b}")\n' for a, b in names.items()))
    library = folder / "libcounts.so"
    # fmt: off
    command = [*mpicc, "-O1", "-w", "-std=gnu11", "-shared", "-fPIC", f"-I{folder}",
               "-o", str(library), str(HERE / "counts.c"), "-ldl"]
    # fmt: on
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotCounted(f"the counting library cannot be built: {done.stderr.strip()[:200]}")
    return library


def shown(symbol: str) -> str:
    """Name of a call in C, from that of any language: ``mpi_comm_rank_`` is MPI_Comm_rank."""
    if symbol.startswith("mpi_"):
        return "MPI_" + symbol.removeprefix("mpi_").removesuffix("_").capitalize()
    return "parallel" if symbol.startswith("GOMP_parallel") else symbol


@dataclass(frozen=True)
class Counts:
    """What all processes of a run asked for.

    Attributes
    ----------
    calls : Counter
        Calls of MPI by name.
    messages, bytes : int
        Point-to-point messages that were sent, and their bytes; none to MPI_PROC_NULL.
    collective : dict of str to int
        Bytes that each kind of collective operation was given to send.
    regions : int
        Parallel regions of OpenMP.
    """

    calls: Counter[str]
    messages: int
    bytes: int
    collective: dict[str, int]
    regions: int


def read(folder: Path) -> Counts:
    """Add up what the processes of a run counted.

    Raises
    ------
    NotCounted
        There is nothing.
    """
    parts: list[dict[str, Any]] = [json.loads(f.read_text()) for f in folder.glob("*.json")]
    if not parts:
        raise NotCounted("the counting library wrote nothing")
    calls: Counter[str] = Counter()
    collective: Counter[str] = Counter()
    for part in parts:
        for symbol, number in part["calls"].items():
            name = shown(symbol)
            calls[_SAME.get(name, name)] += number
        for name, number in part["collective"].items():
            collective[f"MPI_{name.capitalize()}"] += number
    return Counts(
        calls,
        sum(part["messages"]["count"] for part in parts),
        sum(part["messages"]["bytes"] for part in parts),
        dict(collective),
        sum(part["parallel"] for part in parts),
    )


def traced(trace: Trace, said: str = "") -> Counts:
    """What a trace says of the same, and of regions that it does not show what the tracer said."""
    calls = trace.calls()
    events = trace.records.events
    times = np.ones(len(calls), np.int64)  # of which a test that found nothing is one at least
    misses = np.flatnonzero(events.type == NUMBERS[Event.MISSES])
    entries = np.flatnonzero(np.isin(events.type, list(MPI_TYPES)) & (events.value != 0))
    call = np.searchsorted(entries, misses) - 1
    found = [not calls.names[number].endswith(NOTHING) for number in calls.name[call].tolist()]
    times[call] = events.value[misses] + np.array(found, np.int64)
    names: Counter[str] = Counter()
    for number, count in zip(calls.name.tolist(), times.tolist(), strict=True):
        name = calls.names[number].removesuffix(NOTHING)
        names[_SAME.get(name, name)] += count
    collective: Counter[str] = Counter()
    told = calls.collectives
    for number, sent in zip(calls.name[told.call].tolist(), told.sent.tolist(), strict=True):
        if calls.group[number] is CallGroup.COLLECTIVE:
            collective[calls.names[number].removesuffix(NOTHING)] += sent
    opened = np.isin(events.type, PARALLEL) & (events.value != 0)
    return Counts(
        names,
        len(trace.messages.size),
        int(trace.messages.size.sum()),
        dict(collective),
        int(np.count_nonzero(opened)) + _nested(" ".join(said.split())),
    )


def _nested(said: str) -> int:
    found = _NESTED.search(said)
    return 0 if found is None else int((found[1] or "1").replace(",", ""))


def differences(counted: Counts, traced: Counts) -> list[str]:
    """What a trace says otherwise than the library counted, a line each.

    Only calls that the trace knows at all are compared one by one; those that it does not record
    (inquiries such as MPI_Comm_rank, which wait for nobody) are the same for every program. Of
    those that poll it is only asked that both have some.
    """
    found = []
    for name in sorted({*counted.calls, *traced.calls}):
        here, there = counted.calls[name], traced.calls[name]
        if _POLLS.fullmatch(name) and (here > 0) == (there > 0):
            continue
        if here != there and (there or not _UNRECORDED.fullmatch(name)):
            found.append(f"{name}: {here:,} counted, {there:,} in the trace")
    for name, here in sorted(counted.collective.items()):
        there = traced.collective.get(name, 0)
        if here != there:
            found.append(f"{name}: {here:,} bytes counted, {there:,} in the trace")
    for what, here, there in (
        ("messages", counted.messages, traced.messages),
        ("bytes of messages", counted.bytes, traced.bytes),
        ("parallel regions", counted.regions, traced.regions),
    ):
        if here != there:
            found.append(f"{what}: {here:,} counted, {there:,} in the trace")
    return found
