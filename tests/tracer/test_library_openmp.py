"""The tracing library under OpenMP programs, which count themselves what they do."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import GENEROUS, measuring
from real_mpi import ENVIRONMENT, Mpi
from tracer.raw_files import KINDS, SOURCES, Process, Thread, read

PROGRAMS = Path(__file__).resolve().parent / "programs"
Finished = subprocess.CompletedProcess[str]

CONSTRUCTS = {
    name: int(number)
    for name, number in re.findall(
        r"^ +([A-Z_]+) = (\d+)",
        (SOURCES / "record.h").read_text().partition("\nenum construct")[2],
        re.MULTILINE,
    )
}
GUARDS = {
    name: int(number)
    for name, number in re.findall(
        r"([A-Z]+) = (\d+)",
        (SOURCES / "record.h").read_text().partition("\nenum guard")[2].partition("}")[0],
    )
}
# Which way is taken for programs of each compiler where nothing else is asked for.
WAYS = {"gcc": "gomp", "clang": "ompt", "gcc-libomp": "ompt"}
THREADS = 3


def libomp(program: Path) -> Path | None:
    """LLVM's runtime, as another program has it: those compiled by GCC can be linked with it."""
    needed = subprocess.check_output(["ldd", program], text=True)
    found = re.search(r"libi?omp\S* => (\S+)", needed)
    return Path(found[1]).resolve() if found else None


Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build one of the programs with a compiler and its runtime, once."""
    folder = tmp_path_factory.mktemp("openmp")

    def make(compiler: str, name: str = "openmp", *flags: str) -> Path:
        made = folder / "".join([compiler, "-", name, *flags])
        if made.exists():
            return made
        words = compiler.partition("-")[0]
        if shutil.which(words) is None:
            pytest.skip(f"needs {words}")
        source = PROGRAMS / f"{name}.c"
        runtime = ["-ldl"] if compiler == "gcc-plain" else ["-fopenmp", "-ldl"]
        command = [words, "-std=gnu11", "-g", "-O1", f"-I{SOURCES}", *flags]
        if compiler == "gcc-libomp":
            other = libomp(make("clang"))
            if other is None:
                pytest.skip("needs LLVM's OpenMP")
            # In two steps: linking with -fopenmp would add libgomp.
            compiled = made.with_suffix(".o")
            subprocess.run([*command, "-fopenmp", "-c", "-o", compiled, source], check=True)
            source, runtime = compiled, [str(other)]
        built = subprocess.run(
            [*command, "-o", made, source, *runtime], capture_output=True, text=True, check=False
        )
        if built.returncode != 0 and compiler != "gcc":
            pytest.skip(f"{words} cannot link OpenMP programs: {built.stderr}")
        assert built.returncode == 0, built.stderr
        return made

    return make


class Run:
    """Traced runs without a launcher."""

    def __init__(self, library: Path, raw: Path) -> None:
        self.library = library
        self.raw = raw

    def start(
        self, *command: str | Path, before: str = "", status: int = 0, **variables: str
    ) -> Finished:
        """Run a program; `before` is loaded before the tracer."""
        preload = f"{before}:{self.library}" if before else str(self.library)
        traced = {"LD_PRELOAD": preload, "POPMODEL_TRACE_DIR": str(self.raw), **variables}
        done = untraced(*command, **traced)
        assert done.returncode == status, done.stderr
        return done

    def process(self) -> Process:
        """The only process that has recorded something."""
        (process,) = read(self.raw)
        return process


def untraced(*command: str | Path, **variables: str) -> Finished:
    """Run a program for itself."""
    return subprocess.run(
        [*map(str, command)],
        env={**os.environ, **ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS,
    )


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Run:
    raw = tmp_path / "raw"
    raw.mkdir()
    return Run(library, raw)


def number(process: Process, construct: str) -> int:
    """How often it was entered by all threads."""
    return int(np.count_nonzero(process.of("OMP_ENTER")["call"] == CONSTRUCTS[construct]))


def check_pairs(process: Process) -> None:
    """Everything that begins on a thread ends there, and encloses or excludes what else does."""
    begins = {KINDS[f"{name}_BEGIN"]: KINDS[f"{name}_END"] for name in ("PARALLEL", "TASK")}
    begins |= {KINDS["OMP_ENTER"]: KINDS["OMP_LEAVE"], KINDS["TASK_RUN"]: KINDS["TASK_STOP"]}
    assert not process.events("note")
    for thread in process.threads:
        open_: list[tuple[int, int, int]] = []
        for record in thread.records:
            kind, fields = int(record["kind"]), (int(record["b"]), int(record["c"]))
            what = int(record["call"]) if kind in (KINDS["OMP_ENTER"], KINDS["OMP_LEAVE"]) else 0
            if kind in begins:
                open_.append((begins[kind], what, hash(fields)))
            elif kind in begins.values():
                assert open_.pop() == (kind, what, hash(fields))
        assert open_ == []


def check_regions(process: Process, counts: Mapping[str, int]) -> None:
    """Regions and parts are those counted; each part lies in its region."""
    begins, ends = process.of("PARALLEL_BEGIN"), process.of("PARALLEL_END")
    parts, parts_end = process.of("TASK_BEGIN"), process.of("TASK_END")
    assert len(begins) == len(ends) == counts["regions"]
    assert len(parts) == len(parts_end) == counts["parts"]
    assert sorted(begins["c"].tolist()) == sorted(set(ends["c"].tolist()))
    for begin, end in zip(np.sort(begins, order="c"), np.sort(ends, order="c"), strict=True):
        mine = parts["c"] == begin["c"]
        assert (parts["time"][mine] >= begin["time"]).all()
        assert (parts_end["time"][parts_end["c"] == begin["c"]] <= end["time"]).all()
        assert sorted(parts["a"][mine].tolist()) == list(range(np.count_nonzero(mine)))
        assert (parts["b"][mine] == begin["b"]).all()
    assert number(process, "JOIN") == counts["regions"]


def traced(run: Run, program: Path, what: str, **variables: str) -> tuple[Process, dict[str, int]]:
    """Run it; what it prints is what it prints untraced."""
    done = run.start(program, str(THREADS), what, **variables)
    assert done.stderr == ""
    assert done.stdout == untraced(program, str(THREADS), what).stdout
    return run.process(), json.loads(done.stdout)


def shares(compiler: str, counts: Mapping[str, int]) -> int:
    """Of code for libgomp, LLVM's runtime does not tell its tools of sections."""
    return 0 if compiler == "gcc-libomp" else counts["shares"]


