"""Programs with OpenMP that count themselves what they do, run with the tracing library."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT
from tracer.raw_files import KINDS, SOURCES, Process, Thread, read

PROGRAMS = Path(__file__).resolve().parent / "programs"


Finished = subprocess.CompletedProcess[str]


CONSTRUCTS = {
    name: int(number)
    for name, number in re.findall(
        r"^ +([A-Z_]+) = (\d+)",
        (SOURCES / "record.h").read_text().partition("\nenum construct")[2].partition("};")[0],
        re.MULTILINE,
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


compilers = pytest.mark.parametrize("compiler", WAYS)


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
