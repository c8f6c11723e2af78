"""Runs the compiled scanner and the plain one on the same text and holds their results together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from oracle import scanner as plain
from popmodel.kernel import _kernel
from popmodel.traces.paraver import columns


def compiled(text: bytes, layout: plain.Layout, cuts: Sequence[int] = ()) -> tuple:
    """What the compiled scanner makes of the text, fed in pieces that end at the cuts."""
    try:
        found = _kernel.Scanner(
            layout.threads,
            layout.cpus,
            layout.unit,
            layout.duration,
            layout.application,
            layout.line,
        )
        for begin, end in pairwise([0, *cuts, len(text)]):
            found.feed(text[begin:end])
        found.finish()
    except _kernel.ScanError as error:
        return ("error", *error.args)
    counts = found.counts()
    arrays = columns.empty(
        {table: int(each.sum()) for table, each in zip(columns.SCHEMA, counts, strict=True)}
    )
    decoder = found.decoder()
    decoder.fill(*arrays.values())
    assert decoder.fill(*arrays.values()) == (0, 0, 0)
    tables = []
    for (table, names), each in zip(columns.SCHEMA.items(), counts, strict=True):
        rows = list(zip(*(arrays[f"{table}.{name}"].tolist() for name in names), strict=True))
        edges = [0, *np.cumsum(each).tolist()]
        tables.append([rows[begin:end] for begin, end in pairwise(edges)])
    return (
        "records",
        *tables,
        {number: ranks.tolist() for number, ranks in found.communicators().items()},
        [list(tally) for tally in found.tallies()],
        [set(each.tolist()) for each in found.disordered()],
        (found.first_time, found.last_time),
        found.end_elsewhere,
    )


def expected(text: bytes, layout: plain.Layout) -> tuple:
    """What the plain scanner makes of the text."""
    try:
        result = plain.scan(text, layout)
    except plain.ScanError as error:
        return ("error", *error.args)
    return (
        "records",
        result.states,
        result.events,
        result.messages,
        result.communicators,
        result.tallies,
        result.disordered,
        result.times(),
        result.end_elsewhere,
    )
