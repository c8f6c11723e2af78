"""Where popmodel keeps what it can make again: parsed traces, built programs."""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """Return the user's cache folder of popmodel, which need not exist.

    ``$POPMODEL_CACHE_DIR``, else ``popmodel`` in ``$XDG_CACHE_HOME``, else ``~/.cache/popmodel``.
    """
    if own := os.environ.get("POPMODEL_CACHE_DIR"):
        return Path(own)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "popmodel"
    return Path(os.path.expanduser("~/.cache")) / "popmodel"  # noqa: PTH111 (never raises)
