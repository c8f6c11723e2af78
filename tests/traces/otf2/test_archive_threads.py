"""Threads of OpenMP in records of an archive: regions, teams, tasks, barriers, locks."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")

from otf2.enums import Paradigm, RegionRole
from otf2_archives import ArchiveMaker
from traces.otf2.test_archive_reader import in_state, intervals

from popmodel.traces.codes import RUNNING, SYNCHRONISING
from popmodel.traces.regions import parallel_regions, synchronisation


def test_fork_join_and_barriers(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [2])
    parallel, loop = made.omp(RegionRole.PARALLEL), made.omp(RegionRole.LOOP)
    barrier = made.omp(RegionRole.IMPLICIT_BARRIER)
    team = made.comm([0])
    master, worker = made.thread(0), made.thread(0, 1)
    master.enter(0, made.user("main"))
    master.thread_fork(20, Paradigm.OPENMP, 2)
    for to, busy_until in ((master, 60), (worker, 50)):
        to.thread_team_begin(22, team)
        to.enter(23, parallel)
        to.enter(24, loop)
        to.leave(busy_until, loop)
        to.enter(busy_until, barrier)
        to.leave(70, barrier)
        to.leave(71, parallel)
        to.thread_team_end(72, team)
    master.thread_join(75, Paradigm.OPENMP)
    master.leave(100, made.user("main"))
    trace = made.read()
    found = parallel_regions(trace)
    assert intervals(found.on_master, 0) == [(20, 75)]
    assert intervals(found.in_function, 0) == intervals(found.in_function, 1) == [(22, 72)]
    assert found.names == ["!$omp parallel @a.c:7"]
    barriers, *_ = synchronisation(trace)
    assert intervals(barriers, 0) == [(60, 70)]
    assert intervals(barriers, 1) == [(50, 70)]
    assert in_state(trace, RUNNING) == [(0, 20), (22, 60), (70, 72), (75, 100)]
    assert in_state(trace, RUNNING, 1) == [(22, 50), (70, 72)]
    assert in_state(trace, SYNCHRONISING, 1) == [(50, 70)]


def test_parallel_regions_without_records_of_their_teams(tmp_path: Path) -> None:
    """As in archives of old versions, and of other tools."""
    made = ArchiveMaker(tmp_path, [2])
    parallel = made.omp(RegionRole.PARALLEL)
    made.thread(0).enter(0, made.user("main"))
    for thread, end in ((0, 50), (1, 45)):
        made.thread(0, thread).enter(10, parallel)
        made.thread(0, thread).leave(end, parallel)
    made.thread(0).leave(60, made.user("main"))
    trace = made.read()
    found = parallel_regions(trace)
    assert intervals(found.on_master, 0) == intervals(found.in_function, 0) == [(10, 50)]
    assert intervals(found.in_function, 1) == [(10, 45)]
    assert in_state(trace, RUNNING, 1) == [(10, 45)]


def test_a_nested_team_is_part_of_the_region_around(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [3])
    outer, inner = made.omp(RegionRole.PARALLEL), made.omp(RegionRole.PARALLEL, "inner")
    team = made.comm([0])
    for thread in (0, 1):
        to = made.thread(0, thread)
        if thread == 0:
            to.thread_fork(0, Paradigm.OPENMP, 2)
        to.thread_team_begin(1, team)
        to.enter(1, outer)
        if thread == 1:
            to.thread_fork(10, Paradigm.OPENMP, 2)
            to.thread_team_begin(11, team)
            to.enter(11, inner)
            to.leave(20, inner)
            to.thread_team_end(20, team)
            to.thread_join(21, Paradigm.OPENMP)
        to.leave(30, outer)
        to.thread_team_end(30, team)
    made.thread(0).thread_join(31, Paradigm.OPENMP)
    nested = made.thread(0, 2)
    nested.thread_team_begin(11, team)
    nested.enter(11, inner)
    nested.leave(20, inner)
    nested.thread_team_end(20, team)
    trace = made.read()
    found = parallel_regions(trace)
    assert intervals(found.on_master, 0) == [(0, 31)]
    assert intervals(found.in_function, 1) == [(1, 30)]
    assert in_state(trace, RUNNING, 1) == [(1, 10), (11, 20), (21, 30)]
    assert in_state(trace, RUNNING, 2) == [(11, 20)]


def test_tasks_run_inside_barriers_and_can_be_suspended(tmp_path: Path) -> None:
    """The second task begins while the first one waits for it."""
    made = ArchiveMaker(tmp_path, [1])
    task, wait = made.omp(RegionRole.TASK), made.omp(RegionRole.TASK_WAIT)
    barrier, team, to = made.omp(RegionRole.BARRIER), made.comm([0]), made.thread(0)
    to.enter(0, made.user("main"))
    to.enter(10, barrier)
    to.thread_task_switch(20, team, 0, 1)
    to.enter(20, task)
    to.enter(30, wait)
    to.thread_task_switch(40, team, 0, 2)
    to.enter(40, task)
    to.leave(50, task)
    to.thread_task_complete(50, team, 0, 2)
    to.thread_task_switch(50, team, 0, 1)
    to.leave(60, wait)
    to.leave(70, task)
    to.thread_task_complete(70, team, 0, 1)
    to.thread_task_switch(70, team, 0, 0)
    to.leave(80, barrier)
    to.leave(90, made.user("main"))
    trace = made.read()
    assert in_state(trace, RUNNING) == [(0, 10), (20, 30), (40, 50), (60, 70), (80, 90)]
    barriers, *_ = synchronisation(trace)
    assert intervals(barriers, 0) == [(10, 20), (70, 80)]
    assert trace.warnings == ()


def test_critical_sections_are_waited_for_and_held(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    outer, inner = made.omp(RegionRole.CRITICAL), made.omp(RegionRole.CRITICAL_SBLOCK)
    to = made.thread(0)
    to.enter(0, made.user("main"))
    to.enter(10, outer)
    to.enter(30, inner)
    to.leave(40, inner)
    to.leave(41, outer)
    to.leave(50, made.user("main"))
    trace = made.read()
    assert in_state(trace, RUNNING) == [(0, 10), (30, 40), (41, 50)]
    assert (10, 41) in [span for kind in synchronisation(trace) for span in intervals(kind, 0)]


def test_functions_of_tasks_are_called_where_the_task_is_run(tmp_path: Path) -> None:
    """A worker runs a task within the region of its master; its own function is suspended."""
    made = ArchiveMaker(tmp_path, [2])
    parallel, task = made.omp(RegionRole.PARALLEL), made.omp(RegionRole.TASK)
    team = made.comm([0])
    master, worker = made.thread(0), made.thread(0, 1)
    master.enter(0, made.user("main"))
    master.thread_fork(10, Paradigm.OPENMP, 2)
    for to in (master, worker):
        to.thread_team_begin(10, team)
        to.enter(10, parallel)
    worker.enter(12, made.user("wait"))
    worker.thread_task_switch(14, team, 0, 1)
    worker.enter(14, task)
    worker.enter(15, made.user("work"))
    worker.leave(25, made.user("work"))
    worker.leave(26, task)
    worker.thread_task_complete(26, team, 0, 1)
    worker.thread_task_switch(26, team, 1, 0)
    worker.leave(28, made.user("wait"))
    for to in (master, worker):
        to.leave(30, parallel)
        to.thread_team_end(30, team)
    master.thread_join(30, Paradigm.OPENMP)
    master.leave(40, made.user("main"))
    told = made.read().records.functions(np.array([0, 2]))
    assert told is not None
    rows = zip(told.location.tolist(), (told.names[f] for f in told.function.tolist()), strict=True)
    columns = (told.inclusive.tolist(), told.own.tolist())
    assert dict(zip(rows, zip(*columns, strict=True), strict=True)) == {
        (0, "main"): (40, 40),
        (1, "main"): (20, 2 + 2),
        (1, "wait"): (16, 2 + 1 + 1 + 2),
        (1, "work"): (10, 10),
    }


def test_regions_of_openmp_by_tau_are_known_by_their_names(tmp_path: Path) -> None:
    """TAU says of all that they are functions of OpenMP; workers have one for all their life."""
    made = ArchiveMaker(tmp_path, [2])
    region, barrier, task, worker = (
        made.region(name, paradigm=Paradigm.OPENMP)
        for name in (
            "OpenMP_Parallel_Region main [{/home/me/x.c} {7, 0}]",
            "OpenMP_Sync_Region_Barrier_Implicit ADDR <4005d0>",
            "OpenMP_Implicit_Task",
            "OpenMP_Thread_Type_ompt_thread_worker",
        )
    )
    master, other = made.thread(0), made.thread(0, 1)
    master.enter(0, made.user(".TAU application"))
    other.enter(0, worker)
    master.enter(100, region)
    for thread, arrives in ((master, 150), (other, 180)):
        thread.enter(110, task)
        thread.enter(arrives, barrier)
        thread.leave(190, barrier)
        thread.leave(190, task)
    master.leave(200, region)
    master.leave(300, made.user(".TAU application"))
    other.leave(300, worker)
    trace = made.read()
    assert in_state(trace, SYNCHRONISING, 1) == [(180, 190)]
    assert in_state(trace, RUNNING, 1) == [(110, 180)]
    found = parallel_regions(trace)
    assert (found.names, intervals(found.on_master, 0)) == (
        ["main (/home/me/x.c:7)"],
        [(100, 200)],
    )
    assert intervals(found.in_function, 1) == [(110, 190)]
    barriers, *_ = synchronisation(trace)
    assert intervals(barriers, 0) == [(150, 190)]
