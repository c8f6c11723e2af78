"""A directory that one command works in, and others keep out of meanwhile."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from popmodel.errors import FileError
from popmodel.files import append_to

LOCK = ".lock"
"""Name of the file that is locked; one of its own, as others are replaced as a whole."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


@contextmanager
def held(
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
