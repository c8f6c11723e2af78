"""``popmodel structure``."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from synthetic import Program, Rank, programs, run
from synthetic.program import Steps

import popmodel as package

from .conftest import write_trace
from .test_parts import STEPS, steps

__all__ = ["steps"]

Call = Callable[..., tuple[int, str, str]]
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def jacobi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stencil on 2 x 2 processes, 30 steps."""
    monkeypatch.chdir(tmp_path)
    done = run(programs.jacobi((2, 2), steps=30, per_cell=1e-6), transient=0.02)
    done.write(tmp_path / "jacobi.prv")
    return "jacobi.prv"


def document(popmodel: Call, *words: str) -> dict[str, Any]:
    status, out, err = popmodel("structure", *words, "--format", "json")
    assert status == 0, err
    found = json.loads(out)
    assert found["schema"] == "popmodel/structure/1"
    return dict(found)


def test_the_contract(jacobi: str, popmodel: Call) -> None:
    """What other programs rely on."""
    found = document(popmodel, jacobi)
    assert [part["kind"] for part in found["parts"]] == [
        "initialisation",
        "iterations",
        "finalisation",
    ]
    assert found["parts"][1]["iterations"] == 30
    assert found["parts"][0]["begin"] <= found["parts"][1]["begin"] < found["parts"][1]["end"]
    assert 0 <= found["confidence"] <= 1
    assert found["parts"][1]["begin"] <= found["foa"]["begin"] < found["foa"]["end"]
    begins = found["iterations"]["begins"]
    assert len(begins) == 31
    assert begins == sorted(begins)
    assert found["period"] == pytest.approx((begins[-1] - begins[0]) / 30, rel=0.1)


