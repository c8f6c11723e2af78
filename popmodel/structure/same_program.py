"""Whether traces are of one program, by what does not change with the size of a run.

Numbers of processes and threads and the problem change how often a program does something, and
which parts of it run at all, but not what they are called. So two traces are laid beside each other
by names that both know: functions and source files that call MPI or hold parallel regions, user
regions, and kinds of communication. A larger run does more: what counts is how much of the poorer
trace the richer one has, too. Traces without any such names may be of one program or not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.calls import CallGroup
from popmodel.trace.regions import parallel_regions
from popmodel.trace.user_regions import user_regions
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from popmodel.trace import Trace

_TOO_FEW = 0.5
"""Share of the names of the poorer trace that another program may have as well: a main function."""
ANYWHERE = frozenset({"MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce"})
"""Communication that most programs have, which tells none from another."""
_BY_CHANCE = re.compile(r"MPI_(Test|Iprobe|Probe|Mprobe|Improbe)")
_UNNAMED = re.compile(r"\+0x[0-9a-fA-F]+$|^0x[0-9a-fA-F]+$|^(function|region) \d+$")
_PLACED = re.compile(r"(?P<name>.*?) \((?P<place>[^()]*)\)$")
_NUMBERED = re.compile(r"region \d+$")
_LINE = re.compile(r"(?P<file>.+):\d+$")
_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """By what two traces are not of one program."""

    what: str  # The kind of names, such as ``"parallel regions"``
    # Those of each trace, in alphabetical order.
    first: tuple[str, ...]
    other: tuple[str, ...]

    def __str__(self) -> str:
        """What the other trace has instead of what the first has."""
        mine, theirs = set(self.first), set(self.other)
        return f"{self.what} {_listed(theirs - mine)} instead of {_listed(mine - theirs)}"


def difference(first: Trace, other: Trace) -> Difference | None:
    """Tell by what two traces are not of one program."""
    mine, theirs = _names(first.whole or first), _names(other.whole or other)
    for what, names in mine.items():
        poorer = min(len(names), len(theirs[what]))
        if poorer and len(names & theirs[what]) <= _TOO_FEW * poorer:
            return Difference(what, *(tuple(sorted(each)) for each in (names, theirs[what])))
    return None


def _names(trace: Trace) -> dict[str, frozenset[str]]:
    """What a run is known by, by kind; empty where the trace does not tell."""
    kinds, sites = _calls(trace)
    regions = [_placed(name) for name in parallel_regions(trace).names]
    places = {place for _, place in (*sites, *regions)}
    files = (found["file"] for place in places if (found := _LINE.match(place)))
    return {
        "user regions": frozenset(user_regions(trace).names),
        "parallel regions": _functions(name for name, _ in regions),
        "functions that call MPI": _functions(name for name, _ in sites),
        "source files": frozenset(files),
        "communication": frozenset(kinds if trace.processes > 1 else ()),
    }


def _calls(trace: Trace) -> tuple[set[str], set[tuple[str, str]]]:
    """Kinds of calls that communicate, and function and place of all calls."""
    calls, sites = trace.calls(), trace.sites()
    kinds = {
        calls.names[name]
        for name in np.flatnonzero(np.bincount(calls.name)).tolist()
        if calls.group[name] is not CallGroup.OTHER
        and calls.names[name] not in ANYWHERE
        and not _BY_CHANCE.match(calls.names[name])
    }
    return kinds, set(sites.places)


def _placed(name: str) -> tuple[str, str]:
    """Name and place of a parallel region, without its number in a function."""
    found = _PLACED.match(name)
    if found is None:
        return name, ""
    return found["name"], "" if _NUMBERED.match(found["place"]) else found["place"]


def _functions(names: Iterable[str]) -> frozenset[str]:
    """Names of functions: addresses differ from build to build, numbers are no names."""
    return frozenset(name for name in names if name and not _UNNAMED.search(name))


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _SHOWN
    return ", ".join(ordered[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
