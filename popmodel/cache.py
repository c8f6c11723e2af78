"""Where popmodel keeps the programs and libraries that it built.

They are run, so only their user may be able to write there: nothing is started from a folder that
others can write.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path:
    """Return the user's cache folder of popmodel, which need not exist.

    ``$POPMODEL_CACHE_DIR``, else ``popmodel`` in ``$XDG_CACHE_HOME``, else ``~/.cache/popmodel``.
    """
    if own := os.environ.get("POPMODEL_CACHE_DIR"):
        return Path(own)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "popmodel"
    return Path(os.path.expanduser("~/.cache")) / "popmodel"  # noqa: PTH111 (never raises)


def make(*names: str) -> Path:
    """Make a folder in the cache, with all above it, for its user alone."""
    where = folder()
    missing = [path for path in (where, *where.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        where /= name
        where.mkdir(mode=0o700, exist_ok=True)
    return where


def doubt(*names: str) -> str | None:
    """Return why a folder in the cache cannot be trusted, or None: it is its user's alone.

    A folder that is not there is no reason; root is trusted, for it can do anything anyway.
    """
    path = folder()
    # The cache folder may be a link of the user's to a larger disk.
    checked = [(path, True), (path, False)]
    for name in names:
        path /= name
        checked.append((path, False))
    for each, of_link in checked:
        try:
            status = each.lstat() if of_link else each.stat()
        except OSError:
            return None  # not there, or not to be seen: to use it says why
        if why := foreign(status):
            return f"{each} {why}"
    return None


def foreign(status: os.stat_result) -> str | None:
    """Return why a file may hold what another user wrote, or None."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {status.st_uid})"
    if status.st_mode & _OTHERS and not stat.S_ISLNK(status.st_mode):
        return f"is writable by others (mode {stat.S_IMODE(status.st_mode):03o})"
    return None
