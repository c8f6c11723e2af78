"""The columns that a scan ends in, whatever holds them: memory, a cache or a temporary file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from popmodel.kernel import _kernel
from popmodel.trace.trace import Events, Int64, Messages, States

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

Tables = dict[str, dict[str, np.ndarray]]


def offsets_of(counts: Int64) -> Int64:
    """First row of each location, and the number of rows, from the rows of each: int64[L + 1]."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def offsets_of_tables(scanner: _kernel.Scanner) -> dict[str, Int64]:
    """Offsets of the three tables by location."""
    return {
        table: offsets_of(counts) for table, counts in zip(SCHEMA, scanner.counts(), strict=True)
    }


def empty(rows: Mapping[str, int]) -> Tables:
    """Columns in memory, not yet filled, with the given number of rows in each table."""
    return {
        table: {name: np.empty(rows[table], kind) for name, kind in columns.items()}
        for table, columns in SCHEMA.items()
    }


def in_order(tables: Tables) -> list[np.ndarray]:
    """All columns in the order that the decoder takes."""
    return [column for columns in tables.values() for column in columns.values()]


def sort_locations(tables: Tables, offsets: Mapping[str, Int64], scanner: _kernel.Scanner) -> None:
    """Put the rows of those locations in time order that the scanner found out of it.

    Rows of equal time keep their order, because the order of entry and exit matters.
    """
    for (table, columns), locations in zip(tables.items(), scanner.disordered(), strict=True):
        for location in locations:
            rows = slice(offsets[table][location], offsets[table][location + 1])
            order = np.argsort(columns[TIME_ORDER[table]][rows], kind="stable")
            for column in columns.values():
                column[rows] = column[rows][order]


def in_memory(scanner: _kernel.Scanner) -> tuple[Tables, dict[str, Int64]]:
    """Columns of everything that the scanner holds, and the offsets of the tables."""
    offsets = offsets_of_tables(scanner)
    tables = empty({table: int(each[-1]) for table, each in offsets.items()})
    scanner.decoder().fill(*in_order(tables))
    sort_locations(tables, offsets, scanner)
    return tables, offsets


def as_records(tables: Tables, offsets: Mapping[str, Int64]) -> tuple[States, Events, Messages]:
    """Return the tables as the three kinds of records."""
    return (
        States(offsets["states"], **tables["states"]),
        Events(offsets["events"], **tables["events"]),
        Messages(offsets["messages"], **tables["messages"]),
    )
