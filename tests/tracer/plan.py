"""Random correct programs: what each process does, and what a trace of it must then say.

The plan is carried out in slots of time, one operation a slot, so that every program is correct by
construction. Messages are paired here as MPI says, when they are sent and posted, which is another
way than the merge takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from hypothesis import strategies as st
from tracer.builder import Process, Run, Thread, group_hash, post, receive, send

from popmodel.tracer.raw_records import Construct, RecordKind

SLOT = 10_000
BEGIN = 5_000_000
DUPLICATE = 1
"""Index of the duplicate of MPI_COMM_WORLD among the communicators of the plan."""

Operation = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, order=True)
class Message:
    """What a trace says of a message."""

    sender: int
    receiver: int
    logical_send: int
    physical_send: int
    logical_receive: int
    physical_receive: int
    size: int
    tag: int


@dataclass
class _Receive:
    """A posted receive."""

    owner: int
    number: int
    source: int
    tag: int
    communicator: int
    posted: int
    send: tuple[int, int, int, int] | None = None  # sender, logical, physical, size


@dataclass
class Plan:
    """A program that is being carried out."""

    size: int
    hosts: int = 1
    threads: int = 2
    run: Run = field(init=False)
    processes: list[Process] = field(init=False)
    masters: list[Thread] = field(init=False)
    workers: list[Thread] = field(init=False)
    messages: list[Message] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    useful: list[int] = field(init=False)
    in_mpi: list[int] = field(init=False)
    parallel: list[int] = field(init=False)
    collective_bytes: int = 0

    def __post_init__(self) -> None:
        self.run = Run(self.size)
        self.processes = [self.run.process(rank, begin=BEGIN) for rank in range(self.size)]
        self.masters = [process.thread() for process in self.processes]
        self.workers = []
        self.slot = 0
        self.useful, self.in_mpi, self.parallel = ([0] * self.size for _ in range(3))
        self._posted: dict[tuple[int, ...], deque[_Receive]] = defaultdict(deque)
        self._sent: dict[tuple[int, ...], deque[tuple[int, int, int, int]]] = defaultdict(deque)
        self._open: list[list[_Receive]] = [[] for _ in range(self.size)]
        self._numbers = [0] * self.size
        world = list(range(self.size))
        for rank, process in enumerate(self.processes):
            # Local numbers differ between processes.
            members = {"members": world} if rank == 0 else {}
            process.say(
                "communicator", id=3 + rank, size=self.size, hash=group_hash(world), ordinal=7,
                rank=rank, **members,
            )  # fmt: skip
        self.all("Init", 1000)

    # What processes do -------------------------------------------------------------------------

    def time(self, rank: int) -> int:
        """Begin of the slot; the processes are never in step."""
        return BEGIN + self.slot * SLOT + 10 * rank

    def local(self, rank: int, communicator: int) -> int:
        """What a process calls a communicator of the plan."""
        return 3 + rank if communicator == DUPLICATE else 1

    def call(self, rank: int, name: str, begin: int, end: int, *inner, **fields) -> None:
        """One MPI call."""
        self.masters[rank].call(name, begin, end, *inner, **fields)
        self.calls[f"MPI_{name}"] += 1
        self.in_mpi[rank] += end - begin

    def all(self, name: str, length: int, **fields) -> None:
        """A call of all processes."""
        for rank in range(self.size):
            begin = self.time(rank)
            self.call(rank, name, begin, begin + length, **fields)
        self.slot += 1

    def post(self, owner: int, source: int, tag: int, communicator: int) -> None:
        """Irecv."""
        begin = self.time(owner)
        mine = self._new_receive(owner, source, tag, communicator, begin + 50)
        self._open[owner].append(mine)
        local = self.local(owner, communicator)
        self.call(owner, "Irecv", begin, begin + 50, post(mine.number, local))
        self._pair(mine)
        self.slot += 1

    def send(self, sender: int, to: int, tag: int, communicator: int, size: int) -> None:
        """Isend."""
        begin = self.time(sender)
        local = self.local(sender, communicator)
        self.call(sender, "Isend", begin, begin + 80, send(to, tag, size, local))
        self._pair_send(sender, to, tag, communicator, (sender, begin, begin + 80, size))
        self.slot += 1

    def blocking(self, sender: int, to: int, tag: int, communicator: int, size: int) -> None:
        """Send and Recv, unless earlier receives or messages stand in the way."""
        key = (sender, to, tag, communicator)
        if sender == to or self._posted[key] or self._sent[key]:
            self.slot += 1
            return
        begin, at = self.time(sender), self.time(to)
        mine = self._new_receive(to, sender, tag, communicator, at)
        number = mine.number
        locals_ = self.local(sender, communicator), self.local(to, communicator)
        self.call(sender, "Send", begin, begin + 500, send(to, tag, size, locals_[0]))
        done = receive(sender, tag, size, number, locals_[1])
        self.call(to, "Recv", at, at + 700, post(number, locals_[1], 1), *done)
        self._complete(mine, (sender, begin, begin + 500, size), at + 700)
        self.slot += 1

    def exchange(self, rank: int, to: int, tag: int, size: int) -> None:
        """Sendrecv of two processes, or of one with itself."""
        for a, b in ((rank, to), (to, rank)):
            if self._posted[a, b, tag, 0] or self._sent[a, b, tag, 0]:
                return
        pairs = [(rank, to), (to, rank)][: 1 + (rank != to)]
        begin = {each: self.time(each) for each, _ in pairs}
        for me, other in pairs:
            mine = self._new_receive(me, other, tag, 0, begin[me])
            end = begin[me] + 900
            self.call(
                me, "Sendrecv", begin[me], end,
                send(other, tag, size + me), post(mine.number, 1, 1),
                *receive(other, tag, size + other, mine.number),
            )  # fmt: skip
            self._complete(mine, (other, begin[other], begin[other], size + other), end)
        self.slot += 1

    def wait(self, rank: int, backwards: bool) -> None:
        """Waitall for the receives whose message has been sent."""
        ready = [each for each in self._open[rank] if each.send is not None]
        self._open[rank] = [each for each in self._open[rank] if each.send is None]
        begin = self.time(rank)
        inner = []
        for mine in reversed(ready) if backwards else ready:
            assert mine.send is not None
            local = self.local(rank, mine.communicator)
            inner += receive(mine.source, mine.tag, mine.send[3], mine.number, local)
            self._complete(mine, mine.send, begin + 1200)
        self.call(rank, "Waitall", begin, begin + 1200, *inner)
        self.slot += 1

    def collective(self, name: str, communicator: int, size: int) -> None:
        """A collective of all processes."""
        for rank in range(self.size):
            begin = self.time(rank)
            local = self.local(rank, communicator)
            root = [(RecordKind.ROOT, local, 0, 0)] if name == "Bcast" and rank == 0 else []
            sent = size if name != "Bcast" or rank == 0 else 0
            self.call(rank, name, begin, begin + 2000 - 10 * rank, *root, a=local, b=sent, c=size)
            self.collective_bytes += sent
        self.slot += 1

    def region(self, rank: int, work: int, wait: int) -> None:
        """A parallel region of two threads; the master works longer and the other one waits."""
        begin = self.time(rank)
        master = self.masters[rank]
        if len(self.processes[rank].threads) == 1:
            self.processes[rank].say(
                "function", address="0xabc", name="solve._omp_fn.0", module="/app", offset="0x1"
            )
            self.workers.append(self.processes[rank].thread())
        worker = self.processes[rank].threads[1]
        number = self.slot
        master.put(begin, RecordKind.PARALLEL_BEGIN, a=2, b=0xABC, c=number)
        master.put(begin + 10, RecordKind.TASK_BEGIN, 1, 0, 0xABC, number)
        worker.put(begin + 20, RecordKind.TASK_BEGIN, 1, 1, 0xABC, number)
        end = begin + 20 + work + wait
        worker.put(begin + 20 + work, RecordKind.OMP_ENTER, Construct.IMPLICIT_BARRIER, 1)
        worker.put(end, RecordKind.OMP_LEAVE, Construct.IMPLICIT_BARRIER, 1)
        worker.put(end, RecordKind.TASK_END, 1, 1, 0xABC, number)
        master.put(end, RecordKind.TASK_END, 1, 0, 0xABC, number)
        master.put(end + 30, RecordKind.PARALLEL_END, b=0xABC, c=number)
        self.parallel[rank] += end + 30 - begin
        self.useful[rank] += work  # of the worker; the master's follows from its calls
        self.slot += 1

    def misses(self, rank: int, times: int, between: int) -> None:
        """Tests in a row that complete nothing, with work between them."""
        begin = self.time(rank)
        end = begin + between + 100 * times
        self.masters[rank].call("Test", begin, end, misses=times, between=between)
        self.calls["MPI_Test"] += times
        self.in_mpi[rank] += 100 * times
        self.slot += 1

    def finish(self) -> Run:
        """Complete what is open, and end."""
        for key, waiting in list(self._sent.items()):
            while waiting:
                self.post(key[1], key[0], key[2], key[3])
        for key, posted in list(self._posted.items()):
            while posted:
                self.send(*key, 3)
        for rank in range(self.size):
            self.wait(rank, backwards=rank % 2 == 1)
        self.all("Finalize", 500)
        for rank, process in enumerate(self.processes):
            process.end(self.end(rank))
        return self.run

    def end(self, rank: int) -> int:
        """When a process ends, after `finish`."""
        return self.time(rank) + 5

    # Pairs of sends and receives -----------------------------------------------------------------

    def _new_receive(
        self, owner: int, source: int, tag: int, communicator: int, posted: int
    ) -> _Receive:
        self._numbers[owner] += 1
        return _Receive(owner, self._numbers[owner], source, tag, communicator, posted)

    def _pair(self, mine: _Receive) -> None:
        key = (mine.source, mine.owner, mine.tag, mine.communicator)
        if self._sent[key]:
            mine.send = self._sent[key].popleft()
        else:
            self._posted[key].append(mine)

    def _pair_send(
        self, sender: int, to: int, tag: int, communicator: int, what: tuple[int, int, int, int]
    ) -> None:
        key = (sender, to, tag, communicator)
        if self._posted[key]:
            self._posted[key].popleft().send = what
        else:
            self._sent[key].append(what)

    def _complete(self, mine: _Receive, what: tuple[int, int, int, int], end: int) -> None:
        sender, logical, physical, size = what
        times = (each - BEGIN for each in (logical, physical, mine.posted, end))
        self.messages.append(Message(sender, mine.owner, *times, size, mine.tag))


RANK = st.integers(0, 3)
TAG = st.integers(0, 2)
# Below the eager limit of the replay: a trace does not say which sends a Waitall waits for, so the
# replay lets it wait for all, also for those whose receive is posted later.
SIZE = st.integers(0, 32_767)
OPERATION = st.one_of(
    st.tuples(st.just("post"), RANK, RANK, TAG, st.integers(0, 1)),
    st.tuples(st.just("send"), RANK, RANK, TAG, st.integers(0, 1), SIZE),
    st.tuples(st.just("blocking"), RANK, RANK, TAG, st.integers(0, 1), SIZE),
    st.tuples(st.just("exchange"), RANK, RANK, TAG, SIZE),
    st.tuples(st.just("wait"), RANK, st.booleans()),
    st.tuples(
        st.just("collective"),
        st.sampled_from(["Barrier", "Bcast", "Allreduce", "Alltoall"]),
        st.integers(0, 1),
        SIZE,
    ),
    st.tuples(st.just("region"), RANK, st.integers(1, 2000), st.integers(0, 2000)),
    st.tuples(st.just("misses"), RANK, st.integers(1, 9), st.integers(0, 3000)),
)
_RANKS = {"post": 2, "send": 2, "blocking": 2, "exchange": 2, "wait": 1, "region": 1, "misses": 1}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Programs of 1 to 4 processes that have come to their end."""
    plan = Plan(draw(st.integers(1, 4)))
    for name, *arguments in draw(st.lists(OPERATION, max_size=40)):
        for i in range(_RANKS.get(name, 0)):
            arguments[i] %= plan.size
        getattr(plan, name)(*arguments)
    plan.finish()
    return plan