compilers = pytest.mark.parametrize("compiler", WAYS)


@compilers
def test_loops(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "loops")
    check_regions(process, counts)
    check_pairs(process)
    assert number(process, "SCHEDULING") == counts["requests"]
    assert number(process, "BARRIER") + number(process, "IMPLICIT_BARRIER") == counts["barriers"]
    (event,) = process.events("openmp")
    assert event["how"] == WAYS[compiler]
    assert ("libgomp" if compiler == "gcc" else "LLVM") in event["runtime"]


@compilers
def test_constructs(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "constructs", POPMODEL_TRACE_LOCKS="each")
    check_regions(process, counts)
    assert not process.events("note")
    assert number(process, "CRITICAL_WAIT") == counts["criticals"]
    assert number(process, "CRITICAL_HOLD") == counts["criticals"]
    assert number(process, "LOCK_WAIT") == number(process, "LOCK_HOLD") == counts["locks"]
    assert number(process, "BARRIER") + number(process, "IMPLICIT_BARRIER") == counts["barriers"]
    assert number(process, "SINGLE") == counts["singles"]
    assert number(process, "SECTIONS") == shares(compiler, counts)
    assert number(process, "ORDERED") == counts["ordered"]
    enters, leaves = process.of("OMP_ENTER"), process.of("OMP_LEAVE")
    assert Counter(enters["call"].tolist()) == Counter(leaves["call"].tolist())
    held = enters[enters["call"] == CONSTRUCTS["CRITICAL_HOLD"]]["b"]
    assert len(set(held.tolist())) == 2  # two locks, whatever they are called
    if WAYS[compiler] == "gomp":
        assert 0 in held  # the one without a name


def test_one_at_a_time_holds_a_lock(run: Run, build: Build) -> None:
    process, _ = traced(run, build("gcc"), "constructs", POPMODEL_TRACE_LOCKS="each")
    for construct in ("CRITICAL_HOLD", "LOCK_HOLD"):
        spans: dict[int, list[tuple[int, int]]] = {}
        for thread in process.threads:
            mine = thread.of("OMP_ENTER", "OMP_LEAVE")
            mine = mine[mine["call"] == CONSTRUCTS[construct]]
            for enter, leave in zip(mine[::2], mine[1::2], strict=True):
                assert enter["b"] == leave["b"]
                spans.setdefault(int(enter["b"]), []).append(
                    (int(enter["time"]), int(leave["time"]))
                )
        assert len(spans) == 2
        for each in spans.values():
            each.sort()
            assert len(each) > THREADS - 1
            assert all(end <= begin for (_, end), (begin, _) in pairwise(each))


