"""Synthetic runs do what their programs say, and their traces tell what happened."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from synthetic import ANY, Counters, Network, Program, Rank, programs, run, spread
from synthetic.program import Steps

from popmodel.efficiency.measure import analyse
from popmodel.simulator.from_trace import from_trace
from popmodel.traces.regions import user_regions

NETWORK = Network(latency=1e-5, bandwidth=1e9, overhead=1e-6, eager=1000)
READY = {
    "jacobi in 1-D": programs.jacobi((5,), 4, residual=0, how="blocking"),
    "jacobi in 2-D": programs.jacobi((3, 2), 4, periodic=(True, False), width=2),
    "jacobi in 3-D": programs.jacobi((2, 3, 2), 2, periodic=True, how="sendrecv"),
    "hybrid": programs.jacobi((2, 2), 3, threads=3, uneven=0.2, serial=0.1),
    "pipeline": programs.pipeline((3, 2), 5),
    "butterfly": programs.butterfly(8, 3),
    "rows": programs.rows_and_transposes(2, 4, 2, 3),
    "transposes": programs.transposes(3, 2),
    "pairwise": programs.transposes(4, 2, how="pairwise"),
    "levels": programs.levels((2, 2), 2),
    "master and workers": programs.master_worker(4, 12, rounds=2),
    "drifting": programs.drifting((2, 2), [3, 2, 4, 3, 5], regions=True),
    "random graph": programs.random_graph(6, 3, degree=4),
    "one process": programs.jacobi((1,), 2),
    "two processes": programs.random_graph(2, 2),
}


@pytest.mark.parametrize("name", READY)
def test_traces_of_ready_programs_tell_all_that_happened(name: str, tmp_path: Path) -> None:
    done = run(READY[name], persistent=0.1, transient=0.05, seed=1)
    trace = done.read(tmp_path)
    assert trace.warnings == ()
    assert (trace.begin, trace.end) == (0, done.end)
    assert np.diff(trace.records.calls().offsets)[:: done.program.threads].tolist() == done.calls
    records = trace.records.messages
    sender, receiver = (
        np.asarray(each) // done.program.threads for each in (records.sender, records.receiver)
    )
    told = zip(
        *(each.tolist() for each in (sender, receiver, records.size, records.tag)), strict=True
    )
    assert Counter(told) == Counter(done.messages)
    assert from_trace(trace).notes == ()
    assert len({len(each) for each in done.iterations}) == 1


def test_a_message_takes_latency_and_bytes_after_the_overhead_of_its_send() -> None:
    def body(me: Rank) -> Steps:
        if me.rank == 0:
            yield me.compute(5e-4)
            yield me.send(1, 1000)
        else:
            yield me.recv(0)
            yield me.iteration()

    begin = 1e-4 + 1e-6 + 1e-5  # startup, MPI_Init
    done = run(Program(2, body), network=NETWORK)
    assert done.iterations[1] == [round(1e9 * (begin + 5e-4 + 1e-6 + 1e-5 + 1e-6))]


def test_above_the_eager_limit_a_send_waits_for_its_receive() -> None:
    def body(me: Rank) -> Steps:
        if me.rank == 0:
            yield me.send(1, 2000)
        else:
            yield me.compute(5e-4)
            yield me.recv(0)
        yield me.iteration()

    begin = 1e-4 + 1e-6 + 1e-5
    done = run(Program(2, body), network=NETWORK)
    asked = begin + 5e-4 + 1e-5  # the receive tells the sender
    assert done.iterations == [
        [round(1e9 * (asked + 2e-6))],
        [round(1e9 * (asked + 2e-6 + 1e-5))],
    ]


def test_who_computes_longest_never_waits_and_gives_the_pace() -> None:
    done = run(
        programs.jacobi((2,), 3, cells=(100,), per_cell=1e-6, residual=0),
        network=NETWORK,
        persistent=(0.5, 1.5),
    )
    begins = np.array(done.iterations) * 1e-9
    # 50 cells of 1 us, half more; Irecv, Isend and Waitall
    assert np.diff(begins[1]) == pytest.approx(75e-6 + 3e-6, abs=2e-9)
    assert np.diff(begins[0])[1:] == pytest.approx(75e-6 + 3e-6, abs=2e-9)


@pytest.mark.parametrize("first", [1, 2])
def test_any_source_is_whoever_is_first(first: int) -> None:
    order: list[int] = []

    def body(me: Rank) -> Steps:
        if me.rank:
            yield me.compute(1e-4 if me.rank == first else 2e-4)
            yield me.send(0, 8, data=me.rank)
        else:
            for _ in range(2):
                source, data = yield me.recv(ANY)
                assert source == data
                order.append(source)

    run(Program(3, body))
    assert order == [first, 3 - first]


def test_workers_do_each_task_once() -> None:
    done = run(programs.master_worker(4, 30, seconds=lambda task: 1e-5 * (task + 1)))
    tasks = sorted(round(1e5 * each) for rank in done.bursts["task"] for each in rank)
    assert tasks == list(range(1, 31))
    assert done.bursts["task"][0] == []


def test_spread_is_exact() -> None:
    factors = np.array(spread(7, 0.2, seed=3))
    assert (factors.mean(), factors.std()) == pytest.approx((1.0, 0.2))
    assert spread(1, 0.2) == [1.0]
    with pytest.raises(ValueError, match="not all positive"):
        spread(50, 0.9)


def test_persistent_and_transient_imbalance_are_what_was_asked_for() -> None:
    done = run(programs.jacobi((4,), 2000, residual=0), persistent=0.1, transient=0.05, seed=2)
    times = np.array(done.bursts["sweep"])
    by_rank = times.mean(axis=1)
    assert by_rank.std() / by_rank.mean() == pytest.approx(0.1, rel=0.05)
    assert times.std(axis=1) / by_rank == pytest.approx(0.05, rel=0.05)


def test_a_seed_gives_a_run() -> None:
    ends = [run(READY["jacobi in 2-D"], transient=0.1, seed=seed).end for seed in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]


@pytest.mark.parametrize(
    ("cause", "instructions", "cycles"),
    [("instructions", 1.5, 1.5), ("ipc", 1.0, 1.5), ("frequency", 1.0, 1.0)],
)
def test_counters_tell_why_a_process_is_slower(
    cause: str, instructions: float, cycles: float, tmp_path: Path
) -> None:
    done = run(
        programs.jacobi((2,), 20, threads=2),
        counters=Counters(cause=cause),
        persistent=(1.0, 1.5),
        startup=0.0,
    )
    found = analyse(done.read(tmp_path)).observables
    assert found.instructions is not None
    assert found.cycles is not None
    executed, taken = (np.add.reduceat(each, [0, 2]) for each in (found.instructions, found.cycles))
    assert executed[1] / executed[0] == pytest.approx(instructions, rel=1e-3)
    assert taken[1] / taken[0] == pytest.approx(cycles, rel=1e-3)
    assert executed[0] / taken[0] == pytest.approx(1.5, rel=1e-3)
    useful = np.add.reduceat(found.useful, [0, 2])
    assert taken[0] / useful[0] == pytest.approx(2e9, rel=1e-3)


def test_regions_have_what_each_thread_computes(tmp_path: Path) -> None:
    done = run(READY["hybrid"])
    found = analyse(done.read(tmp_path)).observables
    per_thread = np.array(done.regions["sweep"]).sum(axis=1)
    assert found.omp_useful == pytest.approx(per_thread.ravel())
    assert per_thread[0] / per_thread[0].mean() == pytest.approx([0.8, 1.0, 1.2], rel=1e-4)


def test_users_regions_and_call_sites_are_told(tmp_path: Path) -> None:
    def body(me: Rank) -> Steps:
        yield me.enter("step")
        yield me.enter("solve")
        yield me.compute(1e-3)
        yield me.collective("Barrier", site=("solve", "solve.c", 12))
        yield me.leave()
        yield me.compute(1e-3)
        yield me.leave()

    trace = run(Program(2, body)).read(tmp_path)
    regions = user_regions(trace)
    lengths = {
        regions.names[name]: end - begin
        for name, begin, end in zip(
            *(each.tolist() for each in (regions.label, regions.begin, regions.end)), strict=True
        )
    }
    assert lengths["step"] - lengths["solve"] == 10**6
    sites = [str(each) for each in analyse(trace).call_sites]
    assert any("solve.c" in each and "12" in each for each in sites)


def test_members_of_collectives_are_told(tmp_path: Path) -> None:
    def body(me: Rank) -> Steps:
        row = (0, 1) if me.rank < 2 else (2, 3)
        yield me.collective("Bcast", 100, among=row, root=row[1])

    trace = run(Program(4, body)).read(tmp_path)
    groups = sorted(ranks.tolist() for ranks in trace.communicators.values())
    assert groups == [[0, 1], [0, 1, 2, 3], [2, 3]]
    collectives = from_trace(trace).collectives
    assert sorted(collectives.root.tolist())[-2:] == [1, 3]


def test_what_cannot_end_is_said() -> None:
    def wait(me: Rank) -> Steps:
        yield me.recv(1 - me.rank)

    def differ(me: Rank) -> Steps:
        yield me.collective("Reduce" if me.rank else "Bcast", 8)

    with pytest.raises(RuntimeError, match="deadlock: 0 in Recv, 1 in Recv"):
        run(Program(2, wait))
    with pytest.raises(RuntimeError, match="Bcast of 0 meets Reduce"):
        run(Program(2, differ))
    with pytest.raises(ValueError, match="3 factors for 2 processes"):
        run(Program(2, wait), persistent=(1, 1, 1))
    with pytest.raises(ValueError, match="power of two"):
        programs.butterfly(6)
    with pytest.raises(ValueError, match="as many as rows or twice"):
        programs.rows_and_transposes(2, 8)
    with pytest.raises(ValueError, match="do not keep"):
        programs.master_worker(8, 3)
