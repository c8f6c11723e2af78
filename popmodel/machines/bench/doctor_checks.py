"""Whether this machine can be measured: what is there, what is not, and what to do about it.

Each check is plain data. What is found out is found out by doing it: the compiler compiles, threads
and ranks start, a counter counts, a file is written.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, TypeVar

from popmodel.base import files, shell
from popmodel.base.documents import Plain, TableShape, Text, WholeShape, parse_json, read_shape
from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.units import format_size, plural
from popmodel.base.values import dataclass
from popmodel.machines.host import conditions as counters
from popmodel.machines.host import conditions as disturbance
from popmodel.machines.host.build import build
from popmodel.machines.host.hardware import Hardware, cpu_list
from popmodel.machines.host.launcher import probe
from popmodel.machines.host.processes import output_of
from popmodel.machines.host.toolchain import Compiler, Mpi, find_compiler, find_mpi

Status = Literal["ok", "warn", "fail", "absent", "untried"]
Environment = Mapping[str, str]
Found = TypeVar("Found")

FOREIGN = 0.05
"""Share of the CPUs that others may take before a measurement counts as disturbed."""
STEAL = 0.01
"""The same for other virtual machines: what they take comes in long pieces."""
SPREAD = 0.2
"""How much longer the same work may take at the 90th percentile than at the 10th."""
ROOM = 100 << 20
"""Bytes that the cache should have free: programs, and compilers' temporary files."""

_QUIETER = "measure when the node is idle, or on an exclusive node"
_PATIENCE = 60.0  # seconds for a program of two threads


@dataclass(frozen=True)
class DoctorCheck:
    """One question and its answer."""

    name: str  # What was asked for
    # ``ok``; ``warn`` if measuring goes on with a doubt; ``fail`` if it cannot; ``absent`` if
    # something is not there that measuring does not need; ``untried`` if another check has failed
    # that this one depends on.
    status: Status
    found: str  # What was found
    todo: str | None = None  # What to do about it
    facts: Mapping[str, Any] = field(default_factory=dict)  # The same for programs


def examine(
    hardware: Hardware,
    launcher: str | None = None,
    environment: Environment = os.environ,
    seconds: float = 1.0,
) -> list[DoctorCheck]:
    """Do all checks."""
    mpi = _tried(lambda: find_mpi(launcher, environment))
    own = mpi if isinstance(mpi, Mpi) else None
    compiler = _tried(lambda: find_compiler(own, environment))
    # Listened for before the other checks make noise themselves.
    noise = check_noise(disturbance.measure(seconds))
    kept = check_cache(files.cache_folder())
    # Both build a program there: one cause is told once.
    is_built = kept.status != "fail"
    return [
        check_compiler(compiler),
        check_openmp(compiler, environment) if is_built else _untried("OpenMP", kept),
        check_mpi(mpi, environment)
        if is_built or isinstance(mpi, PopmodelError)
        else _untried("MPI", kept),
        check_counters(counters.refusal(), counters.paranoia()),
        check_cores(hardware, environment),
        noise,
        kept,
    ]


def measurable(checks: list[DoctorCheck]) -> bool:
    """Whether a machine can be measured after these checks."""
    return all(check.status != "fail" for check in checks)


def check_compiler(compiler: Compiler | PopmodelError) -> DoctorCheck:
    """Whether there is a C compiler."""
    if isinstance(compiler, PopmodelError):
        return _failed("compiler", compiler)
    facts = {"command": list(compiler.command), "version": compiler.version}
    return DoctorCheck("compiler", "ok", compiler.version, facts=facts)


def check_openmp(compiler: Compiler | PopmodelError, environment: Environment) -> DoctorCheck:
    """Whether two threads start, and whose OpenMP runtime starts them."""
    if isinstance(compiler, PopmodelError):
        return DoctorCheck("OpenMP", "untried", "not tested: there is no compiler")
    try:
        program = build("hello-openmp", compiler, environment)
    except PopmodelError as error:
        return _failed("OpenMP", error)
    asked = {**environment, "OMP_NUM_THREADS": "2"}
    done = output_of([str(program)], timeout=_PATIENCE, environment=asked)
    if done.status != 0:
        todo = f"run it by hand: OMP_NUM_THREADS=2 {program}"
        return DoctorCheck(
            "OpenMP", "fail", f"a program with two threads fails: {done.last_line}", todo
        )
    facts = _answer(done.text)
    if facts is None:
        todo = f"check the OMP_* variables and run it by hand: OMP_NUM_THREADS=2 {program}"
        return DoctorCheck(
            "OpenMP",
            "fail",
            f"unexpected output of a program with two threads: {done.last_line}",
            todo,
        )
    found = f"{facts['runtime']}, {plural(facts['threads'], 'thread')}"
    if facts["threads"] < 2:
        todo = "check OMP_THREAD_LIMIT and OMP_DYNAMIC"
        return DoctorCheck("OpenMP", "fail", f"{found} instead of 2", todo, facts)
    return DoctorCheck("OpenMP", "ok", found, facts=facts)


_ANSWER = TableShape(
    {"threads": WholeShape(1), "runtime": Text()}, ("threads", "runtime"), others=Plain()
)


def _answer(text: str) -> dict[str, Any] | None:
    """Find the line of JSON that hello_openmp.c prints among what the runtime says; None if cut."""
    for line in text.splitlines():
        if line.startswith("{"):
            with suppress(FileError):
                found = parse_json(line, "hello-openmp")
                return dict(read_shape(found, _ANSWER, "hello-openmp"))
    return None


