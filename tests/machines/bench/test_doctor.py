"""The checks of whether a machine can be measured."""

from __future__ import annotations

import errno
import os
from collections import namedtuple
from pathlib import Path

import pytest

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.machines.bench import doctor_checks as doctor
from popmodel.machines.bench.doctor_checks import (
    DoctorCheck,
    check_cache,
    check_compiler,
    check_cores,
    check_counters,
    check_mpi,
    check_noise,
    check_openmp,
    examine,
    measurable,
)
from popmodel.machines.host import conditions as counters
from popmodel.machines.host import conditions as disturbance
from popmodel.machines.host import hardware
from popmodel.machines.host.conditions import Disturbance, Usage, usage
from popmodel.machines.host.launcher import LaunchWay
from popmodel.machines.host.toolchain import Compiler, Mpi, find_compiler

GCC = Compiler(("gcc",), "gcc (GCC) 12.2.0", "-fopenmp")
MPI = Mpi(GCC, (("/opt/bin/mpirun",),), "Open MPI", "4.1.6", "0", "user")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# What is there and what is not


def test_what_could_not_be_found_or_built_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> Path:
        raise error

    error = PopmodelError("what is wrong", "what to do")
    said = ("fail", "what is wrong", "what to do")
    monkeypatch.setattr(doctor, "build", refuses)
    for name, check in (
        ("compiler", check_compiler(error)),
        ("OpenMP", check_openmp(GCC, os.environ)),
        ("MPI", check_mpi(error, os.environ)),
    ):
        assert check == DoctorCheck(name, *said)
    found = {"command": ["gcc"], "version": "gcc (GCC) 12.2.0"}
    assert check_compiler(GCC) == DoctorCheck("compiler", "ok", "gcc (GCC) 12.2.0", facts=found)


# OpenMP


def test_openmp_of_this_machine() -> None:
    check = check_openmp(find_compiler(), os.environ)
    assert check.status == "ok"
    assert check.found == f"{check.facts['runtime']}, 2 threads"


@pytest.mark.parametrize("variable", [("OMP_DISPLAY_ENV", "true"), ("OMP_PLACES", "nonsense")])
def test_openmp_that_speaks_besides(variable: tuple[str, str]) -> None:
    name, value = variable
    check = check_openmp(find_compiler(), {**os.environ, name: value})
    assert check.status == "ok", check
    assert check.found == f"{check.facts['runtime']}, 2 threads"


def test_openmp_without_a_compiler() -> None:
    check = check_openmp(PopmodelError("none"), os.environ)
    assert (check.status, check.found) == ("untried", "not tested: there is no compiler")


@pytest.mark.parametrize(
    ("does", "found", "todo"),
    [
        (
            """echo '{"threads":1,"openmp":201511,"runtime":"libgomp.so.1"}'""",
            "libgomp.so.1, 1 thread instead of 2",
            "check OMP_THREAD_LIMIT and OMP_DYNAMIC",
        ),
        (
            "echo 'error while loading shared libraries: libomp.so' >&2; exit 127",
            "a program with two threads fails: error while loading shared libraries: libomp.so",
            "run it by hand: OMP_NUM_THREADS=2 {program}",
        ),
        (
            """echo '{"threads":2,'; echo '{"a":1}'; echo 'libgomp: out of sorts' >&2""",
            "unexpected output of a program with two threads: libgomp: out of sorts",
            "check the OMP_* variables and run it by hand: OMP_NUM_THREADS=2 {program}",
        ),
    ],
)
def test_openmp_that_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, found: str, todo: str
) -> None:
    program = script(tmp_path / "hello", does)
    monkeypatch.setattr(doctor, "build", lambda *_: program)
    check = check_openmp(GCC, os.environ)
    assert (check.status, check.found) == ("fail", found)
    assert check.todo == todo.format(program=program)


# MPI


def test_an_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    for manner, words in (
        ("bound", "bound to cores"),
        ("free", "not bound"),
        ("crowded", "not bound, oversubscribed"),
        ("given", "as given by --launcher"),
    ):
        way = LaunchWay(("/opt/bin/mpirun",), manner)  # type: ignore[arg-type]
        monkeypatch.setattr(doctor, "probe", lambda *_, way=way: way)
        check = check_mpi(MPI, os.environ)
        assert check.status == "ok"
        assert check.found == f"Open MPI 4.1.6, ranks started by mpirun, {words}"
        assert check.facts == {
            "library": "Open MPI", "version": "4.1.6", "origin": "user", "compiler": ["gcc"],
            "launcher": ["/opt/bin/mpirun"], "manner": manner,
        }  # fmt: skip


# Counters


def test_counters() -> None:
    check = check_counters(None, 2)
    assert (check.status, check.found) == ("ok", "available (instructions, cycles)")
    assert check.facts == {"error": None, "perf_event_paranoid": 2}
    ask = "popmodel trace --counters needs them: ask for kernel.perf_event_paranoid=2"
    without = "traces recorded here will have none; popmodel machine measure does not need them"
    nowhere = "not available (ENOENT), as in most virtual machines and containers"
    for refused, paranoia, found, todo in (
        (errno.EACCES, 4, "not permitted (perf_event_paranoid is 4)", ask),
        (errno.EPERM, None, "not permitted", ask),
        (errno.ENOENT, 2, nowhere, without),
    ):
        check = check_counters(refused, paranoia)
        assert (check.status, check.found, check.todo) == ("absent", found, todo)


def test_the_setting_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "PARANOID", tmp_path / "paranoid")
    assert counters.paranoia() is None
    (tmp_path / "paranoid").write_text("-1\n")
    assert counters.paranoia() == -1


# Cores


