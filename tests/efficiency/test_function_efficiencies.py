"""Functions of a run beside a plain loop over every nanosecond, from both formats."""

import importlib.util
import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_files import DATA

import popmodel
from popmodel.efficiency.region_efficiencies import function_efficiencies
from popmodel.traces import Trace
from popmodel.traces.codes import RUNNING, SYNCHRONISING, TOGETHER, Event
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.run_parts import splice

HAS_OTF2 = importlib.util.find_spec("otf2") is not None
NAMES = ("advect", "halo", "main", "solve")
FUNCTION, WHOLE, BARRIER = 60000019, 3, 8  # a type and values of Extrae's events

Span = tuple[str, int, int]


class RandomRun:
    """What threads of some processes do: processes fork teams, which call functions as well."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.threads = [self.random.randint(1, 3) for _ in range(self.random.randint(1, 3))]
        # By process and thread, in order: what, begin and end; of functions also their name.
        self.records: dict[tuple[int, int], list[tuple[str, int, str]]] = defaultdict(list)
        self.lost: dict[tuple[int, int], list[Span]] = defaultdict(list)  # not useful
        # Functions in which each nanosecond is, the innermost one last.
        self.open: dict[tuple[int, int], dict[int, tuple[str, ...]]] = defaultdict(dict)
        ends = []
        for process, threads in enumerate(self.threads):
            end = self.block(process, 0, self.random.randint(0, 2), (), 3, forks=True)
            ends.append(max(end, 1))
            for thread in range(1, threads):
                covered = [s for s in self.lost[process, thread] if s[0] == "part"]
                self.lost[process, thread] = [
                    s for s in self.lost[process, thread] if s[0] != "part"
                ]
                at = 0
                for _, begin, until in [*covered, ("", ends[-1], 0)]:
                    self.lost[process, thread].append(("idle", at, begin))
                    at = until
        self.end = max(ends)

    def pause(self, place: tuple[int, int], time: int, around: tuple[str, ...]) -> int:
        """Compute for a while."""
        until = time + self.random.randint(1, 4)
        for instant in range(time, until):
            self.open[place][instant] = around
        return until

    def block(
        self, process: int, thread: int, time: int, around: tuple[str, ...], depth: int, forks: bool
    ) -> int:
        """Some things one after the other; their end."""
        place = process, thread
        for _ in range(self.random.randint(1, 3)):
            time = self.pause(place, time, around)
            what = self.random.choice(("function", "function", "wait", "fork" if forks else "wait"))
            if what == "function" and depth:
                name = self.random.choice(NAMES)
                self.records[place].append(("enter", time, name))
                time = self.block(process, thread, time, (*around, name), depth - 1, forks)
                self.records[place].append(("leave", time, name))
            elif what == "wait":
                begin, time = time, self.pause(place, time, around)
                kind = "MPI_Barrier" if forks else "barrier"
                self.records[place] += [("enter", begin, kind), ("leave", time, kind)]
                self.lost[place].append((kind, begin, time))
            elif what == "fork":
                time = self.team(process, time, around)
        return self.pause(place, time, around)

    def team(self, process: int, time: int, around: tuple[str, ...]) -> int:
        """A parallel region."""
        self.records[process, 0] += [("fork", time, ""), ("begin part", time, "")]
        ends = []
        for thread in range(self.threads[process]):
            place, begin = (process, thread), time + (thread and self.random.randint(0, 2))
            if thread:
                self.records[place].append(("begin part", begin, ""))
            ends.append(self.block(process, thread, begin, around, 1, forks=False))
            if thread:
                self.records[place].append(("end part", ends[-1], ""))
                self.lost[place].append(("part", begin, ends[-1]))
        until = max(ends)
        self.lost[process, 0].append(("join", ends[0], until))
        for instant in range(ends[0], until):
            self.open[process, 0][instant] = around
        self.records[process, 0] += [("end part", ends[0], ""), ("join", until, "")]
        return until

    def wanted(self, pieces: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
        """Times and efficiencies of each function in some pieces, nanosecond by nanosecond."""
        inside = {instant for begin, end in pieces for instant in range(begin, end)}
        held = {instant for begin, end in pieces for instant in range(begin, end + 1)}
        inclusive, useful, own = (defaultdict(lambda: defaultdict(int)) for _ in range(3))
        for place, instants in self.open.items():
            lost = {i for _, begin, end in self.lost[place] for i in range(begin, end)}
            for instant, functions in instants.items():
                if instant not in inside:
                    continue
                for name in set(functions):
                    inclusive[name][place] += 1
                    useful[name][place] += instant not in lost
                if functions and instant not in lost:
                    own[functions[-1]][place] += 1
        rows = []
        for name in inclusive:
            mean = sum(useful[name].values()) / sum(self.threads)
            most, elapsed = max(useful[name].values()), max(inclusive[name].values())
            rows.append(
                {
                    "name": name,
                    "visits": sum(
                        (what, of) == ("enter", name) and time in held
                        for records in self.records.values()
                        for what, time, of in records
                    ),
                    "exclusive": sum(own[name].values()) / 1e9,
                    "inclusive": sum(inclusive[name].values()) / 1e9,
                    "parallel_efficiency": mean / elapsed,
                    "load_balance": mean / most if most else None,
                    "communication_efficiency": most / elapsed,
                }
            )
        return sorted(rows, key=lambda row: (-row["exclusive"], row["name"]))

    def paraver(self, path: Path) -> Trace:
        """The run with events of Extrae."""
        labels = Labels(
            event_types={FUNCTION: "User function"},
            event_values={FUNCTION: dict(enumerate(NAMES, 1))},
        )
        to = TraceWriter(self.threads, labels=labels, duration=self.end)
        events = {
            "MPI_Barrier": (Event.COLLECTIVE, BARRIER),
            "barrier": (Event.BARRIER, 1),
            **{name: (Event.USER_REGION, n) for n, name in enumerate(NAMES, 1)},
        }
        for process, threads in enumerate(self.threads):
            for thread in range(threads):
                for what, time, name in self.records[process, thread]:
                    pairs = {
                        "enter": lambda name=name: events[name],
                        "leave": lambda name=name: (events[name][0], 0),
                        "fork": lambda: (Event.PARALLEL, WHOLE),
                        "join": lambda: (Event.PARALLEL, 0),
                        "begin part": lambda: (Event.OUTLINED, 1),
                        "end part": lambda: (Event.OUTLINED, 0),
                    }
                    to.event(process, thread, time, [pairs[what]()])
                at = 0
                lost = sorted(self.lost[process, thread], key=lambda span: span[1])
                states = {"MPI_Barrier": TOGETHER, "barrier": SYNCHRONISING}
                for kind, begin, end in [*lost, ("", max(self.open[process, 0]) + 1, 0)]:
                    if at < begin:
                        to.state(process, thread, at, begin, RUNNING)
                    if begin < end:
                        to.state(process, thread, begin, end, states.get(kind, 7))
                    at = end
        to.write(path)
        return popmodel.read(path)

    def archive(self, folder: Path) -> Trace:
        """The run as Score-P writes it."""
        from otf2.enums import Paradigm, RegionRole

        from tests.otf2_archives import ArchiveMaker

        made = ArchiveMaker(folder, self.threads)
        regions = {name: made.user(name) for name in NAMES}
        regions["MPI_Barrier"] = made.region("MPI_Barrier")
        regions["barrier"] = made.omp(RegionRole.BARRIER)
        team, parallel = made.comm([0]), made.omp(RegionRole.PARALLEL)
        for process, threads in enumerate(self.threads):
            for thread in range(threads):
                to = made.thread(process, thread)
                for what, time, name in self.records[process, thread]:
                    if what in ("enter", "leave"):
                        getattr(to, what)(time, regions[name])
                    elif what == "fork":
                        to.thread_fork(time, Paradigm.OPENMP, threads)
                    elif what == "join":
                        to.thread_join(time, Paradigm.OPENMP)
                    elif what == "begin part":
                        to.thread_team_begin(time, team)
                        to.enter(time, parallel)
                    else:
                        to.leave(time, parallel)
                        to.thread_team_end(time, team)
        return made.read()


def test_main_is_as_efficient_as_the_run() -> None:
    """All threads of a hybrid run are in main, workers by their master."""
    path = DATA / "functions.2x2.prv.gz"
    functions = {row["name"]: row for row in function_efficiencies(popmodel.read(path))}
    run = popmodel.metrics(path).runs[0].observables.aggregates()
    hybrid = popmodel.load_families()["hybrid-multiplicative"].evaluate(run).values
    for metric in ("parallel_efficiency", "load_balance", "communication_efficiency"):
        assert functions["main"][metric] == pytest.approx(hybrid[f"hybrid_{metric}"])


def hold(trace: Trace, run: RandomRun, origin: int = 0) -> None:
    """The whole run, a window of it, and two pieces of it, have the functions of a plain loop."""
    compare(function_efficiencies(trace), run.wanted([(0, run.end)]))
    edges = sorted(run.random.randint(0, run.end) for _ in range(4))
    first, second = pieces = [(edges[0], edges[1]), (edges[2], edges[3])]
    moved = np.array(pieces).T - origin
    if first[0] < first[1] and moved[1, 0] > 0:
        window = trace.window(int(max(moved[0, 0], 0)), int(moved[1, 0]))
        compare(function_efficiencies(window), run.wanted([first]))
        if first[1] < second[0] < second[1]:
            compare(function_efficiencies(splice(trace, *moved)), run.wanted(pieces))


def compare(rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    rows = [row for row in rows if row["inclusive"]]  # not what only begins at an end
    assert [row["name"] for row in rows] == [row["name"] for row in wanted]
    for row, by_hand in zip(rows, wanted, strict=True):
        name = by_hand.pop("name")
        if by_hand["load_balance"] is None:  # nothing useful in it
            assert row["load_balance"] is by_hand.pop("load_balance"), name
        assert {key: row[key] for key in by_hand} == pytest.approx(by_hand, rel=1e-12), name


@given(st.integers(0, 1 << 40))
def test_functions_of_a_paraver_trace_are_those_of_a_plain_loop(seed: int) -> None:
    run = RandomRun(seed)
    with tempfile.TemporaryDirectory() as folder:
        hold(run.paraver(Path(folder) / "x.prv"), run)


@pytest.mark.skipif(not HAS_OTF2, reason="needs otf2 (pip install otf2)")
@given(st.integers(0, 1 << 40))
def test_functions_of_an_archive_are_those_of_a_plain_loop(seed: int) -> None:
    run = RandomRun(seed)
    with tempfile.TemporaryDirectory() as folder:
        first = min(time for records in run.records.values() for _, time, _ in records)
        hold(run.archive(Path(folder)), run, first)  # whose times count from there
