"""Whether every message of a list has both ends, on a grid of any size.

Rows that name neighbours are read off one number of processes, where two neighbours may be the same
process. On a larger grid they are not, and what is sent to one may be awaited from the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.expressions import parse

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SENDS, _RECEIVES = ("send", "isend", "sendrecv"), ("recv", "irecv", "sendrecv")
_OPENS = ("isend", "irecv")
_REPEATED = 3  # repetitions that show how rows go on


def all_meet(rows: Sequence[Mapping[str, Any]], dims: Sequence[int]) -> bool:
    """Whether every message has both ends, of the same size, and every request one."""
    processes = int(np.prod(dims))
    names = _names(dims)
    sides = _Side({}, {}), _Side({}, {})
    opened = np.zeros(processes, dtype=np.int64)
    for row in _flat(rows):
        on = _on(row, names)
        if row["do"] in _OPENS:
            opened += on
        elif row["do"] == "waitall":
            opened[on] = 0
        elif row["do"] == "wait":
            opened[on] -= 1
            if (opened < 0).any():
                return False
        for do, key, side in ((_SENDS, "to", sides[0]), (_RECEIVES, "from", sides[1])):
            if row["do"] in do:
                rank, partner = _pairs(row[key], on, names)
                ends = (rank, partner) if key == "to" else (partner, rank)
                side.add(row, ends[0] * processes + ends[1])
    return not opened.any() and sides[0].meets(sides[1])


def messages_of(rows: Sequence[Mapping[str, Any]], dims: Sequence[int]) -> int:
    """Return how many messages all processes send with some extents of the grid."""
    names = _names(dims)
    found = 0
    for row in rows:
        if "calls" in row:
            found += round(float(row["repeat"])) * messages_of(row["calls"], dims)
        elif row["do"] in _SENDS:
            found += len(_pairs(row["to"], _on(row, names), names)[0])
    return found


def _names(dims: Sequence[int]) -> dict[str, Any]:
    processes = int(np.prod(dims))
    names: dict[str, Any] = {f"P{axis}": float(extent) for axis, extent in enumerate(dims)}
    return names | {"rank": np.arange(processes, dtype=np.float64), "P": float(processes)}


class _Side(NamedTuple):
    """Ends of messages by tag: pairs of ranks, and sizes as they are written, in order."""

    pairs: dict[str, list[NDArray[np.int64]]]
    sizes: dict[str, list[str]]

    def add(self, row: Mapping[str, Any], pairs: NDArray[np.int64]) -> None:
        tag = str(row.get("tag", 0))
        self.pairs.setdefault(tag, []).append(pairs)
        self.sizes.setdefault(tag, []).append(str(row["bytes"]) if "bytes" in row else "")

    def meets(self, other: _Side) -> bool:
        """Whether the k-th message of a pair is sent and received, and as large where both say."""
        if self.pairs.keys() != other.pairs.keys():
            return False
        known = {"": 0}
        for tag in self.pairs:
            columns = []
            for side in (self, other):
                each = side.pairs[tag]
                codes = [known.setdefault(size, len(known)) for size in side.sizes[tag]]
                size = np.repeat(codes, [len(one) for one in each])
                pair = np.concatenate(each)
                order = np.argsort(pair, kind="stable")
                columns.append((pair[order], size[order]))
            (sent, one), (received, two) = columns
            if not np.array_equal(sent, received):
                return False
            if ((one != two) & (one > 0) & (two > 0)).any():
                return False
        return True


def at_once(rows: Sequence[dict[str, Any]], processes: int) -> list[dict[str, Any]] | None:
    """Write waits for the only open request as waits for all; None if there is another one.

    Then a list may open more requests for larger grids.
    """
    opened = np.zeros(processes, dtype=np.int64)
    found = []
    for row in rows:
        if "calls" in row:
            inner = at_once(row["calls"], processes)
            if inner is None or opened.any():
                return None
            found.append({**row, "calls": inner})
            continue
        on = _on(row, {"rank": np.arange(processes, dtype=np.float64), "P": float(processes)})
        if row["do"] in _OPENS:
            opened += on
        elif row["do"] == "waitall":
            opened[on] = 0
        elif row["do"] == "wait":
            if "request" in row or (opened[on] != 1).any():
                return None
            opened[on] = 0
            row = {**row, "do": "waitall"}
        found.append(row)
    return None if opened.any() else found


def _flat(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rows in the order in which they are carried out; many repetitions as a few of them."""
    for row in rows:
        if "calls" in row:
            for _ in range(min(round(float(row["repeat"])), _REPEATED)):
                yield from _flat(row["calls"])
        else:
            yield row


def _on(row: Mapping[str, Any], names: Mapping[str, Any]) -> NDArray[np.bool_]:
    processes = len(names["rank"])
    on = row.get("on")
    found = np.ones(processes, dtype=bool)
    if isinstance(on, list):
        found[:] = False
        found[on] = True
    elif on is not None:
        found &= np.asarray(parse(str(on)).evaluate(names), dtype=np.float64) != 0
    return found


def _pairs(
    value: Any, on: NDArray[np.bool_], names: Mapping[str, Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ranks that have a partner, and these."""
    processes = len(on)
    listed = isinstance(value, list)
    found = np.asarray(value if listed else parse(str(value)).evaluate(names), dtype=np.float64)
    partner = np.rint(np.broadcast_to(found, processes)).astype(np.int64)
    inside = np.flatnonzero(on & (partner >= 0) & (partner < processes))
    return inside, partner[inside]
