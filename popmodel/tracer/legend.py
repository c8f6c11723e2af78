"""What the numbers in a merged trace are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.calls import FOUND_NOTHING
from popmodel.trace.event import Event
from popmodel.tracer.calls import INCOMPLETE, known_calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from popmodel.tracer.identities import Functions, Names, Sites


def names_of_values(
    called: NDArray[np.int64], functions: Functions, names: Names, sites: Sites
) -> Mapping[Event, Mapping[int, str]]:
    """Names of the values of events that are others in every run."""
    values: dict[Event, dict[int, str]] = {}
    for number in np.flatnonzero(called).tolist():
        call = known_calls()[number]
        of_group = values.setdefault(call.event, {0: "Outside MPI"})
        # Two calls share a number where Extrae has one for both: the plain name is kept.
        of_group.setdefault(call.value, f"MPI_{call.name}")
        if call.may_miss:
            of_group[call.value + INCOMPLETE] = f"MPI_{call.name}{FOUND_NOTHING}"
    running = {0: "End", **dict(enumerate(functions.names, start=1))}
    for event in (Event.OUTLINED, Event.TASK, Event.NEW_TASK):
        values[event] = running
    if any(functions.lines):
        lines = enumerate(zip(functions.lines, functions.names, strict=True), start=1)
        values[Event.OUTLINED_LINE] = {0: "End"} | {
            number: f"{line or '?:0'} ({name})" for number, (line, name) in lines
        }
    if sites.lines:
        values[Event.CALLER] = {0: "End", **dict(enumerate(sites.functions, start=1))}
        values[Event.CALLER_LINE] = {0: "End", **dict(enumerate(sites.lines, start=1))}
    values[Event.USER_REGION] = {0: "End"} | {
        number: text for text, number in names.numbers.items()
    }
    return values
