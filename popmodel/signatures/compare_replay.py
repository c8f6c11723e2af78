"""Two programs side by side: do they do the same, in the same order, and in the same time?

One is that of a signature at some P and T, the other that of a trace. Where both have the same
operations in the same order, every burst of one has its counterpart in the other, and times are
compared phase by phase; else what is exchanged is compared as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse, before_replay
from popmodel.efficiency.observables import FAMILIES, NO_REGIONS, of_execution, unknown_families
from popmodel.machines import profile
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import Allocation
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import COLLECTIVES, Op, unmodelled_calls
from popmodel.traces.selection import TracePart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from popmodel.machines.profile import Profile
    from popmodel.model.replayed_run import Whole
    from popmodel.model.signature.application import Signature
    from popmodel.simulator import Program
    from popmodel.traces import Trace


_NS = 1e9
_NAMES = {
    Op.SEND: "a blocking send to rank {partner} of {size} B",
    Op.ISEND: "a nonblocking send to rank {partner} of {size} B",
    Op.RECEIVE: "a blocking receive from rank {partner} of {size} B",
    Op.POST: "a nonblocking receive from rank {partner} of {size} B",
    Op.WAIT_RECEIVE: "waiting for {size} B from rank {partner}",
    Op.WAIT_SEND: "waiting for the send of {size} B to rank {partner}",
}


# -- both programs, whatever the machine


def against(
    signature: Signature,
    trace: Trace,
    settings: Mapping[str, float] | None = None,
    machine: Profile | None = None,
) -> dict[str, Any]:
    """Compare a signature with a trace: both are replayed on the ideal network.

    What differs is what the signature says wrong, not what the network costs. In pairs: the runtime
    (s), efficiencies by family, computing of all processes before each call (s), messages and
    collectives by kind, and their bytes; the first operation of each process that differs; by how
    much it is off at most (``worst``), the runtime relatively, efficiencies in points.
    """
    made = _made(signature, trace.processes, int(max(trace.threads)), settings, machine)
    traced = from_trace(trace)
    measured = (
        analyse(trace, part=TracePart(from_start=True)).observables
        if trace.timed
        else before_replay(trace)
    )
    unknown = {**unknown_families(made.observed), **unknown_families(measured)}
    replayed = []
    for program, observed in ((made.program, made.observed), (traced, measured)):
        execution = replay(program, PRESETS["ideal"])
        replayed.append(of_execution(observed, execution, execution))
    metrics = {}
    # where regions are, the family of MPI knows masters only, and a signature no single thread
    for name in [name for name in FAMILIES[::-1] if name not in unknown][:1]:
        family = load_families()[name]
        mine, theirs = (family.evaluate(run.aggregates(), run.absent).values for run in replayed)
        metrics[name] = [_pair(key, mine[key], theirs[key]) for key in mine if key in theirs]
    unlike = differences(made.program, traced)
    ours, others = exchanged(made.program), exchanged(traced)
    counts, volumes = (
        [
            _pair(name, *(each.get(name, (0, 0))[column] for each in (ours, others)))
            for name in {**others, **ours}
        ]
        for column in (0, 1)
    )
    runtime = _pair("runtime", *(run.runtime for run in replayed))
    points = (
        abs(pair["signature"] - pair["trace"]) for pairs in metrics.values() for pair in pairs
    )
    return {
        "runtime": runtime,
        "metrics": metrics,
        "phases": _phases(made.program, traced, same=not unlike),
        "counts": counts,
        "bytes": volumes,
        "differences": unlike,
        "same_operations": not unlike,
        "worst": max(abs(runtime["signature"] / runtime["trace"] - 1), *points, 0.0),
        "notes": [why for why in dict.fromkeys(unknown.values()) if why != NO_REGIONS],
        "caveats": [*unmodelled_calls(traced.unmodelled)],
    }


def _pair(name: str, signature: float, trace: float) -> dict[str, Any]:
    """A quantity of both."""
    return {"name": name, "signature": float(signature), "trace": float(trace)}


def carried_out(
    signature: Signature,
    processes: int,
    threads: int,
    settings: Mapping[str, float] | None = None,
) -> Program:
    """Return what every process of a signature does, whatever machine it is on."""
    return _made(signature, processes, threads, settings, None).program


def _made(
    signature: Signature,
    processes: int,
    threads: int,
    settings: Mapping[str, float] | None,
    machine: Profile | None,
) -> Whole:
    """The program of a signature on as many nodes as it takes: no matter to an ideal network."""
    if machine is None:  # nodes have room for any team of threads
        machine = profile.load(profile.DEFAULT_PRESET)
        cores = max(machine.topology.cores_per_node, threads)
        machine = replace(machine, topology=replace(machine.topology, cores_per_node=cores))
    per_node = max(machine.topology.cores_per_node // threads, 1)
    room = Allocation(nodes=-(-processes // per_node))
    study = Study(signature, machine, settings or {}, 0, 0, allocation=room)
    return study.whole(processes, threads)


# -- what they do


def exchanged(program: Program) -> dict[str, tuple[int, int]]:
    """Messages, then collectives by name, those in use only: how many, and their bytes.

    Bytes of collectives are what the largest member sends and receives in each, summed.
    """
    is_send = np.isin(program.kind, (Op.SEND, Op.ISEND))
    messages = np.unique(program.target[is_send])
    collectives = np.unique(program.target[program.kind >= Op.COLLECTIVE])
    found = {}
    if len(messages):
        found["messages"] = len(messages), int(program.messages.size[messages].sum())
    kinds = program.collectives.kind[collectives]
    volume = (program.collectives.sent + program.collectives.received)[collectives]
    for kind in np.unique(kinds).tolist():
        mine = kinds == kind
        found[COLLECTIVES[kind]] = int(mine.sum()), int(volume[mine].sum())
    return found


def steps(program: Program) -> NDArray[np.int64]:
    """What each operation does, as rows of (operation, partner or members, bytes or kind).

    A wait for a send stands for the send: no network makes an isend's wait longer. Waits in a row
    are in order of these numbers: which of several requests is completed first does not matter.
    """
    kind = program.kind.astype(np.int64)
    target = program.target.astype(np.int64)
    found = np.empty((len(kind), 3), dtype=np.int64)
    found[:, 0] = kind
    of_message = kind < Op.COLLECTIVE
    rows = target[of_message]
    sends = np.isin(kind[of_message], (Op.SEND, Op.ISEND, Op.WAIT_SEND))
    messages = program.messages
    found[of_message, 1] = np.where(sends, messages.receiver[rows], messages.sender[rows])
    found[of_message, 2] = messages.size[rows]
    rows = target[~of_message]
    found[~of_message, 1] = program.collectives.members[rows]
    found[~of_message, 2] = program.collectives.kind[rows]
    waits = np.isin(kind, (Op.WAIT_RECEIVE, Op.WAIT_SEND))
    first = np.zeros(len(kind) + 1, dtype=bool)
    first[program.offsets] = True
    row = np.cumsum(~waits | ~np.append(False, waits[:-1]) | first[:-1])
    return found[np.lexsort((found[:, 2], found[:, 1], found[:, 0], row))]


def differences(mine: Program, other: Program) -> list[dict[str, Any]]:
    """Return the first operation of each process that differs, by its number from 1, in words."""
    one, two = steps(mine), steps(other)
    found = []
    for rank in range(min(mine.sequences, other.sequences)):
        a = one[mine.offsets[rank] : mine.offsets[rank + 1]]
        b = two[other.offsets[rank] : other.offsets[rank + 1]]
        both = min(len(a), len(b))
        unlike = np.flatnonzero((a[:both] != b[:both]).any(axis=1))
        if len(unlike) or len(a) != len(b):
            at = int(unlike[0]) if len(unlike) else both
            words = {"mine": _words(a[at : at + 1]), "other": _words(b[at : at + 1])}
            found.append({"rank": rank, "number": at + 1, **words})
    return found


def _words(step: NDArray[np.int64]) -> str:
    for kind, partner, size in step.tolist():
        if kind >= Op.COLLECTIVE:
            waits = "waiting for " if kind == Op.WAIT_COLLECTIVE else ""
            return f"{waits}{COLLECTIVES[size]} of {partner} processes"
        return _NAMES[Op(kind)].format(partner=partner, size=size)
    return "nothing more"


def _phases(mine: Program, theirs: Program, *, same: bool) -> list[dict[str, Any]]:
    """Computing of all processes before each kind of call, and behind the last one.

    Where all operations are the same calls are told apart by name, else by what they do.
    """
    if same:
        code = theirs.call_code[theirs.call].astype(np.int64)
        names, codes = theirs.call_name, (code, code)
    else:
        names = ("point to point", *COLLECTIVES)
        codes = (_kinds(mine), _kinds(theirs))
    before = [
        np.bincount(code, program.burst.astype(np.float64), len(names)) / _NS
        for program, code in zip((mine, theirs), codes, strict=True)
    ]
    rows = np.flatnonzero((before[0] > 0) | (before[1] > 0))
    found = [_pair(f"before {names[row]}", before[0][row], before[1][row]) for row in rows.tolist()]
    ends = [float(program.tail.sum()) / _NS for program in (mine, theirs)]
    return [*found, _pair("behind the last call", *ends)]


def _kinds(program: Program) -> NDArray[np.int64]:
    """What each operation does: 0 for messages, else 1 and the kind of its collective."""
    of_collective = program.kind >= Op.COLLECTIVE
    kinds = np.zeros(program.operations, dtype=np.int64)
    rows = program.target[of_collective]
    kinds[of_collective] = 1 + program.collectives.kind[rows].astype(np.int64)
    return kinds
