"""Observables of small traces, worked out by hand."""

from pathlib import Path

import numpy as np
import pytest
from oracle.script import Script

from popmodel.base.errors import TraceError
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import MeasuredRun, analyse, runtime
from popmodel.network.network import PRESETS
from popmodel.traces import read
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

PARALLEL, FUNCTION, BARRIER = 60000001, 60000018, 60000005
INSTRUCTIONS, CYCLES = 42000050, 42000059
SUM = 60000310  # of locks; 60000312 ns waited, 60000322 those of critical sections


def measured(script: Script, folder: Path) -> MeasuredRun:
    script.end()
    return analyse(script.read(folder))


def seconds(*nanoseconds: float) -> list[float]:
    return [n / 1e9 for n in nanoseconds]


class Hybrid(Script):
    """A script with parallel regions in which each thread runs for its own time."""

    def region(
        self, process: int, wall: int, useful: list[int], function: int = 1, barrier: bool = False
    ) -> None:
        """All threads begin together; what is left of the wall time is not useful."""
        begin = self.clock[process]
        self.writer.event(process, 0, begin, [(PARALLEL, 3)])
        for thread, length in enumerate(useful):
            if length < 0:  # not in the team
                continue
            self.writer.event(process, thread, begin, [(FUNCTION, function)])
            self.writer.state(process, thread, begin, begin + length, 1)
            end = begin + length
            if barrier and end < begin + wall:
                self.writer.event(process, thread, end, [(BARRIER, 1)])
                self.writer.event(process, thread, begin + wall, [(BARRIER, 0)])
                self.writer.state(process, thread, end, begin + wall, 5)
                end = begin + wall
            self.writer.event(process, thread, end, [(FUNCTION, 0)])
            if end < begin + wall:
                self.writer.state(process, thread, end, begin + wall, 7)
        self.writer.event(process, 0, begin + wall, [(PARALLEL, 0)])
        self.clock[process] += wall


def test_a_pure_mpi_run(tmp_path: Path) -> None:
    script = Script(2)
    for p in range(2):
        script.compute(p, 100 * (p + 1))
        script.collective(p, "Barrier", length=50)
        script.compute(p, 30, state=12)
    run = measured(script, tmp_path).observables
    assert run.runtime == pytest.approx(280e-9)
    assert run.useful == pytest.approx(seconds(100, 200))
    assert run.in_mpi == pytest.approx(seconds(50, 50))
    assert run.serial_mpi == pytest.approx(seconds(50, 50))
    assert run.not_in_mpi == pytest.approx(seconds(130, 230))
    assert run.ideal_runtime == pytest.approx(230e-9)
    assert (run.has_mpi, run.has_openmp) == (True, False)
    assert run.regions == ()


def test_one_process_with_two_regions(tmp_path: Path) -> None:
    script = Hybrid(1, threads=3)
    script.region(0, 12, [9, 9, 6])
    script.compute(0, 4)
    run = measured(script, tmp_path).observables
    assert run.runtime == pytest.approx(16e-9)
    assert run.in_openmp == pytest.approx(seconds(12))
    assert run.serial_useful == pytest.approx(seconds(4))
    assert run.omp_useful == pytest.approx(seconds(9, 9, 6))
    assert run.useful == pytest.approx(seconds(13, 9, 6))
    # The golden value of the additive guide, from a trace.
    values = load_families()["hybrid-additive"].evaluate(run.aggregates(), run.absent).values
    assert values["openmp_region_efficiency"] == pytest.approx(0.75)
    assert values["serial_region_efficiency"] == pytest.approx(5 / 6)
    assert values["thread_efficiency"] == pytest.approx(7 / 12)


def test_losses_inside_regions_by_kind(tmp_path: Path) -> None:
    script = Hybrid(1, threads=2)
    script.region(0, 20, [10, 16])
    script.region(0, 30, [30, 22], barrier=True)
    run = measured(script, tmp_path).observables
    assert run.openmp_imbalance == pytest.approx((3 + 4) * 1e-9)
    assert run.openmp_synchronisation == pytest.approx(8e-9 / 2)
    assert run.openmp_scheduling == pytest.approx((10 + 4) * 1e-9 / 2)
    assert run.openmp_mpi == 0
    assert run.idle_imbalance == pytest.approx((10 - 4 + 8) * 1e-9)
    assert run.idle_scheduling == pytest.approx(2 * 4e-9)
    assert run.idle_serial == pytest.approx(0, abs=1e-15)


