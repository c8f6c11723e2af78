"""Parts of a run on the command line: windows, regions, and tables by process and by region."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from oracle.script import Script

import popmodel.cli.metrics as api
from popmodel.base.errors import UsageError
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

from .conftest import MS, Call

COLLECTIVE, BARRIER, REGION = 50000002, 8, 60000019
LABELS = Labels(
    event_types={COLLECTIVE: "MPI Collective Comm", REGION: "User region"},
    event_values={
        COLLECTIVE: {0: "Outside MPI", BARRIER: "MPI_Barrier"},
        REGION: {0: "End", 1: "step", 2: "output"},
    },
)
STEPS = 10


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two ranks with ten steps of 8 and 4 ms of work before a barrier; then rank 0 writes output.

    A step takes 10 ms, as the barrier is left 2 ms after the last one has arrived; 10 ms lie
    between two steps.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    duration = (20 * STEPS + 20) * MS
    writer = TraceWriter([1, 1], labels=LABELS, communicators={1: [0, 1]}, duration=duration)
    for rank, work in enumerate((8, 4)):
        free = 0
        for step in range(STEPS):
            begin = 20 * step + 5
            busy, leave = (begin + work) * MS, (begin + 10) * MS
            writer.event(rank, 0, begin * MS, [(REGION, 1)])
            writer.event(rank, 0, busy, [(COLLECTIVE, BARRIER), (50100004, 1)])
            writer.event(rank, 0, leave, [(COLLECTIVE, 0), (REGION, 0)])
            writer.state(rank, 0, free, busy, 1)
            writer.state(rank, 0, busy, leave, 13)
            free = leave
        writer.state(rank, 0, free, duration, 1)
    writer.event(0, 0, (20 * STEPS + 2) * MS, [(REGION, 2)])
    writer.event(0, 0, (20 * STEPS + 7) * MS, [(REGION, 0)])
    writer.write("steps.prv")
    return "steps.prv"


def run_of(out: str) -> dict:
    (run,) = json.loads(out)["runs"]
    return run


def test_a_region_is_analysed_and_named(steps: str, popmodel: Call) -> None:
    status, out, err = popmodel("metrics", steps, "--region", "step")
    assert (status, err) == (0, "")
    assert "45 % of trace (region step, 10 occurrences)" in " ".join(out.split())
    run = run_of(popmodel("metrics", steps, "--region", "step", "--format", "json")[1])
    assert run["runtime"] == 0.1
    assert run["ideal_runtime"] == pytest.approx(0.08)
    assert run["metrics"]["mpi"]["parallel_efficiency"] == pytest.approx(0.6)
    assert run["metrics"]["mpi"]["load_balance"] == pytest.approx(0.75)
    assert run["window"]["occurrences"] == STEPS


def test_a_window_is_analysed(steps: str, popmodel: Call) -> None:
    run = run_of(popmodel("metrics", steps, "--window", "5ms:15ms", "--format", "json")[1])
    assert run["runtime"] == 0.01
    assert run["metrics"]["mpi"]["parallel_efficiency"] == pytest.approx(0.6)
    assert run["window"]["left_out"] == {"before": 0.005, "between": 0.0, "after": 0.205}
    words = ("metrics", steps, "--region", "step", "--window", "0.1:", "--format", "json")
    assert run_of(popmodel(*words)[1])["runtime"] == 0.05


def test_a_part_is_replayed(steps: str, popmodel: Call) -> None:
    document = json.loads(
        popmodel("whatif", steps, "--network", "ideal", "--region", "step", "--format", "json")[1]
    )
    assert document["measured_runtime"] == 0.1
    assert document["runs"][0]["runtime"] == pytest.approx(0.08)
    document = json.loads(
        popmodel("whatif", steps, "--network", "ideal", "--window", ":25ms", "--format", "json")[1]
    )
    assert document["measured_runtime"] == 0.025


def test_communication_from_the_start(tmp_path: Path, popmodel: Call) -> None:
    """What lies in MPI_Init counts with `--from-start` only."""
    path = str(tmp_path / "init.prv")
    writer = TraceWriter([1, 1], labels=LABELS, communicators={1: [0, 1]}, duration=100 * MS)
    for rank in range(2):
        for begin in (5, 45):
            writer.event(rank, 0, begin * MS, [(REGION, 1)])
            writer.event(rank, 0, (begin + 5) * MS, [(COLLECTIVE, BARRIER), (50100004, 1)])
            writer.event(rank, 0, (begin + 9) * MS, [(COLLECTIVE, 0), (REGION, 0)])
        writer.event(rank, 0, 20 * MS, [(50000003, 31)])
        writer.event(rank, 0, 40 * MS, [(50000003, 0)])
        writer.state(rank, 0, 0, 100 * MS, 1)
    writer.write(path)
    words = ("inspect", path, "--show", "communication", "--format", "json")
    for options, calls in (((), 2), (("--from-start",), 4)):
        found = json.loads(popmodel(*words, "--region", "step", *options)[1])["communication"]
        assert [each["calls"] for each in found["calls"]] == [calls]
    whole = json.loads(popmodel(*words, "--from-start")[1])["communication"]
    assert whole["analysed"]["duration"] == 0.1
    status, _, err = popmodel(*words, "--from-start", "--window", "1ms:")
    assert status == 2
    assert "--from-start cannot be combined with --window" in err


def test_a_part_is_compared_with_a_prediction(steps: str, popmodel: Call) -> None:
    words = ("validate", "stencil3d", steps, "--set", "N=64", "--region", "step")
    document = json.loads(popmodel(*words, "--format", "json")[1])
    assert document["rows"][0]["measured"] == 0.1
    assert document["measured"][0]["window"]["region"] == "step"


def test_a_part_is_summarised(steps: str, popmodel: Call) -> None:
    words = ("inspect", steps, "--show", "info", "--window", "0:0.05", "--format", "json")
    document = json.loads(popmodel(*words)[1])["info"]
    assert document["caveats"][0].startswith("analysed 50 ms of 220 ms: 0 s to 50 ms (left out:")
    assert document["calls"] == {"MPI_Barrier": 5}
    assert document["user_regions"] == {
        "step": {
            "occurrences": 6,
            "processes": 2,
            "threads": 2,
            "time": pytest.approx(0.05),
            "time_per_process": {"min": 0.025, "max": 0.025},
        }
    }


def test_processes_one_by_one(steps: str, popmodel: Call) -> None:
    out = popmodel("metrics", steps, "--region", "step", "--by", "process")[1]
    lines = out.splitlines()
    begin = lines.index("           useful  useful    MPI")
    assert lines[begin : begin + 8] == [
        "           useful  useful    MPI",
        "processes      ms       %     ms",
        " rank 0     80.0>   80.0>  20.0<",
        " rank 1     40.0<   40.0<  60.0>",
        "lowest      40.0    40.0   20.0",
        "average     60.0    60.0   40.0",
        "highest     80.0    80.0   60.0",
        "highest of all processes marked >, lowest <",
    ]
    run = run_of(popmodel("metrics", steps, "--by", "process", "--format", "json")[1])
    assert run["by_process"][1] == {
        "process": 1,
        "node": 0,
        "threads": 1,
        "useful": pytest.approx(0.16),
        "mpi": pytest.approx(0.06),
        "in_openmp": None,
        "serial_useful": None,
        "instructions": None,
        "ipc": None,
    }
    text = popmodel("metrics", steps, "--by", "process", "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["process"], float(row["mpi"])) for row in rows] == [
        (str(entry["process"]), pytest.approx(entry["mpi"])) for entry in run["by_process"]
    ]


def test_regions_side_by_side(steps: str, popmodel: Call) -> None:
    words = ("metrics", steps, "--by", "region", "--family", "mpi")
    lines = popmodel(*words)[1].splitlines()
    assert [line.split() for line in lines[:6]] == [
        ["MPI", "(multiplicative),", "%", "steps", "step", "output"],
        ["occurrences", "10", "1"],
        ["runtime", "220.0", "ms", "100.0", "ms", "5.000", "ms"],
        ["share", "of", "the", "runtime,", "%", "100.0", "45.5", "2.3"],
        ["ideal", "runtime", "200.0", "ms", "80.00", "ms", "-[1]"],
        ["Global", "efficiency", "81.8", "60.0", "100.0"],
    ]
    text = " ".join(popmodel(*words, "--all")[1].split())
    assert "- 1 process of 2 never enters region output (first: rank 1)" in text
    assert "- output: the analysed part lasts only 5.00 ms: too little" in text
    markdown = popmodel("metrics", steps, "--by", "region", "--format", "markdown")[1]
    assert "| &nbsp;&nbsp;Parallel efficiency | 81.8 | 60.0 | 100.0 |" in markdown


def test_regions_for_programs(steps: str, popmodel: Call) -> None:
    run = run_of(popmodel("metrics", steps, "--by", "region", "--format", "json")[1])
    assert [one["region"] for one in run["by_region"]] == ["step", "output"]
    alone = run_of(popmodel("metrics", steps, "--region", "step", "--format", "json")[1])
    step = run["by_region"][0]
    for key in ("runtime", "ideal_runtime", "window"):
        assert step[key] == alone[key]
    for family, values in step["metrics"].items():
        assert values == alone["metrics"][family]
    text = popmodel("metrics", steps, "--by", "region", "--format", "csv", "--family", "mpi")[1]
    rows = list(csv.DictReader(io.StringIO(text)))
    values = {row["region"]: row["mpi.parallel_efficiency"] for row in rows}
    assert {name: round(float(value), 3) for name, value in values.items()} == {
        "": 0.818,
        "step": 0.6,
        "output": 1.0,
    }


def test_messages_that_cross_the_edge_of_a_region_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    """Rank 1 waits in the region for a message that rank 0 sends after it."""
    monkeypatch.chdir(tmp_path)
    script = Script(2)
    script.compute(0, 500)
    sent = script.call(0, "Send")
    script.compute(1, 100)
    received = script.call(1, "Recv", 600)
    script.message(sent, received, received)
    for rank in range(2):
        script.writer.event(rank, 0, 10, [(REGION, 1)])
        script.writer.event(rank, 0, 400, [(REGION, 0)])
    script.end()
    script.read(tmp_path)
    text = " ".join(popmodel("metrics", "script.prv", "--by", "region", "--all")[1].split())
    told = (
        "1 message across the edge of the window, assumed to take no time: waiting there counts as "
        "transfer"
    )
    assert f"- user function 1: {told}" in text
    run = run_of(popmodel("metrics", "script.prv", "--by", "region", "--format", "json")[1])
    assert run["by_region"][0]["notes"] == [told]
    assert told not in run["notes"]


def test_several_traces_have_a_block_each(steps: str, popmodel: Call) -> None:
    Path("other.prv").write_bytes(Path(steps).read_bytes())
    Path("other.pcf").write_bytes(Path("steps.pcf").read_bytes())
    for by, head in (("process", "processes of other"), ("region", "other")):
        out = popmodel("metrics", steps, "other.prv", "--by", by)[1]
        assert head in out


def test_tables_fit_the_screen(steps: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (40, 80, 132):
        monkeypatch.setenv("COLUMNS", str(width))
        for by in ("process", "region"):
            out = popmodel("metrics", steps, "--by", by)[1]
            assert max(map(len, out.splitlines())) <= width, by


def test_windows_in_python_are_seconds_or_texts(steps: str) -> None:
    runs = [
        api.metrics([steps], window=window).runs[0]
        for window in ((0.005, 0.015), "5ms:15ms", ("5ms", 0.015))
    ]
    assert {run.observables.runtime for run in runs} == {0.01}
    assert api.metrics([steps], region="step").runs[0].observables.runtime == 0.1


def test_processes_and_regions_in_python(steps: str) -> None:
    table = api.metrics(steps, by="process").to_dataframe()
    assert table["process"].tolist() == [0, 1]
    assert table["useful"].notna().all()
    regions = api.metrics(steps, by="region").to_dataframe()
    assert regions["region"].fillna("").tolist()[:2] == ["", "step"]
    assert "step" in str(api.metrics(steps, by="region"))
    with pytest.raises(UsageError) as caught:
        api.metrics(steps, by="rank")  # type: ignore[arg-type]
    assert caught.value.message == "by: unknown value 'rank'"
    assert caught.value.hint == "choose one of process, region"
