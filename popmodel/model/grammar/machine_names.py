"""Quantities of the machine that formulas of a program may name: ``machine.memory.bsat``.

A name is ``machine.`` and the path of the quantity in a profile. What stands in lists or depends on
numbers of threads has no name, but for the clock, which is that of the run.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Mapping

from popmodel.machine.parameter import TIERS, Parameter, is_free
from popmodel.machine.parameters import REGISTER

MACHINE = "machine"
"""What such names begin with."""
CLOCK = "core.freq"
"""Path of the clock, which formulas know with as many active cores as the run has on a node."""
_NUMBERED = {"CORES", "PAIR"}  # entries whose names are numbers, which no formula can write


def _named(parameter: Parameter) -> str | None:
    """Path by which formulas may name a parameter, free names in capitals; None if they may not."""
    path = parameter.path.removesuffix(".CORES") if parameter.stem == CLOCK else parameter.path
    words = path.split(".")
    listed = "[]" in path or "fit" in words or not _NUMBERED.isdisjoint(words)
    return None if listed or not parameter.unit or any(map(keyword.iskeyword, words)) else path


NAMED: Mapping[str, Parameter] = {path: one for one in REGISTER if (path := _named(one))}
"""Every quantity that has a name, by its path; words in capitals stand for names."""


def _pattern(path: str) -> str:
    words = (
        f"(?:{'|'.join(TIERS)})" if word == "TIER" else r"\w+" if is_free(word) else re.escape(word)
        for word in path.split(".")
    )
    return r"\.".join(words)


_PATTERNS = {path: re.compile(_pattern(path), re.ASCII) for path in NAMED}


def is_of_machine(name: str) -> bool:
    """Tell whether a name of a formula is that of a quantity of the machine."""
    return name.startswith(f"{MACHINE}.")


def of_machine(names: Iterable[str]) -> list[str]:
    """Return those of some names that are of quantities of the machine, sorted."""
    return sorted(filter(is_of_machine, names))


def path_of(name: str) -> str:
    """Return the path in a profile that a name of a formula stands for."""
    return name.removeprefix(f"{MACHINE}.")


def parameter_of(name: str) -> Parameter | None:
    """Return what a name of a formula stands for; None if that is nothing."""
    path = path_of(name)
    return next((NAMED[one] for one, form in _PATTERNS.items() if form.fullmatch(path)), None)


def known() -> Collection[str]:
    """Return all names, those of entries in capitals."""
    return [f"{MACHINE}.{path}" for path in NAMED]