def test_the_screen_draws_the_run_and_its_loops(
    jacobi: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = popmodel("structure", jacobi)
    assert status == 0
    assert re.search(r"^iterations  +.* to .*, 30 times$", out, re.MULTILINE)
    assert re.search(r"^in MPI      [ .:=+*#%@-]+$", out, re.MULTILINE)
    marks = re.search(r"^iterations  +([| ]+)$", out, re.MULTILINE)
    assert marks is not None
    assert 15 <= marks[1].count("|") <= 31
    assert re.search(r"^ +30 +\d+\.\d  iterations$", out, re.MULTILINE)
    assert re.search(r"^ +\d+\.\d    Irecv x\d, Isend x\d, .*Allreduce$", out, re.MULTILINE)
    assert f"-> popmodel metrics {jacobi} --foa auto analyses iteration" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("foa", ["auto", "iterations=2:4"])
def test_what_rests_on_doubtful_iterations_says_so(
    foa: str, tmp_path: Path, popmodel: Call
) -> None:
    """A long initialisation: the iterations that were found hold little of the time."""
    done = run(programs.jacobi((2, 2), steps=30, per_cell=1e-6, setup=20.0))
    trace = str(done.write(tmp_path / "doubtful.prv"))
    sure = document(popmodel, trace)["confidence"]
    assert sure < 0.2
    for verb in ("metrics", "phases"):
        status, out, err = popmodel(verb, trace, "--foa", foa)
        assert status == 0, err
        assert f"confidence {sure:.2f}, hardly more than a guess" in " ".join(out.split())


def test_another_focus(steps: str, popmodel: Call) -> None:
    found = document(popmodel, steps, "--foa", "iterations=3:5")["foa"]
    assert found == {"begin": 0.035, "end": 0.095, "first": 3, "last": 5, "why": "as asked for"}
    times = document(popmodel, steps, "--foa", "0.1:0.15")["foa"]
    assert (times["begin"], times["end"], times["first"]) == (0.1, 0.15, None)
    assert document(popmodel, steps, "--foa", "auto")["foa"] == document(popmodel, steps)["foa"]


def test_every_process_has_a_line_over_time(steps: str, popmodel: Call) -> None:
    """Rank 0 computes 18 ms of 20, rank 1 14; the rest is in the barrier."""
    found = document(popmodel, steps)["timelines"][0]
    assert found["processes"] == [0, 1]
    share = [row.count("c") / len(row) for row in found["activity"]]
    assert share == pytest.approx([1 - 20 / 220, 1 - 60 / 220], abs=0.02)
    assert sum(found["in_mpi"]) / len(found["in_mpi"]) == pytest.approx(80 / 440, abs=0.01)
    assert {len(row) for row in found["activity"] + found["duration"]} == {len(found["in_mpi"])}


@pytest.mark.parametrize("columns", ["40", "60", "120"])
def test_narrow_and_wide_screens(
    jacobi: str, popmodel: Call, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = popmodel("structure", jacobi)[1]
    lines = out.partition("\npopmodel 0.")[0].splitlines()
    assert max(map(len, lines)) <= int(columns)


def test_there_are_no_colours_without_a_terminal(
    jacobi: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in popmodel("structure", jacobi)[1]


def test_the_drawing_has_lanes_iterations_and_the_focus(steps: str, popmodel: Call) -> None:
    assert popmodel("structure", steps, "-o", "structure.svg")[0] == 0
    root = ElementTree.parse("structure.svg").getroot()
    kinds = [str(each.get("class")) for each in root.iter()]
    assert {"lane computing", "lane collective", "iteration", "focus", "lane level1"} <= set(kinds)
    lines = next(each for each in root.iter() if each.get("class") == "iteration")
    assert str(lines.get("d")).count("M") == STEPS + 1
    assert popmodel("structure", steps, "-o", "structure.svg")[0] == 2  # the file exists


def test_one_line_of_csv_for_each_part_and_iteration(steps: str, popmodel: Call) -> None:
    rows = list(csv.DictReader(io.StringIO(popmodel("structure", steps, "--format", "csv")[1])))
    assert [row["what"] for row in rows].count("iteration") == STEPS
    third = next(row for row in rows if row["what"] == "iteration" and row["number"] == "3")
    assert (third["begin"], third["end"]) == ("0.035", "0.055")


def test_markdown_fences_what_is_drawn(steps: str, popmodel: Call) -> None:
    out = popmodel("structure", steps, "--format", "markdown")[1]
    assert "```sh\nin MPI " in out


def test_a_run_in_which_nothing_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    found = document(popmodel, "two.prv")
    assert (found["iterations"], found["period"], found["foa"]["first"]) == (None, None, None)
    out = popmodel("structure", "two.prv")[1]
    assert "-> no iterations: choose what to analyse with --window or --region" in " ".join(
        out.split()
    )
    assert popmodel("structure", "two.prv", "-o", "two.svg")[0] == 0


def test_a_trace_without_measured_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(DATA / "smpi" / "jac2048.4.ti.txt.gz")
    words = (path, "--flop-rate", "1Gflop/s")
    found = document(popmodel, *words)
    assert found["timelines"] == []
    assert found["iterations"] is not None
    assert popmodel("structure", *words)[0] == 0
    assert popmodel("structure", *words, "-o", "untimed.svg")[0] == 0


@pytest.mark.parametrize("name", ["is.S.4", "ft.S.4", "comd.4", "cg.S.2", "mix.4", "bt-mz.S.2x2"])
def test_real_traces(popmodel: Call, name: str) -> None:
    found = document(popmodel, str(DATA / f"{name}.prv.gz"))
    shares = sum(each["share"] for each in found["nest"] if each["depth"] == 0)
    assert 0.3 < shares <= 1 + 1e-9
    assert popmodel("structure", str(DATA / f"{name}.prv.gz"))[0] == 0


def test_help_fits_the_screen(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = popmodel("structure", "--help")[1]
    assert max(map(len, out.splitlines())) <= 80


def test_python_gives_the_same(steps: str, popmodel: Call) -> None:
    found = package.find_structure(steps)
    assert found.to_dict()["nest"] == document(popmodel, steps)["nest"]
    assert repr(found) == "<Structure of steps.prv: 10 iterations of 20.0 ms>"
    assert len(found.to_dataframe()) == STEPS + len(found.found.parts) + 1
    assert found.plot().svg.count("<svg") == 1


@pytest.mark.parametrize(("option", "value"), [("region", "my part"), ("window", "1ms:2ms")])
def test_a_part_has_no_structure_of_its_own(
    jacobi: str, popmodel: Call, option: str, value: str
) -> None:
    status, out, err = popmodel("structure", jacobi, f"--{option}", value)
    assert (status, out) == (2, "")
    quoted = value if option == "window" else f"'{value}'"
    assert err == (
        f"popmodel: error: --{option}: structure shows whole runs, whose iterations --foa counts\n"
        f"hint: popmodel phases --{option} {quoted} shows what a {option} computes\n"
    )


def test_a_collective_that_is_called_at_two_places_is_one_call(tmp_path: Path) -> None:
    """As in ``if (rank == 0) MPI_Reduce(MPI_IN_PLACE, ...) else MPI_Reduce(...)``."""

    def body(me: Rank) -> Steps:
        for _ in range(20):
            yield me.iteration()
            yield me.compute(1e-3)
            line = 10 if me.rank == 0 else 12
            yield me.collective("Reduce", 64, site=("main", "in_place.c", line))

    trace = run(Program(4, body)).read(tmp_path)
    nest = package.find_structure(trace).to_dict()["nest"]
    loop, places = next((a, b) for a, b in pairwise(nest) if a["kind"] == "loop")
    assert (loop["count"], places["calls"]) == (20, [{"name": "MPI_Reduce", "number": 1}])
    (pattern,) = (
        one
        for one in package.communication(trace).to_dict()["patterns"]
        if one["facts"]["op"] == "reduce"
    )
    assert (pattern["executions"], pattern["messages"], pattern["exact"]) == (20, 20, True)
