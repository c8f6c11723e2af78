"""Fortran sources as one text in free form: preprocessor, included files, fixed form.

A file whose suffix is that of fixed form is one of free form if a statement shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from popmodel.source.intermediate_form import SourcePlace

FIXED = (".f", ".F", ".for", ".ftn")
FREE = (".f90", ".F90", ".f95", ".F95", ".f03", ".F03", ".f08", ".F08")
SUFFIXES = (*FREE, *FIXED)
_DEEPEST = 20
"""Files that include each other."""
_DIRECTIVE = re.compile(r"^[cC*!](\$omp)", re.IGNORECASE)
_CONDITIONAL = re.compile(r"^\s*!\$(?=\s)")
_INCLUDE = re.compile(r"""^\s*(?:#\s*)?include\s+["']([^"']+)["']""", re.IGNORECASE)
_ONLY_FREE = re.compile(r"(?!\s*!)(?![cCdD*#])[ 0-9]{0,4}[A-Za-z]")
"""A statement in the columns that fixed form has for labels."""
_MACRO = re.compile(r"^#\s*(\w+)\s*(.*)$")


class FortranText:
    """The lines of a file with those that it includes, in free form."""

    def __init__(self, path: Path, arguments: Sequence[str]) -> None:
        self.problems: list[str] = []
        self.macros = {"_OPENMP": "201511"}
        self.folders = [path.parent]
        for argument in arguments:
            if argument.startswith("-D"):
                name, _, value = argument[2:].partition("=")
                self.macros[name] = value or "1"
            elif argument.startswith("-I"):
                self.folders.append(Path(argument[2:]))
        self.places: list[SourcePlace] = []  # Of each line
        self.lines: list[str] = []
        for place, line in self._expanded(path, 0):
            self.places.append(place)
            self.lines.append(line)
        if "-ffixed-form" in arguments or (
            path.suffix in FIXED
            and "-ffree-form" not in arguments
            and not any(map(_ONLY_FREE.match, self.lines))
        ):
            self.lines = _free(self.lines)

    @property
    def text(self) -> bytes:
        """The text that a parser of free form reads, a line for each line."""
        return "\n".join(self.lines).encode() + b"\n"

    def _expanded(self, path: Path, depth: int) -> Iterator[tuple[SourcePlace, str]]:
        """Lines that the preprocessor leaves, with included files in place of their lines."""
        kept = [True]  # Whether lines at each depth of conditions are kept
        was = [True]  # Whether a branch of the condition was taken
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            place = SourcePlace(str(path), number)
            macro = _MACRO.match(line)
            included = _INCLUDE.match(line)
            if included and all(kept):
                yield from self._included(included[1], place, depth)
            elif macro:
                self._directive(macro[1], macro[2].strip(), kept, was)
            elif all(kept):
                yield place, self._substituted(_CONDITIONAL.sub("   ", line))

    def _included(
        self, name: str, place: SourcePlace, depth: int
    ) -> Iterator[tuple[SourcePlace, str]]:
        if name.lower() in ("mpif.h", "omp_lib.h"):
            return
        files = [folder / name for folder in self.folders if (folder / name).is_file()]
        if not files:
            self.problems.append(f"{place}: {name} is not there")
        elif depth >= _DEEPEST:
            self.problems.append(f"{place}: files include each other: followed {depth} times")
        else:
            yield from self._expanded(files[0], depth + 1)

    def _directive(self, name: str, rest: str, kept: list[bool], was: list[bool]) -> None:
        if name in ("if", "ifdef", "ifndef"):
            holds = self._holds(rest) if name == "if" else (rest in self.macros)
            holds = holds != (name == "ifndef")
            kept.append(holds)
            was.append(holds)
        elif name == "elif" and len(kept) > 1:
            kept[-1] = not was[-1] and self._holds(rest)
            was[-1] |= kept[-1]
        elif name == "else" and len(kept) > 1:
            kept[-1] = not was[-1]
        elif name == "endif" and len(kept) > 1:
            kept.pop()
            was.pop()
        elif name == "define" and all(kept):
            macro, _, value = rest.partition(" ")
            self.macros[macro] = value.strip()
        elif name == "undef" and all(kept):
            self.macros.pop(rest, None)

    def _holds(self, condition: str) -> bool:
        """Whether a condition of macros holds: names, numbers, ``defined``, ``!``, and, or."""
        words = re.sub(
            r"defined\s*\(?\s*(\w+)\s*\)?", lambda m: str(int(m[1] in self.macros)), condition
        )
        alternatives = words.split("||")
        return any(all(map(self._is_true, one.split("&&"))) for one in alternatives)

    def _is_true(self, word: str) -> bool:
        word = word.strip(" ()")
        if word.startswith("!"):
            return not self._is_true(word[1:])
        left, _, right = word.partition("==")
        values = [self.macros.get(part.strip(), part.strip()) for part in (left, right)]
        if right:
            return values[0] == values[1]
        return values[0] not in ("0", "") and (values[0].isdigit() or left.strip() in self.macros)

    def _substituted(self, line: str) -> str:
        if len(self.macros) == 1 or line.lstrip().startswith("!"):
            return line
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: self.macros.get(m[0], m[0]), line)


def _free(lines: Sequence[str]) -> list[str]:
    """Lines of fixed form in free form."""
    found: list[str] = []
    last = -1  # The line of code that a continuation goes on with
    for line in lines:
        directive = _DIRECTIVE.match(line)
        if directive:
            goes_on = len(line) > 5 and line[5] not in " 0"
            found.append(f"!$omp{'&' if goes_on else ''} {line[6:72]}")
            if goes_on and len(found) > 1:
                found[-2] += " &"
            continue
        if line[:1] in "cC*!" and line:
            found.append("!" + line[1:])
            continue
        code = line.expandtabs(8 if not line.startswith("\t") else 6)[:72]
        stripped = _before_comment(code)
        if not stripped.strip():
            found.append("!" + code if code.strip() else "")
            continue
        if len(stripped) > 5 and stripped[:5].strip() == "" and stripped[5] not in " 0":
            if last >= 0:
                found[last] += " &"
            found.append("      &" + stripped[6:])
        else:
            found.append(stripped[:5] + " " + stripped[6:])
        last = len(found) - 1
    return found


def _before_comment(code: str) -> str:
    """A line without the comment at its end."""
    quote = ""
    for position, letter in enumerate(code):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "!" and position != 5:
            return code[:position]
    return code
