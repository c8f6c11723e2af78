"""Where signatures are: files, and those that come with popmodel."""

from __future__ import annotations

import os
from pathlib import Path

from popmodel.documents import Bundled, read_text
from popmodel.model.grammar.reading import SignatureError

DEFAULT = "stencil3d"
"""The bundled signature that commands take if they are given none."""

_BUNDLED = Bundled(
    Path(__file__).parent / "bundled",
    ".toml",
    "application",
    "neither a signature file nor a bundled signature",
)


def bundled() -> list[str]:
    """Return the names of the bundled signatures."""
    return _BUNDLED.names()


def read(source: str | os.PathLike[str]) -> tuple[str, bool, str]:
    """Find a signature: its path, whether it is bundled, and its text."""
    path, is_bundled = _BUNDLED.find(source)
    return os.fspath(path), is_bundled, read_text(path, SignatureError)
