"""Programs of known structure, written as loops around calls, and what has to be found of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from popmodel.simulator.program import Op, Program, ProgramBuilder
from popmodel.structure.structure import FoundLoop, Nest


@dataclass(frozen=True)
class Call:
    """A call of MPI, on those processes that have it; its number tells it from others.

    ``kind`` is ``allreduce``, ``ring`` (to the next process, from the last to the first one),
    ``chain`` (the same without that), or ``pipeline`` (received before, sent after).
    """

    kind: str
    number: int
    seconds: float = 1e-3


@dataclass(frozen=True)
class Repeat:
    """A loop: so many iterations at each of its executions, in turn."""

    counts: tuple[int, ...]
    body: tuple[Call | Repeat, ...]


@dataclass
class Written:
    """A program, and place and execution of each of its events by process."""

    program: Program
    events: list[list[tuple[tuple[int, str], int]]] = field(default_factory=list)


def write(processes: int, body: Sequence[Call | Repeat]) -> Written:
    """Unroll a program; of each event its place (call number, role) and execution are known."""
    builder = ProgramBuilder(processes)
    known: list[list[tuple[tuple[int, str], int]]] = [[] for _ in range(processes)]
    for call, execution in unrolled(body):
        for process, role, act in _acts(builder, processes, call):
            builder.compute(process, call.seconds)
            act()
            known[process].append(((call.number, role), execution))
    return Written(builder.build(), known)


def unrolled(body: Sequence[Call | Repeat]) -> Iterator[tuple[Call, int]]:
    """Calls in their order, and how often each was executed before."""
    passed: dict[int, int] = {}
    spent: dict[int, int] = {}

    def run(items: Sequence[Call | Repeat]) -> Iterator[tuple[Call, int]]:
        for item in items:
            if isinstance(item, Call):
                execution = passed.get(item.number, 0)
                passed[item.number] = execution + 1
                yield item, execution
                continue
            times = spent.get(id(item), 0)
            spent[id(item)] = times + 1
            for _ in range(item.counts[times % len(item.counts)]):
                yield from run(item.body)

    yield from run(body)


def _acts(
    builder: ProgramBuilder, processes: int, call: Call
) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """What a call is on each process: its role, and what does it."""

    def doing(process: int, op: Op, target: int) -> Callable[[], None]:
        return lambda: builder.do(process, op, target)

    if call.kind == "allreduce":
        # One that differs in size from those with other numbers.
        target = builder.collective("allreduce", 1 << call.number, 1 << call.number)
        for process in range(processes):
            yield process, "all", doing(process, Op.COLLECTIVE, target)
        return
    pairs = [(p, (p + 1) % processes) for p in range(processes)]
    if call.kind != "ring":
        pairs.pop()
    sent = {a: builder.message(a, b, 1000, tag=call.number) for a, b in pairs}
    received = {b: sent[a] for a, b in pairs}
    for process in range(processes):
        steps = [(sent, "send", Op.SEND), (received, "receive", Op.RECEIVE)]
        for messages, role, op in steps if call.kind != "pipeline" else steps[::-1]:
            if process in messages:
                yield process, role, doing(process, op, messages[process])


def loops(nest: Nest) -> Iterator[FoundLoop]:
    """All loops, outer ones before those inside."""
    for each in nest:
        if isinstance(each, FoundLoop):
            yield each
            yield from loops(each.body)