def sums(process: Process, guard: str) -> tuple[int, int, int, int]:
    """How often locks were taken and waited for, and for how long they were waited for and held."""
    told, held = process.of("GUARDED"), process.of("HELD")
    told, held = (each[each["call"] == GUARDS[guard]] for each in (told, held))
    return (
        int(told["b"].sum()), int(told["a"].sum()), int(told["c"].sum()), int(held["b"].sum())
    )  # fmt: skip


def test_reads_every_guard() -> None:
    assert GUARDS == {"LOCKS": 1, "CRITICALS": 2, "ATOMICS": 3}


@compilers
def test_locks_are_summed_up(run: Run, build: Build, compiler: str) -> None:
    """No lock has a record of its own, unless its thread has waited for long."""
    process, counts = traced(run, build(compiler), "constructs")
    check_pairs(process)
    for guard, counted in (("LOCKS", "locks"), ("CRITICALS", "criticals")):
        taken, waits, waited, held = sums(process, guard)
        assert taken == counts[counted]
        assert 0 <= waits <= taken
        assert waited >= 0
        assert held > 0
    assert number(process, "CRITICAL_HOLD") == number(process, "LOCK_HOLD") == 0
    enters, leaves = process.of("OMP_ENTER"), process.of("OMP_LEAVE")
    for construct in ("CRITICAL_WAIT", "LOCK_WAIT"):
        begin, end = (
            each["time"][each["call"] == CONSTRUCTS[construct]] for each in (enters, leaves)
        )
        assert ((end - begin).astype(int) >= 20_000).all()


def test_sums_stand_in_their_regions(run: Run, build: Build) -> None:
    """They are put before the part of a thread ends."""
    process, _ = traced(run, build("gcc"), "constructs")
    for thread in process.threads:
        parts = np.isin(thread.records["kind"], [KINDS["TASK_BEGIN"], KINDS["TASK_END"]]).cumsum()
        told = thread.records["kind"] == KINDS["GUARDED"]
        assert (parts[told] % 2 == 1).all()


def test_a_long_wait_has_records_of_its_own(run: Run, build: Build) -> None:
    run.start(build("gcc", "contended"), OMP_WAIT_POLICY="passive")
    process = run.process()
    assert number(process, "LOCK_WAIT") == 1
    (enter,) = [each for each in process.of("OMP_ENTER") if each["call"] == CONSTRUCTS["LOCK_WAIT"]]
    (leave,) = [each for each in process.of("OMP_LEAVE") if each["call"] == CONSTRUCTS["LOCK_WAIT"]]
    assert leave["time"] - enter["time"] >= 1_000_000
    taken, waits, waited, held = sums(process, "LOCKS")
    assert (taken, waits, waited) == (2, 1, 0)
    assert held >= 1_000_000


def test_locks_asked_for_in_other_words(run: Run, build: Build) -> None:
    done = run.start(build("gcc"), "2", "loops", POPMODEL_TRACE_LOCKS="all")
    assert done.stderr == "popmodel: POPMODEL_TRACE_LOCKS=all: it is sum or each; taken as sum\n"


@compilers
def test_sections(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "sections")
    check_regions(process, counts)
    assert counts["sections"] == 4
    assert number(process, "SECTIONS") == shares(compiler, counts)


@compilers
def test_copyprivate(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "copyprivate")
    check_regions(process, counts)
    check_pairs(process)
    assert counts["given"] == 42 * THREADS
    # Nor of single constructs with copyprivate.
    assert number(process, "SINGLE") == (0 if compiler == "gcc-libomp" else counts["singles"])


@compilers
def test_tasks(run: Run, build: Build, compiler: str) -> None:
    """Each is created once and carried out once, with the data that it was given."""
    process, counts = traced(run, build(compiler), "tasks")
    check_regions(process, counts)
    assert counts["loop"] == 2 * 4950 + 5050
    assert counts["fibonacci"] == 21
    if compiler == "gcc":
        assert counts["misplaced"] == 0
    created, ran = process.of("TASK_CREATE"), process.of("TASK_RUN")
    assert len(created) == counts["tasks"]
    assert sorted(created["c"].tolist()) == sorted(set(ran["c"].tolist()))
    assert sorted(ran["c"].tolist()) == sorted(process.of("TASK_STOP")["c"].tolist())
    assert len(ran) - len(created) <= 1  # the untied one may go on later
    functions = dict(zip(created["c"].tolist(), created["b"].tolist(), strict=True))
    assert all(functions[int(each["c"])] == each["b"] for each in ran)
    times = dict(zip(created["c"].tolist(), created["time"].tolist(), strict=True))
    assert all(times[int(each["c"])] <= each["time"] for each in ran)
    known = {int(event["address"], 16) for event in process.events("function")}
    assert set(functions.values()) <= known
    check_pairs(process)
    assert number(process, "TASKWAIT") == counts["taskwaits"]
    groups = counts["taskgroups"] + counts["loops"] - 1  # of libgomp's own ones nothing is seen
    assert number(process, "TASKGROUP") in (counts["taskgroups"], groups)


