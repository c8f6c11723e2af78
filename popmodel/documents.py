"""Files that people write or exchange: finding bundled ones, reading them, errors with lines."""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from popmodel.errors import FileError, UsageError

__all__ = ["Bundled", "parse_json", "parse_toml", "read_text"]

_TOO_MUCH = "is nested too deeply, or has a number with too many digits"
LARGEST = 256 << 20
"""Bytes of a file that is read as a whole."""
LARGEST_TOML = 1 << 20
"""Bytes of a file that people write: ten thousand lines are a quarter of it."""
LONGEST_NAME = 32
"""Parts of a dotted name: the time that it takes to read one grows with the square of them."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{LONGEST_NAME}}}", re.ASCII)


class Bundled:
    """Files of one kind that come with popmodel.

    Parameters
    ----------
    folder : Path
        Where they lie; popmodel is not run from an archive, for it has a compiled core.
    suffix : str
        Of their names, with the dot.
    what : str
        What one is called, for messages, such as ``machine``.
    described : str
        What a name has to be, for messages.
    """

    def __init__(self, folder: Path, suffix: str, what: str, described: str) -> None:
        self._folder = folder
        self._suffix = suffix
        self._what = what
        self._described = described

    def names(self) -> list[str]:
        """Names of the bundled files, without suffix, in order."""
        return sorted(path.stem for path in self._folder.glob(f"*{self._suffix}"))

    def find(self, source: str | os.PathLike[str]) -> tuple[Path, bool]:
        """Path of a file or of a bundled one by its name, and whether it is bundled.

        Raises
        ------
        UsageError
            If there is neither; names a near one.
        """
        name = os.fspath(source)
        path = Path(name)
        if path.exists() or os.sep in name or name.endswith(self._suffix):
            return path, False
        known = self.names()
        if name in known:
            return self._folder / f"{name}{self._suffix}", True
        near = difflib.get_close_matches(name, known, n=1)
        raise UsageError(
            f"no {self._what} {name!r}: {self._described}",
            f"did you mean {near[0]}?" if near else f"bundled are {', '.join(known)}",
        )


def read_text(path: str | os.PathLike[str], error: type[FileError] = FileError) -> str:
    """Text of a file in UTF-8; raises `error` if there is none.

    The byte order mark that spreadsheets and some editors begin a file with is no part of it.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise error(path, f"is larger than {LARGEST >> 20} MiB, and nothing that belongs here")
        return io.StringIO(content.decode("utf-8-sig"), newline=None).read()
    except OSError as reason:
        raise error(path, f"cannot be read: {reason.strerror}") from None
    except UnicodeDecodeError:
        raise error(path, "is not text in UTF-8") from None


def parse_toml(
    text: str, path: str | os.PathLike[str], error: type[FileError] = FileError
) -> dict[str, Any]:
    """Table of a TOML text; raises `error` with line and column if it is none."""
    if len(text) > LARGEST_TOML:
        raise error(path, f"is larger than {LARGEST_TOML >> 20} MiB, and nothing that people write")
    if found := _LONG_NAME.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise error(path, f"has a name of more than {LONGEST_NAME} parts", line=line)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(reason))
        problem = re.sub(r"\s*\(at .*\)$", "", str(reason))
        # without a place it is the end of the text that came too early
        line, column = (
            (int(place[1]), int(place[2])) if place else (len(text.splitlines()) or 1, None)
        )
        raise error(path, f"is not TOML: {problem}", line=line, column=column) from None
    except (RecursionError, ValueError):
        raise error(path, _TOO_MUCH) from None


def parse_json(text: str, path: str | os.PathLike[str], error: type[FileError] = FileError) -> Any:
    """Value of a JSON text; raises `error` with the line if it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as reason:
        raise error(path, f"is not JSON: {reason.msg}", line=reason.lineno) from None
    except (RecursionError, ValueError):
        raise error(path, _TOO_MUCH) from None