def test_waits_for_locks_that_are_summed_up_are_not_useful(tmp_path: Path) -> None:
    """They lie in the running state, and nothing else says them."""
    script = Hybrid(1, threads=2)
    script.compute(0, 10)
    script.region(0, 20, [10, 16])
    script.writer.event(0, 0, 20, [(SUM, 40), (SUM + 1, 3), (SUM + 2, 4)])
    script.writer.event(0, 1, 26, [(SUM, 9), (SUM + 1, 1), (SUM + 2, 6), (SUM + 12, 1)])
    script.region(0, 20, [20, 20])
    run = measured(script, tmp_path).observables
    assert run.useful == pytest.approx(seconds(10 + 6 + 20, 9 + 20))
    assert run.omp_useful == pytest.approx(seconds(6 + 20, 9 + 20))
    assert run.serial_useful == pytest.approx(seconds(10))
    assert run.openmp_synchronisation == pytest.approx((4 + 7) * 1e-9 / 2)
    assert run.openmp_scheduling == pytest.approx((10 + 4) * 1e-9 / 2)
    assert run.openmp_imbalance == pytest.approx(1.5e-9)
    assert sum(region.locks for region in run.regions) == pytest.approx(11e-9)
    assert sum(region.cost for region in run.regions) == pytest.approx((11 + 10 + 4) * 1e-9)


def test_locks_with_events_of_their_own_count_once(tmp_path: Path) -> None:
    script = Hybrid(1, threads=1)
    script.region(0, 50, [10])
    writer = script.writer
    writer.event(0, 0, 20, [(60000008, 3)])
    writer.state(0, 0, 20, 35, 5)
    writer.event(0, 0, 35, [(60000008, 6)])  # held, while it runs
    writer.state(0, 0, 35, 45, 1)
    writer.event(0, 0, 45, [(60000008, 0)])
    run = measured(script, tmp_path).observables
    assert run.openmp_synchronisation == pytest.approx(15e-9)
    (region,) = run.regions
    assert region.locks == pytest.approx(15e-9)


def test_a_sum_of_waits_is_no_longer_than_its_thread_ran(tmp_path: Path) -> None:
    """In a window that begins between two sums, the second tells of waits in front of it, too."""
    script = Hybrid(1, threads=1)
    script.region(0, 100, [100])
    script.writer.event(0, 0, 90, [(SUM + 2, 70)])
    script.end()
    run = analyse(script.read(tmp_path).window(60, 100)).observables
    assert run.useful == pytest.approx(seconds(10))
    assert run.serial_useful == pytest.approx(seconds(0))


def test_threads_outside_the_team_are_a_serial_loss_for_talp(tmp_path: Path) -> None:
    script = Hybrid(1, threads=3)
    script.region(0, 10, [8, 6, -1])
    run = measured(script, tmp_path).observables
    assert run.idle_scheduling == pytest.approx(2 * 2e-9)
    assert run.idle_imbalance == pytest.approx(2e-9)
    assert run.idle_serial == pytest.approx(10e-9)
    # The additive family counts all threads of the process.
    assert run.openmp_scheduling == pytest.approx((2 + 4 + 10) * 1e-9 / 3)


def test_mpi_inside_a_region(tmp_path: Path) -> None:
    script = Script(1, threads=2)
    script.writer.event(0, 0, 0, [(PARALLEL, 3), (FUNCTION, 1)])
    script.writer.event(0, 1, 0, [(FUNCTION, 1)])
    script.writer.state(0, 1, 0, 50, 1)
    script.compute(0, 20)
    script.collective(0, "Barrier", length=30)
    for thread in range(2):
        script.writer.event(0, thread, 50, [(FUNCTION, 0)])
    script.writer.event(0, 0, 50, [(PARALLEL, 0)])
    run = measured(script, tmp_path).observables
    assert run.in_mpi == pytest.approx(seconds(30, 0))
    assert run.serial_mpi == pytest.approx([0])
    assert run.openmp_mpi == pytest.approx(15e-9)
    assert run.openmp_scheduling == pytest.approx(0)


