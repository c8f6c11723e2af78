"""What a reader may leave to the tables that every format has."""

from pathlib import Path

import numpy as np
import pytest

from popmodel.traces import Trace, read
from popmodel.traces.codes import MARKS, Event
from popmodel.traces.info import info
from popmodel.traces.regions import locked, parallel_regions, synchronisation, user_regions

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(params=["whole", "part"])
def plain(request: pytest.FixtureRequest) -> Trace:
    """A trace of a format that has states and calls only, and a part of it."""
    trace = read(DATA / "smpi" / "jac2048.4.ti.txt.gz")
    return trace if request.param == "whole" else trace.window(10**7, 10**8)


def test_tables_that_a_format_does_not_have_are_empty(plain: Trace) -> None:
    records = plain.records
    assert len(parallel_regions(plain).on_master) == 0
    assert synchronisation(plain) == locked(plain) == []
    assert user_regions(plain).names == ()
    assert len(records.lock_waits()) == 0
    assert [len(each) for each in records.counters([Event.CYCLES], slice(1, 3))] == [0]
    assert records.counter_names() == []
    assert all(len(plain.marks(mark)) == 0 for mark in MARKS)
    assert (len(records.messages.size), len(records.events.time)) == (0, 0)
    assert plain.sites().places == (("", ""),)


def test_such_a_trace_is_summarised(plain: Trace) -> None:
    found = info(plain)
    assert found["records"]["events"] == 0
    names = plain.calls().names
    sends = [code for code, name in enumerate(names) if name.endswith("send")]
    sent = int(np.isin(plain.calls().name, sends).sum())
    assert found["records"]["messages"] == sent > 0  # which the calls tell
    assert found["regions"] == found["user_regions"] == {}
    assert sum(found["calls"].values()) == len(plain.calls())
    assert set(found["calls"]) <= set(names)
    assert len(plain.to_dataframe("calls")) == len(plain.calls())


def test_tables_have_names_for_people() -> None:
    table = read(DATA / "is.S.4.prv.gz").to_dataframe("calls")
    assert list(table.columns) == ["process", "thread", "entry", "exit", "name"]
    assert table["name"][0] == "MPI_Init"