def test_more_tasks_than_a_stack_holds(run: Run, build: Build) -> None:
    process, counts = traced(run, build("gcc"), "many")
    check_regions(process, counts)
    check_pairs(process)
    for kind in ("TASK_CREATE", "TASK_RUN", "TASK_STOP"):
        assert len(set(process.of(kind)["c"].tolist())) == counts["tasks"]
    assert counts["sum"] == 100000 * 99999 // 2


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_detached_tasks(run: Run, build: Build, compiler: str) -> None:
    """The runtime writes the event into their data."""
    done = run.start(build(compiler), str(THREADS), "detached")
    process, counts = run.process(), json.loads(done.stdout)
    assert counts["sum"] == 1
    assert len(process.of("TASK_CREATE")) == 1
    notes = [event["text"] for event in process.events("note")]
    if compiler == "gcc":
        assert notes == ["tasks with a detach clause: when they run is not recorded"]
    else:
        assert notes == []
        assert len(process.of("TASK_RUN")) == len(process.of("TASK_STOP")) == 1


@compilers
def test_nested(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "nested")
    check_pairs(process)
    parts = process.of("TASK_BEGIN")
    levels = Counter(parts["call"].tolist())
    wanted = {1: counts["parts"], 2: counts["inner parts"], 3: counts["innermost parts"]}
    assert levels == wanted
    assert len(process.of("PARALLEL_BEGIN")) == counts["regions"]
    inner = parts[parts["call"] == 2]
    assert sorted(inner["a"].tolist()) == sorted([0, 1] * THREADS)
    assert set(parts[parts["call"] == 3]["a"].tolist()) == {0}


@compilers
def test_parts_end_where_threads_are_through(run: Run, build: Build, compiler: str) -> None:
    """Not where the region ends, or where the next one begins."""
    program = build(compiler)
    with measuring():
        done = run.start(program, "2", "work")
        process, work = run.process(), json.loads(done.stdout)["work"]
        begins, ends = process.of("TASK_BEGIN"), process.of("TASK_END")
        # The first is through with 20 ms, the second with 40 ms of work.
        assert ends[ends["a"] == 0]["time"][0] < work[1][1]
    for thread, (begin, end) in enumerate(work):
        (first,) = begins[begins["a"] == thread]
        (last,) = ends[ends["a"] == thread]
        assert first["time"] <= begin
        assert end <= last["time"]
    (region_end,) = process.of("PARALLEL_END")["time"]
    assert region_end >= work[1][1]
    join = process.of("OMP_ENTER")
    assert join["call"].tolist() == [CONSTRUCTS["JOIN"]]
    assert join["time"][0] == ends[ends["a"] == 0]["time"][0]


@compilers
def test_dormant_without_a_region(run: Run, build: Build, compiler: str) -> None:
    """Having a runtime, asking it and taking its locks is not worth a trace."""
    run.start(build(compiler), "2", "none")
    assert list(run.raw.iterdir()) == []


@pytest.mark.parametrize(
    ("compiler", "asked", "how"),
    [
        ("gcc", "gomp", "gomp"),
        ("clang", "ompt", "ompt"),
        ("gcc-libomp", "gomp", "gomp"),
        ("gcc-libomp", "ompt", "ompt"),
        ("gcc", "", "gomp"),
        ("gcc", "auto", "gomp"),
    ],
)
def test_asked_for(run: Run, build: Build, compiler: str, asked: str, how: str) -> None:
    process, counts = traced(run, build(compiler), "loops", POPMODEL_TRACE_OPENMP=asked)
    assert [event["how"] for event in process.events("openmp")] == [how]
    check_regions(process, counts)
    assert number(process, "SCHEDULING") == counts["requests"]


@pytest.mark.parametrize(
    ("compiler", "asked"),
    [("gcc", "off"), ("clang", "off"), ("gcc", "ompt"), ("clang", "gomp"), ("gcc-libomp", "off")],
)
def test_not_asked_for(run: Run, build: Build, compiler: str, asked: str) -> None:
    run.start(build(compiler), "2", "loops", POPMODEL_TRACE_OPENMP=asked)
    assert list(run.raw.iterdir()) == []