def test_mpi_inside_regions_may_take_serialisation_above_1_but_not_beyond_its_time(
    tmp_path: Path,
) -> None:
    """Regions count as outside MPI, whereas the ideal network shortens the calls inside."""
    metrics = {
        "hybrid-additive": "process_serialisation_efficiency",
        "hybrid-multiplicative": "mpi_serialisation_efficiency",
    }
    for inside in (0, 1, 40, 400):
        script = Hybrid(2, threads=2)
        for p in range(2):
            begin = script.clock[p]
            script.region(p, 100 + inside, [50, 90])
            script.clock[p] = begin + 60
            script.collective(p, "Barrier", length=inside)
            script.clock[p] = begin + 100 + inside
            script.compute(p, 30)
        run = measured(script, tmp_path).observables
        for name, metric in metrics.items():
            found = load_families()[name].evaluate(run.aggregates(), run.absent)
            assert (found.values[metric] > 1) == (inside > 0)
            assert any("Masters call MPI inside" in note for note in found.notes) == (inside > 0)
            assert not any("impossible" in note for note in found.notes)
            wrong = run.aggregates() | {"openmp_mpi": 0.0}
            notes = load_families()[name].evaluate(wrong, run.absent).notes
            assert any("impossible" in note for note in notes) == (inside > 0)


def test_regions_are_named_by_function_and_line_and_ordered_by_cost(tmp_path: Path) -> None:
    labels = Labels(
        event_types={FUNCTION: "function", FUNCTION + 100: "line"},
        event_values={
            FUNCTION: {0: "End", 1: "solve", 2: "update"},
            FUNCTION + 100: {0: "End", 1: "solve.f:0 [solve.f:0]", 2: "update.c:17 [update.c]"},
        },
    )
    writer = TraceWriter([2], labels=labels)
    for begin, function, useful in ((0, 1, (10, 8)), (10, 2, (10, 1)), (20, 1, (10, 9))):
        writer.event(0, 0, begin, [(PARALLEL, 3)])
        for thread, length in enumerate(useful):
            writer.event(0, thread, begin, [(FUNCTION, function), (FUNCTION + 100, function)])
            writer.event(0, thread, begin + length, [(FUNCTION, 0), (FUNCTION + 100, 0)])
            writer.state(0, thread, begin, begin + length, 1)
        writer.event(0, 0, begin + 10, [(PARALLEL, 0)])
    writer.write(tmp_path / "x.prv")

    first, second = analyse(read(tmp_path / "x.prv")).observables.regions
    assert (first.name, first.count, first.cost) == ("update (update.c:17)", 1, 9e-9)
    assert (second.name, second.count) == ("solve", 2)
    assert second.wall == pytest.approx(20e-9)
    assert second.parallel_efficiency == pytest.approx(37 / 40)
    assert second.load_balance == pytest.approx(18.5 / 20)


def test_short_event_numbers_of_newer_tracers(tmp_path: Path) -> None:
    script = Script(1, threads=2)
    script.writer.event(0, 0, 0, [(60002, 1), (60012, 9)])
    script.writer.event(0, 1, 0, [(60012, 9)])
    script.writer.state(0, 1, 0, 40, 1)
    script.compute(0, 40)
    for thread in range(2):
        script.writer.event(0, thread, 40, [(60012, 0)])
    script.writer.event(0, 0, 40, [(60002, 0)])
    run = measured(script, tmp_path).observables
    assert run.in_openmp == pytest.approx(seconds(40))
    assert run.omp_useful == pytest.approx(seconds(40, 40))
    assert [region.name for region in run.regions] == ["function 9"]


def test_counters_count_in_the_running_state_that_they_end(tmp_path: Path) -> None:
    script = Script(1)
    for time, value in ((0, 1), (60, 1000), (60, 5), (100, 20), (100, 7), (110, 300), (160, 40)):
        script.writer.event(0, 0, time, [(INSTRUCTIONS, value), (CYCLES, 2 * value)])
    script.compute(0, 100)
    script.compute(0, 10, state=12)
    script.compute(0, 50)
    run = measured(script, tmp_path).observables
    # At 0 nothing has run yet; second readings of one time are of no time; 110 ends the I/O.
    assert run.instructions.tolist() == [1000 + 20 + 40]
    assert run.cycles.tolist() == [2 * 1060]


