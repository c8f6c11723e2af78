"""Files that are written as a whole or not at all, whatever others have put in their way.

A new file has a name that cannot be guessed and that must not be there before, and is removed on
errors and signals. It takes its own name when it is complete, by a rename: readers see the old file
or the new one, and a link that somebody planted under the name is replaced and never written
through. Also: directories that one command works in, and the folder of what popmodel built.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from types import FrameType
from typing import BinaryIO, NoReturn

from popmodel.base.errors import FileError, PopmodelError

PREFIX = ".popmodel-"
"""How the names of files begin that are still being written."""
READ_WRITE = 0o666
PROGRAM = 0o777
LOCK = ".lock"
"""Name of the file that is locked in a directory; one of its own, as others are replaced."""
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


_FIXED_NAMES = ("traces.otf2", "profile.cubex")
"""Names that Score-P gives its files in the directory of each run."""


def run_path(path: str | os.PathLike[str]) -> PurePath:
    """What names a run: its file, or the directory of a file that is called the same in all."""
    named = PurePath(path)
    if named.name in _FIXED_NAMES:
        named = named.parent
    return named if named.name not in ("", "..") else PurePath(Path(named).resolve())


@contextmanager
def as_exits() -> Iterator[None]:
    """Let signals end with the status that shells give them, through all ``finally`` on the way.

    Outside the main thread nothing is changed: signals do not arrive there.
    """

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        # One that whoever started us has had ignored stays ignored.
        taken = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def written(
    path: str | os.PathLike[str],
    permissions: int | None = None,
    read: Callable[[Path], object] | None = None,
) -> Iterator[BinaryIO]:
    """Write a file: to a new one beside it, forced to the disk, which then takes its place.

    `read` has to take the new file, under the name that it will have.
    """
    target = Path(path)
    kept = _permissions_of(target) if permissions is None else None
    # What replaces a private file is private from its first byte on.
    first = READ_WRITE if permissions is None else permissions
    new = target.parent / f"{PREFIX}{os.urandom(8).hex()}"
    flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC
    with as_exits():
        file = io.FileIO(os.open(new, flags, first if kept is None else 0o600), "r+")
        try:
            buffered = io.BufferedWriter(file)
            yield buffered
            buffered.flush()
            if read is not None:
                _read_back(new, target, read)
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            os.fsync(file.fileno())
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)
            file.close()


def _read_back(new: Path, target: Path, read: Callable[[Path], object]) -> None:
    with TemporaryDirectory(prefix=PREFIX) as folder:
        link = Path(folder, target.name)
        link.symlink_to(new.absolute())
        try:
            read(link)
        except PopmodelError as error:
            line, problem = None, error.message
            if isinstance(error, FileError):
                line, problem = error.line, error.problem
            raise FileError(
                target,
                f"is not written, for popmodel could not read it: {problem}",
                line=line,
                hint=error.hint,
            ) from error


def _permissions_of(path: Path) -> int | None:
    """Permissions of a file that will be replaced; None where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mode & 0o777 if stat.S_ISREG(status.st_mode) else None


def write_bytes(
    path: str | os.PathLike[str],
    content: bytes,
    permissions: int | None = None,
    read: Callable[[Path], object] | None = None,
) -> None:
    """Write a file as `written` does."""
    with written(path, permissions, read) as file:
        file.write(content)


def write_text(
    path: str | os.PathLike[str],
    text: str,
    permissions: int | None = None,
    read: Callable[[Path], object] | None = None,
) -> None:
    """Write a file in UTF-8 as `written` does; names in it may hold bytes that are none."""
    write_bytes(path, text.encode(errors="surrogateescape"), permissions, read)


def copy(source: Path, target: Path, permissions: int | None = None) -> None:
    """Copy a file's content as `written` does."""
    with source.open("rb") as original, written(target, permissions) as file:
        shutil.copyfileobj(original, file)


