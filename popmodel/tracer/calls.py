"""The MPI calls that the tracer records, read from the table that its library is built with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from popmodel.errors import PopmodelError
from popmodel.host.build import sources
from popmodel.trace.event import Event
from popmodel.trace.paraver.render import event_of
from popmodel.values import dataclass

INCOMPLETE = 10_000
"""Added to the value of a call's event when a test has completed or a probe found nothing.

A reader of traces takes the plain value as a test that has completed a request.
"""

_LINE = re.compile(r"^\s*X\((\w+), (\d+), (\d+), (\d+), (\w+)\)", re.MULTILINE)
_LOOKS = frozenset(
    ("Iprobe", "Improbe", "Test", "Testall", "Testany", "Testsome", "Request_get_status",
     "Parrived", "Win_test")
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """An MPI call."""

    name: str  # Without ``MPI_``
    event: Event  # What the call is about
    value: int  # Its number in a trace, by Extrae
    family: str  # As the table says: message, probe, completion, collective,

    @property
    def may_miss(self) -> bool:
        """Whether it can return without having completed or found anything."""
        return self.name in _LOOKS


@cache
def known_calls() -> Mapping[int, Call]:
    """Return all calls by their number in records."""
    path = sources() / "tracer" / "calls.h"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PopmodelError(
            f"{path}: the table of MPI calls cannot be read: {error.strerror or error}",
            "reinstall popmodel: the package is incomplete",
        ) from None
    return {
        int(number): Call(name, event_of(int(type_)), int(value), family)
        for name, number, type_, value, family in _LINE.findall(text)
    }
