"""Files that are written as a whole or not at all, whatever others have put in their way.

A new file has no name where the system knows such files: it vanishes with the process, whatever
ends it. Elsewhere it has one that cannot be guessed and that must not be there before, and is
removed on errors and signals. It takes its own name when it is complete, by a rename: readers see
the old file or the new one, and a link that somebody planted under the name is replaced and never
written through.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from popmodel.errors import FileError, PopmodelError
from popmodel.signals import ENDING, as_exits

PREFIX = ".popmodel-"
"""How the names of files begin that are still being written, where they need one."""
READ_WRITE = 0o666
PROGRAM = 0o777


class NewFile:
    """A file that gets its name when it is complete, and vanishes if it never is.

    Attributes
    ----------
    file : io.FileIO
        Open for reading and writing, empty.
    """

    def __init__(
        self, folder: Path, permissions: int, *, prefix: str = PREFIX, nameless: bool = True
    ) -> None:
        self._prefix = prefix
        self._partial: Path | None = None
        descriptor = _nameless(folder, permissions) if nameless else None
        if descriptor is None:
            partial = self._unguessable(folder)
            flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC
            descriptor = os.open(partial, flags, permissions)
            self._partial = partial
        self.file = io.FileIO(descriptor, "r+")

    @property
    def place(self) -> str | Path:
        """Where this process can open it meanwhile."""
        return self._partial or f"/proc/self/fd/{self.file.fileno()}"

    @property
    def has_name(self) -> bool:
        """Whether something would be left if the process ended now."""
        return self._partial is not None

    def drop_name(self) -> None:
        """Leave the file without a name."""
        if self._partial is not None:
            self._partial.unlink(missing_ok=True)
            self._partial = None

    def publish(self, target: Path) -> bool:
        """Rename the complete file, in place of another of that name."""
        with _undisturbed():
            if self._partial is None:
                self._partial = self._linked(target.parent)
            if self._partial is None:
                return False
            self._partial.replace(target)
            self._partial = None
        return True

    def _linked(self, folder: Path) -> Path | None:
        descriptor = self.file.fileno()
        partial = self._unguessable(folder)
        try:
            # Of linkat only the form with a folder's descriptor follows the link, so one is given;
            # it has no effect on an absolute path.
            os.link(f"/proc/self/fd/{descriptor}", partial, src_dir_fd=descriptor)
        except OSError:
            return None
        return partial

    def _unguessable(self, folder: Path) -> Path:
        return folder / f"{self._prefix}{os.urandom(8).hex()}"


def _nameless(folder: Path, permissions: int) -> int | None:
    """Open a file without a name; None where the system or the file system has no such files."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, permissions)
    except (AttributeError, OSError):
        return None


@contextmanager
def written(
    path: str | os.PathLike[str],
    permissions: int | None = None,
    read: Callable[[Path], object] | None = None,
) -> Iterator[BinaryIO]:
    """Write a file: to a new one beside it, forced to the disk, which then takes its place."""
    target = Path(path)
    kept = _permissions_of(target) if permissions is None else None
    # What replaces a private file is private from its first byte on.
    first = READ_WRITE if permissions is None else permissions
    # without /proc a file that has no name cannot be read either
    nameless = read is None or Path("/proc/self/fd").exists()
    new = NewFile(target.parent, first if kept is None else 0o600, nameless=nameless)
    with _cleaned(new):
        buffered = io.BufferedWriter(new.file)
        yield buffered
        buffered.flush()
        if read is not None:
            _read_back(new, target, read)
        _complete(new, target, kept)


def _read_back(new: NewFile, target: Path, read: Callable[[Path], object]) -> None:
    """Make sure that what reads such a file takes the new one, under its name to be."""
    with TemporaryDirectory(prefix=PREFIX) as folder:
        link = Path(folder, target.name)
        link.symlink_to(new.place)
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


def _complete(new: NewFile, target: Path, kept: int | None) -> None:
    descriptor = new.file.fileno()
    if kept is not None:
        os.fchmod(descriptor, kept)
    os.fsync(descriptor)
    if new.publish(target):
        return
    # Without /proc a file that has no name cannot get one: it is written again, with a name.
    other = NewFile(target.parent, stat.S_IMODE(os.fstat(descriptor).st_mode), nameless=False)
    with _cleaned(other):
        new.file.seek(0)
        shutil.copyfileobj(new.file, other.file)
        _complete(other, target, kept)


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


def _permissions_of(path: Path) -> int | None:
    """Permissions of a file that will be replaced; None where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mode & 0o777 if stat.S_ISREG(status.st_mode) else None


@contextmanager
def _cleaned(new: NewFile) -> Iterator[None]:
    """Leave nothing of a file that did not get its name, whatever happens."""
    # One without a name needs no help: it vanishes with the process.
    with as_exits() if new.has_name else nullcontext():
        try:
            yield
        finally:
            new.drop_name()
            with suppress(OSError):  # the first error is the one to report
                new.file.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep signals that end a process back for a moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
