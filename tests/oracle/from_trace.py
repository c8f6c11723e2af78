"""From a trace to its program in plain Python, call by call and message by message.

It shares with the compiled core only what each MPI call does (`popmodel.simulator.mpi_calls`).
Slow on purpose, and short enough to be read.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from popmodel.simulator.mpi_calls import BUFFERED, Action, action_of, collective_of
from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.traces import Trace

DISABLED = 14
SENDS = (Action.SEND, Action.ISEND, Action.SENDRECEIVE)


class Refused(Exception):
    """A trace that has no program; its arguments are why, and of which calls or messages."""


class Call(NamedTuple):
    process: int
    entry: int
    exit: int
    name: str
    action: Action


class Message(NamedTuple):
    row: int
    send: int
    post: int
    wait: int


class Member(NamedTuple):
    """A call of a collective."""

    call: int
    communicator: int | None  # None for MPI_Init
    turn: int
    sent: int
    received: int
    is_root: bool


class Table:
    """Calls by process and a time of theirs; those who ask for the same get them in turn."""

    def __init__(self, calls: Iterable[tuple[int, int, int]]) -> None:
        self.calls: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.asked: Counter[tuple[int, int]] = Counter()
        for process, time, call in calls:
            self.calls[process, time].append(call)

    def find(self, process: int, time: int, shared: bool, after: int = -1) -> int:
        here = self.calls.get((process, time), [])
        turn = self.asked[process, time]
        self.asked[process, time] += 1
        left = [call for call in here[turn:] if call > after]
        if not left and shared:
            left = [call for call in here[-1:] if call > after]
        return left[0] if left else -1


class Run:
    """A trace, whole or the part of one, as lists."""

    def __init__(self, trace: Trace) -> None:
        self.part, self.trace = trace, trace.whole or trace
        self.windowed = self.trace is not trace
        columns = self.trace.calls()
        location = self.trace.process_of_location().tolist()
        self.calls = [
            Call(location[where], *times, columns.names[code], action)
            for where, (first, last) in enumerate(
                zip(columns.offsets, columns.offsets[1:], strict=False)
            )
            for *times, code in zip(
                columns.entry[first:last].tolist(),
                columns.exit[first:last].tolist(),
                columns.name[first:last].tolist(),
                strict=True,
            )
            for action in [action_of(columns.group[code], columns.names[code])]
        ]
        self.pieces = [(trace.begin, trace.end, trace.begin)]
        if trace.pieces is not None:
            pieces = trace.pieces
            self.pieces = list(
                zip(pieces.begin.tolist(), pieces.end.tolist(), pieces.start.tolist(), strict=True)
            )

        states = trace.states
        self.disabled_in = [
            [
                (int(states.begin[row]), int(states.end[row]))
                for row in range(states.offsets[master], states.offsets[master + 1])
                if states.state[row] == DISABLED
            ]
            for master in trace.process_offsets[:-1]
        ]

    def having(self, *actions: Action) -> list[int]:
        return [i for i, call in enumerate(self.calls) if call.action in actions]

    def inside(self, call: Call) -> bool:
        return any(end > call.entry and begin < call.exit for begin, end, _ in self.pieces)

    def earlier(self, call: Call) -> bool:
        return not self.inside(call) and call.exit <= self.pieces[-1][0]

    def moved(self, time: int) -> int:
        last = max(bisect_right([begin for begin, _, _ in self.pieces], time) - 1, 0)
        begin, end, start = self.pieces[last]
        return min(max(time, begin), end) + start - begin

    def disabled(self, process: int, time: int) -> int:
        """Time disabled before a time of the part."""
        return sum(
            min(time, end) - begin for begin, end in self.disabled_in[process] if begin <= time
        )

    def clock(self, process: int, time: int) -> int:
        moved = self.moved(time)
        return moved - self.disabled(process, moved)


def match_messages(run: Run) -> list[Message]:
    """Calls of every record, but for records of other parts of the run that lack one."""
    calls, records = run.calls, run.trace.messages
    location = run.trace.process_of_location().tolist()
    times = [
        column.tolist()
        for column in (records.logical_send, records.logical_receive, records.physical_receive)
    ]
    sender = [location[each] for each in records.sender.tolist()]
    receiver = [location[each] for each in records.receiver.tolist()]
    begin, posted, received = times
    rows = range(len(begin))

    def table(*actions: Action, by: str, lasts: bool | None = None) -> Table:
        return Table(
            (calls[i].process, getattr(calls[i], by), i)
            for i in run.having(*actions)
            if lasts is None or lasts == (calls[i].exit > calls[i].entry)
        )

    send, post, wait = ([-1] * len(begin) for _ in range(3))
    for shared, found in (
        (False, table(*SENDS, by="entry")),
        (True, table(Action.START, by="entry")),
    ):
        for m in rows:
            if send[m] < 0:
                send[m] = found.find(sender[m], begin[m], shared)
    at_once = {
        lasts: table(Action.RECEIVE, Action.SENDRECEIVE, by="entry", lasts=lasts)
        for lasts in (True, False)
    }
    for m in rows:
        if received[m] >= posted[m]:
            call = at_once[received[m] > posted[m]].find(receiver[m], posted[m], False)
            if call >= 0 and calls[call].exit == received[m]:
                post[m] = wait[m] = call
    posts = table(Action.IRECEIVE, by="exit")
    # of receives that a process posted at one time, those that were completed first were first
    at_once_of = {process for (process, _), here in posts.calls.items() if len(here) > 1}
    turns = sorted(rows, key=lambda m: received[m] if receiver[m] in at_once_of else 0)
    for m in turns:
        if post[m] < 0:
            post[m] = posts.find(receiver[m], posted[m], False)
    starts = table(Action.START, by="entry")
    for m in rows:
        if post[m] < 0:
            post[m] = starts.find(receiver[m], posted[m], True)
    waits = table(Action.WAIT, Action.WAITALL, by="exit")
    for m in sorted((m for m in rows if post[m] >= 0 and wait[m] < 0), key=lambda m: post[m]):
        wait[m] = waits.find(receiver[m], received[m], True, post[m])
    matched = [min(send[m], post[m], wait[m]) >= 0 for m in rows]
    wrong = [
        m
        for m in rows
        if not matched[m]
        and any(end >= begin[m] and first <= received[m] for first, end, _ in run.pieces)
    ]
    if wrong:
        raise Refused("without an MPI call", len(wrong))
    return [Message(m, send[m], post[m], wait[m]) for m in rows if matched[m]]


def match_collectives(run: Run) -> list[Member]:
    """Communicator and turn of every call of a collective."""
    told = run.trace.calls().collectives
    arguments = {
        call: rest
        for call, *rest in zip(
            told.call.tolist(),
            told.communicator.tolist(),
            told.sent.tolist(),
            told.received.tolist(),
            told.is_root.tolist(),
            strict=True,
        )
    }
    turns: Counter[tuple[int | None, int]] = Counter()
    members: list[Member] = []
    for i in run.having(Action.COLLECTIVE, Action.ICOLLECTIVE):
        communicator, *rest = arguments.get(i, [0, 0, 0, False])
        if collective_of(run.calls[i].name) == "init":
            communicator = None
        process = run.calls[i].process
        members.append(Member(i, communicator, turns[communicator, process], *rest))
        turns[communicator, process] += 1
    for member in members:
        listed = run.trace.communicators.get(member.communicator)
        if listed is not None and run.calls[member.call].process not in listed:
            raise Refused("does not list it as a member", member.call)
    first: dict[tuple, int] = {}
    for member in members:
        other = first.setdefault((member.communicator, member.turn), member.call)
        kinds = [collective_of(run.calls[i].name) for i in (other, member.call)]
        if kinds[0] != kinds[1]:
            raise Refused("call different collectives", other, member.call)
    return members


def completions(run: Run, messages: list[Message], members: list[Member]) -> dict[int, int]:
    """For each call that opens a request the call that completes it, first in, first out."""
    opens = {m.send for m in messages if run.calls[m.send].action in (Action.ISEND, Action.START)}
    opens |= {m.call for m in members if run.calls[m.call].action == Action.ICOLLECTIVE}
    receives = {m.wait for m in messages}
    completed: dict[int, int] = {}
    open_: dict[int, list[int]] = defaultdict(list)
    for i, call in enumerate(run.calls):
        mine = open_[call.process]
        if i in opens:
            mine.append(i)
        elif call.action == Action.WAITALL or (call.action == Action.WAIT and i not in receives):
            for _ in range(len(mine) if call.action == Action.WAITALL else min(len(mine), 1)):
                completed[mine.pop(0)] = i
    return completed


def from_trace(trace: Trace) -> dict[str, list]:
    """Columns of the program of a trace, by the names that they have there.

    Raises
    ------
    Refused
    """
    run = Run(trace)
    messages, members = match_messages(run), match_collectives(run)
    completed = completions(run, messages, members)
    inside = [not run.windowed or run.inside(call) for call in run.calls]

    def takes_part(call: int) -> bool:
        done = completed.get(call)
        return inside[call] or (run.earlier(run.calls[call]) and done is not None and inside[done])

    found: list[tuple[tuple, int, Op, int]] = []  # to be sorted by call, and by place inside it

    def add(call: int, place: int, op: Op, target: int, order: int = 0) -> None:
        found.append(((call, place, order, target), call, op, target))

    cut = 0
    left = run.trace.messages.physical_send.tolist()
    for number, m in enumerate(messages):
        if not (takes_part(m.send) and inside[m.wait]):
            cut += inside[m.send] or inside[m.post] or inside[m.wait]
            continue
        blocking = run.calls[m.send].action in (Action.SEND, Action.SENDRECEIVE)
        if m.post == m.wait and run.calls[m.post].action == Action.RECEIVE:
            add(m.wait, 2, Op.RECEIVE, number)
        else:
            add(m.post, 0, Op.POST, number)
            add(m.wait, 2, Op.WAIT_RECEIVE, number, left[m.row])
        add(m.send, 1, Op.SEND if blocking else Op.ISEND, number)
        if not blocking and m.send in completed and inside[completed[m.send]]:
            add(completed[m.send], 3, Op.WAIT_SEND, number)

    turns: dict[tuple, list[Member]] = defaultdict(list)
    for member in members:
        turns[member.communicator, member.turn].append(member)
    collectives, uneven = [], {}
    for (communicator, _), who in sorted(
        turns.items(), key=lambda item: (item[0][0] is not None, item[0])
    ):
        arriving = [member for member in who if takes_part(member.call)]
        if not arriving:
            continue
        callers = {run.calls[m.call].process for m in members if m.communicator == communicator}
        listed = run.trace.communicators.get(communicator, callers)
        everyone = run.trace.processes if communicator == 0 else len(listed)
        roots = [member for member in who if member.is_root]
        root = roots[-1] if roots else None
        row_number = len(collectives)
        row = {
            "kind": COLLECTIVES.index(collective_of(run.calls[who[0].call].name)),
            "communicator": communicator or 0,
            "members": len(arriving) if run.windowed else everyone,
            "root": run.calls[root.call].process if root in arriving else -1,
            "sent": max(0, *(member.sent for member in who)),
            "received": max(0, *(member.received for member in who)),
            "root_sent": 0 if root is None else root.sent,
            "by_peer": run.calls[who[0].call].name[-1] in "vw",
        }
        if row["kind"] == COLLECTIVES.index("alltoall"):  # a part for each member
            for name in ("sent", "received"):
                row[name] = row[name] * row["members"] // everyone
        sides = {"gather": ["sent"], "scatter": ["received"]}
        kind = COLLECTIVES[row["kind"]]
        sides = ["sent", "received"] if row["root"] < 0 else sides.get(kind, [])
        differ = any(len({getattr(member, side) for member in who}) > 1 for side in sides)
        for member in arriving:
            blocking = run.calls[member.call].action == Action.COLLECTIVE
            op = Op.COLLECTIVE if blocking else Op.ARRIVE
            add(member.call, 0, op, row_number)
            if differ:
                uneven[member.call] = (row_number, member.sent, member.received)
            if member.call in completed and inside[completed[member.call]]:
                add(completed[member.call], 4, Op.WAIT_COLLECTIVE, row_number, member.call)
        collectives.append(row)

    found.sort()
    burst, tail = _bursts(run, [call for _, call, _, _ in found])
    records = run.trace.messages
    arrivals = [
        (i, *uneven[call])
        for i, (_, call, op, _) in enumerate(found)
        if op in (Op.COLLECTIVE, Op.ARRIVE) and call in uneven
    ]
    with_records = {m.send for m in messages}, {m.post for m in messages}
    return {
        "offsets": [
            bisect_left([run.calls[call].process for _, call, _, _ in found], p)
            for p in range(trace.processes + 1)
        ],
        "kind": [int(op) for _, _, op, _ in found],
        "target": [target for _, _, _, target in found],
        "call": [call for _, call, _, _ in found],
        "burst": burst,
        "tail": tail,
        "messages": [
            (
                run.calls[m.send].process,
                run.calls[m.wait].process,
                int(records.size[m.row]),
                int(records.tag[m.row]),
                int(run.calls[m.send].name in BUFFERED),
            )
            for m in messages
        ],
        "collectives": [tuple(row.values()) for row in collectives],
        "uneven": arrivals,
        "cut": cut,
        "without_record": sum(
            (call.action in SENDS and i not in with_records[0])
            or (
                call.action in (Action.RECEIVE, Action.IRECEIVE, Action.SENDRECEIVE)
                and i not in with_records[1]
            )
            for i, call in enumerate(run.calls)
        ),
    }


def _bursts(run: Run, operations: list[int]) -> tuple[list[int], list[int]]:
    """Time outside MPI before each operation (given by its call) and after the last one."""
    burst: list[int] = []
    tail: list[int] = []
    times = Counter(operations)
    for p, end in enumerate(run.trace.ends().tolist()):
        begin = run.part.begin - run.disabled(p, run.part.begin)
        mine = [(i, call) for i, call in enumerate(run.calls) if call.process == p]
        in_mpi, counted = 0, 0
        for i, call in mine:
            outside = run.clock(p, call.entry) - begin - in_mpi
            for _ in range(times[i]):
                burst.append(outside - counted)
                counted = outside
            in_mpi += run.clock(p, call.exit) - run.clock(p, call.entry)
        tail.append(max(run.clock(p, end) - begin - in_mpi, 0) - counted)
    return burst, tail
