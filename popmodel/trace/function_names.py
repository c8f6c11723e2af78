"""Names of functions as their author wrote them, out of what compilers made of them."""

from __future__ import annotations

import re

__all__ = ["full_name", "readable"]

# Pieces that compilers cut out of a function, or copies that they made of it.
_MADE = re.compile(
    r"\.(?:_omp_fn|_omp_cpyfn|omp_outlined(?:_debug__)?|constprop|isra|part|cold|lto_priv|llvm)"
    r"(?:\.?\d++)*+"
)
_CLONE = re.compile(r" \[clone [^][]*\]")
_MODULE = re.compile(r"__(\w+?)_MOD_(\w+)")  # gfortran's procedures of modules
_SHORTENED = re.compile(r".*\S \[(.+)\]")


def readable(name: str) -> str:
    """What a function is called in its source.

    Parameters
    ----------
    name : str
        As in a symbol table, demangled or not: ``solve._omp_fn.0``, ``__mesh_MOD_split``.

    Returns
    -------
    str
        ``solve``, ``mesh::split``; what it was given where nothing would be left.
    """
    cut = _without_ends(_MADE, _without_ends(_CLONE, name.strip()))
    module = _MODULE.fullmatch(cut)
    return f"{module[1]}::{module[2]}" if module else cut or name


def _without_ends(pieces: re.Pattern[str], name: str) -> str:
    """Cut the pieces that a name ends with, however many, in one pass."""
    end = len(name)
    for piece in reversed(list(pieces.finditer(name))):
        if piece.end() != end:
            break
        end = piece.start()
    return name[:end]


def full_name(label: str) -> str:
    """The name in a label of a trace, which may have it shortened with the whole in brackets."""
    label = label.strip()
    whole = _SHORTENED.fullmatch(label) if label.endswith("]") else None
    return readable(whole[1] if whole else label)
