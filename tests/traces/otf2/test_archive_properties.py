"""Random archives against a plain reading of the same records."""

import random
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")

from hypothesis import given
from hypothesis import strategies as st
from otf2.enums import RegionRole
from otf2_archives import ArchiveMaker

from popmodel.traces.codes import RUNNING, SYNCHRONISING, TOGETHER

# Kinds of regions: what threads do inside, None for what they do around.
STATES = {"f": None, "g": None, "MPI_Barrier": TOGETHER, "barrier": SYNCHRONISING, "task": RUNNING}

trees = st.recursive(
    st.just([]),
    lambda inside: st.lists(
        st.tuples(st.sampled_from([*STATES]), st.integers(0, 5), inside), max_size=4
    ),
    max_leaves=12,
)


def visit(tree: list, time: int, state: int, seen: dict, outer: tuple[str, ...]) -> int:
    """Walk through regions, each with time before and behind what is inside; their end."""
    for name, length, inside in tree:
        if name == "MPI_Barrier" and "MPI_Barrier" in outer:
            continue  # calls of MPI do not nest
        own = STATES[name] if STATES[name] is not None else state
        begin = time
        seen["records"].append(("enter", begin, name))
        seen["time", own] += length
        end = visit(inside, begin + length, own, seen, (*outer, name)) + length
        seen["time", own] += length
        seen["records"].append(("leave", end, name))
        seen["visits", name] += 1
        if name not in outer:
            seen["inclusive", name] += end - begin
        time = end
    return time


@given(trees)
def test_states_and_times_of_functions_are_those_of_the_innermost_region(tree: list) -> None:
    seen: dict = defaultdict(int, records=[])
    end = visit(tree, 0, RUNNING, seen, ())
    with tempfile.TemporaryDirectory() as folder:
        made = ArchiveMaker(Path(folder), [1])
        regions = {
            "f": made.user("f"),
            "g": made.user("g"),
            "MPI_Barrier": made.region("MPI_Barrier"),
            "barrier": made.omp(RegionRole.BARRIER),
            "task": made.omp(RegionRole.TASK),
        }
        to = made.thread(0)
        to.enter(0, made.user("main"))
        for kind, time, name in seen["records"]:
            getattr(to, kind)(time, regions[name])
        to.leave(end, made.user("main"))
        trace = made.read()
        assert trace.warnings == ()
        for state in (RUNNING, SYNCHRONISING, TOGETHER):
            found = trace.records.in_state(state).total().tolist()
            assert found == [seen["time", state]], state
        told = trace.records.functions(trace.process_offsets)
        assert told is not None
        for name, visits, inclusive in zip(
            told.names, told.visits.tolist(), told.inclusive.tolist(), strict=True
        ):
            if name != "main":
                assert (visits, inclusive) == (seen["visits", name], seen["inclusive", name]), name
        calls = trace.calls()
        assert len(calls) == seen["visits", "MPI_Barrier"]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 2)), max_size=12),
    st.integers(0, 1000),
)
def test_messages_of_one_kind_meet_in_order(sent: list, seed: int) -> None:
    """Whatever the order in which receives are completed, they were posted in order."""
    with tempfile.TemporaryDirectory() as folder:
        made = ArchiveMaker(Path(folder), [1, 1])
        posted: list[list[tuple[int, int, int]]] = [[], []]
        for number, (sender, receiver, tag) in enumerate(sent):
            at = 10 * number
            send = ("mpi_send", at + 1, receiver, made.world, tag, number)
            made.call(sender, "MPI_Send", at, at + 2, send)
            posted[receiver].append((sender, tag, number))
        for receiver in (0, 1):
            begin = 10 * len(sent)
            for place, (_, _, number) in enumerate(posted[receiver]):
                at = begin + 10 * place
                request = ("mpi_irecv_request", at + 1, number)
                made.call(receiver, "MPI_Irecv", at, at + 2, request)
            order = [*posted[receiver]]
            random.Random(seed).shuffle(order)
            for place, (sender, tag, number) in enumerate(order, len(order)):
                at = begin + 10 * place
                done = ("mpi_irecv", at + 1, sender, made.world, tag, number, number)
                made.call(receiver, "MPI_Wait", at, at + 2, done)
        for rank in (0, 1):
            made.call(rank, "MPI_Finalize", 10_000, 10_001)
        trace = made.read()
        table = trace.messages
        assert sorted(table.size.tolist()) == list(range(len(sent)))
        for number, begun, post in zip(
            *(table.size.tolist(), table.logical_send.tolist(), table.logical_receive.tolist()),
            strict=True,
        ):
            place = [each[2] for each in posted[sent[number][1]]].index(number)
            assert (begun, post) == (10 * number, 10 * (len(sent) + place) + 2)
