"""Tables of a trace as pandas data frames, for interactive use."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import UsageError
from popmodel.trace.tables import location_of_row
from popmodel.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

TABLES = ("states", "events", "messages", "calls")


def frame(trace: Trace, table: str) -> pandas.DataFrame:
    """Return one table of a trace, with the process and the thread (from 0) of each row."""
    import pandas

    if table not in TABLES:
        raise UsageError(f"a trace has no table {table!r}", "choose one of " + ", ".join(TABLES))
    records = trace.calls() if table == "calls" else getattr(trace.records, table)
    location = location_of_row(records.offsets)
    process = trace.process_of_location()[location]
    data = {"process": process, "thread": location - trace.process_offsets[process]}
    for field in dataclasses.fields(records):
        column = getattr(records, field.name)
        if field.name != "offsets" and isinstance(column, np.ndarray):
            data[field.name] = column
    if table == "calls":
        data["name"] = np.array([*records.names, ""], object)[records.name]
    return pandas.DataFrame(data)
