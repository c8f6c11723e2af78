"""What work on long traces may use: a scratch folder, and workers (`popmodel.traces.workers`).

A long trace has columns and arrays that no memory holds. Those beyond a budget lie in files of the
scratch folder, which have no name: nothing is left of them however a command ends. The system keeps
their pages in memory as long as nobody else needs it, and writes them out where somebody does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from popmodel.base import files
from popmodel.base.errors import FileError, TraceError, UsageError
from popmodel.base.units import format_size
from popmodel.kernel import _kernel

LONG = 1 << 26
"""Bytes of text from which on a trace is long."""
BUDGET = 1 << 26
"""Bytes of long arrays that stay in memory."""
_PER_BYTE = 4.0  # bytes in scratch for one of text
_HINT = "name a folder with more space: --scratch DIR, or TMPDIR=DIR"
_PREFIX = "popmodel-"
_UNPACKED = 8  # bytes of text in one that is compressed, about


class Resources:
    """What may be used while a `resources` block runs."""

    def __init__(self, scratch: Path | None, workers: int, executor: str | Executor | None) -> None:
        self.workers, self.executor = workers, executor
        self._asked = scratch
        self._folder: Path | None = None
        self._before: object = None

    def expect(self, path: Path) -> None:
        """Make room for a trace that is about to be read; `FileError` where there is none."""
        try:
            size = path.stat().st_size * (_UNPACKED if path.suffix == ".gz" else 1)
            if path.suffix == ".otf2":  # the records lie in a folder of the same name
                size = sum(each.stat().st_size for each in path.with_suffix("").glob("*.evt"))
        except OSError:
            return  # who reads it says why it cannot be
        if size < LONG:
            return

        folder = self.chosen or default_folder(path)
        need, free = int(_PER_BYTE * size), shutil.disk_usage(folder).free
        if need > free:
            raise FileError(
                path,
                f"needs about {format_size(need)} of scratch, {folder} has {format_size(free)}",
                hint=_HINT,
            )
        if self._folder is None:
            _clear(folder)
            self._folder = folder
            self._before = _kernel.use_scratch(os.fspath(folder), BUDGET)

    @property
    def chosen(self) -> Path | None:
        return self._folder or self._asked

    def leave(self) -> None:
        """Let new arrays lie in memory again."""
        if self._folder is not None:
            _kernel.leave_scratch(self._before)
            self._folder = None

    def refused(self) -> FileError | None:
        """Why the scratch folder could not give what was asked of it, if it could not."""
        size, number = _kernel.scratch_lacks()
        if not size or self._folder is None:
            return None
        problem = f"cannot hold {format_size(size)} more: {os.strerror(number).lower()}"
        return FileError(self._folder, problem, hint=_HINT)


_CURRENT: ContextVar[Resources | None] = ContextVar("resources", default=None)


def current() -> Resources | None:
    """The innermost block of `resources`."""
    return _CURRENT.get()


def scratch_folder(path: Path) -> Path:
    given = current()
    return (given and given.chosen) or default_folder(path)


def worker_folder(path: Path, close: ExitStack) -> Path:
    """Make a folder in the scratch folder for a trace, for files that other processes write.

    It goes with `close`; where this process is killed, at the next start.
    """
    scratch = scratch_folder(path)
    _clear(scratch)
    number, name = tempfile.mkstemp(prefix=_PREFIX, suffix=files.LOCK, dir=scratch)
    lock = close.enter_context(os.fdopen(number))
    with suppress(OSError):  # a file system without locks: nobody clears there
        fcntl.flock(lock, fcntl.LOCK_EX)
    close.callback(Path(name).unlink)
    folder = Path(name).with_suffix("")
    folder.mkdir(mode=0o700)
    close.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _clear(scratch: Path) -> None:
    """Remove folders of killed processes: a lock is the kernel's and ends with its process."""
    for known in scratch.glob(f"{_PREFIX}*{files.LOCK}"):
        with suppress(OSError), known.open("r+b") as lock:  # in use, or of somebody else
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(known.with_suffix(""), ignore_errors=True)
            known.unlink()


def memory_error(path: str | os.PathLike[str]) -> FileError:
    """What to say where there was not enough memory, or scratch, to read a trace."""
    given = current()
    refused = given.refused() if given else None
    return refused or TraceError(
        path, "not enough memory to read it", hint="use a machine with more memory"
    )


@contextmanager
def resources(
    *,
    scratch: str | os.PathLike[str] | None = None,
    workers: int = 1,
    executor: Executor | str | None = None,
) -> Iterator[Resources]:
    """Say what work on large traces may use.

    Parameters
    ----------
    scratch : path, optional
        Folder for what does not fit into memory. Default: ``$TMPDIR``, unless it lies in memory
        itself (tmpfs), else the folder of the trace, else that of the cache.
    workers : int
        How many work at once on this machine: threads on one trace, processes on several.
    executor : concurrent.futures.Executor or str, optional
        Who works instead: any executor, ``"mpi4py"`` (``mpi4py.futures``), ``"dask://HOST:PORT"``
        or the scheduler file of dask. Results do not depend on it.

    Raises
    ------
    UsageError
        If the folder does not exist, cannot be written or lies in memory, or there is not even
        one worker.

    Examples
    --------
    >>> import popmodel
    >>> with popmodel.resources():
    ...     run = popmodel.metrics("examples/traces/stencil3d.2x2.prv.gz")
    """
    if workers < 1:
        raise UsageError(f"workers={workers}: must be at least 1", "try workers=4")
    folder = None if scratch is None else _usable(Path(scratch))
    given = Resources(folder, workers, executor)
    token = _CURRENT.set(given)
    try:
        yield given
    except MemoryError:
        if (error := given.refused()) is not None:
            raise error from None
        raise
    finally:
        _CURRENT.reset(token)
        given.leave()


def _usable(folder: Path) -> Path:

    hint = "name a folder on a disk with space for some times the size of the trace"
    if not folder.is_dir():
        raise UsageError(f"--scratch: {folder} is no folder", hint)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--scratch: {folder} cannot be written", hint)
    if _kernel.is_in_memory(os.fspath(folder)):
        raise UsageError(f"--scratch: {folder} lies in memory (tmpfs): it saves none", hint)
    return folder


def default_folder(path: Path) -> Path:
    """The first of the folder for temporary files, that of a trace and the cache that is on a disk.

    The first of them if none is.
    """
    own = path.absolute().parent
    try:
        first = Path(tempfile.gettempdir())
    except OSError:  # none can be written
        first = own
    for folder in (first, own, files.cache_folder()):
        if os.access(folder, os.W_OK | os.X_OK) and not _kernel.is_in_memory(os.fspath(folder)):
            return folder
    return first
