"""Names of functions as their author wrote them, out of what compilers made of them."""

from __future__ import annotations

import re

# Pieces that compilers cut out of a function, or copies that they made of it.
_MADE = (
    "_omp_fn", "_omp_cpyfn", "omp_outlined", "omp_outlined_debug__", "constprop", "isra", "part",
    "cold", "lto_priv", "llvm",
)  # fmt: skip
# What a name ends with, read backwards: `.isra.0.1`, ` [clone ._omp_fn.0]`.
_MADE_ENDS = re.compile(rf"(?:(?:\d++\.?)*+(?:{'|'.join(made[::-1] for made in _MADE)})\.)*+")
_CLONE_ENDS = re.compile(r"(?:\][^][]*+(?<= enolc)\[ )*+")
_MODULE = re.compile(r"(?=\w++\Z)__(\w+?)_MOD_(\w+)")  # gfortran's procedures of modules
_PLACE = re.compile(r"(.*\S) \((?:region \d+|[^()\s]+(?::\d+|\+0x[0-9a-f]+))\)")
_QUALIFIERS = ("", "const", "volatile", "const volatile")
_OPERATOR = re.compile(r"\boperator\b")
_OPEN, _CLOSE = "(<[{", ")>]}"


def readable(name: str) -> str:
    """What a function is called in its source."""
    cut = _without_ends(_MADE_ENDS, _without_ends(_CLONE_ENDS, name.strip()))
    module = _MODULE.fullmatch(cut)
    return f"{module[1]}::{module[2]}" if module else cut or name


def _without_ends(ends: re.Pattern[str], name: str) -> str:
    """Cut what a name ends with, given as a pattern of the reversed name that always matches."""
    match = ends.match(name[::-1])
    return name[: len(name) - match.end()] if match else name


def full_name(label: str) -> str:
    """The name in a label of a trace, which may have it shortened with the whole in brackets."""
    label = label.strip()
    begin = _opening(label, len(label) - 1, "[]") if label.endswith("]") else -1
    shortened = begin > 1 and label[begin - 1] == " " and not label.startswith("clone ", begin + 1)
    return readable(label[begin + 1 : -1] if shortened else label)


def _opening(name: str, last: int, brackets: str) -> int:
    """Where the bracket opens that closes at `last`; -1 if none does."""
    depth = 0
    for place in range(last, -1, -1):
        depth += (name[place] == brackets[1]) - (name[place] == brackets[0])
        if depth == 0:
            return place
    return -1


def function_of(region: str) -> str:
    """The function that a parallel region is in, without its place and its arguments."""
    place = _PLACE.fullmatch(region)
    return without_arguments(place[1] if place else region)


def without_arguments(name: str) -> str:
    """A demangled name without its result and its arguments, which make most of its length."""
    end = _arguments(name)
    if end <= 0 or name[end - 1] == " " or name.endswith("operator", 0, end):
        return name  # a remark of somebody's, or the name of operator()
    stop = end
    for operator in _OPERATOR.finditer(name, 0, end):
        stop = operator.start()
    depth, begin = 0, 0
    for place, letter in enumerate(name[:stop]):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == " " and depth == 0:
            begin = place + 1
    return name[begin:end]


def _arguments(name: str) -> int:
    """Where the arguments begin; -1 if there are none."""
    last = name.rfind(")")
    if last < 0 or name[last + 1 :].strip(" &") not in _QUALIFIERS:
        return -1
    return _opening(name, last, "()")
