"""``popmodel metrics``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from popmodel.base.errors import PopmodelError
from popmodel.efficiency import measure
from popmodel.traces.paraver.writer import TraceWriter

from .conftest import MS, Call, write_trace

BT_MZ_TRACE = str(Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz")
FAMILIES = [
    "mpi",
    "mpi-additive",
    "hybrid-additive",
    "hybrid-multiplicative",
    "talp",
    "scaling",
]


def test_columns_of_runs_with_long_names_are_told_apart(
    popmodel: Call, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trace
    monkeypatch.setenv("COLUMNS", "40")
    paths = [f"application_{number}processes.prv" for number in (1, 4)]
    for path in paths:
        write_trace(Path(path), [4, 3])
    lines = popmodel("metrics", *paths)[1].splitlines()
    heads = [line for line in lines if line.startswith("MPI (multiplicative), %")]
    assert [line.split()[-1] for line in heads] == ["1", "4"]
    names = ["1abcdefghijkl-1-mnopqrst1", "1abcdefghijkl-2-mnopqrst1", "2abcdefghijkl-3-mnopqrst2"]
    for name in names:
        write_trace(Path(f"{name}.prv"), [4, 3])
    lines = popmodel("metrics", *(f"{name}.prv" for name in names), "--all")[1].splitlines()
    for number, name in enumerate(names, start=1):
        assert f"#{number}  {name}" in lines


def test_a_run_without_mpi_gets_no_advice_about_mpi(tmp_path: Path, popmodel: Call) -> None:
    writer = TraceWriter([2])
    for thread, useful in enumerate((9, 5)):
        writer.state(0, thread, 0, useful, 1)
        writer.state(0, thread, useful, 10, 7)
        writer.event(0, thread, 0, [(60000001, 3)] * (thread == 0) + [(60000018, 1)])
        writer.event(0, thread, 9, [(60000018, 0)] + [(60000001, 0)] * (thread == 0))
    writer.write(tmp_path / "threads.prv")
    path = str(tmp_path / "threads.prv")
    document = json.loads(popmodel("metrics", path, "--format", "json")[1])
    assert set(document["runs"][0]["lowest"]) == {
        "hybrid-additive",
        "hybrid-multiplicative",
        "talp",
    }


def test_where_nothing_is_lost_nothing_is_advised(trace: str, popmodel: Call) -> None:
    assert trace
    Path("one.prv").write_text(
        "#Paraver (01/01/2030 at 00:00):9_ns:1(1):1:1(1:1),0\n1:1:1:1:1:0:9:1\n"
    )
    document = json.loads(popmodel("metrics", "one.prv", "--format", "json")[1])
    assert document["advice"]["causes"] == []
    assert document["runs"][0]["lowest"] == {}


def test_an_ideal_runtime_is_there_or_absent_but_not_both(trace: str, popmodel: Call) -> None:
    assert trace
    Path("alone.prv").write_text(
        "#Paraver (01/01/2030 at 00:00):9_ns:1(1):1:1(1:1),0\n1:1:1:1:1:0:9:1\n"
    )
    run = json.loads(popmodel("metrics", "alone.prv", "--format", "json")[1])["runs"][0]
    assert run["observables"]["absent"]["ideal_runtime"] == "no MPI calls"
    assert run["ideal_runtime"] is run["observables"]["ideal_runtime"] is None
    out = popmodel("metrics", "alone.prv", "--all")[1]
    assert any(line.split() == ["ideal", "runtime", "-[1]"] for line in out.splitlines())


def test_a_metric_whose_parts_are_absent_is_not_to_be_split(trace: str, popmodel: Call) -> None:
    """Both wait for a message of the other that no record belongs to: no replay ends."""
    lines = [
        "#Paraver (01/01/2030 at 00:00):9_ns:1(2):1:2(1:1,1:1),1",
        "c:1:1:2:1:2",
    ]
    for rank, other in ((1, 2), (2, 1)):
        lines += [f"1:{rank}:1:{rank}:1:{begin}:{end}:1" for begin, end in ((0, 2), (8, 9))]
        lines += [
            f"2:{rank}:1:{rank}:1:2:50000001:1",
            f"2:{rank}:1:{rank}:1:6:50000001:0:50000001:2",
            f"2:{rank}:1:{rank}:1:8:50000001:0",
            f"1:{rank}:1:{rank}:1:2:8:3",
            f"3:{rank}:1:{rank}:1:2:2:{other}:1:{other}:1:6:8:1000000:1",
        ]
    Path(trace).write_text("\n".join(lines) + "\n")
    run = json.loads(popmodel("metrics", trace, "--format", "json")[1])["runs"][0]
    assert "wait forever" in run["absent"]["mpi"]["transfer_efficiency"]
    lowest = run["lowest"]["mpi"]
    assert lowest["metric"] == "communication_efficiency"
    assert lowest["advice"].startswith("Its parts are unknown: deadlock in the replay: 2 of 2")


def test_json_has_all_families_and_what_they_rest_on(runs: list[str], popmodel: Call) -> None:
    document = json.loads(popmodel("metrics", *runs, "--format", "json")[1])
    assert document["schema"] == "popmodel/metrics/1"
    first, second = document["runs"]
    assert (first["trace"], first["processes"], first["threads"]) == ("two.prv", 2, 1)
    assert (first["runtime"], first["ideal_runtime"]) == (0.009, 0.008)
    assert list(first["metrics"]) == FAMILIES
    assert list(first["absent"]) == FAMILIES
    assert first["metrics"]["mpi"]["load_balance"] == pytest.approx(7 / 8)
    assert second["metrics"]["mpi"]["parallel_efficiency"] == pytest.approx(3 / 5)
    assert second["metrics"]["scaling"]["speedup"] == pytest.approx(9 / 5)
    assert second["absent"]["scaling"]["ipc_scaling"].startswith("no hardware counter")
    assert second["observables"]["useful"] == [0.004, 0.003, 0.003, 0.002]
    assert second["lowest"]["mpi"]["metric"] == "load_balance"
    assert document["scaling"]["mode"] == "strong"
    assert document["scaling"]["reference"] == "two.prv"
    assert "fewest cores" in document["scaling"]["why"]
    every = {
        (family, metric)
        for part in ("metrics", "absent")
        for family, metrics in second[part].items()
        for metric in metrics
    }
    assert len(every) == sum(
        len(second["metrics"][name]) + len(second["absent"][name]) for name in FAMILIES
    )


def test_the_reference_is_chosen_by_number_name_or_path(runs: list[str], popmodel: Call) -> None:
    for wanted in ("2", "four", "four.prv"):
        out = popmodel("metrics", *runs, "--reference", wanted, "--format", "json")[1]
        document = json.loads(out)
        assert document["scaling"]["reference"] == "four.prv"
        assert document["runs"][0]["metrics"]["scaling"]["speedup"] == pytest.approx(5 / 9)


def test_runs_that_are_hardly_of_one_program_are_asked_about(
    runs: list[str], popmodel: Call
) -> None:
    question = "implausible computation scaling of 7: check that all runs are of the same program"
    assert "computation scaling of" not in popmodel("metrics", *runs)[1]
    write_trace(Path("other.prv"), [1, 1, 0], runtime=2)
    for form in ("table", "markdown"):
        out = popmodel("metrics", runs[0], "other.prv", "--format", form)[1]
        assert question in " ".join(out.split())
    document = json.loads(popmodel("metrics", *runs, "--format", "json")[1])
    assert document["scaling"]["notes"] == []


def test_the_kind_of_scaling_can_be_forced(runs: list[str], popmodel: Call) -> None:
    weak = json.loads(popmodel("metrics", *runs, "--scaling", "weak", "--format", "json")[1])
    assert weak["scaling"]["mode"] == "weak"
    assert weak["runs"][1]["metrics"]["scaling"]["speedup"] == pytest.approx(2 * 9 / 5)


def test_the_reading_of_outside_mpi_is_chosen(popmodel: Call) -> None:
    metric = []
    for reading in ("everywhere", "not-in-mpi"):
        options = ("--from-start", "--outside-mpi", reading, "--format", "json")
        out = popmodel("metrics", BT_MZ_TRACE, *options)[1]
        run = json.loads(out)["runs"][0]
        assert run["outside_mpi"] == reading
        metric.append(run["metrics"]["hybrid-multiplicative"]["mpi_parallel_efficiency"])
    assert metric == [pytest.approx(0.865, abs=1e-3), pytest.approx(0.920, abs=1e-3)]


def test_an_error_in_one_of_several_runs_names_its_trace(
    runs: list[str], popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyse, seen = measure.analyse, []

    def broken(*arguments: Any, **options: Any) -> Any:
        seen.append(arguments)
        if len(seen) > 1:
            raise PopmodelError("the clock ran backwards", "measure again")
        return analyse(*arguments, **options)

    monkeypatch.setattr(measure, "analyse", broken)
    said = "popmodel: error: four.prv: the clock ran backwards\nhint: measure again\n"
    assert popmodel("metrics", *runs) == (1, "", said)


def test_the_steepest_fall_of_a_series_is_named_below_its_scaling(
    tmp_path: Path, popmodel: Call
) -> None:
    paths = []
    for processes, useful, runtime in ((1, 400, 400), (2, 200, 210), (4, 100, 150)):
        writer = TraceWriter([1] * processes, communicators={1: list(range(processes))})
        for process in range(processes):
            writer.state(process, 0, 0, useful * MS, 1)
            for begin in range(10):
                at = useful * MS + begin * (runtime - useful) * MS // 10
                writer.event(process, 0, at, [(50000002, 8)])
                end = useful * MS + (begin + 1) * (runtime - useful) * MS // 10
                writer.state(process, 0, at, end, 5) if end > at else None
                writer.event(process, 0, end, [(50000002, 0)])
        paths.append(str(tmp_path / f"n{processes}.prv"))
        writer.write(paths[-1])
    out = popmodel("metrics", *paths, "--all")[1]
    text = " ".join(out.split())
    assert "Global efficiency falls most from n2 to n4: 95.2 to 66.7 %, mostly" in text
    assert "Global efficiency is lowest in n4: 66.7 %, below the 80 % that POP" in text
    fall = json.loads(popmodel("metrics", *paths, "--format", "json")[1])["advice"]["steepest_fall"]
    assert (fall["before"], fall["after"]) == ("n2", "n4")
    assert (fall["high"], fall["low"]) == pytest.approx((20 / 21, 2 / 3))


def test_threads_that_call_mpi_lead_to_the_families_that_see_them(
    tmp_path: Path, popmodel: Call
) -> None:
    """The master computes, three threads that are not OpenMP's wait in MPI."""
    writer = TraceWriter([4])
    writer.state(0, 0, 0, 100 * MS, 1)
    for thread in (1, 2, 3):
        writer.state(0, thread, 0, 20 * MS, 1)
        writer.state(0, thread, 20 * MS, 100 * MS, 3)
        writer.event(0, thread, 20 * MS, [(50000001, 2)])
        writer.event(0, thread, 100 * MS, [(50000001, 0)])
    writer.write(tmp_path / "threads.prv")
    lines = popmodel("metrics", str(tmp_path / "threads.prv"))[1].splitlines()
    assert "rank 0: threads 1-3 call MPI but belong to no parallel region" in " ".join(lines)
    shown = [line.split()[-1] for line in lines if line.startswith("Parallel efficiency ")]
    assert shown == ["40.0"]
    assert any(line.startswith("MPI + OpenMP (additive)") for line in lines)


def test_a_screen_has_25_lines_however_many_runs(
    popmodel: Call, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trace
    monkeypatch.setenv("COLUMNS", "80")
    for count in (1, 2, 3, 8, 12):
        paths = [f"a_longer_name.{number}.prv" for number in range(count)]
        for number, path in enumerate(paths, start=1):
            write_trace(Path(path), [40 // number * 10] * number + [3] * number, runtime=500)
        for family in ("mpi", "hybrid-additive", "talp", "all"):
            out = popmodel("metrics", *paths, "--family", family)[1]
            assert len(out.splitlines()) <= 25, (count, family)
