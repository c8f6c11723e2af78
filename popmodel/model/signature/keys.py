"""What is known of a key of a signature: its unit, its default, its values, what it means.

The tables of the page of signatures say it: a row is a key. The reader refuses keys that no table
has, and the model refuses values outside the domains here.
"""

from __future__ import annotations

import keyword
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Condition, Value
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.register import REGISTER, TIERS, Parameter, is_free

_NEAR = 1e-3  # of the way to the best estimate: where draws end that an open end leaves out


@dataclass(frozen=True)
class Domain:
    """The values that make sense for a number."""

    text: str  # In words that follow "must be"
    # Ends of the range.
    least: float
    most: float = math.inf
    is_open: bool = False  # Whether ``least`` itself is left out

    def holds(self, value: Value) -> Condition:
        """Tell whether a number, or each element of an array, is in the domain."""
        above = value > self.least if self.is_open else value >= self.least
        if isinstance(value, float):
            return bool(above) and value <= self.most
        within: Condition = np.logical_and(above, value <= self.most)
        return within

    def nearest(self, draws: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return draws with those outside at the end of the domain, the first of them inside."""
        least = self.least + self.is_open * _NEAR * (draws[0] - self.least)
        return np.clip(draws, least, self.most)


POSITIVE = Domain("above 0", 0.0, is_open=True)
NOT_NEGATIVE = Domain("at least 0", 0.0)
ONE_OR_MORE = Domain("at least 1", 1.0)
SHARE = Domain("between 0 and 1", 0.0, 1.0)
EXPONENT = Domain("between 0 (smooth) and 0.5 (independent cells)", 0.0, 0.5)
DOMAINS: Mapping[str, Domain | None] = {
    "": None,
    **{one.text: one for one in (POSITIVE, NOT_NEGATIVE, ONE_OR_MORE, SHARE, EXPONENT)},
}
"""What may stand in the column of values."""


@dataclass(frozen=True)
class GrammarKey:
    """One key of a table."""

    name: str  # As it is written
    unit: str  # SI unit of its number; empty if it is no number, ``1`` for a count or ratio
    # What holds if it is not there: a number or a table is read as one, a word may be one of
    # ``choices``, other words stand for no value. None if it has to be there.
    default: str | None
    meaning: str  # What it says
    domain: Domain | None = None  # Values that its formula may have; None if any
    # Values that a formula without names may have, if fewer: what happens to be zero for some
    # number of processes is nothing to do, what is written as zero is a mistake.
    constant: Domain | None = None
    choices: tuple[str, ...] = ()  # The words that it may be; empty if it is no word
    is_whole: bool = False  # Whether its number must be whole, the same in all draws
    of_ranks: bool = False  # Whether its formula may use ``rank`` and has a value for every process
    # Of a table of formulas with free names, what has to be given instead of a number.
    names: str = ""
    table: type[Any] | None = None  # Of a table in the item, its `popmodel.model.kinds.item.Table`
    # How a value that is none of these is read: (reading, table, path of the key) -> value.
    read: Callable[..., Any] | None = None

    def domain_of(self, *, is_constant: bool) -> Domain | None:
        """Return the values allowed for a formula without names, or for one with names."""
        return self.constant or self.domain if is_constant else self.domain

    @property
    def entries(self) -> dict[str, Any]:
        """Entries of a table of formulas with free names, where none are given."""
        is_table = self.default is not None and self.default.startswith("{")
        return dict(tomllib.loads(f"entries = {self.default}")["entries"]) if is_table else {}

    @property
    def has_number(self) -> bool:
        """Whether the default is a number, or there is none because the key has to be there."""
        return self.default is None or self.default[0].isdigit()


class PageTable(NamedTuple):
    """A table of signatures, as the page shows it."""

    about: str  # What it describes
    keys: Mapping[str, GrammarKey]


PAGE = Path(__file__).parents[1] / "signature" / "bundled" / "README.md"
_TITLE = "the document"
_ROW = re.compile(r"^\| `(\w+)` \| ([^|]*?) ?\| ([^|]*?) ?\| ([^|]*?) ?\| (.*) \|$", re.MULTILINE)


@cache
def page_tables() -> Mapping[str, PageTable]:
    """The tables of the page by their names, in order; the document itself has none."""
    found: dict[str, PageTable] = {}
    _, *sections = PAGE.read_text(encoding="utf-8").split("\n### ")
    for section in sections:
        title, _, text = section.partition("\n")
        about = title if title == _TITLE else text.strip().partition("\n")[0].removesuffix(".")
        keys = {
            name: GrammarKey(
                name, unit, None if default == "required" else default, meaning, DOMAINS[values]
            )
            for name, unit, default, values, meaning in _ROW.findall(text)
        }
        if keys:  # quantities of the machine are no keys
            named = "" if title == _TITLE else title
            found[named] = PageTable(about[0].lower() + about[1:], keys)
    return found


# Quantities of the machine that formulas of a program may name: ``machine.memory.bsat``.
#
# A name is ``machine.`` and the path of the quantity in a profile. What stands in lists or depends
# on numbers of threads has no name, but for the clock, which is that of the run.


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


def is_of_machine(name: str) -> bool:
    return name.startswith(f"{MACHINE}.")


@cache
def of_machine(names: frozenset[str]) -> tuple[str, ...]:
    """Return those of some names that are of quantities of the machine, sorted."""
    return tuple(sorted(filter(is_of_machine, names)))


def path_of(name: str) -> str:
    return name.removeprefix(f"{MACHINE}.")


def parameter_of(name: str) -> Parameter | None:
    """Return what a name of a formula stands for; None if that is nothing."""
    words = path_of(name).split(".")

    def stands_for(named: list[str]) -> bool:
        return len(named) == len(words) and all(
            word in TIERS if free == "TIER" else is_free(free) or word == free
            for free, word in zip(named, words, strict=True)
        )

    return next((one for path, one in NAMED.items() if stands_for(path.split("."))), None)


def known_names() -> Collection[str]:
    return [f"{MACHINE}.{path}" for path in NAMED]