def append_to(path: Path) -> io.FileIO:
    """Open a file, new or not, to append to it."""
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    return io.FileIO(os.open(path, flags, READ_WRITE), "a")


def expect_writable(path: Path) -> None:
    """Make sure, before the work, that a file can be made where its folder is."""
    folder = Path(os.path.realpath(path)).parent
    folder.stat()  # says what is missing
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(
        folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
    ):
        why = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(why, os.strerror(why), str(folder))


def refuse_planted(path: Path, hint: str) -> None:
    """Make sure that a path that leads elsewhere was made to do so by its user."""
    try:
        status = path.lstat()
    except OSError:
        return  # nothing there, or nothing to be seen: to use it says why
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (os.geteuid(), 0):
        raise FileError(
            path,
            f"is a symbolic link of another user (to {os.fsdecode(path.readlink())})",
            hint=hint,
        )


@contextmanager
def locked_folder(
    folder: Path,
    command: str,
    instead: str,
    *,
    refuse_foreign: Callable[[Path], None],
    unwritable: Callable[[Path, OSError], FileError],
) -> Iterator[None]:
    """Keep a directory from other commands while one works in it; it is made if need be.

    The lock is the kernel's and ends with its process, however that ends. A file system that has
    no locks (some parallel ones) cannot tell of another command: there nothing is kept.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        refuse_foreign(folder)
        lock = append_to(folder / LOCK)
    except OSError as error:
        raise unwritable(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = f"wait until it ends, or {instead}"
            raise FileError(folder, f"is in use by another {command}", hint=hint) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise unwritable(folder / LOCK, error) from error
        yield


@contextmanager
def locked_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Keep a file from others that lock it, while it is read and written anew; made if need be.

    `written` puts another file in its place: who waited for the old one tries again. Yields the
    path without links.
    """
    target = Path(os.path.realpath(path))
    while True:
        file = append_to(target)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                file.close()
                raise
        if target.exists() and os.path.samestat(os.fstat(file.fileno()), target.stat()):
            break
        file.close()
    with file:
        yield target


# The cache holds programs and libraries that popmodel built. They are run, so only their user may
# be able to write there: nothing is started from a folder that others can write.


def cache_folder(*names: str) -> Path:
    """Return the user's cache folder of popmodel, or one in it, which need not exist.

    ``$POPMODEL_CACHE_DIR``, else ``popmodel`` in ``$XDG_CACHE_HOME``, else ``~/.cache/popmodel``.
    """
    if own := os.environ.get("POPMODEL_CACHE_DIR"):
        return Path(own, *names)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base, "popmodel", *names)
    return Path(os.path.expanduser("~/.cache"), "popmodel", *names)  # noqa: PTH111 (never raises)


def make_cache_folder(*names: str) -> Path:
    """Make a folder in the cache, with all above it, for its user alone."""
    folder = cache_folder(*names)
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)
    return folder


def doubt_of_cache(*names: str) -> str | None:
    """Return why a folder in the cache cannot be trusted, or None: it is its user's alone.

    A folder that is not there is no reason; root is trusted, for it can do anything anyway.
    """
    path = cache_folder()
    # The cache folder may be a link of the user's to a larger disk.
    checked = [(path, True), (path, False)]
    for name in names:
        path /= name
        checked.append((path, False))
    for folder, of_link in checked:
        try:
            status = folder.lstat() if of_link else folder.stat()
        except OSError:
            return None  # not there, or not to be seen: to use it says why
        if why := doubt_of_file(status):
            return f"{folder} {why}"
    return None


def doubt_of_file(status: os.stat_result) -> str | None:
    """Return why a file may hold what another user wrote, or None."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {status.st_uid})"
    if status.st_mode & _OTHERS and not stat.S_ISLNK(status.st_mode):
        return f"is writable by others (mode {stat.S_IMODE(status.st_mode):03o})"
    return None
