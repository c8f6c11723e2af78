"""From a measured run to the program that the replay executes.

The rules, with the behaviour of Dimemas that they reproduce, are those under which the ideal
runtime of real traces equals Dimemas' to the nanosecond:

- the burst before an operation is the wall time of the process's master thread outside MPI since
  its previous call, tracing-disabled time left out; time inside MPI calls is discarded;
- in processes whose other threads call MPI, each thread has bursts of its own, between fork and
  join of its parallel regions (`popmodel.simulator.program_calls`);
- messages are matched by the trace's communication records; a receive is complete in the call at
  whose exit its record says so; where calls tell their partners instead, the k-th send of a process
  to another with a tag meets that one's k-th receive of it, and requests are known by number;
- Sendrecv posts its receive, sends blocking, then waits;
- a Waitall waits for its messages in the order in which they left (their physical sends), which
  matters where waiting for a message takes CPU time of its own;
- else a trace does not say which isend or nonblocking collective a Wait completes: a Wait (or a
  successful Test) that completes no receive takes the oldest outstanding one, a Waitall (Testall)
  takes all of them;
- collectives of one communicator match in call order; MPI_Init acts as a barrier at its exit;
- a collective between neighbours sends its messages at once and waits for those that it receives;
- one-sided operations, I/O, collectives between neighbours whose messages the trace does not tell,
  and calls that only manage objects are local and take no time;
- in a part of a trace (a window, or several that follow one another), calls that lie wholly outside
  take no part, but for requests that are open when a window begins and completed inside, which are
  made at its begin: what is matched is the whole run, so that the turns of collectives stay right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.units import count, plural
from popmodel.kernel import _kernel
from popmodel.simulator.match_calls import (
    communicators_of_callers,
    match_collectives,
    match_messages,
    uneven_arrivals,
)
from popmodel.simulator.mpi_calls import Action, looks
from popmodel.simulator.program import Op, Program
from popmodel.simulator.program_calls import SequenceCalls, sequence_calls
from popmodel.traces.caveats import describe_losses, losses
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.intervals import Intervals, TracePieces
from popmodel.traces.records import Exact
from popmodel.traces.runtime import state_times
from popmodel.traces.tables import give_back, offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program_calls import CallThreads
    from popmodel.traces import Trace

_WORTH_SAYING = 0.01
"""Share of the time from which on calls are named that others need not notice."""
_LEAST = 0.001
_EXCHANGES = (Action.EXCHANGE, Action.IEXCHANGE)


def from_trace(trace: Trace) -> Program:
    """Program of a traced run."""
    whole = trace.whole or trace
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    calls = sequence_calls(whole)
    matched = match_messages(whole, calls, pieces)
    members = match_collectives(whole, calls)
    disabled = _disabled(trace, calls.location)
    made = _kernel.operations(
        **calls.columns,
        send=matched.send,
        post=matched.post,
        wait=matched.wait,
        left=matched.left,
        request=matched.request,
        member_call=members.call,
        member_collective=members.collective,
        root=members.collectives.root,
        whole=whole is trace,
        piece_begin=pieces.begin,
        piece_end=pieces.end,
        piece_start=pieces.start,
        disabled_offsets=disabled.offsets,
        disabled_begin=disabled.begin,
        disabled_end=disabled.end,
        begin=trace.begin,
        ends=whole.ends() if calls.threads is None else calls.threads.ends,
    )
    give_back(matched.left, 0, len(matched.left))
    _order_exchanges(made, calls, matched.messages.tag)
    collectives, differ = members.collectives, members.differ
    if whole is not trace:
        collectives, differ = members.of_part(made["arriving"], made["root"])
    operations = made["kind"], made["target"], made["call"]
    burst, tail = made["burst"], made["tail"]
    if whole is trace and (exact := whole.records.exact) is not None:
        if calls.threads is not None:
            exact = Exact(exact.entry[calls.threads.row], exact.end[calls.location])
        burst, tail = _exact_bursts(made["offsets"], made["call"], exact)
    lost = losses(whole)
    program = Program(
        offsets=made["offsets"],
        kind=made["kind"],
        target=made["target"],
        burst=burst,
        tail=tail,
        messages=matched.messages,
        collectives=collectives,
        call=made["call"],
        call_name=calls.calls.names,
        call_code=calls.calls.name,
        call_time=calls.calls.entry,
        communicators={
            number: np.asarray(ranks, dtype=np.int32)
            for number, ranks in whole.communicators.items()
        },
        nodes=np.asarray(whole.node_of_location)[calls.location].astype(np.int32),
        notes=(
            *(_note_threads(calls) if whole.timed else ()),
            *_note_without_record(calls, *made["without_record"]),
            *members.notes,
            *([_WAITS_FOR_DEVICES] if whole.devices.names else []),
            *_note_cut(made["cut"]),
        ),
        unmodelled=_unmodelled(trace, calls, made["call"], pieces),
        lost=describe_losses(lost) if lost else "",
        uneven=uneven_arrivals(*operations, collectives, differ, calls.calls.collectives),
        threads=calls.owner[whole.processes :],
    )
    return program if calls.threads is None else _in_terms_of_the_run(program, whole, calls.threads)


def _disabled(trace: Trace, location: NDArray[np.int64]) -> Intervals:
    """When tracing is disabled on some threads, which have the numbers 0, 1, ... then."""
    disabled = trace.records.in_state(TRACING_DISABLED)
    _, rows = spread(disabled.offsets[location], np.diff(disabled.offsets)[location])
    return Intervals(
        offsets_of(np.diff(disabled.offsets)[location]), disabled.begin[rows], disabled.end[rows]
    )


def _in_terms_of_the_run(program: Program, whole: Trace, threads: CallThreads) -> Program:
    """Calls by their numbers in the run, and collectives of the threads that call them."""
    communicators, number = communicators_of_callers(whole.communicators, program)
    order = np.argsort(threads.row)  # rows of the run, and behind them those of added calls
    return replace(
        program,
        call=threads.row[program.call].astype(np.int32),
        call_code=program.call_code[order],
        call_time=program.call_time[order],
        communicators=communicators,
        collectives=replace(program.collectives, communicator=number),
    )


_WAITS_FOR_DEVICES = "waits for devices are computing of the host: they last as long as they did"


def _note_threads(calls: SequenceCalls) -> list[str]:
    if calls.threads is None:
        return []
    threads = calls.threads
    further = len(calls.location) - len(np.unique(calls.owner))
    notes = [
        f"{plural(further, 'thread')} besides masters replayed on their own, as not only masters "
        "call MPI: forked and joined with parallel regions; computing is that of masters"
    ]
    if threads.loose:
        notes.append(
            f"{threads.loose} of these threads call MPI outside of parallel regions: neither "
            "forked nor joined, their waiting for other threads counts as computing"
        )
    if threads.unmatched:
        notes.append(
            f"{plural(threads.unmatched, 'parallel region')} with barriers that not all threads "
            "of the team have: waiting there counts as computing"
        )
    return notes


def _exact_bursts(
    offsets: NDArray[np.int64], call: NDArray[np.int32], exact: Exact
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bursts before operations and after the last of each process, where calls take no time."""
    begin, end = offsets[:-1], offsets[1:]
    some = end > begin
    time = exact.entry[call]
    burst = np.diff(time, prepend=0.0)
    burst[begin[some]] = time[begin[some]]
    tail = exact.end.copy()
    tail[some] -= time[end[some] - 1]
    return burst, tail


