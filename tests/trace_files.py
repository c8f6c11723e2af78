"""Small trace files for tests of reading: written, compared, refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from popmodel.base.errors import TraceError
from popmodel.traces import Trace, read
from popmodel.traces.paraver import columns

DATA = Path(__file__).parent / "data"
HEADER = "#Paraver (20/11/2026 at 23:14):1000_ns:1(4):1:2(2:1,1:1),1\n"
STATE = "1:1:1:1:1:0:1000:1\n"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces hold the same, in columns of the same types."""
    for table, names in columns.SCHEMA.items():
        for name in ("offsets", *names):
            left, right = (getattr(getattr(each.records, table), name) for each in (one, other))
            if left.dtype != right.dtype or not np.array_equal(left, right):
                return False
    assert {number: ranks.tolist() for number, ranks in one.communicators.items()} == {
        number: ranks.tolist() for number, ranks in other.communicators.items()
    }
    assert one.process_offsets.tolist() == other.process_offsets.tolist()
    assert one.node_of_location.tolist() == other.node_of_location.tolist()
    assert (one.begin, one.end, one.nodes, one.applications, one.names, one.records.labels) == (
        other.begin,
        other.end,
        other.nodes,
        other.applications,
        other.names,
        other.records.labels,
    )
    assert one.warnings == other.warnings
    return True


def message_of(path: Path, **options: bool) -> tuple[str, str | None]:
    with pytest.raises(TraceError) as caught:
        read(path, **options)
    assert caught.value.exit_status == 1
    assert "\n" not in caught.value.message
    return caught.value.message.removeprefix(str(path)), caught.value.hint