def test_a_counter_below_zero_is_absent_with_its_reason(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.state(0, 0, 0, 1000, 1)
    writer.event(0, 0, 500, [(42000050, 2**64 - 5), (42000059, 70)])
    writer.write(tmp_path / "x.prv")
    run = analyse(read(tmp_path / "x.prv")).observables
    assert run.instructions is None
    assert run.absent["instructions"] == (
        "the hardware counter of instructions is negative in 1 reading"
    )
    assert run.cycles is not None
    assert run.cycles.tolist() == [70]


def test_counters_by_other_numbers_are_found_by_their_label(tmp_path: Path) -> None:
    labels = Labels(event_types={42009999: "PAPI_TOT_INS [Instr completed]"}, event_values={})
    writer = TraceWriter([1], labels=labels)
    writer.state(0, 0, 0, 100, 1)
    writer.event(0, 0, 100, [(42009999, 77)])
    writer.write(tmp_path / "x.prv")

    run = analyse(read(tmp_path / "x.prv")).observables
    assert run.instructions.tolist() == [77]
    assert run.absent["cycles"] == "no hardware counter of cycles"


def test_time_with_tracing_disabled_does_not_count(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 100)
    script.compute(0, 1000, state=14)
    script.compute(0, 50)
    run = measured(script, tmp_path).observables
    assert run.runtime == pytest.approx(150e-9)


def test_threads_of_different_number(tmp_path: Path) -> None:
    writer = TraceWriter([1, 3], nodes=[4, 4], node_of_process=[0, 1])
    for process, threads in enumerate((1, 3)):
        for thread in range(threads):
            writer.state(process, thread, 0, 10 + thread, 1)
    writer.write(tmp_path / "x.prv")

    run = analyse(read(tmp_path / "x.prv")).observables
    assert run.threads.tolist() == [1, 3]
    assert run.node.tolist() == [0, 1]
    assert run.useful == pytest.approx(seconds(10, 10, 11, 12))
    assert run.runtime == pytest.approx(12e-9)


def test_a_run_that_cannot_be_replayed_keeps_its_other_quantities(tmp_path: Path) -> None:
    script = Script(2)
    for p in range(2):
        script.compute(p, 100)
    script.collective(0, "Allreduce")
    run = measured(script, tmp_path).observables
    assert run.ideal_runtime is None
    assert "1 of 2 ranks wait forever" in run.absent["ideal_runtime"]
    assert run.not_in_mpi == pytest.approx(seconds(100, 100))
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    assert "wait forever" in evaluation.absent["transfer_efficiency"]
    assert evaluation.values["load_balance"] == 1


def test_mpi_calls_of_other_threads_leave_the_replay_absent(tmp_path: Path) -> None:
    script = Script(1, threads=2)
    script.compute(0, 100)
    script.call(0, "Send", thread=1)
    run = measured(script, tmp_path).observables
    assert run.not_in_mpi is None
    for name in ("ideal_runtime", "not_in_mpi"):
        assert "not only masters call MPI" in run.absent[name]


def test_what_the_ideal_runtime_does_not_contain_comes_first(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 90)
    script.call(0, "Put")
    run = measured(script, tmp_path)
    assert run.caveats[0] == (
        "not modelled, assumed to take no time: 10 % of the time in 1 MPI_Put"
    )
    (site,) = run.call_sites
    assert (site.call, site.waiting) == ("MPI_Put", None)


def test_probes_wait_for_what_is_received_behind_them(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 500)
    send = script.call(0, "Send", 10)
    script.compute(1, 100)
    script.call(1, "Probe", 390)
    script.compute(1, 5)
    receive = script.call(1, "Recv", 15)
    script.message(send, receive, receive)
    run = measured(script, tmp_path)
    waits = {site.call: site.waiting for site in run.call_sites}
    assert waits["MPI_Probe"] == pytest.approx(395e-9)
    assert waits["MPI_Recv"] is None


def test_the_network_that_counts_as_ideal_can_be_chosen(tmp_path: Path) -> None:
    script = Script(2)
    for p in range(2):
        script.compute(p, 100)
        script.collective(p, "Barrier")
    script.end()
    slow = PRESETS["ideal"].with_(latency=1e-6)
    trace = script.read(tmp_path)
    assert analyse(trace, slow).observables.ideal_runtime == pytest.approx(2.1e-6)


def test_a_trace_without_states_is_refused(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.event(0, 0, 5, [(50000002, 8)])
    writer.event(0, 0, 9, [(50000002, 0)])
    writer.write(tmp_path / "x.prv")

    with pytest.raises(TraceError, match="no state records") as caught:
        analyse(read(tmp_path / "x.prv"))
    assert "trace with states" in str(caught.value.hint)


def test_the_runtime_alone(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 100)
    script.compute(1, 130)
    assert runtime(script.read(tmp_path)) == pytest.approx(130e-9)


def test_a_window_measures_what_lies_inside(tmp_path: Path) -> None:
    script = Hybrid(1, threads=2)
    script.compute(0, 100)
    script.region(0, 40, [40, 30])
    script.compute(0, 60)
    script.end()
    run = analyse(script.read(tmp_path).window(50, 120)).observables
    assert run.runtime == pytest.approx(70e-9)
    assert run.serial_useful == pytest.approx(seconds(50))
    assert run.in_openmp == pytest.approx(seconds(20))
    assert run.omp_useful == pytest.approx(seconds(20, 20))
    assert np.isclose(run.idle_serial, 50e-9)


def test_states_that_do_not_cover_the_regions_are_said(tmp_path: Path) -> None:
    writer = TraceWriter([2])
    writer.event(0, 0, 0, [(PARALLEL, 3), (FUNCTION, 1)])
    writer.event(0, 1, 0, [(FUNCTION, 1)])
    writer.state(0, 0, 0, 100, 1)
    writer.state(0, 0, 900, 1000, 7)
    writer.state(0, 1, 0, 50, 1)
    for thread in range(2):
        writer.event(0, thread, 1000, [(FUNCTION, 0)] + [(PARALLEL, 0)] * (thread == 0))
    writer.write(tmp_path / "x.prv")
    run = analyse(read(tmp_path / "x.prv"))
    assert run.caveats[0].startswith("the states of rank 0 leave 800 ns uncovered")
    assert run.observables.idle_serial is None
    assert run.observables.absent["idle_serial"] == (
        "useful, MPI and region times exceed the time covered by states"
    )
    evaluation = load_families()["talp"].evaluate(
        run.observables.aggregates(), run.observables.absent
    )
    assert "covered by states" in evaluation.absent["openmp_parallel_efficiency"]


def test_states_that_overlap_are_said(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.state(0, 0, 0, 100, 1)
    writer.state(0, 0, 50, 150, 1)
    writer.write(tmp_path / "x.prv")
    run = analyse(read(tmp_path / "x.prv"))
    assert run.observables.useful == pytest.approx(seconds(150))
    assert run.caveats[0] == "the states of rank 0 overlap by 50 ns, which count twice"


def test_a_state_inside_another_overlaps_by_its_length(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.state(0, 0, 0, 100, 1)
    writer.state(0, 0, 20, 50, 7)
    writer.write(tmp_path / "x.prv")
    said = analyse(read(tmp_path / "x.prv")).caveats[0]
    assert said == "the states of rank 0 overlap by 30 ns, which count twice"


def test_calls_that_go_on_behind_the_last_state_are_said(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1])
    for rank in (0, 1):
        writer.state(rank, 0, 0, 100, 1)
        writer.event(rank, 0, 100, [(50000002, 8)])
    writer.event(0, 0, 110, [(50000002, 0)])
    writer.event(1, 0, 1000, [(50000002, 0)])
    writer.write(tmp_path / "x.prv")
    said = analyse(read(tmp_path / "x.prv")).caveats[0]
    assert said.startswith("the states of rank 1 leave 800 ns uncovered")


def test_running_states_inside_calls_are_said(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.event(0, 0, 40, [(50000002, 8)])
    writer.event(0, 0, 90, [(50000002, 0)])
    writer.state(0, 0, 0, 100, 1)
    writer.write(tmp_path / "x.prv")
    said = analyse(read(tmp_path / "x.prv")).caveats
    assert said[0].startswith("threads are running in MPI calls by their states, up to 50 ns each")


def test_calls_without_a_recorded_end_are_said(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.event(0, 0, 40, [(50000002, 8)])
    writer.state(0, 0, 0, 100, 1)
    writer.write(tmp_path / "x.prv")
    said = analyse(read(tmp_path / "x.prv")).caveats
    assert said[0].startswith("MPI calls without an exit event")
    assert said[0].endswith("1 time: times in MPI are uncertain")


def test_which_of_several_applications_is_analysed_is_said(tmp_path: Path) -> None:
    header = "#Paraver (x):10_ns:1(2):2:1(1:1),0:1(1:1),0\n"
    (tmp_path / "x.prv").write_text(header + "1:1:1:1:1:0:9:1\n1:2:2:1:1:0:7:1\n")
    for number in (1, 2):
        said = analyse(read(tmp_path / "x.prv", number)).caveats
        assert f"application {number} of 2 in the trace is analysed (--application)" in said


def test_workers_outside_their_masters_regions_are_said(tmp_path: Path) -> None:
    writer = TraceWriter([2])
    writer.state(0, 0, 0, 100, 1)
    writer.event(0, 0, 0, [(PARALLEL, 3), (FUNCTION, 1)])
    writer.event(0, 0, 40, [(FUNCTION, 0), (PARALLEL, 0)])
    writer.event(0, 1, 0, [(FUNCTION, 1)])
    writer.state(0, 1, 0, 90, 1)
    writer.event(0, 1, 90, [(FUNCTION, 0)])
    writer.write(tmp_path / "x.prv")
    (note,) = analyse(read(tmp_path / "x.prv")).notes
    assert note == (
        "parallel regions lose 0 s one by one, -50 ns by their efficiency: "
        "worker threads run outlined functions for 50 ns outside their masters' parallel "
        "regions, so the efficiency may exceed 1"
    )


def two_threads(folder: Path, functions: int, workers: int = 1) -> MeasuredRun:
    """Threads that run for 100 ns, 60 of them in a region, of whose functions some are lost."""
    writer = TraceWriter([1 + workers])
    writer.event(0, 0, 20, [(PARALLEL, 3)])
    writer.event(0, 0, 80, [(PARALLEL, 0)])
    for thread in range(1 + workers):
        writer.state(0, thread, 0, 100, 1)
        if thread < functions:
            writer.event(0, thread, 20, [(FUNCTION, 1)])
            writer.event(0, thread, 80, [(FUNCTION, 0)])
    writer.write(folder / "x.prv")
    return analyse(read(folder / "x.prv"))


def test_a_worker_without_outlined_functions_is_useful_outside_of_regions(tmp_path: Path) -> None:
    run = two_threads(tmp_path, functions=1)
    observed = run.observables
    assert observed.useful == pytest.approx(seconds(100, 100))
    assert observed.omp_useful == pytest.approx(seconds(60, 0))
    assert observed.idle_serial == 0
    families = load_families()
    for name in ("hybrid-additive", "talp"):
        evaluation = families[name].evaluate(observed.aggregates(), observed.absent)
        assert evaluation.values["parallel_efficiency"] == pytest.approx(1)
        assert not [note for note in evaluation.notes if "contradict" in note]
    assert run.caveats[1:] == (
        "rank 0: thread 1 runs but belongs to no parallel region (100 ns of useful time, counted "
        "outside regions)",
    )


@pytest.mark.parametrize("functions", [0, 1, 2])
def test_costs_of_regions_add_up_to_the_loss_of_their_efficiency(
    tmp_path: Path, functions: int
) -> None:
    run = two_threads(tmp_path, functions).observables
    values = load_families()["hybrid-additive"].evaluate(run.aggregates(), run.absent).values
    costs = sum(region.cost for region in run.regions)
    loss = 1 - values["openmp_region_efficiency"]
    assert costs == pytest.approx(loss * run.threads.sum() * run.runtime)
    assert costs == pytest.approx((0 if functions == 2 else 60) * 1e-9)


def test_a_thread_that_runs_beside_its_regions_is_counted(tmp_path: Path) -> None:
    run = two_threads(tmp_path, functions=2)
    assert run.observables.omp_useful == pytest.approx(seconds(60, 60))
    assert run.caveats[1:] == (
        "rank 0: thread 1 also runs outside its parallel regions (40 ns of useful time, "
        "counted outside regions)",
    )


def test_counters_that_cannot_be_added_up_are_absent(tmp_path: Path) -> None:
    script = Script(1)
    for time in (50, 100):
        script.writer.event(0, 0, time, [(INSTRUCTIONS, 2**63 - 1), (CYCLES, 7)])
    script.compute(0, 100)
    run = measured(script, tmp_path).observables
    assert run.instructions is None
    assert run.absent["instructions"] == ("the hardware counter of instructions overflows 64 bits")
    assert run.cycles.tolist() == [14]


def why_longer(script: Script, tmp_path: Path) -> str:
    """The note on an ideal runtime above the measured one."""
    run = measured(script, tmp_path)
    assert run.observables.ideal_runtime is not None
    assert run.observables.ideal_runtime > run.observables.runtime
    (note,) = (note for note in run.notes if note.startswith("the ideal runtime exceeds "))
    return note


def test_a_root_that_left_early_is_named(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 100)
    script.collective(0, "Bcast", root=True)
    script.compute(0, 1000)
    script.compute(1, 700)
    script.collective(1, "Bcast")
    script.end()
    assert why_longer(script, tmp_path) == (
        "the ideal runtime exceeds the measured one by 590 ns: roots left collectives early "
        "(--collectives rooted)"
    )


def test_a_send_that_did_not_wait_is_named(tmp_path: Path) -> None:
    script = Script(2)
    send = script.call(0, "Send")
    script.compute(0, 1000)
    script.compute(1, 700)
    receive = script.call(1, "Recv")
    script.message(send, receive, receive, 10**6)
    script.end()
    assert why_longer(script, tmp_path).endswith(
        "blocking sends at or above the eager threshold did not wait for their receives"
    )


def test_what_explains_nothing_is_said(tmp_path: Path) -> None:
    script = Script(2)
    script.collective(0, "Barrier", length=10)
    script.compute(0, 1000)
    script.compute(1, 700)
    script.collective(1, "Barrier", length=10)
    script.end()
    assert "neither early roots of collectives nor blocking sends" in why_longer(script, tmp_path)


@pytest.mark.parametrize("gap", [10**12, 2**53 + 1])
def test_time_before_all_states_is_said(gap: int, tmp_path: Path) -> None:
    writer = TraceWriter([1, 1])
    for rank in range(2):
        writer.event(rank, 0, 0, [(50000003, 31)])
        writer.event(rank, 0, 0, [(50000003, 0)])
        writer.state(rank, 0, gap, gap + 500 + 100 * rank, 1)
        writer.event(rank, 0, gap + 500 + 100 * rank, [(50000002, 8)])
        writer.event(rank, 0, gap + 1000, [(50000002, 0)])
    writer.write(tmp_path / "x.prv")
    run = analyse(read(tmp_path / "x.prv"))
    assert any("no state is recorded in the first" in said for said in run.caveats)
    for family in load_families().values():
        family.evaluate(run.observables.aggregates(), run.observables.absent)


def test_a_region_has_its_own_name_where_a_nested_one_ran_on_the_master_first(
    tmp_path: Path,
) -> None:
    writer = TraceWriter([2])
    for begin in (0, 1000):
        # The worker begins its part at once, and a nested region, of which a thread shares the
        # row of the master. That one comes later, the first time not before the nested one.
        nested, master = (100, 300) if begin == 0 else (500, 50)
        writer.event(0, 0, begin, [(PARALLEL, 3)])
        writer.event(0, 1, begin + 10, [(FUNCTION, 1)])
        for time, number in sorted([(nested, 2), (master, 1)]):
            writer.event(0, 0, begin + time, [(FUNCTION, number)])
            writer.event(0, 0, begin + time + 90, [(FUNCTION, 0)])
        writer.event(0, 1, begin + 900, [(FUNCTION, 0)])
        writer.event(0, 0, begin + 990, [(PARALLEL, 0)])
    for thread in range(2):
        writer.state(0, thread, 0, 2000, 1)
    writer.write(tmp_path / "x.prv")
    run = analyse(read(tmp_path / "x.prv"))
    assert run.observables.regions is not None
    assert [region.count for region in run.observables.regions] == [2]
