"""``popmodel phases``."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from synthetic import Counters, Program, Rank, programs, run
from synthetic.program import Steps

import popmodel as package

from .test_parts import steps

__all__ = ["steps"]

Call = Callable[..., tuple[int, str, str]]
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Four processes of which the last has most instructions, with two threads each."""
    monkeypatch.chdir(tmp_path)
    done = run(
        programs.jacobi((4,), steps=40, per_cell=1e-5, threads=2, uneven=0.1),
        counters=Counters(),
        persistent=[0.9, 0.9, 0.9, 1.3],
        transient=0.02,
        seed=4,
    )
    done.write(tmp_path / "run.prv")
    return "run.prv"


def document(popmodel: Call, *words: str) -> dict:
    status, out, err = popmodel("phases", *words, "--format", "json")
    assert status == 0, err
    found = json.loads(out)
    assert found["schema"] == "popmodel/phases/1"
    return dict(found)


def test_small_phases_of_many_stand_on_one_line(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popmodel.api.find_phases._MOST", 20)
    monkeypatch.setenv("COLUMNS", "80")
    trace = str(DATA / "bt-mz.S.2x2.prv.gz")
    found = document(popmodel, trace)
    summed = [phase for phase in found["phases"] if phase["place"] == -2]
    assert sum(phase["time"] for phase in found["phases"]) == pytest.approx(found["computing"])
    assert {phase["persistent"] for phase in summed} == {None}
    screen = " ".join(popmodel("phases", trace)[1].split())
    names = [phase["name"] for phase in sorted(summed, key=lambda phase: -phase["time"])]
    assert f"phases, {names[0]} and {names[1]} with " in screen
    assert "are below 0.1 % of all computing: they are summed up" in screen
    for form in ("csv", "svg", "markdown"):
        assert popmodel("phases", trace, "--format", form)[0] == 0


def test_the_screen_answers_why_processes_differ(
    counted: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = popmodel("phases", counted)
    assert status == 0
    assert re.search(r"^ *\d+\.\d +40 .* = sweep$", out, re.MULTILINE)
    assert re.search(r"^ *77\.\d +3 +\+30\.0 +-0\.\d +\+0\.0 .* all computing$", out, re.MULTILINE)
    assert re.search(r"^ sweep +2 +10\.\d +1 +2", out, re.MULTILINE)  # threads, imbalance
    assert re.search(r"^ MPI_Allreduce +40 +1 ", out, re.MULTILINE)  # per process, per iteration
    verdict = " ".join(out.partition("-> ")[2].split())
    assert re.match(
        r"load balance 77\.\d %: process 3 computes 29\.\d % longer than the mean, \d+\.\d % of "
        r"that in sweep; mainly by more instructions \(\+30\.?\d? %\)",
        verdict,
    )
    assert max(map(len, out.splitlines())) <= 80


def test_the_document_has_what_the_simulation_put_in(counted: str, popmodel: Call) -> None:
    found = document(popmodel, counted)
    sweep = next(phase for phase in found["phases"] if phase["name"] == "sweep")
    assert (sweep["executions"], sweep["processes"], sweep["kind"]) == (40, 4, "parallel")
    assert sweep["by_process"] == pytest.approx([0.9, 0.9, 0.9, 1.3], rel=0.02)
    assert sweep["transient"] == pytest.approx(0.02, rel=0.4)
    assert sweep["load_balance"]["main"] == "instructions"
    assert sum(sweep["histogram"]["counts"]) == 160
    assert sweep["team"]["imbalance"] == pytest.approx(0.1, abs=0.02)
    excess = sum(phase["excess"] for phase in found["phases"])
    useful = found["useful"] / 4
    assert excess == pytest.approx(useful * (1 / found["load_balance"]["value"] - 1), rel=1e-6)
    assert sum(phase["share"] for phase in found["phases"]) == pytest.approx(1)
    assert found["iterations"] == pytest.approx(40, rel=0.05)


def test_each_process_is_cut_at_its_own_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipeline processes are at other iterations at the same time; nothing is cut."""
    monkeypatch.chdir(tmp_path)
    done = run(programs.pipeline((4,), 12, blocks=3, norm=0), transient=0.05)
    done.write(tmp_path / "waves.prv")
    found = package.find_phases("waves.prv", foa="iterations=4:6")
    assert found.to_dict()["iterations"] == pytest.approx(3)
    assert not any(phase.cut.any() for phase in found.found.phases)
    numbers = {phase.executions for phase in found.found.phases if not phase.small}
    assert numbers <= {3, 6, 9}
    sends = next(call for call in found.to_dict()["calls"] if call["name"] == "MPI_Send")
    assert sends["calls"] == 3 * 2 * 3 * 3  # iterations, ways, blocks, links between processes


def test_the_shares_of_a_window_are_of_the_window(counted: str, popmodel: Call) -> None:
    some = document(popmodel, counted, "--foa", "iterations=11:20")
    assert some["iterations"] == pytest.approx(10)
    sweep = next(phase for phase in some["phases"] if phase["name"] == "sweep")
    assert sweep["executions"] == 10


@pytest.mark.parametrize("columns", ["40", "60", "100"])
def test_narrow_and_wide_screens(
    counted: str, popmodel: Call, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = popmodel("phases", counted)[1]
    lines = out.partition("\npopmodel 0.")[0].splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert "sweep" in out


def test_one_line_of_csv_for_each_quantity(counted: str, popmodel: Call) -> None:
    out = popmodel("phases", counted, "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    mine = {row["quantity"]: row for row in rows if row["phase"] == "sweep"}
    assert mine["executions"]["value"] == "40"
    assert mine["duration_median"]["unit"] == "s"
    assert float(mine["factor_instructions"]["value"]) == pytest.approx(1.3, rel=0.01)


def test_markdown_has_all_phases(counted: str, popmodel: Call) -> None:
    out = popmodel("phases", counted, "--format", "markdown")[1]
    names = [phase["name"] for phase in document(popmodel, counted)["phases"]]
    table = out.partition("| phases |")[2].partition("\n\n")[0]
    assert len(table.splitlines()) == len(names) + 2


def test_the_drawing_has_a_histogram_of_each_long_phase(counted: str, popmodel: Call) -> None:
    assert popmodel("phases", counted, "-o", "phases.svg")[0] == 0
    root = ElementTree.parse("phases.svg").getroot()
    groups = [each.get("id") for each in root.iter() if str(each.get("id")).startswith("phase-")]
    assert groups == [f"phase-{number}-0" for number in range(6)]


def test_a_run_without_counters_says_so(steps: str, popmodel: Call) -> None:
    out = popmodel("phases", steps)[1]
    assert "no hardware counters tell whether" in " ".join(out.split())
    assert "IPC" not in out.partition("->")[0]


def test_a_balanced_run_says_what_else_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(programs.jacobi((8,), steps=200, per_cell=1e-5), transient=0.1, seed=1)
    done.write(tmp_path / "even.prv")
    verdict = " ".join(popmodel("phases", "even.prv")[1].partition("-> ")[2].split())
    assert re.match(
        r"load balance 9\d\.\d %: processes compute equally long; .* is \d+\.\d % of all "
        r"computing, with other processes slow each time \((9|10)\.\d %\): that costs "
        r"serialisation, not load balance",
        verdict,
    )


def test_one_process_has_no_load_balance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    run(programs.jacobi((1,), steps=10)).write(tmp_path / "one.prv")
    out = popmodel("phases", "one.prv")[1]
    assert "a single process has no load balance" in " ".join(out.split())
    assert "why processes differ" not in out


def test_a_trace_without_measured_times(popmodel: Call) -> None:
    path = str(DATA / "smpi" / "jac2048.4.ti.txt.gz")
    found = document(popmodel, path, "--flop-rate", "1Gflop/s")
    assert found["calls"][0]["time"] is None
    assert popmodel("phases", path, "--flop-rate", "1Gflop/s")[0] == 0


@pytest.mark.parametrize("name", ["is.S.4", "ft.S.4", "comd.4", "cg.S.2", "mix.4", "bt-mz.S.2x2"])
def test_real_traces(popmodel: Call, name: str) -> None:
    """All of the useful time that the efficiencies count is in a phase."""
    path = str(DATA / f"{name}.prv.gz")
    found = document(popmodel, path)
    run = package.metrics(path).runs[0].observables
    assert found["useful"] == pytest.approx(run.useful.sum(), rel=1e-9)
    masters = [run.useful[at] for at in run.masters] if found["threads"] == len(run.masters) else []
    if masters:
        assert found["load_balance"]["value"] == pytest.approx(
            sum(masters) / len(masters) / max(masters)
        )


def test_help_names_the_options(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = popmodel("phases", "--help")
    assert status == 0
    assert "--foa" in out
    assert max(map(len, out.splitlines())) <= 80


def test_python_gives_the_same(counted: str, popmodel: Call) -> None:
    found = package.find_phases(counted)
    made = found.to_dict()
    assert made["phases"] == document(popmodel, counted)["phases"]
    assert repr(found).startswith("<Phases of run.prv: ")
    assert len(found.to_dataframe()) > 50


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Six times a region of four products and sums, and one of output."""
    monkeypatch.chdir(tmp_path)

    def body(me: Rank) -> Steps:
        for _ in range(6):
            yield me.enter("solve")
            for _ in range(4):
                yield me.compute(2e-3, "product")
                yield me.sendrecv(me.rank ^ 1, 64, me.rank ^ 1)
                yield me.compute(1e-3, "dot")
                yield me.collective("Allreduce", 8)
            yield me.leave()
            yield me.enter("output")
            yield me.compute(5e-3, "write")
            yield me.collective("Gather", 8)
            yield me.leave()

    run(Program(4, body)).write(tmp_path / "marked.prv")
    return "marked.prv"


def test_the_phases_of_a_region(marked: str, popmodel: Call) -> None:
    found = document(popmodel, marked, "--region", "solve")
    assert found["analysed"]["region"] == "solve"
    phases = {phase["name"]: phase for phase in found["phases"] if phase["time"] > 1e-6}
    assert {name: one["executions"] for name, one in phases.items()} == {
        "MPI_Allreduce to MPI_Sendrecv": 24,
        "MPI_Sendrecv to MPI_Allreduce": 24,
    }
    assert found["computing"] == pytest.approx(4 * 24 * 3e-3, rel=1e-3)
    some = document(popmodel, marked, "--region", "solve", "--foa", "iterations=2:3")
    assert some["computing"] == pytest.approx(4 * 8 * 3e-3, rel=1e-3)
    assert package.find_phases(marked, region="solve").to_dict()["phases"] == found["phases"]


def test_a_region_that_there_is_not(marked: str, popmodel: Call) -> None:
    assert popmodel("phases", marked, "--region", "slove") == (
        2,
        "",
        "popmodel: error: marked.prv: no region 'slove'\nhint: did you mean solve?\n",
    )
