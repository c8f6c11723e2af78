"""The compiled way from a trace to its program against the plain one, array by array."""

import random
import re
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import from_trace as plain
from oracle.script import Call, Script

from popmodel.base.errors import ReplayError
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Program
from popmodel.traces import Trace
from popmodel.traces.run_parts import splice

PROCESSES = 3
COMMUNICATORS = {2: [2, 0], 5: [1, 2]}
SENDS = ("Send", "Isend", "Bsend", "Sendrecv", "Startall")
RECEIVES = ("Recv", "Irecv", "Sendrecv", "Startall")
COMPLETE = ("Wait", "Waitall", "Testall")
COLLECTIVES = ("Allreduce", "Iallreduce", "Bcast", "Alltoall", "Ibarrier")
OTHERS = ("Comm_split", "Put", "Init")


def columns(program: Program) -> dict[str, list]:
    """The columns of a program as the plain one gives them."""
    lines = " ".join(program.notes)
    cut = re.search(r"(\d+) messages? across the edge", lines)
    without = re.search(r"(\d+) point-to-point calls? without", lines)

    def rows(table: object) -> list[tuple]:
        columns = [column for name, column in vars(table).items() if name != "parts"]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    return {
        **{
            name: getattr(program, name).tolist()
            for name in ("offsets", "kind", "target", "call", "burst", "tail")
        },
        "messages": rows(program.messages),
        "collectives": rows(program.collectives),
        "uneven": rows(program.uneven),
        "cut": int(cut[1]) if cut else 0,
        "without_record": int(without[1]) if without else 0,
    }


def agree(trace: Trace) -> None:
    """Both give the same program, or both refuse for the same reason."""
    try:
        expected = plain.from_trace(trace)
    except plain.Refused as refusal:
        reason, *which = refusal.args
        with pytest.raises(ReplayError) as caught:
            from_trace(trace)
        assert reason in caught.value.message
        if reason.startswith("without"):
            assert f": {which[0]} message" in caught.value.message
        else:
            calls = (trace.whole or trace).calls()
            for call in which:
                name, time = calls.names[calls.name[call]], calls.entry[call] / 1e9
                assert f"in {name} at {time:.9f} s" in caught.value.message
        return
    assert columns(from_trace(trace)) == expected


class Run:
    """A run of random calls on clocks so coarse that many share a time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.script = Script(PROCESSES, communicators=COMMUNICATORS)
        self.sends: list[Call] = []
        self.receives: list[tuple[Call, Call]] = []
        self.turns: Counter[tuple[int, int]] = Counter()
        # What the members of a communicator call at each turn; rarely something else.
        self.kinds = self.random.choices(COLLECTIVES, k=20)
        self.faults = self.random.random() < 0.3

    def fault(self) -> bool:
        return self.faults and self.random.random() < 0.03

    def length(self) -> int:
        return self.random.choice((0, 0, 1, 2, 7))

    def compute(self, p: int) -> None:
        self.script.compute(p, self.length(), self.random.choice((1, 1, 1, 14)))

    def process(self, p: int) -> None:
        open_: list[Call] = []
        names = (*SENDS, *RECEIVES, *COMPLETE, "collective", "collective", *OTHERS)
        for name in self.random.choices(names, k=self.random.randrange(30)):
            self.compute(p)
            if name == "collective":
                self.collective(p)
                continue
            call = self.script.call(p, name, self.length())
            if name in SENDS:
                self.sends += [call] * (self.random.choice((1, 2)) if name == "Startall" else 1)
            if name in ("Recv", "Sendrecv"):
                self.receives.append((call, call))
            if name in ("Irecv", "Startall"):
                # The receive of a persistent request counts from the entry of its start.
                open_.append(call if name == "Irecv" else call._replace(exit=call.entry))
            if name == "Wait" and open_:
                self.receives.append((open_.pop(self.random.randrange(len(open_))), call))
            if name in ("Waitall", "Testall"):
                self.receives += [(post, call) for post in open_]
                open_.clear()

    def collective(self, p: int) -> None:
        number = self.random.choice((0, 1, 1, 1, 2, 2, 5, 9))
        if p not in COMMUNICATORS.get(number, (p,)) and not self.fault():
            number = 1
        name = self.kinds[(7 * number + self.turns[number, p]) % len(self.kinds)]
        self.turns[number, p] += 1
        if self.fault():
            name = self.random.choice(COLLECTIVES)
        if number == 0 and self.random.random() < 0.5:
            self.script.call(p, name, self.length())  # one that tells nothing of itself
            return
        self.script.collective(
            p,
            name,
            self.length(),
            number,
            sent=self.random.choice((8, 8, 8, 16)),
            root=name == "Bcast" and p == 2,
            attributes_first=self.random.random() < 0.5,
        )

    def messages(self) -> None:
        self.random.shuffle(self.sends)
        self.random.shuffle(self.receives)
        for send, (post, wait) in zip(self.sends, self.receives, strict=False):
            if self.random.random() < 0.1:
                continue  # a record that is lost
            late = 1 if self.fault() else 0  # of a call that is lost
            shown = wait._replace(exit=wait.exit + late)
            self.script.message(send, post, shown, self.random.choice((8, 10**6)))

    def trace(self) -> Trace:
        for p in range(PROCESSES):
            self.process(p)
        self.messages()
        for p in range(PROCESSES):
            self.compute(p)
        if self.random.random() < 0.5:
            self.script.end()
        with tempfile.TemporaryDirectory() as folder:
            return self.script.read(Path(folder))


@given(st.integers(0, 2**32))
def test_random_runs_and_parts_of_them(seed: int) -> None:
    run = Run(seed)
    trace = run.trace()
    agree(trace)
    if trace.end < 6:
        return
    edges = sorted(run.random.sample(range(trace.end + 1), 6))
    agree(trace.window(edges[0], edges[-1]))
    part = splice(trace, np.array(edges[::2]), np.array(edges[1::2]))
    agree(part)
    if part.duration > 1:
        agree(part.window(part.begin + 1, part.end))
