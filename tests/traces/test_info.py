"""The summary of a trace."""

import json
from pathlib import Path

import pytest

from popmodel.base.errors import TraceError
from popmodel.efficiency import measure
from popmodel.traces import read
from popmodel.traces.info import info
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

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
        "timed": True,
        "runtime": 2.0,
        "duration": 2.0,
        "origin": 0,
        "window": {"begin": 0.0, "end": 2.0},
        "analysed": {
            "begin": 0.0,
            "end": 2.0,
            "duration": 2.0,
            "left_out": {"before": 0.0, "between": 0.0, "after": 0.0},
            "region": None,
            "occurrences": 1,
            "why": "the whole run (no MPI_Init, no MPI_Finalize)",
        },
        "caveats": [
            "MPI exit events without an entry (ignored), 1 time: times in MPI are uncertain"
        ],
        "records": {"states": 5, "events": 19, "messages": 1, "communicators": 1},
        "message_sizes": {"min": 8, "mean": 8.0, "max": 8, "total": 8},
        "calls": {"MPI_Barrier": 2, "MPI_Send": 1},
        "regions": {"function 4": 1, "parallel region": 1},
        "user_regions": {},
        "counters": ["PAPI_TOT_INS", "event 42000999"],
        "warnings": [
            {"text": "MPI exit events without an entry (ignored)", "count": 1, "line": None},
            {
                "text": "no .pcf file next to the trace: using built-in names",
                "count": 1,
                "line": None,
            },
        ],
    }


@pytest.mark.parametrize(
    ("states", "runtime", "problem"),
    [
        ([(0, 100, 1), (100, 900, 14), (900, 950, 1)], 150e-9, None),
        ([], None, "no state records: times cannot be measured"),
        ([(0, 950, 14)], None, "tracing is disabled throughout: there is no time to measure"),
        ([(950, 950, 1)], None, "all states have zero length: there is no time to measure"),
    ],
)
def test_the_runtime_is_that_of_the_metrics(
    tmp_path: Path, states: list[tuple[int, int, int]], runtime: float | None, problem: str | None
) -> None:
    writer = TraceWriter([1], duration=950, labels=Labels({}, {1: "x"}))
    for state in states:
        writer.state(0, 0, *state)
    writer.event(0, 0, 0, [(99_000_001, 1)])
    writer.event(0, 0, 950, [(1, 1)])
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    summary = info(trace)
    assert (summary["runtime"], summary["duration"]) == (runtime, 950e-9)
    assert [each["text"] for each in summary["warnings"]] == (
        [] if problem is None else [f"no runtime: {problem}"]
    )
    if problem is None:
        assert measure.runtime(trace) == runtime
    else:
        with pytest.raises(TraceError, match=problem):
            measure.runtime(trace)


def test_an_empty_trace(tmp_path: Path) -> None:
    TraceWriter([1], nodes=[], duration=5).write(tmp_path / "x.prv")
    summary = info(read(tmp_path / "x.prv"))
    assert summary["records"] == {"states": 0, "events": 0, "messages": 0, "communicators": 0}
    assert summary["message_sizes"] is None
    assert (summary["nodes"], summary["calls"], summary["regions"]) == (None, {}, {})


def test_regions_of_a_real_hybrid_trace() -> None:
    summary = info(read(DATA / "bt-mz.S.2x2.prv.gz"))
    assert summary["threads"] == 2
    assert summary["regions"]["copy_x_face_ (region 1)"] == 488
    assert summary["calls"]["MPI_Waitall"] == 122
