"""Source lines of calls: where a program's source says they are, and where a trace does."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from tracer.raw_files import CALLS, Process

from popmodel.tracer.symbol_table import SourceLines


def lines_of(source: Path) -> dict[str, set[str]]:
    """Where the calls of a program are, by their names."""
    found = defaultdict(set)
    for number, line in enumerate(source.read_text().splitlines(), start=1):
        for name in re.findall(r"\bat (\w+)", line.partition("/*")[2] or line.partition("!")[2]):
            found[name].add(f"{source.name}:{number}")
    return found


def sites_of(process: Process) -> Counter[tuple[str, int]]:
    """Calls by name and call site."""
    enters = process.of("ENTER")
    return Counter((CALLS[int(r["call"])], int(r["c"]) >> 48) for r in enters)


def lines_found_in(process: Process) -> dict[str, set[str]]:
    """Source lines of the recorded calls, by their names."""
    told = {event["number"]: event for event in process.events("site")}
    found = defaultdict(set)
    for name, number in sites_of(process):
        event = told[number]
        (place,) = SourceLines()(event["module"], [int(event["offset"], 16) - 1])
        found[name].add(place.line)
    return found
