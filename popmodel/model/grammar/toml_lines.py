"""Find the line of a key in TOML text: the standard reader gives values without positions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import field

from popmodel.values import dataclass

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""+' + r"|'''.*?'''+" + r'|"(?:\\.|[^"\\])*"' + r"|'[^']*'", re.DOTALL
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[Path, int]:
    """Return the line of every table header, every key and every element of an array."""
    return _Scanner(text).document()


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """Return the line of a path, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


@dataclass
class _Scanner:
    """Walks over TOML that parses; that is why nothing unexpected is looked for here."""

    text: str
    at: int = 0
    lines: dict[Path, int] = field(default_factory=dict)
    counts: dict[Path, int] = field(default_factory=dict)
    _seen: tuple[int, int] = (0, 1)

    def document(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip_blank():
            if self.text.startswith("[[", self.at):
                table = self._array_header()
            elif self.text[self.at] == "[":
                table = self._header()
            else:
                self._value(self._key(table))
        return self.lines

    def _array_header(self) -> Path:
        line = self._line()
        self.at += 2
        prefix = self._resolve(self._dotted(), line, last=False)
        self.at += 2
        self.counts[prefix] = self.counts.get(prefix, -1) + 1
        for key in [key for key in self.counts if key[: len(prefix)] == prefix and key != prefix]:
            del self.counts[key]  # a new element starts its own arrays at 0
        table = (*prefix, self.counts[prefix])
        self.lines[table] = line
        return table

    def _header(self) -> Path:
        line = self._line()
        self.at += 1
        parts = self._dotted()
        self.at += 1
        table = (*self._resolve(parts[:-1], line, last=True), parts[-1])
        self.lines.setdefault(table, line)
        return table

    def _resolve(self, parts: list[str], line: int, *, last: bool) -> Path:
        """Insert the index of the current element after every array of tables on the way.

        A table on the way that has no header of its own is where it is first named.
        """
        path: Path = ()
        for index, part in enumerate(parts):
            path = (*path, part)
            self.lines.setdefault(path, line)
            if path in self.counts and (last or index < len(parts) - 1):
                path = (*path, self.counts[path])
        return path

    def _key(self, table: Path) -> Path:
        """Read ``a.b =`` and note its line."""
        line = self._line()
        path = table
        for part in self._dotted():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        return path

    def _dotted(self) -> list[str]:
        """Read the parts of a key up to what ends it."""
        parts = []
        while True:
            self._skip_blank()
            match = _STRING.match(self.text, self.at) or _BARE.match(self.text, self.at)
            assert match is not None, "the text is not TOML"
            token = match[0]
            quoted = token[0] in "\"'"
            parts.append(str(tomllib.loads(f"key = {token}")["key"]) if quoted else token)
            self.at = match.end()
            self._skip_blank()
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def _value(self, path: Path) -> None:
        """Read a value, noting the lines of what is in it; without recursion, however nested."""
        inside: list[tuple[str, Path, int]] = []  # what ends a container, its path, its elements
        while True:
            self._skip_blank()
            opened = self.text[self.at]
            if opened in "[{":
                inside.append(("]" if opened == "[" else "}", path, 0))
                self.at += 1
            elif match := _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at):
                self.at = match.end()
            while inside:  # on to the next element, or out of what is finished
                closing, container, count = inside.pop()
                self._skip_blank()
                if self.text[self.at] == ",":
                    self.at += 1
                    self._skip_blank()
                if self.text[self.at] == closing:
                    self.at += 1
                    continue
                inside.append((closing, container, count + 1))
                if closing == "}":
                    path = self._key(container)
                else:
                    path = (*container, count)
                    self.lines[path] = self._line()
                break
            if not inside:
                return

    def _skip_blank(self) -> bool:
        """Go on to what is neither blank nor comment; False at the end of the text."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at < len(self.text)

    def _line(self) -> int:
        """Line of the present place; counted on from the last one asked for."""
        at, line = self._seen
        line += self.text.count("\n", at, self.at)
        self._seen = (self.at, line)
        return line
