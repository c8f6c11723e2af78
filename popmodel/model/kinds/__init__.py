"""The kinds of items of a program, one file each; this is the one list of them."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.model.kinds.collective import Collective
from popmodel.model.kinds.halo import Halo
from popmodel.model.kinds.item import Item
from popmodel.model.kinds.loops import LoopItem, Parallel, Serial, Task
from popmodel.model.kinds.messages import MessagesItem
from popmodel.model.kinds.p2p import PointToPoint, Shift
from popmodel.model.kinds.pipeline import Pipeline

KINDS: Mapping[str, type[Item]] = {
    kind.kind: kind
    for kind in (
        LoopItem,
        Serial,
        Parallel,
        Task,
        Halo,
        Pipeline,
        Shift,
        PointToPoint,
        MessagesItem,
        Collective,
    )
}
"""Every kind by its name, in the order of pages and messages."""


def remedy(label: str) -> str | None:
    """Return the meaning of a remedy of an item by its label; None if no kind has it."""
    for pattern, meaning in (one for kind in KINDS.values() for one in kind.remedies.values()):
        before, after = pattern.split("{}")
        named = len(label) > len(before) + len(after)
        if named and label.startswith(before) and label.endswith(after):
            return meaning
    return None
