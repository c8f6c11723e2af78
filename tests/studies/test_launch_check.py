"""What is wrong with launches on larger nodes than that of the tests: planted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.studies import launch_check
from popmodel.studies.launch_check import (
    LaunchCheck,
    bound_in_words,
    check_launch,
    most_pairs,
    nodes_of,
)
from popmodel.tracer.commands import TracedCommand
from popmodel.tracer.meta import Cpu, Load, Meta
from popmodel.tracer.summaries import SUMS, ProcessSums

CORES, SOCKETS = 16, 2
CPUS = {
    cpu: Cpu(cpu % CORES, cpu % CORES * SOCKETS // CORES, cpu % CORES * SOCKETS // CORES)
    for cpu in range(2 * CORES)
}
"""A node of 2 sockets of 8 cores of 2 hardware threads, as x86 numbers them."""
S = 10**9
SECONDS = 100
Masks = Sequence[Iterable[int]]


def command(*words: str) -> TracedCommand:
    given = ("mpirun", "-n", "4", *words, "/bin/true")
    return TracedCommand(given, "/bin/mpirun", 0, True, "Open MPI", Path("/bin/true"))


def process(rank: int, masks: Masks, *, node: int = 0, waited: float = 0.0, **known: Any) -> Any:
    """A process whose threads may use these CPUs and compute all the time."""
    rows = np.zeros(len(masks), SUMS)
    rows["end"] = SECONDS * S
    rows["useful"][:, 1] = SECONDS * S
    rows["in_regions"][0] = SECONDS * S
    rows["is_worker"][1:] = 1
    rows["regions"][0] = rows["parts"][:] = 10
    rows["waited"] = waited * S
    meta = Meta(Path("x"), f"n{node}", 1000 + rank, 0, 0, f"boot{node}", rank=rank, end=SECONDS * S)
    meta.cpus = {thread: frozenset(mask) for thread, mask in enumerate(masks)}
    meta.variables = {"OMP_NUM_THREADS": str(len(masks))}
    meta.topology = CPUS
    meta.openmp = "gomp"
    for name, value in known.items():
        setattr(meta, name, value)
    return ProcessSums(meta, rows, tuple(range(len(masks))))


def both(core: int) -> set[int]:
    """The CPUs of a core."""
    return {core, core + CORES}


def launch(threads: int, masks: Callable[[int, int], Iterable[int]], nodes: int = 1) -> list[Any]:
    """As many processes of so many threads as there are cores; masks by process and thread."""
    ranks = CORES // threads
    return [
        process(rank + node * ranks, [masks(rank, thread) for thread in range(threads)], node=node)
        for node in range(nodes)
        for rank in range(ranks)
    ]


def own_core(threads: int) -> Callable[[int, int], Iterable[int]]:
    return lambda rank, thread: [rank * threads + thread]


def own_block(threads: int) -> Callable[[int, int], Iterable[int]]:
    return lambda rank, _: chain.from_iterable(
        both(rank * threads + core) for core in range(threads)
    )


def anywhere(_: int) -> Callable[[int, int], Iterable[int]]:
    return lambda _, __: CPUS


def ids(checked: LaunchCheck) -> list[str]:
    return [finding.id for finding in checked.findings]


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("threads", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("bound", [own_core, own_block, anywhere])
def test_nothing_is_wrong_with_right_launches(
    bound: Callable[[int], Callable[[int, int], Iterable[int]]], threads: int, nodes: int
) -> None:
    processes = launch(threads, bound(threads), nodes)
    checked = check_launch(processes, command())
    assert (ids(checked), checked.better) == ([], None)
    if bound is own_core:  # each runtime chooses what its process may use
        for one in processes:
            one.meta.variables = {}
        assert ids(check_launch(processes, command())) == []


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_threads_of_a_process_bound_to_one_core_share_it(threads: int) -> None:
    masks = launch(threads, lambda rank, _: [rank * threads])
    for one in masks:
        one.rows["used"] = one.rows["waited"] = SECONDS * S // 2
    checked = check_launch(masks, command())
    assert ids(checked) == ["share", "idle"]
    share, idle = checked.findings
    assert share.text.startswith(f"the {threads} threads of each of ranks 0-{len(masks) - 1} share")
    assert share.cost == pytest.approx(min(0.5, (threads - 1) / threads))
    assert idle.cost == pytest.approx((threads - 1) / threads)
    assert idle.core_hours == pytest.approx(SECONDS * (CORES - CORES // threads) / 3600)
    assert str(checked.better) == (
        f"OMP_NUM_THREADS={threads} OMP_PLACES=cores OMP_PROC_BIND=close "
        f"mpirun --map-by slot:PE={threads} --bind-to core -n 4 /bin/true"
    )


def test_ranks_bound_to_the_same_cores_overlap() -> None:
    checked = check_launch(launch(4, lambda rank, thread: [rank // 2 * 8 + thread]), command())
    assert ids(checked) == ["overlap", "idle"]
    assert checked.findings[0].text == "ranks 0-3 are bound to the same cores (CPUs 0-3,8-11)"
    assert checked.findings[0].cost == pytest.approx(0.5)


def test_cores_that_nobody_uses_are_idle() -> None:
    checked = check_launch(launch(4, own_core(4))[:3], command())
    assert ids(checked) == ["idle"]
    assert checked.findings[0].text == "4 of 16 cores are idle"


@pytest.mark.parametrize("threads", [2, 4])
def test_more_threads_than_hardware_threads_are_oversubscribed(threads: int) -> None:
    masks = [process(rank, [CPUS] * threads, waited=90) for rank in range(3 * CORES // threads)]
    checked = check_launch(masks, command())
    assert ids(checked) == ["oversubscribed"]
    assert checked.findings[0].cost == pytest.approx(2 / 3)


def test_hardware_threads_that_nobody_asked_for_are_told() -> None:
    paired = launch(4, lambda rank, thread: [rank * 4 + thread // 2 + CORES * (thread % 2)])
    assert ids(check_launch(paired, command())) == ["hyperthreads", "idle"]
    full = [process(rank, [CPUS] * 8) for rank in range(4)]
    assert ids(check_launch(full, command())) == ["hyperthreads"]
    assert ids(check_launch(full, command("--bind-to", "hwthread"))) == []


def test_threads_that_nobody_has_numbered_are_told() -> None:
    processes = [process(rank, [range(CORES)] * CORES, variables={}) for rank in range(2)]
    checked = check_launch(processes, command())
    assert ids(checked) == ["oversubscribed", "unset"]
    assert checked.findings[1].text == (
        "ranks 0-1: OMP_NUM_THREADS is not set: the runtime chose 16 threads"
    )
    for one in processes:
        one.rows["asked"] = CORES  # num_threads(16)
    assert ids(check_launch(processes, command())) == ["oversubscribed"]


def test_a_team_over_two_domains_whose_master_touched_its_memory_is_told() -> None:
    (one,) = launch(16, own_core(16))
    one.rows["places"]["cpu"][:, 0] = np.arange(16) + 1
    one.rows["minor"][0] = 100_000
    assert ids(check_launch([one], command())) == ["domains"]
    one.rows["minor"][:] = 100_000  # each its own
    assert ids(check_launch([one], command())) == []


def test_calls_of_mpi_that_are_not_allowed_are_told() -> None:
    processes = launch(8, own_core(8))
    processes[1].rows["families"]["calls"][3, 0] = 5
    for level, wrong in ((0, ["thread_level"]), (1, ["thread_level"]), (2, []), (3, [])):
        processes[1].meta.thread_level = level
        assert ids(check_launch(processes, command())) == wrong


def test_busy_threads_that_are_not_recorded_are_told() -> None:
    processes = launch(8, own_core(8))
    processes[0].meta.others = [(SECONDS * S // 100, "quiet"), (SECONDS * S // 2, "progress")]
    checked = check_launch(processes, command())
    assert ids(checked) == ["progress_threads"]
    assert "rank 0: 1 further thread ('progress') busy 50 % of the time" in checked.findings[0].text
    assert checked.findings[0].cost == pytest.approx(0.5 / CORES)
    for one in processes:
        one.rows["used"] = SECONDS * S  # nobody waited
    assert ids(check_launch(processes, command())) == []


def test_busy_threads_that_have_a_core_are_not_told() -> None:
    processes = [
        process(rank, [range(8 * rank, 8 * rank + 8)] * 7, others=[(SECONDS * S, "progress")])
        for rank in range(2)
    ]
    assert ids(check_launch(processes, command())) == []


def test_there_is_no_line_where_threads_are_not_recorded() -> None:
    """OpenMP that is linked statically: a line for the threads that are seen would be wrong."""
    one = process(0, [CPUS], others=[(SECONDS * S // 2, "app")] * 11)
    checked = check_launch([one], command())
    assert [finding.text for finding in checked.findings] == ["4 of 16 cores are idle"]
    assert checked.better is None
    assert checked.why_none is not None
    assert checked.why_none.startswith("threads that are not recorded")


@pytest.mark.parametrize(("share", "found"), [(0.02, []), (0.25, ["foreign_load"])])
def test_what_others_took_of_the_cpus_is_told(share: float, found: list[str]) -> None:
    processes = launch(8, own_block(8))
    for one in processes:
        cpus = sorted(one.meta.cpus[0])
        busy = int(100 * SECONDS * (0.5 + share))  # two hardware threads share the work of one
        one.meta.begin_load = Load(0, 0, 100, dict.fromkeys(cpus, (7, 0)))
        one.meta.end_load = Load(
            SECONDS * S, 8 * SECONDS * S, 100, dict.fromkeys(cpus, (7 + busy, 0))
        )
    checked = check_launch(processes, command())
    assert ids(checked) == found
    assert all("took 25 % of the CPUs" in finding.text for finding in checked.findings)
    assert checked.better is None


def test_a_node_that_does_not_tell_its_cores_is_one_of_the_cpus_that_are_used() -> None:
    processes = launch(4, own_core(4))
    for one in processes:
        one.meta.topology = {}
    (node,) = nodes_of(processes)
    assert node.cores == CORES
    assert ids(check_launch(processes, command())) == []


def test_slurm_says_how_many_cores_a_job_has() -> None:
    processes = launch(4, own_core(4))[:2]
    for one in processes:
        one.meta.variables["SLURM_CPUS_ON_NODE"] = "16"  # 8 cores
    assert ids(check_launch(processes, command())) == []


def test_on_other_nodes_the_cores_of_a_job_are_those_of_its_control_group() -> None:
    processes = launch(4, own_core(4))[:2]
    assert ids(check_launch(processes, command())) == ["idle"]
    for rank, one in enumerate(processes):
        one.meta.variables["cpuset"] = ("0-3,16-19", "4-7,20-23")[rank]  # of steps of the job
    assert ids(check_launch(processes, command())) == []


def test_slurm_may_count_cores_although_these_have_hardware_threads() -> None:
    processes = launch(4, own_core(4))
    for one in processes:
        one.meta.variables["SLURM_CPUS_ON_NODE"] = "16"
    assert ids(check_launch(processes, command())) == []


def test_more_threads_than_a_control_group_grants_are_oversubscribed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boot").write_text("boot0\n")
    monkeypatch.setattr(launch_check, "_BOOT", tmp_path / "boot")
    granted = SimpleNamespace(cpus=tuple(CPUS), cpu_limit=2.0)
    monkeypatch.setattr(launch_check.hardware, "here", lambda: granted)
    checked = check_launch([process(0, [CPUS] * 4)], command())
    assert [finding.text for finding in checked.findings] == [
        "4 threads on 2 cores: oversubscribed"
    ]
    assert ids(check_launch([process(0, [CPUS] * 2)], command())) == []


def test_threads_on_a_core_that_never_waited_cost_nothing() -> None:
    one = process(0, [[0], [0], *([core] for core in range(1, CORES - 1))])
    one.rows["used"] = S
    share, idle = check_launch([one], command()).findings
    assert (share.id, share.cost, idle.id) == ("share", 0.0, "idle")


def test_a_launcher_that_is_not_known_has_no_better_line() -> None:
    unknown = TracedCommand(("aprun", "app"), "/bin/aprun", 0, True, None, None)
    checked = check_launch(launch(2, lambda rank, _: [rank]), unknown)
    assert checked.better is None
    assert checked.why_none == "the options of this launcher that place ranks are not known"


def test_a_line_of_several_programs_has_no_better_line() -> None:
    several = command("/bin/true", ":", "-n", "2")
    checked = check_launch(launch(2, lambda *_: [0]), several)
    assert checked.better is None
    assert checked.why_none is not None
    assert checked.why_none.startswith("the line starts several programs")


def test_ranks_that_are_each_alone_are_told() -> None:
    """The launcher of one MPI starts programs of another: each is rank 0 of 1."""
    alone = [process(0, [[core]], size=1, library="MPICH Version: 5.0") for core in range(4)]
    checked = check_launch(alone, command())
    first = checked.findings[0]
    assert first.text == (
        "the 4 processes are separate runs, each rank 0 of 1, of the program (MPICH Version: 5.0)"
    )
    assert (first.cost, checked.better) == (0.75, None)
    assert checked.why_none == "use the launcher of the program's MPI"
    assert "launcher" not in ids(check_launch(alone[:1], command()))
    script = TracedCommand(("./run.sh",), "./run.sh", 0, False, None, None)
    assert "launcher" not in ids(check_launch(alone, script))


def test_a_start_of_mpi_that_did_not_return_is_told() -> None:
    stuck = [process(rank, [[rank]]) for rank in range(2)]
    for one in stuck:
        one.meta.rank = None
        one.rows["mpi"] = S
    assert check_launch(stuck, command()).findings[0].text == "MPI_Init did not return"
    stuck[0].meta.rank = 0
    assert "launcher" not in ids(check_launch(stuck, command()))


def test_there_is_no_line_where_several_threads_start_teams() -> None:
    one = process(0, [CPUS] * 64)
    assert check_launch([one], command()).better is not None
    one.rows["regions"][:16] = 3
    checked = check_launch([one], command())
    assert (ids(checked), checked.better) == (["oversubscribed"], None)
    assert checked.why_none is not None
    assert checked.why_none.startswith("several threads start teams")


@given(st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=6))
def test_threads_that_run_at_once_are_those_of_halls_theorem(choices: list[set[int]]) -> None:
    some = chain.from_iterable(combinations(choices, n) for n in range(len(choices) + 1))
    lacks = max(len(part) - len(set[int]().union(*part)) for part in some)
    assert most_pairs(choices) == len(choices) - lacks


def test_placements_are_a_line_each() -> None:
    alike = launch(4, own_core(4))
    assert bound_in_words([one.meta for one in alike]) == [
        ("n0 ranks 0-3", "4 threads each, bound to a CPU of its own: CPUs 0-15")
    ]
    together = launch(8, anywhere(8), nodes=3)
    assert bound_in_words([one.meta for one in together]) == [
        ("3 nodes (n0 ... n2) ranks 0-5", "8 threads each on CPUs 0-31")
    ]
    blocks = launch(8, own_block(8))
    assert bound_in_words([one.meta for one in blocks]) == [
        ("n0 ranks 0-1", "8 threads each on 16 CPUs of their own: CPUs 0-31")
    ]
    wrong = [process(0, [[3], [3]]), process(1, [[3], [5]])]
    for one in wrong:
        one.meta.rank = None
    assert bound_in_words([one.meta for one in wrong]) == [
        ("n0 1 process", "2 threads bound to CPU 3"),
        ("n0 1 process", "2 threads, bound to a CPU of its own: CPUs 3,5"),
    ]