def test_asked_for_something_else(run: Run, build: Build) -> None:
    done = run.start(build("gcc"), "2", "loops", POPMODEL_TRACE_OPENMP="omp")
    assert done.stderr == (
        "popmodel: POPMODEL_TRACE_OPENMP=omp: it is one of auto, ompt, gomp, off; taken as auto\n"
    )
    assert run.process().events("openmp")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pic"]], ids=["moved", "fixed"])
def test_where_functions_are(run: Run, build: Build, compiler: str, flags: list[str]) -> None:
    """The offset is what addr2line wants, wherever the program was put in memory."""
    addr2line = shutil.which("addr2line")
    if addr2line is None:
        pytest.skip("needs addr2line")
    program = build(compiler, "openmp", *flags)
    run.start(program, "2", "work")
    (event,) = run.process().events("function")
    assert event["module"] == str(program)
    (region,) = run.process().of("PARALLEL_BEGIN")
    assert int(event["address"], 16) == region["b"]
    found = subprocess.check_output([addr2line, "-e", program, event["offset"]], text=True)
    lines = (PROGRAMS / "openmp.c").read_text().splitlines()
    begin = lines.index("static void work(int threads)")
    wanted = next(i for i in range(begin, len(lines)) if "omp parallel" in lines[i]) + 1
    file, line = found.split()[0].rsplit(":", 1)
    assert Path(file).name == "openmp.c"
    assert int(line) == wanted


def test_regions_of_old_compilers(run: Run, build: Build) -> None:
    """The calling thread carries out its part between two calls."""
    program = build("gcc", "openmp_old")
    done = run.start(program)
    assert done.stdout == untraced(program).stdout == "102\n"
    process = run.process()
    check_regions(process, {"regions": 2, "parts": 4})
    check_pairs(process)
    assert number(process, "BARRIER") == 2
    assert number(process, "SCHEDULING") == 10 + 2


def test_fork_in_a_region(run: Run, build: Build) -> None:
    """The child is not traced, and comes back through the wrappers."""
    done = run.start(build("gcc", "openmp_old"), "fork")
    assert done.stdout == "109\n"
    process = run.process()
    check_regions(process, {"regions": 3, "parts": 6})


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_wait_that_began_before_the_recording(run: Run, build: Build, compiler: str) -> None:
    """It is not known since when: only the second wait of the thread is there."""
    run.start(build(compiler, "waits_before", "-pthread"), POPMODEL_TRACE_LOCKS="each")
    process = run.process()
    assert number(process, "LOCK_WAIT") == number(process, "LOCK_HOLD") == 1
    begin = process.events("start")[0]["monotonic"]
    assert all((thread.records["time"] >= begin).all() for thread in process.threads)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_locks_taken_before_the_recording_are_not_summed(
    run: Run, build: Build, compiler: str
) -> None:
    run.start(build(compiler, "waits_before", "-pthread"))
    taken, waits, waited, _ = sums(run.process(), "LOCKS")
    assert (taken, waits, waited) == (1, 0, 0)


def test_runtime_that_the_program_opens(run: Run, build: Build) -> None:
    """As interpreters do: the runtime's symbols are not for all."""
    library = build("gcc", "opened", "-shared", "-fPIC")
    done = run.start(build("gcc-plain", "opens"), library)
    assert done.stdout == "2\n"
    process = run.process()
    check_regions(process, {"regions": 1, "parts": 2})
    (event,) = process.events("openmp")
    assert "libgomp" in event["runtime"]


def test_thread_has_no_end_twice(run: Run, build: Build) -> None:
    process, _ = traced(run, build("gcc"), "loops")
    assert process.threads[0].records["kind"][-1] == KINDS["END"]
    for thread in process.threads:
        assert len(thread.of("END")) <= 1


def user_regions(process: Process, thread: Thread) -> list[tuple[str, str]]:
    names = {event["id"]: event["text"] for event in process.events("name")}
    kinds = {KINDS["USER_BEGIN"]: "begin", KINDS["USER_END"]: "end"}
    found = thread.of("USER_BEGIN", "USER_END")
    return [(kinds[int(each["kind"])], names[int(each["a"])]) for each in found]


