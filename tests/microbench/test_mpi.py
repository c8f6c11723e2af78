"""The program that measures MPI: every job, who measures, refusals and failures."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from microbench.node_program import SOURCES, Finished, Line, compile_beside
from patience import measuring

Holds = Callable[[Callable[..., bool], Sequence[str]], None]


class Mpi(Protocol):
    """What the fixture of that name gives."""

    mpicc: Sequence[str]

    def start(self, ranks: int, *command: str | Path, **variables: str) -> Finished: ...


# Jobs end early: these tests look at what a line holds and at orders of magnitude.
QUICKLY = ("--budget", "0.02", "--least", "5", "--most", "20")
CPUS = len(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(CPUS < 2, reason="needs two processors")

OPERATIONS = (
    *("bcast", "reduce", "allreduce", "allgather", "gather", "scatter", "alltoall"),
    *("reduce_scatter", "scan"),
)
BEHIND_A_BARRIER = ("bcast", "reduce", "gather", "scatter", "scan")
ON_TWO_RANKS = (
    *(f"ping_pong bytes={size} tier=near" for size in (0, 8, 1 << 20)),
    "ping_pong bytes=8 tier=node",
    "ping_pong bytes=8 tier=network",
    "send_overhead bytes=8 tier=near",
    "send_overhead bytes=1048576 tier=near",
    "receive_overhead bytes=8 tier=near",
    "receive_overhead bytes=4194304 tier=near",
    "train bytes=8 count=1 tier=near",
    "train bytes=8 count=64 tier=near",
    "window bytes=8 tier=near pairs=1 direction=one",
    "window bytes=1048576 tier=near pairs=1 direction=one",
    "window bytes=1048576 tier=near pairs=1 direction=both",
    "window bytes=8 tier=near pairs=2 direction=one",
    "late_receiver bytes=8 tier=near delay=0.002",
    "late_receiver bytes=4194304 tier=near delay=0.002",
    "late_receiver bytes=8 tier=near delay=0.002 progress=1",
    "late_receiver bytes=4194304 tier=near delay=0.002 progress=1",
    "overlap bytes=65536 tier=near progress=0",
    "overlap bytes=65536 tier=near progress=1",
    "threaded bytes=8 threads=1 communicator=own tier=near",
    "threaded bytes=8 threads=1 communicator=shared tier=near",
    f"threaded bytes=8 threads={CPUS} communicator=own tier=near",
    "collective op=barrier ranks=2",
    "collective op=allreduce bytes=12 ranks=2",
    "collective op=bcast bytes=8 ranks=3",
    "collective op=alltoall bytes=134217728 ranks=2",
    *(f"collective op={op} bytes={size} ranks=2" for op in OPERATIONS for size in (8, 65536)),
    "reduce_local bytes=8000",
)


def make(folder: Path, mpi: Mpi) -> Path:
    """Compile through the Makefile; a warning is an error."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    done = subprocess.run(
        [
            *("make", "-C", str(SOURCES), "mpi", f"MPICC={shlex.join(mpi.mpicc)}"),
            *(f"BUILD={folder}", "CFLAGS=-O2 -Werror"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return folder / "popmodel-mpi"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    return make(tmp_path_factory.mktemp("mpi"), mpi)


def read(done: Finished) -> tuple[Line, list[Line], Line]:
    """Header, jobs and end of what a launch wrote to its standard output."""
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[0], lines[1:-1], lines[-1]


@pytest.fixture(scope="module")
def two_ranks(program: Path, mpi: Mpi) -> tuple[Line, list[Line], Line]:
    """Every job on two ranks."""
    done = mpi.start(2, program, *QUICKLY, "--thread-level", "multiple", "-n", "7", *ON_TWO_RANKS)
    return read(done)


@pytest.fixture(scope="module")
def found(two_ranks: tuple[Line, list[Line], Line]) -> Callable[[str], Line]:
    results = dict(zip(ON_TWO_RANKS, two_ranks[1], strict=True))
    return results.__getitem__


def shortest(line: Line) -> float:
    """Time of an operation in the least disturbed batch, seconds."""
    return float(min(line["seconds"]))


@pytest.fixture
def holds(found: Callable[[str], Line], program: Path, mpi: Mpi) -> Holds:
    """What physics demands of jobs; measured anew, longer, where others were in the way."""

    @measuring()
    def of(demanded: Callable[..., bool], jobs: Sequence[str]) -> None:
        lines = [found(job) for job in jobs]
        for budget in ("0.05", "0.1", "0.2", "0.4", "0.4"):
            if demanded(*lines):
                return
            again = mpi.start(2, program, *QUICKLY, "--budget", budget, *jobs)
            lines = read(again)[1]
        assert demanded(*lines), lines

    return of


def test_the_header_tells_mpi_and_where_the_ranks_are(
    two_ranks: tuple[Line, list[Line], Line],
) -> None:
    header, results, end = two_ranks
    assert header["schema"] == "popmodel/samples/1"
    assert (header["program"], header["launch"], header["ranks"]) == ("mpi", 7, 2)
    assert header["mpi"]["library"]
    assert "\n" not in header["mpi"]["library"]
    assert int(header["mpi"]["standard"].split(".")[0]) >= 3
    assert header["mpi"]["thread_level"] in {"single", "funneled", "serialized", "multiple"}
    assert [place["rank"] for place in header["ranks_at"]] == [0, 1]
    assert {place["host"] for place in header["ranks_at"]} == {header["host"]}
    assert all(place["cpus"] for place in header["ranks_at"])
    assert len(results) == len(ON_TWO_RANKS)
    assert (end["end"], end["left"]) == ("complete", 0)


def test_every_line_holds_what_it_should(two_ranks: tuple[Line, list[Line], Line]) -> None:
    header, results, _ = two_ranks
    for text, line in zip(ON_TWO_RANKS, results, strict=True):
        name, *parameters = text.split()
        assert line["job"] == name
        given = dict(word.split("=") for word in parameters)
        assert {key: str(value) for key, value in line["params"].items()} == given
        if "absent" in line:
            assert set(line) == {"job", "params", "absent"}
            continue
        assert line["inner"] >= 1
        assert 1 <= len(line["seconds"]) <= header["limits"]["most"]
        assert line["stopped"] in {"converged", "batches", "budget"}
        assert line["wall"] > 0
        assert line["involuntary"] >= 0
        assert line["steal"] is None or line["steal"] >= 0
        assert line["foreign"] is None or 0 <= line["foreign"] <= 1
        assert ("reference" in line) == (name == "overlap")
        assert ("moved" in line) == (name == "window")
        assert ("nodes" in line) == (name == "collective")
        # What the clock or a barrier takes is taken off of these, and may exceed what is left.
        if not name.endswith("_overhead") and given.get("op") not in BEHIND_A_BARRIER:
            assert min(line["seconds"]) > 0


def test_what_two_ranks_cannot_tell_is_absent_with_the_reason(
    found: Callable[[str], Line], two_ranks: tuple[Line, list[Line], Line]
) -> None:
    threads = f"threaded bytes=8 threads={CPUS} communicator=own tier=near"
    reasons = {
        "ping_pong bytes=8 tier=network": "no two ranks on different nodes",
        "window bytes=8 tier=near pairs=2 direction=one": (
            "2 pairs of ranks requested, the launch has 2 ranks"
        ),
        "receive_overhead bytes=4194304 tier=near": (
            "a message of 4194304 bytes uses rendezvous: "
            "it cannot arrive before its receive is posted"
        ),
        "collective op=bcast bytes=8 ranks=3": "3 ranks requested, the launch has 2",
        "collective op=alltoall bytes=134217728 ranks=2": (
            "its buffers need 512 MiB per rank, more than the limit of 256 MiB per job"
        ),
    }
    header = two_ranks[0]
    if header["mpi"]["thread_level"] == "multiple":
        reasons[threads] = f"2 ranks with {CPUS} threads each, but they may use {CPUS} CPUs"
    if header["ranks_at"][0]["cpus"] != header["ranks_at"][1]["cpus"]:
        reasons.pop(threads, None)
    for text, reason in reasons.items():
        assert found(text)["absent"] == reason


@two_cpus
def test_long_messages_take_longer_than_short_ones(holds: Holds) -> None:
    holds(
        lambda short, long: 1e-8 < shortest(short) < 1e-3 and shortest(long) > 2 * shortest(short),
        ["ping_pong bytes=8 tier=near", "ping_pong bytes=1048576 tier=near"],
    )


def test_windows_move_their_messages_in_each_direction(found: Callable[[str], Line]) -> None:
    small = found("window bytes=8 tier=near pairs=1 direction=one")
    one = found("window bytes=1048576 tier=near pairs=1 direction=one")
    both = found("window bytes=1048576 tier=near pairs=1 direction=both")
    assert small["moved"] == 64 * 8
    assert one["moved"] == 16 << 20
    assert both["moved"] == 2 * one["moved"]
    assert one["moved"] / shortest(one) < 1e12  # more than any memory


@two_cpus
def test_a_late_receiver_keeps_the_sender_of_a_long_message_waiting(holds: Holds) -> None:
    for progress in ("", " progress=1"):
        short = f"late_receiver bytes=8 tier=near delay=0.002{progress}"
        long = f"late_receiver bytes=4194304 tier=near delay=0.002{progress}"
        holds(lambda eager: eager["inner"] == 1 and shortest(eager) < 1e-3, [short])
        holds(lambda rendezvous: statistics.median(rendezvous["seconds"]) >= 0.002, [long])


@measuring()
def test_overlap_tells_the_whole_and_its_parts(found: Callable[[str], Line]) -> None:
    for progress in (0, 1):
        line = found(f"overlap bytes=65536 tier=near progress={progress}")
        assert line["compute"] > 0
        assert len(line["reference"]) == len(line["seconds"])
        assert min(line["reference"]) > 0
        assert max(line["seconds"]) > 0.5 * line["compute"]


def test_collectives_tell_their_nodes(found: Callable[[str], Line]) -> None:
    assert found("collective op=barrier ranks=2")["nodes"] == 1
    for operation in OPERATIONS:
        assert found(f"collective op={operation} bytes=8 ranks=2")["nodes"] == 1


def test_threads_need_the_thread_level(program: Path, mpi: Mpi) -> None:
    job = "threaded bytes=8 threads=1 communicator=own tier=near"
    header, results, _ = read(mpi.start(2, program, *QUICKLY, "--thread-level", "serialized", job))
    if header["mpi"]["thread_level"] == "multiple":
        pytest.skip("this MPI provides more than it is asked for")
    assert results[0]["absent"] == (
        "needs MPI_THREAD_MULTIPLE: start with --thread-level multiple and an MPI that provides it"
    )


@pytest.mark.long
def test_more_ranks_than_processors_end_and_pairs_measure_alone(program: Path, mpi: Mpi) -> None:
    ranks = max(CPUS + 2, 4)
    jobs = (
        "ping_pong bytes=8 tier=near",
        "window bytes=4096 tier=near pairs=2 direction=both",
        "collective op=barrier ranks=3",
        f"collective op=allreduce bytes=8 ranks={ranks}",
        "collective op=bcast bytes=8 ranks=1",
        "reduce_local bytes=800",
    )
    options = ("--budget", "0.01", "--least", "3", "--most", "6")
    _, results, end = read(mpi.start(ranks, program, *options, *jobs))
    assert end["left"] == 0
    assert [line["job"] for line in results] == [job.split()[0] for job in jobs]
    assert not any("absent" in line for line in results)
    assert results[1]["moved"] == 2 * 2 * 64 * 4096


@pytest.mark.long
@two_cpus
@measuring()
def test_ranks_that_do_not_measure_sleep(program: Path, mpi: Mpi) -> None:
    """One rank measures for 0.5 s: spinning, the other would use as much CPU time again."""

    def used(budget: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        options = ("--budget", budget, "--precision", "0", "--most", "1000000")
        read(mpi.start(2, program, *options, "reduce_local bytes=65536"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert used("0.5") - used("0.01") < 0.7


def test_ranks_on_two_nodes(program: Path, mpi: Mpi, tmp_path: Path) -> None:
    """A host name of its own makes a rank another node; the pair on one node is without rank 0."""
    rename = ["unshare", "--uts", "sh", "-c", 'hostname far && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*rename, "true"], check=False).returncode:
        pytest.skip("needs the right to give a process a host name of its own (unshare --uts)")
    jobs = tmp_path / "jobs"
    jobs.write_text(
        "# three ranks, two of them far\n"
        "ping_pong bytes=8 tier=network\n"
        "overlap bytes=8 tier=near progress=0  # ranks 1 and 2\n"
        "receive_overhead bytes=4194304 tier=near\n"
        "collective op=barrier ranks=3\n"
        "window bytes=8 tier=network pairs=2 direction=one\n",
        encoding="utf-8",
    )
    command = [str(program), *QUICKLY, "-j", str(jobs)]
    header, results, _ = read(mpi.start(1, *command, ":", "-n", "2", *rename, *command))
    network, near, absent, barrier, window = results
    assert [place["host"] for place in header["ranks_at"]] == [header["host"], "far", "far"]
    assert min(network["seconds"]) > 0
    assert len(near["reference"]) == len(near["seconds"]) > 0
    assert near["stopped"] in {"converged", "batches", "budget"}
    assert near["compute"] > 0
    assert "rendezvous" in absent["absent"]
    assert barrier["nodes"] == 2
    assert window["absent"] == "2 pairs of ranks requested, the launch has 3 ranks"


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ping_pong bytes=8"], "argument:1: ping_pong needs tier="),
        (
            ["ping_pong bytes=8 tier=far"],
            "argument:1: tier of ping_pong must be one of near, node, network, not 'far'",
        ),
        (
            ["collective op=bcast ranks=2"],
            "argument:1: collective: this operation needs bytes=",
        ),
        (
            ["collective op=reduce bytes=3 ranks=2"],
            "argument:1: collective: bytes= of a reduction must be a multiple of 4",
        ),
        (
            ["reduce_local bytes=12"],
            "argument:1: reduce_local: bytes= must be a multiple of 8",
        ),
        (
            ["--thread-level", "most"],
            "--thread-level must be single, funneled, serialized or multiple, not 'most'",
        ),
    ],
)
def test_what_is_refused_before_measuring(
    program: Path, mpi: Mpi, arguments: list[str], message: str
) -> None:
    done = mpi.start(1, program, *arguments)
    assert done.returncode == 2
    assert f"popmodel-mpi: {message}\n" in done.stderr
    assert done.stdout == ""


def test_all_ranks_refuse_together_and_one_speaks(program: Path, mpi: Mpi) -> None:
    done = mpi.start(2, program, "-j", "nowhere.jobs")
    assert done.returncode == 2
    assert done.stderr.count("cannot read jobs from nowhere.jobs: No such file") == 1


def test_a_full_disk_ends_all_ranks_with_one_message(program: Path, mpi: Mpi) -> None:
    done = mpi.start(2, program, *QUICKLY, "-o", "/dev/full", "ping_pong bytes=8 tier=near")
    assert done.returncode == 1
    assert done.stderr.count("cannot write samples to /dev/full: No space left on device") == 1


def test_the_limit_leaves_jobs_undone(program: Path, mpi: Mpi) -> None:
    """Without job lines there is a built-in list, too long for this limit."""
    _, results, end = read(mpi.start(2, program, "--limit", "0.05", "--budget", "0.02"))
    assert end["end"] == "limit"
    assert end["left"] > 0
    assert results == [] or results[0]["job"] == "ping_pong"


@pytest.mark.long
def test_failures_of_mpi_and_of_memory_end_the_launch_with_their_words(
    program: Path, mpi: Mpi, tmp_path: Path
) -> None:
    library = compile_beside(
        mpi.mpicc, "failing_mpi.c", tmp_path / "failing.so", "-shared", "-fPIC"
    )
    failing = {"LD_PRELOAD": str(library)}
    done = mpi.start(1, program, *QUICKLY, "reduce_local bytes=8", **failing)
    assert done.returncode != 0
    message = next(line for line in done.stderr.splitlines() if "popmodel-mpi" in line)
    # Launchers put characters of their own before a line of a rank that aborts.
    _, marker, words = message.partition("popmodel-mpi: MPI failed on rank 0: ")
    assert marker
    assert "op" in words.lower()

    done = mpi.start(2, program, *QUICKLY, "ping_pong bytes=123456 tier=near", **failing)
    assert done.returncode != 0
    assert (
        "popmodel-mpi: not enough memory for a buffer of 123456 bytes; "
        "use smaller sizes or fewer ranks per node\n"
    ) in done.stderr


def test_an_interruption_does_not_count_as_cost_of_the_clock(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    names = ("batch.c", "cpus.c", "jobs.c", "machine_state.c", "pace.c", "samples.c", "text.c")
    sources = [str(SOURCES / name) for name in names]
    program = compile_beside(
        ["cc"], "clock_share.c", tmp_path / "share", "-fopenmp", *sources, "-lm"
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(25e-9, rel=1e-3)


@pytest.fixture(scope="module")
def choose(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int, str], list[str]]:
    """Pairs (or the reason for none) and the number of nodes, for ranks NODE:SOCKET:SOCKETS."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("layout")
    program = compile_beside(
        ["cc"], "choose_pairs.c", folder / "choose_pairs", str(SOURCES / "layout.c")
    )

    def of(tier: str, pairs: int, ranks: str) -> list[str]:
        done = subprocess.run(
            [program, tier, str(pairs), *ranks.split()], capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return of


TWO_NODES = "0:0:2 0:1:2 0:0:2 0:1:2 4:0:2 4:1:2 4:0:2 4:1:2"
BLOCKS = "0:0:2 0:0:2 0:1:2 0:1:2 4:0:2 4:0:2 4:1:2 4:1:2"
ONE_SOCKET = "0:0:1 0:0:1 0:0:1 3:0:1"
UNBOUND = "0:-1:2 0:-1:2 2:-1:2"


@pytest.mark.parametrize(
    ("tier", "pairs", "ranks", "chosen"),
    [
        ("near", 1, TWO_NODES, "0-2"),
        ("node", 1, TWO_NODES, "0-1"),
        ("node", 2, TWO_NODES, "0-1 2-3"),
        ("network", 1, TWO_NODES, "0-4"),
        ("network", 4, TWO_NODES, "0-4 1-5 2-6 3-7"),
        ("near", 1, BLOCKS, "0-1"),
        ("node", 2, BLOCKS, "0-2 1-3"),
        ("near", 1, "0:0:2 0:1:2 0:1:2", "1-2"),
        ("near", 1, "0:-1:2 0:1:2 0:1:2", "1-2"),
        ("near", 1, ONE_SOCKET, "0-1"),
        ("node", 1, ONE_SOCKET, "0-1"),
        ("network", 1, UNBOUND, "0-2"),
        ("near", 2, TWO_NODES, "no socket with two ranks per pair"),
        ("near", 1, "0:0:2 0:1:2", "no two ranks on one socket"),
        ("node", 1, "0:0:2 0:0:2", "no two ranks on different sockets of a node"),
        (
            *("node", 3, BLOCKS),
            "no two sockets of a node with one rank each per pair",
        ),
        ("near", 1, UNBOUND, "ranks are not bound to a socket"),
        ("node", 1, UNBOUND, "ranks are not bound to a socket"),
        ("network", 1, "0:0:1 0:0:1", "no two ranks on different nodes"),
        ("network", 2, ONE_SOCKET, "no two nodes with one rank each per pair"),
    ],
)
def test_pairs_are_chosen_by_where_ranks_are(
    choose: Callable[[str, int, str], list[str]], tier: str, pairs: int, ranks: str, chosen: str
) -> None:
    nodes = {place.split(":")[0] for place in ranks.split()}
    assert choose(tier, pairs, ranks) == [chosen, str(len(nodes))]
