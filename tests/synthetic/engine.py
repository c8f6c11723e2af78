"""A discrete simulation of a program: its times, and the trace of them.

Every call costs an overhead. A message leaves when its send begins or, above the eager limit, when
its receive is posted too; it arrives a latency and its bytes / bandwidth later. All members of a
collective leave it together, ceil(log2 P) (latency + bytes / bandwidth) after the last has come.
Times are whole ns; processes take turns in order of their clocks.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synthetic.data import Counters, Network, Run
from synthetic.mail import Mail, Request
from synthetic.program import ANY, Program, Rank, Site, Steps
from synthetic.written import (
    CALLS,
    COMMUNICATOR,
    CYCLES,
    INSTRUCTIONS,
    OUTLINED,
    PARALLEL,
    RECEIVED,
    ROOT,
    ROOTED,
    SENT,
    USER,
    Lines,
    amounts,
    call_site,
)

RUNNING, FORK_JOIN = 1, 7
SLOWER = {"instructions": (1, 0), "ipc": (0, 0), "frequency": (0, 1)}


@dataclass(eq=False)
class Process:
    """Where a process is."""

    rank: int
    steps: Steps
    factor: float
    noise: np.random.Generator | None
    sigma: float
    clock: int = 0  # ns
    since: int = 0  # ns; computes since then
    entry: int = 0  # ns; of the call that it is in
    call: str = ""
    ticket: int = -1  # its place in the queue
    waiting: list[Request] = field(default_factory=list)
    result: Any = None  # what its step yields
    drawn: list[float] = field(default_factory=list)
    open: list[str] = field(default_factory=list)  # user's regions
    turns: dict[tuple[int, ...], int] = field(default_factory=dict)  # collectives so far
    counted: list[list[float]] = field(default_factory=list)  # instructions, cycles by thread


class Engine:
    """Runs a program once: `start` for every rank, then `finish`."""

    def __init__(
        self, program: Program, network: Network, counters: Counters | None, fork: float
    ) -> None:
        count = program.processes
        self._program, self._counters, self._fork = program, counters, _ns(fork)
        self._lines = Lines(count, program.threads)
        self._mail = Mail(network, self._wake)
        self._queue: list[tuple[int, int, int]] = []  # time, ticket, rank
        self._tickets = 0
        self._processes: list[Process] = []
        self._any: dict[int, int] = {}  # tag of what a rank takes from anyone
        self._collectives: dict[tuple[tuple[int, ...], int], tuple[str, list[Request]]] = {}
        self._steps: dict[str, Callable[..., bool]] = {
            name: getattr(self, f"_{name}")
            for name in (
                *("compute", "region", "user", "iteration", "collective"),
                *("send", "recv", "isend", "irecv", "wait", "sendrecv"),
            )
        }
        self._run = Run(program, self._lines, [[] for _ in range(count)], [0] * count)

    def start(
        self,
        factor: float,
        noise: np.random.Generator | None,
        sigma: float,
        startup: float,
    ) -> None:
        """Begin the next process."""
        me = Rank(len(self._processes), self._program.processes, self._program.threads)

        def from_begin_to_end() -> Steps:
            yield me.compute(startup, even=True)
            yield me.collective("Init")
            yield from self._program.body(me)
            yield me.collective("Finalize")

        process = Process(me.rank, from_begin_to_end(), factor, noise, sigma)
        process.counted = [[0.0, 0.0] for _ in range(me.threads)]
        self._processes.append(process)
        self._later(process)

    def finish(self) -> Run:
        """Run all processes to their ends."""
        done = 0
        while self._queue:
            _, ticket, rank = heapq.heappop(self._queue)
            process = self._processes[rank]
            if process.ticket == ticket:
                done += self._go_on(process)
        if done < len(self._processes):
            stuck = [f"{p.rank} in {p.call}" for p in self._processes if p.call]
            raise RuntimeError(f"deadlock: {', '.join(stuck)}")
        run = self._run
        run.end = max(process.clock for process in self._processes)
        for process in self._processes:
            self._lines.state(process.rank, 0, process.since, run.end, RUNNING)
        for each in self._mail.messages:
            self._lines.message((each.sender, *each.sent), each.received, each.size, each.tag)
            run.messages.append((each.sender, each.received[0], each.size, each.tag))
        return run

    def _later(self, process: Process) -> None:
        self._tickets += 1
        process.ticket = self._tickets
        heapq.heappush(self._queue, (process.clock, process.ticket, process.rank))

    def _go_on(self, process: Process) -> bool:
        """Go on until another process is earlier or this one waits; whether it has ended."""
        if process.rank in self._any:
            self._take_any(process)
        if process.call:
            self._leave(process)
        while True:
            try:
                name, *arguments = process.steps.send(process.result)
            except StopIteration:
                return True
            process.result = None
            if not self._steps[name](process, *arguments):
                return False
            if self._queue and process.clock > self._queue[0][0]:
                self._later(process)
                return False

    # computing

    def _noise(self, process: Process, even: bool) -> float:
        if process.noise is None or even:
            return 1.0
        if not process.drawn:
            sigma = process.sigma
            process.drawn = process.noise.lognormal(-(sigma**2) / 2, sigma, 256).tolist()
        return process.drawn.pop()

    def _seconds(
        self, process: Process, thread: int, given: float, noise: float, even: bool, ipc: float
    ) -> int:
        """Count what a thread computes; return its time, ns."""
        factor = 1.0 if even else process.factor
        time = _ns(given * factor * noise)
        if self._counters is not None:
            what = self._counters
            executed, slower = SLOWER[what.cause]
            mine = process.counted[thread]
            mine[0] += given * what.frequency * (ipc or what.ipc) * factor**executed
            mine[1] += time * 1e-9 * what.frequency / factor**slower
        return time

    def _compute(self, process: Process, given: float, name: str, even: bool, ipc: float) -> bool:
        time = self._seconds(process, 0, given, self._noise(process, even), even, ipc)
        process.clock += time
        if name:
            self._noted(self._run.bursts, name, process).append(time * 1e-9)
        return True

    def _region(self, process: Process, name: str, given: Sequence[float], even: bool) -> bool:
        rank, begin, lines = process.rank, process.clock, self._lines
        noise = self._noise(process, even)
        lines.state(rank, 0, process.since, begin, RUNNING)
        lines.event(rank, 0, begin, [(PARALLEL, 3), *self._count(process, 0)])
        first, function = begin + self._fork, lines.value(OUTLINED, name)
        lines.state(rank, 0, begin, first, FORK_JOIN)
        times = [
            self._seconds(process, thread, seconds, noise, even, 0.0)
            for thread, seconds in enumerate(given)
        ]
        for thread, time in enumerate(times):
            lines.event(rank, thread, first, [(OUTLINED, function)])
            lines.state(rank, thread, first, first + time, RUNNING)
            counts = self._count(process, thread)
            lines.event(rank, thread, first + time, [(OUTLINED, 0), *counts])
        end = first + max(times) + self._fork
        lines.state(rank, 0, first + times[0], end, FORK_JOIN)
        lines.event(rank, 0, end, [(PARALLEL, 0), *self._count(process, 0)])
        process.clock = process.since = end
        self._noted(self._run.regions, name, process).append([time * 1e-9 for time in times])
        return True

    def _noted(self, what: dict[str, list[list[Any]]], name: str, process: Process) -> list[Any]:
        if name not in what:
            what[name] = [[] for _ in self._processes]
        return what[name][process.rank]

    def _count(self, process: Process, thread: int) -> list[tuple[int, int]]:
        """Events of the counters of a thread, since its last ones."""
        if self._counters is None:
            return []
        instructions, cycles = (round(each) for each in process.counted[thread])
        process.counted[thread] = [0.0, 0.0]
        return [(INSTRUCTIONS, instructions), (CYCLES, cycles)]

    # what a program notes and marks

    def _iteration(self, process: Process) -> bool:
        self._run.iterations[process.rank].append(process.clock)
        return True

    def _user(self, process: Process, name: str) -> bool:
        pairs = [(USER, self._lines.value(USER, name) if name else 0)]
        if name:
            process.open.append(name)
        else:
            process.open.pop()
            if process.open:  # what goes on around it
                pairs.append((USER, self._lines.value(USER, process.open[-1])))
        self._lines.event(process.rank, 0, process.clock, pairs)
        return True

    # calls

    def _enter(
        self, process: Process, name: str, site: Site, more: Sequence[tuple[int, int]] = ()
    ) -> None:
        type_, value, _ = CALLS[name]
        rank, entry = process.rank, process.clock
        self._lines.state(rank, 0, process.since, entry, RUNNING)
        callers = call_site(self._lines, site) if site else ()
        counts = self._count(process, 0)
        self._lines.event(rank, 0, entry, [(type_, value), *more, *counts, *callers])
        process.call, process.entry = name, entry
        self._run.calls[rank] += 1

    def _leave(self, process: Process) -> None:
        """Leave a call, at the time when all that it waits for is done."""
        rank, entry, exit_ = process.rank, process.entry, process.clock
        type_, _, state = CALLS[process.call]
        self._lines.state(rank, 0, entry, exit_, state)
        if self._counters is not None:
            cycles = (exit_ - entry) * 1e-9 * self._counters.frequency
            process.counted[0] = [cycles, cycles]
        self._lines.event(rank, 0, exit_, [(type_, 0), *self._count(process, 0)])
        for request in process.waiting:
            message = request.message
            if message is None:
                continue
            if request.receiver >= 0:
                message.received = (request.receiver, request.logical, exit_)
                if process.call == "Recv":
                    process.result = message.sender, message.data
            elif process.call == "Send":
                message.sent = (entry, exit_)
        process.waiting, process.call, process.since = [], "", exit_

    def _at_once(self, process: Process) -> bool:
        process.clock += self._mail.overhead
        self._leave(process)
        return True

    def _blocks(self, process: Process, requests: Sequence[Request]) -> bool:
        process.waiting = list(requests)
        for request in requests:
            request.owner = process
        return self._wake(process)

    def _wake(self, process: Process) -> bool:
        """Leave the call at its time, if all that it waits for is known; never at once."""
        times = [request.done for request in process.waiting if request.done is not None]
        if len(times) == len(process.waiting):
            process.clock = max([process.entry + self._mail.overhead, *times])
            self._later(process)
        return False

    def _send(
        self, process: Process, to: int, size: int, tag: int, site: Site, data: object
    ) -> bool:
        self._enter(process, "Send", site)
        request = self._sent(process, to, size, tag)
        request.message.data = data
        return self._blocks(process, [request])

    def _isend(self, process: Process, to: int, size: int, tag: int, site: Site) -> bool:
        self._enter(process, "Isend", site)
        request = process.result = self._sent(process, to, size, tag)
        self._at_once(process)
        request.message.sent = (process.entry, process.clock)
        return True

    def _sent(self, process: Process, to: int, size: int, tag: int) -> Request:
        request = self._mail.send(process.rank, to, size, tag, process.clock)
        if self._any.get(to) == tag:
            self._next_of_any(self._processes[to])
        return request

    def _irecv(self, process: Process, source: int, tag: int, site: Site) -> bool:
        self._enter(process, "Irecv", site)
        request = process.result = self._mail.post(source, process.rank, tag, process.clock)
        self._at_once(process)
        request.logical = process.clock
        return True

    def _recv(self, process: Process, source: int, tag: int, site: Site) -> bool:
        self._enter(process, "Recv", site)
        if source == ANY:
            self._any[process.rank] = tag
            self._next_of_any(process)
            return False
        request = self._mail.post(source, process.rank, tag, process.clock)
        request.logical = process.entry
        return self._blocks(process, [request])

    def _sendrecv(
        self, process: Process, to: int, size: int, source: int, tag: int, site: Site
    ) -> bool:
        self._enter(process, "Sendrecv", site)
        received = self._mail.post(source, process.rank, tag, process.clock)
        received.logical = process.entry
        sent = self._sent(process, to, size, tag)
        sent.message.sent = (process.entry, process.entry)
        return self._blocks(process, [sent, received])

    def _wait(self, process: Process, name: str, requests: Sequence[Request], site: Site) -> bool:
        self._enter(process, name, site)
        return self._blocks(process, requests)

    def _next_of_any(self, process: Process) -> None:
        """Come back when the first message that is known now is there; an earlier one may come."""
        if there := self._mail.waiting(process.rank, self._any[process.rank]):
            process.clock = max(process.entry, min(there)[0])
            self._later(process)

    def _take_any(self, process: Process) -> None:
        tag = self._any.pop(process.rank)
        _, source = min(self._mail.waiting(process.rank, tag))
        request = self._mail.post(source, process.rank, tag, process.entry)
        request.logical = process.entry
        process.waiting = [request]
        process.clock = max(process.entry + self._mail.overhead, request.done or 0)

    def _collective(
        self,
        process: Process,
        name: str,
        size: int,
        members: tuple[int, ...],
        root: int,
        site: Site,
    ) -> bool:
        turn = process.turns.get(members, 0)
        process.turns[members] = turn + 1
        more: list[tuple[int, int]] = []
        if name not in {"Init", "Finalize"}:
            is_root = name in ROOTED and process.rank == root
            sent, received = amounts(name, size, len(members), is_root)
            number = self._lines.communicator(members)
            more = [(SENT, sent), (RECEIVED, received), (COMMUNICATOR, number)]
            more += [(ROOT, 1)] * is_root
        self._enter(process, name, site, more)
        first, here = self._collectives.setdefault((members, turn), (name, []))
        if first != name or process.rank not in members:
            raise RuntimeError(f"{name} of {process.rank} meets {first} of {members}")
        request = Request(process.clock)
        here.append(request)
        self._blocks(process, [request])
        if len(here) == len(members):
            stages = math.ceil(math.log2(len(members)))
            last = max(each.posted for each in here) + self._mail.overhead
            for each in here:
                each.done = last + stages * self._mail.transfer(size)
                self._wake(each.owner)
        return False


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
