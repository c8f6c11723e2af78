"""The program that measures a node: every job and refusal, and what a killed one leaves behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from microbench.node_program import (
    CPUS,
    QUICKLY,
    Finished,
    Line,
    build,
    check_result,
    median,
    two_cpus,
)
from patience import GENEROUS, measuring, until

from popmodel.machines.register import COPYING, PLAIN

MIB = 1024 * 1024

SCHEDULES = (
    "schedule_static",
    "schedule_static chunk=1",
    "schedule_static chunk=8",
    "schedule_dynamic",
    "schedule_dynamic chunk=8",
    "schedule_guided",
    "schedule_guided chunk=4",
)


# --- The lines -----------------------------------------------------------------------------------


def test_header(run: Callable[..., Finished]) -> None:
    header = json.loads(run("-n", "7", "--budget", "0.01", "loop").stdout.splitlines()[0])
    assert header["program"] == "node"
    assert header["launch"] == 7
    assert time.time() - GENEROUS < header["started"] < time.time() + 1
    assert header["host"] == os.uname().nodename
    assert header["kernel"] == f"Linux {os.uname().release} {os.uname().machine}"
    assert header["compiler"].split()[0] in ("GCC", "Clang", "NVHPC", "Intel")
    assert header["ranks"] == 1
    assert header["openmp"]["version"] >= 201107
    assert header["openmp"]["runtime"].startswith("lib")
    assert header["openmp"]["max_threads"] >= 1
    assert header["load"] >= 0
    assert header["limits"] == {"budget": 0.01, "least": 50, "most": 200, "precision": 0.03}


def test_header_carries_the_files_that_tell_the_hardware(run: Callable[..., Finished]) -> None:
    files = json.loads(run("--budget", "0.01", "loop").stdout.splitlines()[0])["files"]
    assert files["/proc/meminfo"].startswith("MemTotal:")
    assert files["/proc/meminfo"].count("\n") == 1
    assert "\n\n" not in files["/proc/cpuinfo"]
    for path, text in files.items():
        if path.startswith("/sys/devices/system/") and "meminfo" not in path:
            assert text == Path(path).read_text(encoding="ascii"), path
    for path in Path("/sys/devices/system/cpu/cpu0").glob("cache/index[0-9]*/size"):
        assert str(path) in files


def test_header_knows_the_processors_although_the_runtime_has_bound_the_first_thread(
    node: Path,
) -> None:
    environment = {**os.environ, "OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
    done = subprocess.run(
        [node, "--budget", "0.01", "loop"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    header = json.loads(done.stdout.splitlines()[0])
    numbers: set[int] = set()
    for part in header["files"]["affinity"].split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    assert numbers == os.sched_getaffinity(0)
    assert header["openmp"]["places"] == "cores"
    assert header["openmp"]["proc_bind"] == "close"


def test_jobs_are_done_in_order_and_echo_their_parameters(
    measure: Callable[..., list[Line]],
) -> None:
    lines = measure("load threads=1 bytes=8192", "loop", "construct threads=1 name=barrier")
    assert [line["job"] for line in lines] == ["load", "loop", "construct"]
    assert [line["params"] for line in lines] == [
        {"threads": 1, "bytes": 8192},
        {},
        {"threads": 1, "name": "barrier"},
    ]


def test_file_of_jobs(run: Callable[..., Finished], tmp_path: Path) -> None:
    jobs = tmp_path / "some.jobs"
    jobs.write_text("# what to do\n\nloop   # the simplest\n  stores\n", encoding="ascii")
    samples = tmp_path / "samples.jsonl"
    done = run(*QUICKLY, "-j", str(jobs), "-o", str(samples))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = [json.loads(line) for line in samples.read_text(encoding="ascii").splitlines()]
    assert [line.get("job") for line in lines] == [None, "loop", "stores", None]


@measuring()
def test_stops_where_it_was_told_to(measure: Callable[..., list[Line]]) -> None:
    exactly = ("--budget", "5", "--least", "30", "--most", "30", "--precision", "0")
    (line,) = measure("loop", options=exactly)
    assert (len(line["seconds"]), line["stopped"]) == (30, "batches")
    loosely = ("--budget", "5", "--least", "10", "--most", "1000", "--precision", "10")
    (line,) = measure("loop", options=loosely)
    assert line["stopped"] == "converged"
    assert 10 <= len(line["seconds"]) < 1000
    briefly = ("--budget", "0.05", "--least", "10000", "--most", "10000")
    (line,) = measure("quantum", options=briefly)
    assert line["stopped"] == "budget"
    assert len(line["seconds"]) >= 3
    assert line["wall"] < 1


@measuring()
def test_batches_are_long_against_the_clock(measure: Callable[..., list[Line]]) -> None:
    (line,) = measure("loop")
    assert line["inner"] * median(line) > 15e-6


@pytest.mark.long
def test_foreign_work_is_seen(node: Path) -> None:
    if not Path("/proc/stat").exists():
        pytest.skip("needs /proc/stat")
    jobs = ["quantum"] * 4
    command = [str(node), "--budget", "0.2", "--most", "1000", *jobs]
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as hog:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=GENEROUS
            )
        finally:
            hog.kill()
    lines = [json.loads(line) for line in done.stdout.splitlines()[1:-1]]
    assert lines[-1]["foreign"] > 0.25 / CPUS


# --- Every job -----------------------------------------------------------------------------------


@pytest.mark.long(after=1)
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=two_cpus)])
def test_constructs(measure: Callable[..., list[Line]], threads: int) -> None:
    jobs = [f"construct name={name} threads={threads}" for name in (*PLAIN, *SCHEDULES)]
    jobs += [
        f"construct name={name} threads={threads} bytes={size}"
        for name in COPYING
        for size in (8, 4096, 262144)
    ]
    for line in measure(*jobs):
        check_result(line)
        # Work without the construct is the same everywhere, apart from loops and additions.
        name = line["params"]["name"]
        if name not in ("atomic", "sections") and not name.startswith("schedule"):
            assert statistics.median(line["reference"]) > 30e-9, line


@measuring()
def test_memory(measure: Callable[..., list[Line]]) -> None:
    jobs = ["triad threads=1 bytes=2097152", "copy threads=1 bytes=2097152"]
    jobs += ["load threads=1 bytes=16384", "load threads=1 bytes=1000000"]
    triad, copy, small, odd = measure(*jobs)
    for line in (triad, copy, small, odd):
        check_result(line)
        assert 1e8 < line["moved"] / median(line) < 1e13
    assert triad["moved"] == 3 * 2097152
    assert copy["moved"] == 2 * 2097152
    assert small["moved"] == 16384
    assert 1000000 - 512 < odd["moved"] <= 1000000  # whole blocks of 512 B


@measuring()
def test_latency_grows_with_the_working_set(measure: Callable[..., list[Line]]) -> None:
    near, far = measure("chase bytes=8192", f"chase bytes={64 * MIB}")
    check_result(near)
    check_result(far)
    assert 0.3e-9 < median(near) < 20e-9
    assert median(far) > 2 * median(near)


@measuring()
def test_core(measure: Callable[..., list[Line]]) -> None:
    jobs = ("clock threads=1", "fma threads=1", "loads", "stores", "loop")
    for line in (lines := measure(*jobs)):
        check_result(line)
    clock, fma, loads, stores, loop = lines
    frequency = clock["work"] / median(clock)
    assert 0.5e9 < frequency < 7e9
    # At least one addition and one multiplication per cycle, at most 4 units of 16 doubles; the
    # clock may be lower while wide vectors are at work.
    assert 0.8 < fma["work"] / median(fma) / frequency < 128
    assert 0.5 < loads["work"] / median(loads) / frequency < 64
    assert 0.5 < stores["work"] / median(stores) / frequency < 64
    assert 0.2 < median(loop) * frequency < 10


@measuring()
def test_instructions_of_a_core(measure: Callable[..., list[Line]]) -> None:
    clock, some, under_way = lines = measure("clock threads=1", "instructions", "in_flight")
    for line in lines:
        check_result(line)
    frequency = clock["work"] / median(clock)
    assert 0.5 < some["work"] / median(some) / frequency < 16
    # chains that wait for each other take longer than those that need not; a core that carries out
    # one instruction after the other would know no difference
    assert statistics.median(under_way["reference"]) > 1.5 * median(under_way)


@measuring()
def test_operations_that_wait_for_each_other(measure: Callable[..., list[Line]]) -> None:
    names = ("add", "multiply", "divide")
    clock, *lines = measure("clock threads=1", *(f"dependent operation={name}" for name in names))
    cycle = median(clock) / clock["work"]
    cycles = []
    for line in lines:
        check_result(line)
        cycles.append(median(line) / line["work"] / cycle)
    add, multiply, divide = cycles
    assert 1.5 < add < 12
    assert 1.5 < multiply < 12
    assert divide > 1.5 * max(add, multiply)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump (Debian: binutils)")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="reads assembly of x86-64")
@pytest.mark.parametrize("function", ["instructions_batch", "row_batch"])
def test_loops_have_as_many_instructions_as_they_say(tmp_path: Path, function: str) -> None:
    """Eight a turn: to fold a load, or the comparison into the sum, would be another loop."""
    words = ("objdump", "-d", "--no-show-raw-insn", str(build(tmp_path)))
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    body = listed.partition(f"<{function}>:\n")[2].partition("\n\n")[0]
    code = [line.split(":", 1) for line in body.splitlines()]
    places = [place.strip() for place, _ in code]
    loops = [
        index + 1 - places.index(what.split()[1])
        for index, (_, what) in enumerate(code)
        if what.split()[0] == "jne" and what.split()[1] in places[:index]
    ]
    assert min(loops) == 8  # the innermost


def test_two_threads_of_a_core(measure: Callable[..., list[Line]]) -> None:
    siblings = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    alone = not siblings.exists() or siblings.read_text(encoding="ascii").strip() == "0"
    for line in measure("smt threads=2 shared=0", "smt threads=2 shared=1"):
        if alone:
            assert "no two hardware threads of a core are usable" in line["absent"]
        elif "absent" not in line:
            check_result(line)
            assert line["work"] > 0


@two_cpus
@measuring()
def test_sharing(measure: Callable[..., list[Line]]) -> None:
    jobs = ["false_sharing threads=2 padded=0", "false_sharing threads=2 padded=1"]
    packed, padded, near, far = measure(
        *jobs, "line_transfer threads=2 distance=near", "line_transfer threads=2 distance=far"
    )
    (many,) = measure("line_takeover distance=near bytes=65536")
    check_result(packed)
    check_result(padded)
    if "absent" not in near:
        check_result(near)
        assert 1e-9 < median(near) < 1e-5
        check_result(many)
        lines = many["work"]
        assert lines in {65536 / size for size in (32, 64, 128, 256)}
        # a core asks for several at a time, and waits for none longer than for one alone
        assert 1e-10 < median(many) / lines < 2 * median(near)
    if "absent" in far:
        assert "equally near" in far["absent"] or "one core only" in far["absent"]
    else:
        check_result(far)


@measuring()
def test_quantum_is_one_per_batch(measure: Callable[..., list[Line]]) -> None:
    (line,) = measure("quantum", options=("--budget", "0.05"))
    assert line["inner"] == 1
    assert 0.1e-3 < min(line["seconds"]) < 10e-3
    assert line["stopped"] != "converged"


# --- What cannot be measured here ----------------------------------------------------------------


def test_absent_says_why(measure: Callable[..., list[Line]]) -> None:
    reasons = {
        f"clock threads={CPUS + 1}": f"{CPUS + 1} threads, but this process may use {CPUS} CPU",
        "triad threads=1 bytes=100": "100 bytes are too few for 1 threads of at least 512 bytes",
        "chase bytes=8": "8 bytes are less than two lines of",
        "chase bytes=68719476736": "needs 72090 MiB of memory,",
        "construct name=copyin threads=1 bytes=16": "copyin is only compiled for arrays of 8, "
        "64, 512",
    }
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory > 70e9:
        del reasons["chase bytes=68719476736"]
    for line, reason in zip(measure(*reasons), reasons.values(), strict=True):
        assert set(line) == {"job", "params", "absent"}
        assert reason in line["absent"]


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frob"], "argument:1: unknown job 'frob'; known: construct, false_sharing,"),
        (["loop x=1"], "argument:1: unknown key 'x' of loop; it has none"),
        (["chase size=1"], "argument:1: unknown key 'size' of chase; known: bytes"),
        (["chase"], "argument:1: chase needs bytes="),
        (["chase bytes"], "argument:1: 'bytes' of chase must be key=value"),
        (["chase bytes=1 bytes=2"], "argument:1: bytes of chase is given twice"),
        (["chase bytes=1k"], "bytes of chase must be a whole number from 1 to 68719476736, not"),
        (["row turns=513"], "turns of row must be a whole number from 1 to 512, not '513'"),
        (
            ["issue bytes=100"],
            "bytes of issue must be a whole number from 8192 to 68719476736, not",
        ),
        (["clock threads=0"], "threads of clock must be a whole number from 1 to 65536, not '0'"),
        (
            ["line_takeover bytes=64 distance=x"],
            "distance of line_takeover must be one of near, far",
        ),
        (["line_transfer distance=x"], "distance of line_transfer must be one of near, far, not"),
        (["construct name=x threads=1"], "argument:1: construct: unknown name; known: parallel"),
        (["construct name=for threads=1 bytes=8"], "bytes= is the size of a private array"),
        (["construct name=for threads=1 chunk=1"], "chunk= is only valid with schedule_static"),
        (["-j", "/does/not/exist"], "cannot read jobs from /does/not/exist: No such file or dir"),
        (["-x"], "unknown option '-x'; --help lists them"),
        (["--thread-level", "multiple"], "unknown option '--thread-level'; --help lists them"),
        (["-o"], "-o needs a value; --help lists the options"),
        (["--budget", "much"], "--budget must be a number, at least 0, not 'much'"),
        (["--limit", "-1"], "--limit must be a number, at least 0, not '-1'"),
        (["--least", "0"], "--least must be a whole number, at least 1, not '0'"),
        (["-n", "one"], "-n must be a whole number, at least 1, not 'one'"),
        (["loop"] * 300, "more than 256 jobs as arguments; put them in a file for -j"),
    ],
)
def test_misuse(run: Callable[..., Finished], arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("popmodel-node: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_wrong_line_of_a_file_is_named(run: Callable[..., Finished], tmp_path: Path) -> None:
    jobs = tmp_path / "some.jobs"
    jobs.write_text("loop\n# fine so far\nlop\n", encoding="ascii")
    done = run("-j", str(jobs), "-o", str(tmp_path / "samples"))
    assert done.returncode == 2
    assert f"{jobs}:3: unknown job 'lop'" in done.stderr
    assert not (tmp_path / "samples").exists()


# --- Failures ------------------------------------------------------------------------------------


def test_unwritable_output(run: Callable[..., Finished], tmp_path: Path) -> None:
    done = run("-o", str(tmp_path / "no" / "samples"), "loop")
    assert done.returncode == 1
    assert done.stderr.startswith("popmodel-node: cannot write samples to ")
    assert "No such file or directory; choose another file with -o" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk(run: Callable[..., Finished]) -> None:
    done = run("-o", "/dev/full", "loop")
    assert done.returncode == 1
    assert done.stderr == (
        "popmodel-node: cannot write samples to /dev/full: No space left on device; earlier "
        "samples are kept, free some space or choose another file with -o\n"
    )


def test_disk_that_fills_up_keeps_what_was_written(node: Path, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    command = [str(node), *QUICKLY, "-o", str(samples)]
    subprocess.run([*command, "loop"], check=True)
    room = samples.stat().st_size + 5000
    # A limit on the size of files is a disk that is full; the signal that comes with it is ignored
    # in Python, and so it is in the program.
    done = subprocess.run(
        [*command, *["loop"] * 100],
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS,
        restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert done.returncode == 1
    assert "File too large; earlier samples are kept" in done.stderr
    *whole, _cut = samples.read_text(encoding="ascii").split("\n")
    assert len([json.loads(line) for line in whole]) > 2


def test_limit(run: Callable[..., Finished]) -> None:
    done = run("--budget", "0.1", "--least", "99999", "--limit", "0.35", *["loop"] * 20)
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["end"] == "limit"
    results = len(lines) - 2
    assert results < 20
    assert lines[-1]["left"] == 20 - results


def test_interrupt_leaves_a_readable_file(node: Path, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    jobs = tmp_path / "some.jobs"
    jobs.write_text("quantum\n" * 100_000)  # it does not come to an end
    options = ("--budget", "0.05", "--least", "99999", "-o", str(samples), "-j", str(jobs))
    with subprocess.Popen([node, *options]) as program:
        try:
            until(
                lambda: samples.exists() and samples.read_bytes().count(b"\n") >= 3,
                "two jobs are done",
            )
        finally:
            program.send_signal(signal.SIGINT)
    assert program.returncode == -signal.SIGINT
    text = samples.read_text(encoding="ascii")
    *whole, _cut = text.split("\n")
    lines = [json.loads(line) for line in whole]
    assert len(lines) >= 3
    assert {line.get("job") for line in lines[1:]} == {"quantum"}


# --- Another compiler ----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
def test_clang(tmp_path: Path) -> None:
    probe = tmp_path / "probe.c"
    probe.write_text("#include <omp.h>\nint main(void) { return 0; }\n", encoding="ascii")
    command = ["clang", "-fopenmp", str(probe), "-o", str(tmp_path / "probe")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("clang without OpenMP")
    program = build(tmp_path / "built", "CC=clang", "CFLAGS=-O2 -Werror")
    jobs = ["construct name=barrier threads=1", "fma threads=1"]
    done = subprocess.run([program, *QUICKLY, *jobs], capture_output=True, text=True, check=True)
    header, *results, _end = map(json.loads, done.stdout.splitlines())
    assert header["compiler"].startswith("Clang")
    for line in results:
        check_result(line)
