"""Which processors threads have: read, counted, and recorded by a real run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tracer.builder import Run as Made
from tracer.traced import Run

from popmodel import traces as reader
from popmodel.efficiency.measure import useful_times
from popmodel.machines.host.hardware import parse_cpu_list
from popmodel.structure.iterations import find
from popmodel.structure.phases import phases
from popmodel.tracer.conversion import merge
from popmodel.tracer.raw_records import RecordKind
from popmodel.traces.caveats import delays
from popmodel.traces.codes import Event


def test_a_merged_trace_says_what_threads_had(tmp_path: Path) -> None:
    run = Made(2)
    for rank, cpus in enumerate(("0", "0-1")):
        process = run.process(rank, begin=0)
        process.thread().call("Init", 0, 100)
        process.say("thread", number=0, tid=1, time=0, cpus=cpus)
        process.say("usage", thread=0, used=700, waited=rank)
        process.end(1000)
    merge(run.write(tmp_path / "raw"), tmp_path / "x.prv")
    trace = reader.read(tmp_path / "x.prv")
    told = (Event.CPUS, Event.SHARING, Event.USED, Event.WAITED)
    found = [sorted(trace.marks(event).value.tolist()) for event in told]
    assert found == [[1, 2], [1, 2], [700, 700], [0, 1]]


def test_a_real_run_records_them(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(2, program("sites"))
    assert done.returncode == 0, done.stderr
    for process in run.processes():
        (thread,) = process.events("thread")
        cpus = set(parse_cpu_list(thread["cpus"]))
        assert cpus
        assert cpus <= os.sched_getaffinity(0)
        if Path("/proc/self/schedstat").exists():
            (usage,) = process.events("usage")
            assert usage["used"] > 0
            assert usage["waited"] >= 0
            # what MPI takes to start and to stop is no part of it
            (begin,), (end,) = process.events("mpi"), process.events("finalize")
            assert usage["used"] + usage["waited"] <= end["time"] - begin["time"]


def test_what_was_waited_while_computing_is_no_time_of_phases_and_signatures(
    tmp_path: Path,
) -> None:
    """Of 10 iterations of 20 us one lasts 5 us longer, as the thread waited for a CPU."""
    run = Made(1)
    process = run.process(0, begin=0)
    thread = process.thread()
    thread.call("Init", 0, 100)
    time = 100
    for step in range(10):
        time += 20_000 + 5_000 * (step == 6)
        if step == 6:
            thread.put(time, RecordKind.DELAYED, b=5_000)
        thread.call("Allreduce", time, time + 50, a=1, b=8, c=8)
        time += 50
    thread.call("Finalize", time, time + 100)
    process.end(time + 100)
    merge(run.write(tmp_path / "raw"), tmp_path / "x.prv")
    trace = reader.read(tmp_path / "x.prv")
    assert delays(trace).value.tolist() == [5_000]
    structure = find(trace)
    collective = structure.events.name == structure.events.names.index("MPI_Allreduce")
    assert structure.events.before[collective].tolist() == [20_000.0] * 10
    found = phases(structure, trace)
    longest = max(float(phase.wall.sum()) for phase in found.phases)
    assert longest == pytest.approx(200e-6)
    running = useful_times(trace).running  # of metrics: as it passed
    assert int((running.end - running.begin).sum()) >= 205_000


@pytest.mark.long
def test_a_busy_machine_changes_no_times_of_the_program(
    run: Run, program: Callable[..., Path], tmp_path: Path
) -> None:
    """Beside two busy loops on its CPU a run lasts longer, and its phases do not.

    They are compared with the CPU time that the kernel counts in the same run: how fast the CPU is
    depends on what its other hardware thread does.
    """
    cpu = min(os.sched_getaffinity(0))
    found, waited, useful = {}, {}, {}
    for name, hogs in (("quiet", 0), ("busy", 2)):
        loop = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
        beside = [subprocess.Popen(loop) for _ in range(hogs)]
        raw = tmp_path / name
        raw.mkdir()
        try:
            done = run.start(
                1, "env", f"POPMODEL_TRACE_DIR={raw}", "taskset", "-c", str(cpu), program("steady")
            )
        finally:
            for each in beside:
                each.kill()
                each.wait()
        assert done.returncode == 0, done.stderr
        merge(raw, tmp_path / f"{name}.prv")
        trace = reader.read(tmp_path / f"{name}.prv")
        structure = find(trace)
        collective = structure.events.name == structure.events.names.index("MPI_Allreduce")
        used = trace.marks(Event.USED).value.sum()
        found[name] = structure.events.before[collective].sum() / used
        waited[name] = trace.marks(Event.WAITED).value.sum() / (trace.end - trace.begin)
        running = useful_times(trace).running
        useful[name] = float((running.end - running.begin).sum()) / (trace.end - trace.begin)
    assert waited["busy"] > 0.3
    for name in found:
        assert found[name] == pytest.approx(1, rel=0.1), found
    # what it waits where the tracer asks the kernel is no time of the calls that follow
    assert useful["busy"] > useful["quiet"] - 0.05, useful