STEPS = [
    each
    for step in ("step 0", "step 1", "step 0")
    for each in (("begin", step), ("begin", "solver"), ("end", "solver"), ("end", step))
] + [("begin", "a"), ("begin", "b"), ("end", "a"), ("end", "b")]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pic"]], ids=["moved", "fixed"])
@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
def test_regions_of_the_user(
    run: Run, build: Build, compiler: str, flags: list[str], optimised: str
) -> None:
    """The header finds the library however the program is compiled, and needs none."""
    program = build(compiler, "user_regions", *flags, optimised)
    assert untraced(program).stdout == "done\n"
    assert run.start(program).stdout == "done\n"
    process = run.process()
    assert user_regions(process, process.threads[0]) == [
        *STEPS,
        ("begin", "on threads"),
        ("end", "on threads"),
    ]
    assert user_regions(process, process.threads[1]) == [
        ("begin", "on threads"),
        ("end", "on threads"),
    ]
    assert sorted(event["id"] for event in process.events("name")) == [1, 2, 3, 4, 5, 6]
    assert not process.events("note")


def test_regions_of_the_user_without_openmp(run: Run, build: Build) -> None:
    """They are worth a trace for themselves."""
    run.start(build("gcc", "user_regions"), POPMODEL_TRACE_OPENMP="off")
    process = run.process()
    assert user_regions(process, process.threads[0])[: len(STEPS)] == STEPS
    assert [(event["how"], event["runtime"]) for event in process.events("openmp")] == [
        ("none", None)
    ]
    assert not len(process.of("PARALLEL_BEGIN"))


def test_wrong_regions_of_the_user(run: Run, build: Build) -> None:
    run.start(build("gcc", "user_regions"), "wrong")
    process = run.process()
    found = user_regions(process, process.threads[0])
    assert found == [*STEPS, ("begin", "left open"), ("begin", "on threads"), ("end", "on threads")]
    notes = {event["text"]: event["count"] for event in process.events("note")}
    assert notes == {
        "ends of the user's regions that were not begun on the same thread: not recorded": 2,
        "a user's region without a name: not recorded": 1,
    }


def test_pause(run: Run, build: Build) -> None:
    """Regions are recorded all the same, what happens in them is not."""
    run.start(build("gcc", "user_regions"))
    process = run.process()
    check_regions(process, {"regions": 2, "parts": 4})
    assert process.of("TRACING")["a"].tolist() == [0, 1]
    assert number(process, "BARRIER") == 0


def test_static_program_with_the_header(build: Build) -> None:
    program = build("gcc", "user_regions", "-static")
    assert untraced(program).stdout == "done\n"


@pytest.fixture(scope="session")
def software_counters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("counters") / "software.so"
    source = PROGRAMS / "software_counters.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


@compilers
def test_counters(run: Run, build: Build, software_counters: Path, compiler: str) -> None:
    """Every change of state has a reading, which never goes back."""
    run.start(
        build(compiler),
        str(THREADS),
        "loops",
        before=str(software_counters),
        POPMODEL_TRACE_COUNTERS="1",
    )
    process = run.process()
    (event,) = process.events("counters")
    if "why" in event:
        pytest.skip(f"no counters of the kernel either: {event['why']}")
    assert event["names"] == ["instructions", "cycles"]
    changes = [KINDS[name] for name in ("TASK_BEGIN", "TASK_END", "PARALLEL_BEGIN", "PARALLEL_END")]
    waits = [CONSTRUCTS[name] for name in ("BARRIER", "IMPLICIT_BARRIER", "SCHEDULING")]
    for thread in process.threads:
        records = thread.records
        wait = np.isin(records["kind"], [KINDS["OMP_ENTER"], KINDS["OMP_LEAVE"]])
        wait &= np.isin(records["call"], waits)
        change = np.flatnonzero(np.isin(records["kind"], changes) | wait)
        assert (records["kind"][change + 1] == KINDS["COUNTERS"]).all()
        assert (records["time"][change + 1] == records["time"][change]).all()
        readings = thread.of("COUNTERS")
        assert len(readings) == len(change)
        assert (np.diff(readings["b"]) > 0).all()
        assert (np.diff(readings["c"]) >= 0).all()
        # What is counted instead is the time that the thread has the processor.
        passed = int(readings["time"][-1] - readings["time"][0])
        assert int(readings["b"][-1] - readings["b"][0]) < passed + 1_000_000


def test_counters_of_threads_that_end(run: Run, build: Build, software_counters: Path) -> None:
    """They leave no descriptor behind: more threads than descriptors."""
    shell = 'ulimit -n 64; exec "$0" "$@"'
    run.start(
        "sh",
        "-c",
        shell,
        build("gcc"),
        "2",
        "nested",
        "100",
        before=str(software_counters),
        POPMODEL_TRACE_COUNTERS="1",
    )
    process = run.process()
    (event,) = process.events("counters")
    if "why" in event:
        pytest.skip(f"no counters of the kernel either: {event['why']}")
    assert not process.events("note")


