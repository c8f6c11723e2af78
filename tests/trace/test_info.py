"""The summary of a trace."""

from __future__ import annotations

import json
from pathlib import Path

from popmodel.trace import read
from popmodel.trace.info import info
from popmodel.trace.writer import TraceWriter

DATA = Path(__file__).parent.parent / "data"


def test_a_small_trace_in_full(tmp_path: Path) -> None:
    writer = TraceWriter([2, 1], duration=2_000_000_000, communicators={1: [0, 1]})
    writer.state(0, 1, 0, 2_000_000_000, 0)
    for process in (0, 1):
        writer.state(process, 0, 0, 1_000_000_000, 1)
        writer.state(process, 0, 1_000_000_000, 2_000_000_000, 15)
        writer.event(process, 0, 10, [(50000002, 8)])
        writer.event(process, 0, 20, [(50000002, 0), (42000050, 7), (42000999, 7)])
    writer.event(0, 0, 30, [(50000001, 1)])
    writer.event(0, 0, 40, [(50000001, 0)])
    writer.event(0, 0, 50, [(60000001, 1), (60000018, 4)])
    writer.event(0, 1, 50, [(60000018, 4)])
    writer.event(0, 0, 60, [(60000018, 0), (60000001, 0)])
    writer.event(0, 1, 60, [(60000018, 0)])
    writer.event(0, 0, 70, [(60000001, 3)])
    writer.event(0, 0, 80, [(60000001, 0)])
    writer.event(1, 0, 90, [(50000001, 0)])
    writer.message((0, 0), (1, 0), (30, 40), (35, 45), 8)
    writer.write(tmp_path / "x.prv")
    summary = info(read(tmp_path / "x.prv"))
    assert json.loads(json.dumps(summary)) == {
        "trace": str(tmp_path / "x.prv"),
        "application": 1,
        "applications": 1,
        "processes": 2,
        "threads": [2, 1],
        "nodes": 1,
        "runtime": 2.0,
        "window": {"begin": 0.0, "end": 2.0},
        "records": {"states": 5, "events": 19, "messages": 1, "communicators": 1},
        "calls": {"MPI_Barrier": 2, "MPI_Send": 1},
        "regions": {"function 4": 1, "parallel region": 1},
        "counters": ["PAPI_TOT_INS", "event 42000999"],
        "warnings": [
            {
                "text": "no .pcf file beside the trace, built-in names are used",
                "count": 1,
                "line": None,
            },
            {"text": "exits from MPI without an entry, left out", "count": 1, "line": None},
        ],
    }


def test_an_empty_trace(tmp_path: Path) -> None:
    TraceWriter([1], nodes=[], duration=5).write(tmp_path / "x.prv")
    summary = info(read(tmp_path / "x.prv"))
    assert summary["records"] == {"states": 0, "events": 0, "messages": 0, "communicators": 0}
    assert (summary["nodes"], summary["calls"], summary["regions"]) == (None, {}, {})


def test_regions_of_a_real_hybrid_trace() -> None:
    summary = info(read(DATA / "bt-mz.S.2x2.prv.gz"))
    assert summary["threads"] == 2
    assert summary["regions"]["copy_x_face_._omp_fn.0"] == 488
    assert summary["calls"]["MPI_Waitall"] == 122
