"""Work on several traces, or on parts of one, at once, by any `concurrent.futures.Executor`.

A unit of work is a function of this package and its arguments. Units are handed out in order and
their results are taken in order, so that neither results nor the first error depend on how many
workers there are. Where a process of this machine, or a worker of dask, is killed, its unit is done
again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any, TypeVar, cast

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.traces.resources import current, resources

Answer = TypeVar("Answer")

MANY = 1 << 24
"""Bytes of the second largest trace from which on another process is worth its start."""
_ATTEMPTS = 3  # to do what killed workers have left
_PREFIX = "dask://"
_MPI = "mpi4py"


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads() -> int:
    """Threads that may work at once in this process."""
    given = current()
    return given.workers if given else 1


def map_traces(
    function: Callable[..., Answer], units: Sequence[tuple[Any, ...]], paths: Sequence[str | None]
) -> Iterator[Answer]:
    """Results of a function for each of some arguments, in order.

    Each unit reads the trace of its path; one without a path is done here, as is everything where
    there is one worker only, or little to do.
    """
    given = current()
    executor = given.executor if given else None
    workers = given.workers if given else 1
    sizes = sorted(map(_size, paths))
    if len(sizes) < 2 or (executor is None and (workers < 2 or sizes[-2] < MANY)):
        yield from (function(*unit) for unit in units)
        return
    apart = [unit for unit, path in zip(units, paths, strict=True) if path is not None]
    if executor is None:
        answers = _in_processes(_jobs(function, apart), min(workers, len(apart)))
    else:
        answers = by_executor(function, apart, executor)
    for unit, path in zip(units, paths, strict=True):
        yield function(*unit) if path is None else next(answers)


def _size(path: str | None) -> int:
    try:
        return Path(path).stat().st_size if path else 0
    except (OSError, ValueError):
        return 0  # who reads it says why it cannot be


def by_executor(
    function: Callable[..., Answer], units: Sequence[tuple[Any, ...]], executor: str | Executor
) -> Iterator[Answer]:
    """Results of a function for each of some arguments, in order, from those of an executor."""
    with opened(executor) as pool:
        yield from _results([pool.submit(_job, *job) for job in _jobs(function, units)])


_STOPPED: ContextVar[threading.Event | None] = ContextVar("stopped", default=None)


def stopped() -> bool:
    """Whether nobody wants the result of this unit any more."""
    event = _STOPPED.get()
    return event is not None and event.is_set()


def in_threads(
    function: Callable[..., Answer], units: Sequence[tuple[Any, ...]]
) -> Iterator[Answer]:
    """Results of a function for each of some arguments, in order, from threads of this process.

    For work that is the kernel's, which lets other threads run: as many at once as there are
    workers. Long units look at `stopped` from time to time.
    """
    number = min(threads(), len(units))
    if number < 2:
        yield from (function(*unit) for unit in units)
        return
    stop = threading.Event()

    def started(unit: tuple[Any, ...]) -> Answer:
        _STOPPED.set(stop)
        return function(*unit)

    with ThreadPoolExecutor(number) as pool:
        try:
            yield from _results([pool.submit(copy_context().run, started, unit) for unit in units])
        finally:
            stop.set()


def _jobs(function: Callable[..., Any], units: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    given = current()
    scratch = os.fspath(given.chosen) if given and given.chosen else None
    return [(function, unit, scratch, str(Path.cwd())) for unit in units]


def _in_processes(jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    done = 0
    for attempt in range(_ATTEMPTS):
        # Processes start anew: what this one holds, threads of libraries too, is not theirs.
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            try:
                for answer in _results([pool.submit(_job, *job) for job in jobs[done:]]):
                    done += 1
                    yield answer
                return
            except BrokenProcessPool:
                if attempt + 1 == _ATTEMPTS:
                    raise PopmodelError(
                        f"workers were killed {_ATTEMPTS} times: the machine may lack memory",
                        "try --workers 1",
                    ) from None


def _results(futures: Sequence[Future[Any]]) -> Iterator[Any]:
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _job(
    function: Callable[..., Any], unit: tuple[Any, ...], scratch: str | None, folder: str
) -> Any:
    """Do a unit in another process, which finds files as this one does."""
    if os.getcwd() != folder:  # noqa: PTH109 (compared as text)
        os.chdir(folder)
    with resources(scratch=scratch):
        return function(*unit)


@contextmanager
def opened(executor: str | Executor) -> Iterator[Executor]:
    """An executor that a command line names, or one that is given and stays open."""
    if isinstance(executor, Executor):
        yield executor
    elif executor == _MPI:
        with _mpi_executor() as pool:
            yield pool
    else:
        try:
            import distributed
        except ImportError:
            raise _missing(executor, "dask's distributed") from None
        address, connect = executor.removeprefix(_PREFIX), cast("Any", distributed.Client)
        try:
            if executor.startswith(_PREFIX):
                client = connect(f"tcp://{address}", timeout=_PATIENCE)
            else:
                client = connect(scheduler_file=address, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--executor: no scheduler of dask answers at {address}: {error}",
                "start one: dask scheduler --scheduler-file FILE",
            ) from None
        with client:
            yield client.get_executor(pure=False)


_PATIENCE = 30  # seconds that a scheduler has to answer


def _mpi_executor() -> Executor:
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPIPoolExecutor
    except ModuleNotFoundError:
        raise _missing(_MPI, _MPI) from None
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"--executor {_MPI}: the library of MPI cannot be loaded: {str(error).splitlines()[0]}",
            "load the module of your MPI, or name its folder in LD_LIBRARY_PATH",
        ) from None
    if MPI.COMM_WORLD.size < 2:
        raise UsageError(
            "--executor: MPI has one rank, which has no workers",
            "start several: mpiexec -n 5 python -m mpi4py.futures -m popmodel ...",
        )
    pool: Executor = MPIPoolExecutor()
    return pool


def _missing(executor: str, what: str) -> UsageError:
    return UsageError(
        f"--executor {executor}: {what} is not installed", "pip install 'popmodel-hpc[cluster]'"
    )


def executor_named(name: str, text: str) -> str:
    """An executor as a command line names it; raises `UsageError` for any other word."""
    if text == _MPI or (text.startswith(_PREFIX) and ":" in text.removeprefix(_PREFIX)):
        return text
    if os.path.isfile(text):  # noqa: PTH113 (never raises, however long the name)
        return text
    raise UsageError(
        f"{name}: must be mpi4py, dask://HOST:PORT or a scheduler file of dask, not {text[:40]!r}",
        "try --workers 4 for processes of this machine",
    )