def test_counters_that_are_not_there(run: Run, build: Build) -> None:
    """Either way the meta file says it."""
    run.start(build("gcc"), "2", "loops", POPMODEL_TRACE_COUNTERS="1")
    process = run.process()
    (event,) = process.events("counters")
    assert ("why" in event) != ("names" in event)
    assert bool(len(process.of("COUNTERS"))) == ("names" in event)


def test_counters_asked_for_in_other_words(run: Run, build: Build) -> None:
    done = run.start(build("gcc"), "2", "loops", POPMODEL_TRACE_COUNTERS="yes")
    assert done.stderr == "popmodel: POPMODEL_TRACE_COUNTERS=yes: it is 0 or 1; taken as 0\n"
    assert not run.process().events("counters")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            errno.EACCES,
            r"not permitted here \(/proc/sys/kernel/perf_event_paranoid is -?\w+, 2 or less ",
        ),
        (errno.EPERM, r"not permitted here "),
        (errno.ENOENT, "this machine shows no hardware counters; virtual ones often do not$"),
        (errno.EMFILE, "they cannot be opened: Too many open files$"),
    ],
)
def test_why_there_are_no_counters(
    run: Run, build: Build, software_counters: Path, error: int, why: str
) -> None:
    run.start(
        build("gcc"),
        "2",
        "loops",
        before=str(software_counters),
        POPMODEL_TRACE_COUNTERS="1",
        COUNTERS_ERROR=str(error),
    )
    (event,) = run.process().events("counters")
    assert re.match(why, event["why"])
    assert not len(run.process().of("COUNTERS"))


def test_counters_on_some_threads_only(run: Run, build: Build, software_counters: Path) -> None:
    """Those that came too late have none, and it is said."""
    run.start(
        build("gcc"),
        "2",
        "loops",
        before=str(software_counters),
        POPMODEL_TRACE_COUNTERS="1",
        COUNTERS_ERROR=str(errno.EMFILE),
        COUNTERS_GIVEN="2",
    )
    process = run.process()
    if "why" in process.events("counters")[0]:
        pytest.skip("no counters of the kernel either")
    notes = [event["text"] for event in process.events("note")]
    assert notes == ["threads whose hardware counters could not be opened"]
    assert [bool(len(thread.of("COUNTERS"))) for thread in process.threads] == [True, False]


def test_counters_that_the_program_closes(run: Run, build: Build, software_counters: Path) -> None:
    done = run.start(
        build("gcc", "user_regions"),
        "close",
        before=str(software_counters),
        POPMODEL_TRACE_COUNTERS="1",
    )
    process = run.process()
    if "why" in process.events("counters")[0]:
        pytest.skip("no counters of the kernel either")
    assert done.stdout == "done\n"
    notes = [event["text"] for event in process.events("note")]
    assert notes == ["threads whose hardware counters could not be read to the end"]
    assert user_regions(process, process.threads[0])[: len(STEPS)] == STEPS


def test_more_names_than_there_is_room_for(run: Run, build: Build) -> None:
    run.start(build("gcc", "user_regions"), "many")
    process = run.process()
    assert len(process.events("name")) == 4096
    notes = {event["text"]: event["count"] for event in process.events("note")}
    # Five names come before the many and one after them, on two threads; these do not end either.
    assert notes == {
        "names of the user's regions beyond 4096: not recorded": 5000 - 4091 + 2,
        "ends of the user's regions that were not begun on the same thread: not recorded": 2,
    }


@compilers
def test_kinds_of_constructs_that_are_left_out(run: Run, build: Build, compiler: str) -> None:
    """The others are there, and it is marked."""
    process, counts = traced(
        run, build(compiler), "loops", POPMODEL_TRACE_LEAVE_OUT="chunks,singles"
    )
    check_regions(process, counts)
    check_pairs(process)
    assert number(process, "SCHEDULING") == number(process, "SINGLE") == 0
    assert number(process, "BARRIER") + number(process, "IMPLICIT_BARRIER") == counts["barriers"]
    assert process.of("LEFT_OUT")[["call", "a"]].tolist() == [(2, 0), (3, 0)]


def test_a_kind_that_makes_too_many_records_is_left_out(run: Run, build: Build) -> None:
    """From the first window of its file on that fills up too fast."""
    program = build("gcc", "chunks")
    run.start(program, "200000", POPMODEL_TRACE_MAX_RATE="1")
    process = run.process()
    (mark,) = process.of("LEFT_OUT")
    assert (mark["call"], mark["a"]) == (2, 1)
    assert 0 < number(process, "SCHEDULING") < 10_000
    check_pairs(process)


