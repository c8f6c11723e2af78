"""The focus of analysis on the command line: times, iterations, or chosen by the structure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic import programs, run

from popmodel.traces.paraver.writer import TraceWriter

from .conftest import MS, Call, write_trace
from .test_parts import STEPS, steps

__all__ = ["steps"]


def useful(popmodel: Call, trace: str, *options: str) -> float:
    """Useful time of a part, thread seconds."""
    out = popmodel("metrics", trace, *options, "--format", "json")[1]
    return float(sum(json.loads(out)["runs"][0]["observables"]["useful"]))


def window(popmodel: Call, verb: str, trace: str, *options: str) -> tuple[float, float, str]:
    document = json.loads(popmodel(verb, trace, *options, "--format", "json")[1])
    metrics = verb == "metrics"
    found = document["runs"][0]["window"] if metrics else document["phases"]["analysed"]
    return found["begin"], found["end"], found["why"]


@pytest.mark.parametrize("verb", ["metrics", "inspect"])
def test_times_are_a_window(steps: str, popmodel: Call, verb: str) -> None:
    given = window(popmodel, verb, steps, "--foa", "55ms:0.155s")
    assert given == window(popmodel, verb, steps, "--window", "55ms:155ms")
    assert given[:2] == (0.055, 0.155)


@pytest.mark.parametrize("verb", ["metrics", "inspect"])
def test_an_open_end_is_that_of_the_trace(steps: str, popmodel: Call, verb: str) -> None:
    assert window(popmodel, verb, steps, "--foa", ":50ms")[:2] == (0.0, 0.05)
    assert window(popmodel, verb, steps, "--foa", "0.1:")[:2] == (0.1, 0.22)


@pytest.mark.parametrize("verb", ["metrics", "inspect"])
def test_iterations_are_cut_where_they_begin(steps: str, popmodel: Call, verb: str) -> None:
    """A step lasts from the end of a barrier to that of the next."""
    begin, end, why = window(popmodel, verb, steps, "--foa", "iterations=3:5")
    assert (begin, end) == (0.035, 0.095)
    assert why == "iterations 3 to 5 of 10 (35 ms to 95 ms)"


def test_one_iteration_and_open_ones(steps: str, popmodel: Call) -> None:
    assert window(popmodel, "metrics", steps, "--foa", "iterations=4")[:2] == (0.055, 0.075)
    assert window(popmodel, "metrics", steps, "--foa", "iterations=9:")[:2] == (0.155, 0.195)
    assert window(popmodel, "metrics", steps, "--foa", "iterations=:2")[1] == 0.035


def test_iterations_add_up_to_all_of_them(steps: str, popmodel: Call) -> None:
    each = [useful(popmodel, steps, "--foa", f"iterations={i}") for i in range(1, STEPS + 1)]
    assert sum(each) == pytest.approx(useful(popmodel, steps, "--foa", f"iterations=1:{STEPS}"))
    assert each[4] == pytest.approx(2 * 0.010 + 0.008 + 0.004)


def test_auto_takes_iterations_that_are_like_the_others(steps: str, popmodel: Call) -> None:
    _, _, why = window(popmodel, "metrics", steps, "--foa", "auto")
    assert why.startswith("iteration")
    assert f" of {STEPS}" in why
    efficiency = {
        name: json.loads(popmodel("metrics", steps, "--foa", name, "--format", "json")[1])["runs"][
            0
        ]["metrics"]["mpi"]["load_balance"]
        for name in ("auto", f"iterations=2:{STEPS}")
    }
    assert efficiency["auto"] == pytest.approx(efficiency[f"iterations=2:{STEPS}"])


def test_a_region_inside_iterations(steps: str, popmodel: Call) -> None:
    out = popmodel(
        "metrics", steps, "--foa", "iterations=3:4", "--region", "step", "--format", "json"
    )[1]
    found = json.loads(out)["runs"][0]["window"]
    assert found["why"].startswith("region step, ")
    assert found["why"].endswith("in iterations 3 to 4 of 10 (35 ms to 75 ms)")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("whatif", "--network", "ideal"), "iterations 3 to 5 of 10"),
        (("inspect",), "iterations 3 to 5 of 10"),
        (("whatif",), "iterations 3 to 5 of 10"),
    ],
)
def test_every_command_that_reads_a_trace_takes_it(
    steps: str, popmodel: Call, words: tuple[str, ...], told: str
) -> None:
    status, out, err = popmodel(*words, steps, "--foa", "iterations=3:5", "--format", "json")
    assert status == 0, err
    assert told in out


def test_a_program_is_written_of_iterations(steps: str, popmodel: Call) -> None:
    status, out, err = popmodel("convert", steps, "-o", "step.goal", "--foa", "iterations=3:5")
    assert status == 0, err
    assert "iterations 3 to 5 of 10" in out
    assert "6 MPI operations" in out


def test_runs_are_validated_in_iterations(steps: str, popmodel: Call) -> None:
    words = ("validate", "stencil3d", steps, "--format", "json")
    some, all_ = (
        json.loads(popmodel(*words, *more)[1])["rows"][0]["measured"]
        for more in (("--foa", "iterations=3:5"), ("--from-start",))
    )
    assert some == pytest.approx(0.06)
    assert all_ == pytest.approx(0.22)


@pytest.mark.parametrize("foa", ["auto", "iterations=1:2"])
def test_a_run_without_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call, foa: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    status, out, err = popmodel("metrics", "two.prv", "--foa", foa)
    assert (status, out) == (1, "")
    assert err == (
        "popmodel: error: two.prv: no iterations found: nothing repeats in its MPI calls and "
        "parallel regions\nhint: choose a part with --window, for example --window 1s:2s\n"
    )


def test_a_trace_that_cannot_be_replayed_is_named_once(popmodel: Call, tmp_path: Path) -> None:
    writer = TraceWriter([1, 1])
    for rank in (0, 1):
        writer.state(rank, 0, 0, 10 * MS, 1)
    writer.message((0, 0), (1, 0), (0, 5), (0, 5), 8)
    trace = str(tmp_path / "x.prv")
    writer.write(trace)
    err = popmodel("metrics", trace, "--foa", "auto")[2]
    assert err.startswith(f"popmodel: error: {trace}: 1 message without an MPI call")


def test_each_run_has_its_own_iterations(steps: str, popmodel: Call) -> None:
    out = popmodel("metrics", steps, steps, "--foa", "iterations=2:3", "--format", "json")[1]
    begins = [run["window"]["begin"] * 1e9 for run in json.loads(out)["runs"]]
    assert begins == pytest.approx([15 * MS, 15 * MS])


def test_metrics_of_iterations_make_those_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    """Processes that are never at the same place at the same time: a pipeline."""
    monkeypatch.chdir(tmp_path)
    done = run(programs.pipeline((2, 2), 8, per_cell=1e-6), transient=0.1, seed=3)
    done.write(tmp_path / "waves.prv")
    structure = json.loads(popmodel("inspect", "waves.prv", "--format", "json")[1])["structure"]
    number = len(structure["iterations"]["begins"]) - 1
    found = []
    for text in (f"iterations=1:{number}", *(f"iterations={i + 1}" for i in range(number))):
        out = popmodel("metrics", "waves.prv", "--foa", text, "--format", "json")[1]
        found.append(json.loads(out)["runs"][0])
    whole, *each = found
    runtimes = [one["runtime"] for one in each]
    assert sum(runtimes) == pytest.approx(whole["runtime"], rel=1e-6)
    efficiencies = [one["metrics"]["mpi"]["parallel_efficiency"] for one in each]
    mean = sum(t * e for t, e in zip(runtimes, efficiencies, strict=True)) / sum(runtimes)
    assert mean == pytest.approx(whole["metrics"]["mpi"]["parallel_efficiency"], rel=1e-6)
