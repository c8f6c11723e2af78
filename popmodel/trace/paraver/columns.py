"""The columns that a scan ends in, in memory or in a temporary file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from popmodel.kernel import _kernel
from popmodel.trace.blocks import give_back
from popmodel.trace.paraver.spill import ColumnFile, Shapes, Spill
from popmodel.trace.tables import EventTable, Int64, MessageTable, States, offsets_of

SCHEMA: Mapping[str, Mapping[str, type[np.generic]]] = {
    "states": {"begin": np.int64, "end": np.int64, "state": np.int32},
    "events": {"time": np.int64, "type": np.uint32, "value": np.int64},
    "messages": {
        "sender": np.int32,
        "receiver": np.int32,
        "logical_send": np.int64,
        "physical_send": np.int64,
        "logical_receive": np.int64,
        "physical_receive": np.int64,
        "size": np.int64,
        "tag": np.int64,
    },
}
"""Name and type of each column, in the order in which the decoder fills them."""

TIME_ORDER = {"states": "begin", "events": "time", "messages": "physical_send"}
"""The column by which the rows of a location are ordered."""

TIMES = (
    "states.begin",
    "states.end",
    "events.time",
    *(f"messages.{each}_{way}" for each in ("logical", "physical") for way in ("send", "receive")),
)
"""The columns of times."""

ROWS = 1 << 14
"""Rows decoded at a time when columns go to a file."""
BLOCK = 1 << 23
"""Bytes of spilled streams read at a time."""

Arrays = dict[str, np.ndarray]
"""Columns by name, as ``events.time``; ``events.offsets`` and the like are the partitions."""


def shapes_of(counts: Iterable[Int64]) -> Shapes:
    """Shapes of all columns and offsets, by name, from the rows of each table by location."""
    shapes = {}
    for (table, columns), each in zip(SCHEMA.items(), counts, strict=True):
        rows = int(each.sum())
        shapes[f"{table}.offsets"] = ("<i8", len(each) + 1)
        for name, kind in columns.items():
            shapes[f"{table}.{name}"] = (np.dtype(kind).newbyteorder("<").str, rows)
    return shapes


def empty(rows: Mapping[str, int]) -> Arrays:
    """Columns in memory, not yet filled, with the given number of rows in each table."""
    return {
        f"{table}.{name}": np.empty(rows[table], kind)
        for table, columns in SCHEMA.items()
        for name, kind in columns.items()
    }


def _decoded(decoder: _kernel.Decoder, block: Arrays, origin: int) -> tuple[int, ...]:
    """Fill columns with the next rows, times less the origin; how many rows each table has."""
    filled = decoder.fill(*block.values())
    if origin:
        for name in TIMES:
            block[name] -= origin
    return filled


def in_memory(scanner: _kernel.Scanner) -> Arrays:
    """Columns and offsets of all that the scanner holds."""
    offsets = {
        table: offsets_of(each) for table, each in zip(SCHEMA, scanner.counts(), strict=True)
    }
    arrays = empty({table: int(each[-1]) for table, each in offsets.items()})
    _decoded(scanner.decoder(), arrays, scanner.first_time)
    arrays |= {f"{table}.offsets": each for table, each in offsets.items()}
    sort_locations(arrays, scanner)
    return arrays


def write(scanner: _kernel.Scanner, spill: Spill | None, file: ColumnFile) -> None:
    """Append all columns and offsets to a file, a block of rows at a time."""
    for table, each in zip(SCHEMA, scanner.counts(), strict=True):
        file.append(f"{table}.offsets", offsets_of(each))
    block = empty(dict.fromkeys(SCHEMA, ROWS))
    origin = scanner.first_time
    if spill is None:
        _write_decoded(scanner.decoder(), block, origin, file)
        return
    decoder = _kernel.Decoder()
    for _ in spill.blocks(decoder, BLOCK):
        _write_decoded(decoder, block, origin, file)


def _write_decoded(decoder: _kernel.Decoder, block: Arrays, origin: int, file: ColumnFile) -> None:
    while any(filled := _decoded(decoder, block, origin)):
        for (table, columns), rows in zip(SCHEMA.items(), filled, strict=True):
            for name in columns:
                file.append(f"{table}.{name}", block[f"{table}.{name}"][:rows])


def sort_locations(arrays: Arrays, scanner: _kernel.Scanner) -> None:
    """Put the rows of those locations in time order that the scanner found out of it.

    Rows of equal time keep their order, because the order of entry and exit matters.
    """
    for (table, columns), locations in zip(SCHEMA.items(), scanner.disordered(), strict=True):
        offsets = arrays[f"{table}.offsets"]
        for location in locations:
            rows = slice(int(offsets[location]), int(offsets[location + 1]))
            order = np.argsort(arrays[f"{table}.{TIME_ORDER[table]}"][rows], kind="stable")
            for name in columns:
                column = arrays[f"{table}.{name}"]
                column[rows] = column[rows][order]
                give_back(column, rows.start, rows.stop)


def as_records(arrays: Arrays) -> tuple[States, EventTable, MessageTable]:
    """Return the arrays as the three kinds of records."""
    return (
        States(**_table(arrays, "states")),
        EventTable(**_table(arrays, "events")),
        MessageTable(**_table(arrays, "messages")),
    )


def _table(arrays: Arrays, table: str) -> dict[str, np.ndarray]:
    return {name: arrays[f"{table}.{name}"] for name in ("offsets", *SCHEMA[table])}