def test_left_out_in_other_words(run: Run, build: Build) -> None:
    done = run.start(
        build("gcc"),
        "2",
        "loops",
        POPMODEL_TRACE_LEAVE_OUT="chunks,all",
        POPMODEL_TRACE_MAX_RATE="many",
    )
    assert done.stderr == (
        "popmodel: POPMODEL_TRACE_LEAVE_OUT=chunks,all: it is a list of tests, chunks, singles, "
        "rma, io; all is not left out\n"
        "popmodel: POPMODEL_TRACE_MAX_RATE=many: it is a number of records per second; taken as no "
        "limit\n"
    )


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_regions_outside_of_the_window_are_not_recorded(
    run: Run, build: Build, compiler: str
) -> None:
    run.start(build(compiler), "2", "loops", POPMODEL_TRACE_WINDOW="100000:")
    process = run.process()
    assert not len(process.of("PARALLEL_BEGIN", "TASK_BEGIN", "OMP_ENTER", "GUARDED"))
    assert not process.events("note")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_deeply_nested(run: Run, build: Build, compiler: str) -> None:
    """The stack of LLVM's parts has an end, at which nothing is mixed up."""
    done = run.start(build(compiler), "2", "deep")
    process = run.process()
    assert json.loads(done.stdout) == {"regions": 40}
    depth = 40 if compiler == "gcc" else 32
    assert sorted(set(process.of("TASK_BEGIN")["call"].tolist())) == list(range(1, depth + 1))
    notes = [event["text"] for event in process.events("note")]
    if compiler == "clang":
        assert set(notes) == {"parallel regions nested more than 32 deep: not recorded"}
    else:
        assert notes == []
        check_pairs(process)


def test_runtime_of_version_5_0(run: Run, build: Build) -> None:
    """It does not say which barrier ends a region, and tells the end when the next one begins."""
    run.start(build("gcc", "runtime_5_0"))
    process = run.process()
    check_regions(process, {"regions": 2, "parts": 4})
    assert number(process, "IMPLICIT_BARRIER") == 4
    region_ends = np.sort(process.of("PARALLEL_END")["time"])
    (worker,) = [thread for thread in process.threads if not len(thread.of("PARALLEL_BEGIN"))]
    assert (worker.of("TASK_END")["time"] <= region_ends).all()
    (event,) = process.events("openmp")
    assert (event["how"], event["runtime"]) == ("ompt", "a runtime of 5.0")
    lacking = "this OpenMP runtime does not tell its tools of waits for task groups: not recorded"
    assert [event["text"] for event in process.events("note")] == [lacking]


def test_entry_that_nobody_has(run: Run, build: Build) -> None:
    """As the dynamic linker would have said, had the tracer not stood in for it."""
    program = build("gcc-plain", "lacking")
    done = run.start(program, status=127)
    assert done.stderr == (
        "popmodel: the program calls GOMP_barrier, and no library that is loaded has it; trace "
        "without OpenMP (POPMODEL_TRACE_OPENMP=off) to see whether it runs without the tracer\n"
    )


def test_hybrid(run: Run, mpi: Mpi, tmp_path: Path) -> None:
    program = tmp_path / "hybrid"
    source = PROGRAMS / "hybrid.c"
    command = [*mpi.mpicc, "-fopenmp", "-o", program, source]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    preload = [f"LD_PRELOAD={run.library}", f"POPMODEL_TRACE_DIR={run.raw}"]
    done = mpi.start(2, "env", *preload, program)
    assert done.returncode == 0, done.stderr
    processes = read(run.raw)
    assert [process.rank for process in processes] == [0, 1]
    for process in processes:
        check_regions(process, {"regions": 12, "parts": 24})
        check_pairs(process)
        assert process.calls()["Sendrecv"] == 10
        assert number(process, "BARRIER") == 20
        first, *others = process.threads
        assert first.records["kind"][0] == KINDS["PARALLEL_BEGIN"]  # before MPI_Init
        assert sum(thread.calls()["Sendrecv"] for thread in others) == 0
        # Each call lies in the part of the master.
        inside = np.cumsum((first.records["kind"] == KINDS["TASK_BEGIN"]).astype(int))
        inside -= np.cumsum((first.records["kind"] == KINDS["TASK_END"]).astype(int))
        assert (inside[first.records["kind"] == KINDS["SEND"]] == 1).all()


def test_reads_every_construct() -> None:
    """The oracle has the numbers of the header."""
    values: list[Any] = sorted(CONSTRUCTS.values())
    assert values == list(range(1, 14))
