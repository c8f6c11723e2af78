"""Directives of OpenMP in a file of C or C++: pragmas, ``_Pragma``, macros of these, attributes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from popmodel.source.openmp_directives import bracketed

_COMMENT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
"""Comments and texts, so that neither is taken for the other."""
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_OPERATOR = re.compile(r'\b_Pragma\s*\(\s*"\s*omp\b((?:\\.|[^"\\])*)"\s*\)')
_ATTRIBUTE = re.compile(r"\[\[\s*(?:using\s+omp\s*:|omp\s*::)")
_DIRECTIVE = re.compile(r"\bdirective\s*(?=\()")
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
_OF_ARGUMENT = re.compile(r"\b_Pragma\s*\(\s*#\s*(\w+|__VA_ARGS__)\s*\)|\b_Pragma\s*\(\s*\w+\s*\(")


class Pragma(NamedTuple):
    """A directive of OpenMP with its place."""

    offset: int
    line: int
    text: str  # Without ``#pragma omp``


def pragma_macros(text: str) -> Iterator[tuple[str, str | None]]:
    """Macros that are pragmas of OpenMP, with their texts; None where an argument is the text."""
    for match in _MACRO.finditer(text):
        operators = _OPERATOR.findall(match[3])
        if operators:
            yield match[1], operators[-1]
        elif match[2] and _OF_ARGUMENT.search(match[3]):
            yield match[1], None


def pragmas_of(
    text: str, skipped: Sequence[tuple[int, int]], macros: Mapping[str, str | None]
) -> list[Pragma]:
    """Find the directives of a file.

    Parameters
    ----------
    text : str
        The file, a letter for each byte.
    skipped : sequence of pairs of int
        First and last offsets that the preprocessor leaves out.
    macros : mapping of str to str
        Macros that are pragmas, as `pragma_macros` gives them.
    """
    plain = _COMMENT.sub(
        lambda match: (
            match[0].replace("\n#", "\n ")
            if match[0][0] in "\"'"
            else re.sub(r"[^\n\\]", " ", match[0])
        ),
        text,
    )
    found: list[tuple[int, str]] = []
    if "omp" in plain:
        found += [(match.start(), match[1]) for match in _PRAGMA.finditer(plain)]
        defined = [match.span() for match in _MACRO.finditer(plain)]
        for match in _OPERATOR.finditer(plain):
            if not any(begin <= match.start() < end for begin, end in defined):
                found.append((match.start(), match[1].replace('\\"', '"')))
        for match in _ATTRIBUTE.finditer(plain):
            end = plain.find("]]", match.end())
            inner = plain[match.end() : end if end >= 0 else len(plain)]
            for directive in _DIRECTIVE.finditer(inner):
                found.append((match.start(), bracketed(inner[directive.end() :])[0]))
    if macros:
        names = re.compile(rf"^[ \t]*#[^\n]*|\b({'|'.join(map(re.escape, macros))})\b", re.M)
        for match in names.finditer(plain):
            if match[1] is None:
                continue
            value = macros[match[1]]
            if value is None:
                value = bracketed(plain[match.end() :].lstrip())[0]
                if not re.match(r"omp\b", value):
                    continue
                value = value[3:]
            found.append((match.start(), value))
    starts = [position for position, letter in enumerate(text) if letter == "\n"] if found else []
    return [
        Pragma(
            offset, bisect_right(starts, offset) + 1, " ".join(part.replace("\\\n", " ").split())
        )
        for offset, part in sorted(found, key=lambda pair: pair[0])
        if not any(begin <= offset < end for begin, end in skipped)
    ]