def test_cores_against_limits() -> None:
    online = {"/sys/devices/system/cpu/online": "0-63"}
    slurm = {"SLURM_CPUS_ON_NODE": "64"}
    quota = {"/sys/fs/cgroup/cpu.max": "150000 100000"}
    for files, environment, found, todo in (
        ({"affinity": "0-3"}, {}, "4 cores, 4 of 4 CPUs usable", None),
        ({"affinity": "0-3"}, {"SLURM_CPUS_ON_NODE": "4"}, "4 cores, 4 of 4 CPUs usable", None),
        ({"affinity": "0", **online}, slurm,
         "1 core, 1 of 64 CPUs usable, although Slurm allocated 64",
         "start popmodel outside srun, or with srun -c 64"),
        ({"affinity": "0-3", **online}, {}, "4 cores, 4 of 64 CPUs usable",
         "use an exclusive node (--exclusive): other jobs share its memory and caches"),
        ({"affinity": "0-3", **quota}, {},
         "1 core, 4 of 4 CPUs usable, limited to the time of 1.5 (control group)",
         "raise the CPU limit of the container: threads beyond it are throttled"),
        ({"affinity": "0"}, {}, "1 core, 1 of 1 CPU usable",
         "use a node with more cores: shared resources cannot be measured on one"),
    ):  # fmt: skip
        check = check_cores(hardware.read(files), environment)
        assert (check.found, check.todo) == (found, todo)
        assert check.status == ("warn" if todo else "ok")


# Noise


def test_noise() -> None:
    for *shares, status in (
        (0.04, 0.0, 0.1, "ok"), (0.06, 0.0, 0.1, "warn"), (0.0, 0.02, 0.1, "warn"),
        (0.0, 0.0, 0.3, "warn"),
    ):  # fmt: skip
        check = check_noise(Disturbance(1.25, *shares))
        assert (check.status, check.todo is None) == (status, status == "ok")
        assert check.facts["foreign"] == shares[0]


STAT = """\
cpu  9999 99 999 99999 99 0 9 99 0 0
cpu0 100 10 20 1000 50 1 2 30 5 0
cpu1 200 0 30 2000 60 0 0 40 0 0
cpu10 7777 0 0 0 0 0 0 7777 0 0
intr 1 2 3
"""


def test_the_kernels_count_of_time() -> None:
    # user, nice, system and interrupts are busy; idle and waiting for a disk are not
    assert usage(STAT, [0, 1], ticks=100) == Usage(busy=3.63, stolen=0.7)
    assert usage(STAT, [7], ticks=100) == Usage(0, 0)


def test_what_others_use_is_told_from_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of two CPUs over one second: 1.5 s were busy, of which 1 s was this process.
    texts = iter(["cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n"])
    later = "cpu0 100 0 0 0 0 0 0 0\ncpu1 50 0 0 40 0 0 0 10\n"

    class Stat:
        def read_text(self) -> str:
            return next(texts, later)

    clock, work = iter([10.0, 11.0]), iter([5.0, 6.0])
    monkeypatch.setattr(disturbance, "STAT", Stat())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    monkeypatch.setattr(disturbance.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(disturbance.time, "process_time", lambda: next(work))
    monkeypatch.setattr(disturbance, "_quanta", lambda _: [1.0] * 18 + [1.5, 2.0])
    now = disturbance.measure()
    assert now.foreign == pytest.approx(0.25)
    assert now.steal == pytest.approx(0.05)
    assert now.spread == pytest.approx(0.5)


# The cache


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = check_cache(tmp_path / "file" / "cache")
    assert check.status == "fail"
    assert check.found == f"{tmp_path}/file/cache: cannot be written: Not a directory"
    assert check.todo == "set POPMODEL_CACHE_DIR to another directory"


Volume = namedtuple("Volume", "f_bavail f_frsize f_flag")


def test_a_cache_where_programs_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: Volume(1 << 30, 4096, os.ST_NOEXEC))
    check = check_cache(tmp_path)
    assert check.status == "fail"
    assert check.found == f"{tmp_path}: mounted without permission to run programs (noexec)"
    assert check.todo == "set POPMODEL_CACHE_DIR to another directory"


def test_a_cache_that_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: Volume(256, 4096, 0))
    check = check_cache(tmp_path)
    assert (check.status, check.found) == ("warn", f"{tmp_path}, 1 MiB free")
    assert check.todo == "free some space, or set POPMODEL_CACHE_DIR to another directory"


# All together


def test_all_checks_of_a_machine_without_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popmodel.machines.host.toolchain.PACKAGES", ("no-such-package",))
    checks = examine(hardware.here(), environment={"PATH": "/nowhere"}, seconds=0.05)
    assert [check.name for check in checks] == [
        *("compiler", "OpenMP", "MPI", "counters", "cores", "noise", "cache")
    ]
    assert [check.status for check in checks[:3]] == ["fail", "untried", "fail"]
    assert checks[0].found.startswith("no C compiler found")
    assert checks[2].found.startswith("no MPI found")
    assert all(check.todo for check in checks if check.name in ("compiler", "MPI"))
    assert not measurable(checks)


def test_a_cache_that_fails_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(doctor, "find_mpi", lambda *_: MPI)
    checks = examine(hardware.here(), environment=os.environ, seconds=0.05)
    assert [check.name for check in checks if check.status == "fail"] == ["cache"]
    assert [check for check in checks if check.status == "untried"] == [
        DoctorCheck("OpenMP", "untried", "not tested: it needs the cache"),
        DoctorCheck("MPI", "untried", "not tested: it needs the cache"),
    ]
    assert not measurable(checks)


def test_a_wrong_launcher_is_a_matter_of_the_command_line() -> None:
    with pytest.raises(UsageError, match="program no-such-launcher"):
        examine(hardware.here(), "no-such-launcher")
