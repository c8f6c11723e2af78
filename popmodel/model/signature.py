"""What an application does, as expressions of its parameters, P and T.

The format is TOML, schema ``popmodel/signature/1``; `load` reads a file or a bundled signature.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from importlib import resources
from pathlib import Path

from popmodel.errors import UsageError
from popmodel.model import toml_lines
from popmodel.model.program import Signature
from popmodel.model.signature_reader import SignatureError, SignatureReader

__all__ = ["DEFAULT", "Signature", "SignatureError", "bundled", "from_text", "load"]

DEFAULT = "cannon"


def bundled() -> list[str]:
    """Give the names of the bundled signatures."""
    folder = resources.files("popmodel.model") / "signatures"
    names = [entry.name for entry in folder.iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load(source: str | os.PathLike[str]) -> Signature:
    """Read a signature from a file, or a bundled one by its name.

    Raises
    ------
    SignatureError
        If the file cannot be read or is no valid signature; the message has file and line.
    UsageError
        If there is neither such a file nor such a bundled signature.
    """
    name = os.fspath(source)
    if name in bundled() and not Path(name).exists():
        # a bundled signature is a plain file: popmodel is not run from a zip archive
        where = Path(str(resources.files("popmodel.model") / "signatures" / f"{name}.toml"))
        return _read(where, is_bundled=True)
    if not Path(name).exists() and os.sep not in name and not name.endswith(".toml"):
        known = bundled()
        near = difflib.get_close_matches(name, known, n=1)
        raise UsageError(
            f"no application {name!r}: neither a signature file nor a bundled signature",
            f"did you mean {near[0]}?" if near else f"bundled are {', '.join(known)}",
        )
    return _read(Path(name), is_bundled=False)


def from_text(text: str, path: str = "signature", *, is_bundled: bool = False) -> Signature:
    """Read a signature from its TOML text.

    Raises
    ------
    SignatureError
        As `load`.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        problem = re.sub(r"\s*\(at .*\)$", "", str(error))
        line = int(place[1]) if place else None
        raise SignatureError(path, f"is not TOML: {problem}", line=line) from None
    except (RecursionError, ValueError):
        problem = "is nested too deeply, or has a number with too many digits"
        raise SignatureError(path, problem) from None
    return SignatureReader(path, toml_lines.key_lines(text)).signature(document, is_bundled)


def _read(path: Path, *, is_bundled: bool) -> Signature:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SignatureError(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SignatureError(path, "is not a text file") from error
    return from_text(text, os.fspath(path), is_bundled=is_bundled)