def _order_exchanges(
    made: _kernel.Operations, calls: SequenceCalls, tag: NDArray[np.int64]
) -> None:
    """Let all ranks post and send in the order of their neighbours' directions, which tags tell.

    Else those at the edges of a grid, whose neighbours are in another order, look different.
    """
    names = np.isin(calls.action, _EXCHANGES)
    if not names.any():
        return
    kind, target, call = made["kind"], made["target"], made["call"]
    begins = (kind == Op.POST) | (kind == Op.ISEND)
    rows = np.flatnonzero(begins & names[calls.calls.name[call]])
    order = np.lexsort((-tag[target[rows]], kind[rows] == Op.ISEND, call[rows]))
    target[rows] = target[rows[order]]


def _unmodelled(
    trace: Trace, calls: SequenceCalls, acting: NDArray[np.int32], pieces: TracePieces
) -> str:
    """Name calls without any operation in the program that others notice, or that take a while."""
    names, action = calls.calls.names, calls.action
    silent = np.ones(len(calls.calls), bool)
    silent[acting] = False
    row = np.flatnonzero(silent)
    entry, exit_ = calls.calls.entry[row], calls.calls.exit[row]
    inside = pieces.touched(entry, exit_)[1] > 0
    code = calls.calls.name[row[inside]]
    passed = (pieces.passed(exit_) - pieces.passed(entry))[inside]
    acts = np.bincount(calls.calls.name[acting], minlength=len(names)) > 0
    noticed = (action == Action.IGNORED) | (np.isin(action, _EXCHANGES) & ~acts)
    number = np.bincount(code, minlength=len(names))
    time = np.bincount(code, passed, len(names))
    all_time = float(state_times(trace)[1][calls.location].sum()) if trace.timed else 0.0
    share = time / all_time if all_time else np.zeros(len(names))
    own = np.array([looks(name) or name == "MPI_Finalize" for name in names], bool)
    some = np.flatnonzero((number > 0) & (noticed | ((share >= _WORTH_SAYING) & ~own)))
    some = some[np.argsort(-share[some], kind="stable")]
    said = [f"{count(int(number[name]))} {names[name]}" for name in some.tolist()]
    if not said or not all_time:
        return ", ".join(said)
    if len(said) > 1:
        parts = share[some].tolist()
        said = [f"{text} ({_percent(part)})" for text, part in zip(said, parts, strict=True)]
        least = some[share[some] < _LEAST]
        if 1 < len(least) < len(some):
            others = f"{count(int(number[least].sum()))} others ({_percent(0.0)} each)"
            said = [*said[: -len(least)], others]
    return f"{_percent(float(share[some].sum()))} of the time in {', '.join(said)}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= _LEAST else f"below {100 * _LEAST:g} %"


def _note_without_record(calls: SequenceCalls, number: int, first: int) -> list[str]:
    """Say how many calls have no record, for these never block."""
    if not number:
        return []
    return [
        f"{plural(number, 'point-to-point call')} without a communication record "
        "(MPI_PROC_NULL, never completed, or record lost), assumed not to block (first: "
        f"{calls.where(first)})"
    ]


def _note_cut(number: int) -> list[str]:
    if not number:
        return []
    return [
        f"{plural(number, 'message')} across the edge of the window, assumed to take no time: "
        "waiting there counts as transfer"
    ]
