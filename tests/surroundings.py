"""What every test finds the same, whoever runs the tests and from where, and leaves the same."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import time
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

_STEERS = (
    *("OMP_", "GOMP_", "KMP_", "LIBOMP_"),
    *("OMPI_", "OPAL_", "PRTE_", "PMIX_", "PMI_", "HYDRA_", "MPICH_", "I_MPI_", "MPIEXEC_"),
    *("SLURM_", "SBATCH_", "SRUN_", "PBS_", "LSB_", "LSF_", "FLUX_", "COBALT_"),
    *("POPMODEL_", "MAKE"),
)
_STEER = frozenset(
    {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"}
    | {"TTY_INTERACTIVE", "LD_PRELOAD", "MFLAGS", "POSIXLY_CORRECT", "PYTHONUNBUFFERED"}
)
_KEPT = frozenset(
    # where the tests find something: traces, compilers behind wrappers, an MPI that was moved
    {"POPMODEL_SHARED", "OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX"}
    | {f"{mpi}_{which}" for mpi in ("OMPI", "MPICH") for which in ("CC", "CXX", "FC", "F77", "F90")}
    | {f"OMPI_{which}FLAGS" for which in ("C", "CXX", "FC", "LD", "CPP")}
)
_PYTHONS = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that Python itself ignores."""
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


def signals_as_at_a_terminal() -> None:
    """Undo what the caller has had ignored or kept back (nohup, a shell's &, a daemon)."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - _PYTHONS - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) == signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)


def constants_of_loaded_modules_are_no_examples() -> None:
    """Keep Hypothesis from drawing constants of the modules that happen to be loaded.

    With pytest-xdist these are others each time: they depend on what a worker ran before.
    """
    with suppress(ImportError):  # older versions draw none
        from hypothesis.internal.conjecture import providers

        nothing = providers.Constants()
        vars(providers)["_get_local_constants"] = lambda: nothing


def neutral_environment(environment: MutableMapping[str, str]) -> None:
    """Take out what steers OpenMP, launchers, batch systems, terminals and popmodel."""
    for name in steering(environment):
        del environment[name]


def steering(environment: Iterable[str]) -> set[str]:
    """Give the names of those variables."""
    names = set(environment) - _KEPT
    return {name for name in names if name in _STEER or name.startswith(_STEERS)}


@contextmanager
def shared(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A folder for what is built once for all: only one of pytest's workers is in it at a time."""
    top = factory.getbasetemp()
    folder = (top.parent if "PYTEST_XDIST_WORKER" in os.environ else top) / f"shared-{name}"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


class Leftovers:
    """Finds processes that a test has started and not ended, however they scattered."""

    patience = 60.0
    """Seconds for those that are about to end: a launcher's helpers, on a busy machine."""

    def __init__(self) -> None:
        # Whose parent ends becomes a child of this process, and so cannot hide.
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)

    def children(self) -> set[int]:
        """Give the children of this process."""
        numbers: set[int] = set()
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that ended
                numbers |= {int(number) for number in (thread / "children").read_text().split()}
        # Python's own helper, which ends with this process.
        return numbers - {getattr(resource_tracker._resource_tracker, "_pid", None)}  # type: ignore[attr-defined]

    def end(self, before: Iterable[int]) -> list[str]:
        """End all children that are new; give the command lines of those that had to be killed.

        Those that are about to end by themselves have time for it; zombies are let go.
        """
        new = self.children().difference(before)
        until = time.monotonic() + self.patience
        while (left := {pid for pid in new if not _has_ended(pid)}) and time.monotonic() < until:
            time.sleep(0.01)
        killed = [f"{pid} {_command(pid)}" for pid in sorted(left)]
        while left:  # those of a killed one are ours now, and killed as well
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            left = self.children().difference(before)
        return killed


def _has_ended(pid: int) -> bool:
    """Whether a child has; if it is a zombie it is let go."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    return "?"