def check_mpi(mpi: Mpi | PopmodelError, environment: Environment) -> DoctorCheck:
    """Whether ranks start, as this user, and how."""
    if isinstance(mpi, PopmodelError):
        return _failed("MPI", mpi)
    facts: dict[str, Any] = {
        "library": mpi.library,
        "version": mpi.version,
        "origin": mpi.origin,
        "compiler": list(mpi.compiler.command),
    }
    name = mpi.name if mpi.origin == "user" else f"{mpi.name} (Python package)"
    try:
        way = probe(mpi, environment)
    except PopmodelError as error:
        return DoctorCheck("MPI", "fail", f"{name}: {error.message}", error.hint, facts)
    manners = {
        "given": "as given by --launcher",
        "bound": "bound to cores",
        "free": "not bound",
        "crowded": "not bound, oversubscribed",
    }
    facts |= {"launcher": list(way.launcher), "manner": way.manner}
    return DoctorCheck(
        "MPI", "ok", f"{name}, ranks started by {way.name}, {manners[way.manner]}", facts=facts
    )


def check_counters(refused: int | None, paranoia: int | None) -> DoctorCheck:
    """Whether the hardware's counters can be read."""
    facts: dict[str, Any] = {"error": None, "perf_event_paranoid": paranoia}
    if refused is None:
        return DoctorCheck("counters", "ok", "available (instructions, cycles)", facts=facts)
    facts["error"] = errno.errorcode.get(refused, str(refused))
    if refused in (errno.EACCES, errno.EPERM):
        setting = "" if paranoia is None else f" (perf_event_paranoid is {paranoia})"
        todo = "popmodel trace --counters needs them: ask for kernel.perf_event_paranoid=2"
        return DoctorCheck("counters", "absent", f"not permitted{setting}", todo, facts)
    found = f"not available ({facts['error']}), as in most virtual machines and containers"
    todo = "traces recorded here will have none; popmodel machine measure does not need them"
    return DoctorCheck("counters", "absent", found, todo, facts)


def check_cores(hardware: Hardware, environment: Environment) -> DoctorCheck:
    """What of the node this process may use."""
    cores, allowed, online = hardware.usable_cores, len(hardware.cpus), len(hardware.online)
    facts = {
        "cores": cores,
        "cpus_allowed": cpu_list(hardware.cpus),
        "cpus_online": online,
        "cpu_limit": hardware.cpu_limit,
        "memory_limit": hardware.memory_limit,
    }
    found = f"{plural(cores, 'core')}, {allowed} of {plural(online, 'CPU')} usable"
    given = environment.get("SLURM_CPUS_ON_NODE", "")
    if hardware.cpu_limit is not None and hardware.cpu_limit < allowed:
        found += f", limited to the time of {hardware.cpu_limit:g} (control group)"
        todo = "raise the CPU limit of the container: threads beyond it are throttled"
        return DoctorCheck("cores", "warn", found, todo, facts)
    if given.isdigit() and int(given) > allowed:
        found += f", although Slurm allocated {given}"
        todo = f"start popmodel outside srun, or with srun -c {given}"
        return DoctorCheck("cores", "warn", found, todo, facts)
    if allowed < online:
        todo = "use an exclusive node (--exclusive): other jobs share its memory and caches"
        return DoctorCheck("cores", "warn", found, todo, facts)
    if cores == 1:
        todo = "use a node with more cores: shared resources cannot be measured on one"
        return DoctorCheck("cores", "warn", found, todo, facts)
    return DoctorCheck("cores", "ok", found, facts=facts)


def check_noise(now: disturbance.Disturbance) -> DoctorCheck:
    """Whether the machine is quiet enough to measure."""
    found = (
        f"other programs use {100 * now.foreign:.0f} % of the CPU time, steal "
        f"{100 * now.steal:.0f} %, "
        f"runtimes vary by {100 * now.spread:.0f} %, load {now.load:.1f}"
    )
    loud = now.foreign > FOREIGN or now.steal > STEAL or now.spread > SPREAD
    status: Status = "warn" if loud else "ok"
    return DoctorCheck("noise", status, found, _QUIETER if loud else None, vars(now))


def check_cache(folder: Path) -> DoctorCheck:
    """Whether programs can be kept, and run, in the user's cache."""
    other = "set POPMODEL_CACHE_DIR to another directory"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix="partial-", dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
        status = os.statvfs(folder)
        why = files.doubt_of_file(folder.stat())
    except OSError as error:
        return DoctorCheck("cache", "fail", f"{folder}: cannot be written: {error.strerror}", other)
    free = status.f_bavail * status.f_frsize
    facts = {"folder": str(folder), "free": free}
    if why:
        found = f"{folder} {why}: programs in it are not run"
        todo = f"chmod go-w {shell.quote(str(folder))}, or {other}"
        return DoctorCheck("cache", "fail", found, todo, facts)
    if status.f_flag & os.ST_NOEXEC:
        found = f"{folder}: mounted without permission to run programs (noexec)"
        return DoctorCheck("cache", "fail", found, other, facts)
    found = f"{folder}, {format_size(free, digits=2)} free"
    if free < ROOM:
        return DoctorCheck("cache", "warn", found, f"free some space, or {other}", facts)
    return DoctorCheck("cache", "ok", found, facts=facts)


def _tried(find: Callable[[], Found]) -> Found | PopmodelError:
    """What is found, or why it is not. A wrong command line is not a state of the machine."""
    try:
        return find()
    except UsageError:
        raise
    except PopmodelError as error:
        return error


def _untried(name: str, cause: DoctorCheck) -> DoctorCheck:
    return DoctorCheck(name, "untried", f"not tested: it needs the {cause.name}")


def _failed(name: str, error: PopmodelError) -> DoctorCheck:
    return DoctorCheck(name, "fail", error.message, error.hint)
