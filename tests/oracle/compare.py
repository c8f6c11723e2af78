"""Runs the compiled scanner and the plain one on the same text and holds their results together."""

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

import popmodel
from oracle import scanner as plain
from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces import read
from popmodel.traces.paraver import columns
from popmodel.traces.paraver.text_scan import Scan


def compiled(text: bytes, layout: plain.Layout, cuts: Sequence[int] = ()) -> tuple:
    """What the compiled scanner makes of the text, fed in pieces that end at the cuts."""
    try:
        found = _kernel.Scanner(*_words(layout), layout.line)
        for begin, end in pairwise([0, *cuts, len(text)]):
            found.feed(text[begin:end])
        found.finish()
    except _kernel.ScanError as error:
        return ("error", *error.args)
    scan = Scan.of(found)
    arrays = columns.empty(dict(zip(columns.SCHEMA, scan.counts.sum(axis=1).tolist(), strict=True)))
    decoder = found.decoder()
    decoder.fill(*arrays.values())
    assert decoder.fill(*arrays.values()) == (0, 0, 0)
    return _told(scan, arrays)


def in_ranges(text: bytes, layout: plain.Layout, cuts: Sequence[int]) -> tuple:
    """What scanners of ranges of the text that end with a line behind the cuts make of it."""
    edges = sorted({0, *(text.find(b"\n", cut) + 1 for cut in cuts), len(text)})
    whole, spills = None, []
    with ExitStack() as files:
        for begin, end in pairwise(edges if len(edges) > 1 else [0, 0]):
            scanner = _kernel.Scanner(*_words(layout), 0 if begin else layout.line)
            try:
                scanner.feed(text[begin:end])
                scanner.finish()
            except _kernel.ScanError as error:
                number, reason = error.args
                return ("error", number + (whole.lines if whole else 0), reason)
            file = files.enter_context(TemporaryFile(buffering=0))
            spill = columns.Spill(file, sum(layout.threads[layout.application - 1]))
            spill.drain(scanner, memoryview(bytearray(100)))
            spills.append(spill)
            if whole is None:
                whole = Scan.of(scanner)
            else:
                whole.append(Scan.of(scanner))
        file = columns.ColumnFile(
            files.enter_context(TemporaryFile(buffering=0)), columns.shapes_of(whole.counts)
        )
        first, whole.first_time = whole.first_time, 0  # times as they stand in the text
        columns.write(whole, None, spills, file)
        whole.first_time = first
        return _told(whole, file.arrays())


def _words(layout: plain.Layout) -> tuple:
    return (layout.threads, layout.cpus, layout.unit, layout.duration, layout.application)


def _told(scan: Scan, arrays: columns.Arrays) -> tuple:
    tables = []
    for (table, names), each in zip(columns.SCHEMA.items(), scan.counts, strict=True):
        rows = list(zip(*(arrays[f"{table}.{name}"].tolist() for name in names), strict=True))
        edges = [0, *np.cumsum(each).tolist()]
        tables.append([rows[begin:end] for begin, end in pairwise(edges)])
    return (
        "records",
        *tables,
        {number: ranks.tolist() for number, (_, _, ranks) in scan.communicators.items()},
        scan.tallies.tolist(),
        [set(np.flatnonzero(each).tolist()) for each in scan.disordered],
        (scan.first_time, scan.last_time),
        scan.end_elsewhere,
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


def told(path: Path, **resources: Any) -> dict[str, Any]:
    """All that is read of a trace, or the error."""
    try:
        with popmodel.resources(**resources):
            trace = read(path)
    except TraceError as error:
        return {"error": (error.message, error.hint, error.line)}
    found: dict[str, Any] = {
        f"{table}.{name}": np.asarray(getattr(getattr(trace.records, table), name)).tobytes()
        for table, names in columns.SCHEMA.items()
        for name in ("offsets", *names)
    }
    ranks = {number: each.tolist() for number, each in trace.communicators.items()}
    return found | {"warnings": trace.warnings, "ranks": list(ranks.items()), "end": trace.end}
