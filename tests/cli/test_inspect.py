"""``popmodel inspect``: what a run does, in one document and on one screen."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from extras import needs_matplotlib
from synthetic import Counters, Program, Rank, programs, run
from synthetic.program import Steps

import popmodel as package
from popmodel.structure.phases import phases
from popmodel.structure.structure import Structure

from .conftest import Call, write_trace
from .test_parts import STEPS, steps

__all__ = ["steps"]

DATA = Path(__file__).parents[1] / "data"
COMD = str(DATA / "comd.4.prv.gz")
UNTIMED = str(DATA / "smpi" / "jac2048.4.ti.txt.gz")
PARTS = ("info", "structure", "phases", "communication")


def document(popmodel: Call, *words: str) -> dict[str, Any]:
    status, out, err = popmodel("inspect", *words, "--format", "json")
    assert status == 0, err
    found = json.loads(out)
    assert found["schema"] == "popmodel/inspect/1"
    return dict(found)


def part(popmodel: Call, name: str, *words: str) -> dict[str, Any]:
    return dict(document(popmodel, *words, "--show", name)[name])


def screen(popmodel: Call, *words: str) -> str:
    """The screen of a command as one line."""
    status, out, err = popmodel("inspect", *words)
    assert status == 0, err
    return " ".join(out.split())


@pytest.fixture
def jacobi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stencil on 2 x 2 processes, 30 steps."""
    monkeypatch.chdir(tmp_path)
    done = run(programs.jacobi((2, 2), steps=30, per_cell=1e-6), transient=0.02)
    done.write(tmp_path / "jacobi.prv")
    return "jacobi.prv"


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


# All parts.


def test_the_contract(trace: str, popmodel: Call) -> None:
    found = document(popmodel, trace)
    info = found["info"]
    assert (found["trace"], info["trace"]) == ("two.prv", "two.prv")
    assert (info["processes"], info["threads"], info["nodes"]) == (2, 1, 1)
    assert info["runtime"] == pytest.approx(0.009)
    assert info["records"]["states"] == 4
    assert (info["calls"], info["counters"], info["warnings"]) == ({"MPI_Barrier": 2}, [], [])
    assert {"parts", "period", "confidence", "foa"} <= set(found["structure"])
    assert found["absent"] == {}


def test_one_part_is_that_of_the_whole(jacobi: str, popmodel: Call) -> None:
    found = document(popmodel, jacobi)
    for name in PARTS:
        assert document(popmodel, jacobi, "--show", name).keys() - found.keys() == set()
        assert part(popmodel, name, jacobi) == found[name]
    assert package.inspect(jacobi).to_dict() == {
        name: value for name, value in found.items() if name != "provenance"
    }


def test_a_trace_is_read_once(jacobi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from popmodel import traces

    read, times = traces.read, []
    monkeypatch.setattr(traces, "read", lambda *a, **k: (times.append(a), read(*a, **k))[1])
    package.inspect(jacobi)
    assert len(times) == 1


def test_parts_that_cannot_be_had_say_why(popmodel: Call) -> None:
    found = document(popmodel, UNTIMED)
    assert set(found["absent"]) == {"structure", "phases"}
    assert (found["structure"], found["phases"]) == (None, None)
    assert found["communication"]["messages"] == 320
    assert "--flop-rate" in found["absent"]["phases"]
    found = document(popmodel, UNTIMED, "--flop-rate", "1Gflop/s")
    assert found["absent"] == {}
    assert found["structure"]["timelines"] == []
    assert found["structure"]["iterations"] is not None
    assert found["phases"]["calls"][0]["time"] is None
    assert {call["time"] for call in found["communication"]["calls"]} == {None}
    assert (found["communication"]["nodes"], found["communication"]["within_nodes"]) == (None, None)


@pytest.mark.parametrize("columns", [40, 50, 80, 120])
def test_screens_have_room(
    counted: str, popmodel: Call, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    for words in ((), *(("--show", name) for name in PARTS)):
        lines = popmodel("inspect", counted, *words)[1].splitlines()
        assert max(map(len, lines)) <= columns
        assert columns < 80 or len(lines) <= 25
        assert "\x1b" not in "".join(lines)
        assert len(popmodel("inspect", counted, *words, "--all")[1].splitlines()) > len(lines)


def test_in_python(jacobi: str) -> None:
    found = package.inspect(jacobi)
    assert (found["iterations"], found["processes"]) == (30, 4)
    table = found.to_dataframe()
    assert {name.partition(".")[0] for name in table.table} == set(PARTS)
    assert (table.table == "structure.iterations").sum() == 31
    assert table[table.table == "phases.phases"].share.sum() == pytest.approx(1)
    with pytest.raises(package.PopmodelError, match="show: unknown value 'all'"):
        package.inspect(jacobi, show="all")


@needs_matplotlib
def test_the_picture_is_the_matrix(popmodel: Call, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra popmodel-hpc[plots]")
    path = tmp_path / "matrix.svg"
    for words in ((), ("--show", "communication")):
        assert popmodel("inspect", COMD, *words, "-o", str(path), "--force")[0] == 0
        assert "984 messages, 20.39 MiB from rank to rank" in path.read_text()
    status, _, err = popmodel("inspect", COMD, "--show", "info", "-o", str(tmp_path / "no.svg"))
    assert (status, "only communication is drawn" in err) == (2, True)


# The trace.


def test_what_is_analysed_is_said_beside_the_whole(started: str, popmodel: Call) -> None:
    assert "analysed 0.04 s to 0.09 s (MPI_Init to MPI_Finalize)" in screen(
        popmodel, started, "--show", "info"
    )
    found = part(popmodel, "info", started)
    assert found["runtime"] == 0.1
    assert found["analysed"] == {
        "begin": 0.04,
        "end": 0.09,
        "duration": 0.05,
        "left_out": {"before": 0.04, "between": 0.0, "after": 0.01},
        "region": None,
        "occurrences": 1,
        "why": "MPI_Init to MPI_Finalize",
    }


# The structure.


def test_iterations_of_a_run(jacobi: str, popmodel: Call) -> None:
    found = part(popmodel, "structure", jacobi)
    kinds = [one["kind"] for one in found["parts"]]
    assert kinds == ["initialisation", "iterations", "finalisation"]
    first, middle, _ = found["parts"]
    assert middle["iterations"] == 30
    assert first["begin"] <= middle["begin"] < middle["end"]
    assert middle["begin"] <= found["foa"]["begin"] < found["foa"]["end"]
    begins = found["iterations"]["begins"]
    assert (len(begins), begins) == (31, sorted(begins))
    assert found["period"] == pytest.approx((begins[-1] - begins[0]) / 30, rel=0.1)


@pytest.mark.parametrize("foa", ["auto", "iterations=2:4"])
def test_what_rests_on_doubtful_iterations_says_so(
    foa: str, tmp_path: Path, popmodel: Call
) -> None:
    """A long initialisation: the iterations that were found hold little of the time."""
    done = run(programs.jacobi((2, 2), steps=30, per_cell=1e-6, setup=20.0))
    trace = str(done.write(tmp_path / "doubtful.prv"))
    sure = part(popmodel, "structure", trace)["confidence"]
    assert sure < 0.2
    told = f"confidence {sure:.2f}, hardly more than a guess"
    for words in (("metrics",), ("inspect", "--show", "phases")):
        status, out, err = popmodel(*words, trace, "--foa", foa)
        assert status == 0, err
        assert told in " ".join(out.split())
    assert "--foa auto" not in screen(popmodel, trace)
    assert told in screen(popmodel, trace)


def test_another_focus(steps: str, popmodel: Call) -> None:
    found = part(popmodel, "structure", steps, "--foa", "iterations=3:5")["foa"]
    assert found == {"begin": 0.035, "end": 0.095, "first": 3, "last": 5, "why": "as asked for"}
    times = part(popmodel, "structure", steps, "--foa", "0.1:0.15")["foa"]
    assert (times["begin"], times["end"], times["first"]) == (0.1, 0.15, None)
    auto = part(popmodel, "structure", steps, "--foa", "auto")["foa"]
    assert auto == part(popmodel, "structure", steps)["foa"]
    words = (steps, "--show", "structure", "--foa", "iterations=3:5")
    assert "--foa iterations=3:5 analyses iterations 3 to 5" in screen(popmodel, *words)


def test_time_in_mpi_over_time(steps: str, popmodel: Call) -> None:
    """Rank 0 computes 18 ms of 20, rank 1 14; the rest is in the barrier."""
    found = part(popmodel, "structure", steps)["timelines"][0]
    assert sum(found["in_mpi"]) / len(found["in_mpi"]) == pytest.approx(80 / 440, abs=0.01)
    assert len(found["bursts"]) == len(found["in_mpi"])
    assert 0 <= min(found["bursts"]) < max(found["bursts"]) <= 1


def test_iterations_begin_where_a_step_does(steps: str, popmodel: Call) -> None:
    begins = part(popmodel, "structure", steps)["iterations"]["begins"]
    assert (len(begins) - 1, begins[2], begins[3]) == (STEPS, 0.035, 0.055)


def test_a_run_in_which_nothing_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    found = part(popmodel, "structure", "two.prv")
    assert (found["iterations"], found["period"], found["foa"]["first"]) == (None, None, None)
    assert "none found: nothing repeats" in screen(popmodel, "two.prv")
    assert "-> no iterations: choose what to analyse with --window or --region" in screen(
        popmodel, "two.prv", "--show", "structure"
    )


@pytest.mark.parametrize("name", ["is.S.4", "ft.S.4", "comd.4", "cg.S.2", "mix.4", "bt-mz.S.2x2"])
def test_real_traces(popmodel: Call, name: str) -> None:
    """All of the useful time that the efficiencies count is in a phase."""
    path = str(DATA / f"{name}.prv.gz")
    found = document(popmodel, path)
    shares = sum(each["share"] for each in found["structure"]["nest"] if each["depth"] == 0)
    assert 0.3 < shares <= 1 + 1e-9
    run = package.metrics(path).runs[0].observables
    assert found["phases"]["useful"] == pytest.approx(run.useful.sum(), rel=1e-9)
    if found["phases"]["threads"] == len(run.masters):
        masters = [run.useful[at] for at in run.masters]
        balance = sum(masters) / len(masters) / max(masters)
        assert found["phases"]["load_balance"]["value"] == pytest.approx(balance)


def test_a_collective_that_is_called_at_two_places_is_one_call(tmp_path: Path) -> None:
    """As in ``if (rank == 0) MPI_Reduce(MPI_IN_PLACE, ...) else MPI_Reduce(...)``."""

    def body(me: Rank) -> Steps:
        for _ in range(20):
            yield me.iteration()
            yield me.compute(1e-3)
            line = 10 if me.rank == 0 else 12
            yield me.collective("Reduce", 64, site=("main", "in_place.c", line))

    found = package.inspect(run(Program(4, body)).read(tmp_path)).to_dict()
    loop, places = next(
        (a, b) for a, b in pairwise(found["structure"]["nest"]) if a["kind"] == "loop"
    )
    assert (loop["count"], places["calls"]) == (20, [{"name": "MPI_Reduce", "number": 1}])
    (pattern,) = (
        one for one in found["communication"]["patterns"] if one["facts"]["op"] == "reduce"
    )
    assert (pattern["executions"], pattern["messages"], pattern["exact"]) == (20, 20, True)


# Phases.


def test_small_phases_of_many_stand_on_one_line(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popmodel.structure.descriptions._MOST_PHASES", 20)
    trace = str(DATA / "bt-mz.S.2x2.prv.gz")
    found = part(popmodel, "phases", trace)
    summed = [phase for phase in found["phases"] if phase["place"] == -2]
    assert sum(phase["time"] for phase in found["phases"]) == pytest.approx(found["computing"])
    assert {phase["persistent"] for phase in summed} == {None}
    names = [phase["name"] for phase in sorted(summed, key=lambda phase: -phase["time"])]
    words = (trace, "--show", "phases")
    assert f"phases, {names[0]} and {names[1]} with " in screen(popmodel, *words)
    assert "are below 0.1 % of all computing: they are summed up" in screen(
        popmodel, *words, "--all"
    )


def test_the_screen_answers_why_processes_differ(counted: str, popmodel: Call) -> None:
    out = screen(popmodel, counted, "--show", "phases", "--all")
    assert " +30.0 " in out
    assert "sweep 2 10." in out  # threads, imbalance
    assert "MPI_Allreduce 40 1 " in out  # per process, per iteration
    verdict = out.partition("-> ")[2]
    assert verdict.startswith("load balance 77.")
    assert "process 3 computes 29." in verdict
    assert "mainly by more instructions (+30" in verdict
    assert verdict.partition(" popmodel")[0] in screen(popmodel, counted)


def test_phases_have_what_the_simulation_put_in(counted: str, popmodel: Call) -> None:
    found = part(popmodel, "phases", counted)
    sweep = next(phase for phase in found["phases"] if phase["name"] == "sweep")
    assert (sweep["executions"], sweep["processes"], sweep["kind"]) == (40, 4, "parallel")
    assert sweep["by_process"] == pytest.approx([0.9, 0.9, 0.9, 1.3], rel=0.02)
    assert sweep["transient"] == pytest.approx(0.02, rel=0.4)
    assert sweep["load_balance"]["main"] == "instructions"
    assert sweep["load_balance"]["instructions"] == pytest.approx(1.3, rel=0.01)
    assert sweep["team"]["imbalance"] == pytest.approx(0.1, abs=0.02)
    excess = sum(phase["excess"] for phase in found["phases"])
    useful = found["useful"] / 4
    assert excess == pytest.approx(useful * (1 / found["load_balance"]["value"] - 1), rel=1e-6)
    assert sum(phase["share"] for phase in found["phases"]) == pytest.approx(1)
    assert found["iterations"] == pytest.approx(40, rel=0.05)
    some = part(popmodel, "phases", counted, "--foa", "iterations=11:20")
    assert some["iterations"] == pytest.approx(10)
    assert {one["executions"] for one in some["phases"] if one["name"] == "sweep"} == {10}


def test_each_process_is_cut_at_its_own_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipeline processes are at other iterations at the same time; nothing is cut."""
    cut = []

    def watched(structure: Structure, *rest: Any) -> Any:
        found = phases(structure, *rest)
        cut.extend(phase.cut.any() for phase in found.phases)
        return found

    monkeypatch.setattr("popmodel.structure.descriptions.phases", watched)
    done = run(programs.pipeline((4,), 12, blocks=3, norm=0), transient=0.05)
    trace = done.write(tmp_path / "waves.prv")
    found = package.inspect(trace, show="phases", foa="iterations=4:6").to_dict()["phases"]
    assert found["iterations"] == pytest.approx(3)
    assert cut
    assert not any(cut)
    assert {one["executions"] for one in found["phases"] if not one["small"]} <= {3, 6, 9}
    sends = next(call for call in found["calls"] if call["name"] == "MPI_Send")
    assert sends["calls"] == 3 * 2 * 3 * 3  # iterations, ways, blocks, links between processes


def test_one_process_has_no_load_balance(tmp_path: Path, popmodel: Call) -> None:
    trace = str(run(programs.jacobi((1,), steps=10)).write(tmp_path / "one.prv"))
    assert "a single process has no load balance" in screen(popmodel, trace)
    assert "why processes differ" not in screen(popmodel, trace, "--show", "phases", "--all")


def test_the_phases_of_a_region(tmp_path: Path, popmodel: Call) -> None:
    """Six times a region of four products and sums, and one of output."""

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

    marked = str(run(Program(4, body)).write(tmp_path / "marked.prv"))
    found = part(popmodel, "phases", marked, "--region", "solve")
    assert found["analysed"]["region"] == "solve"
    long = {one["name"]: one["executions"] for one in found["phases"] if one["time"] > 1e-6}
    assert long == {"MPI_Allreduce to MPI_Sendrecv": 24, "MPI_Sendrecv to MPI_Allreduce": 24}
    assert found["computing"] == pytest.approx(4 * 24 * 3e-3, rel=1e-3)
    some = part(popmodel, "phases", marked, "--region", "solve", "--foa", "iterations=2:3")
    assert some["computing"] == pytest.approx(4 * 8 * 3e-3, rel=1e-3)
    status, out, err = popmodel("inspect", marked, "--region", "slove")
    assert (status, out) == (2, "")
    assert err.endswith("marked.prv: no region 'slove'\nhint: did you mean solve?\n")


# Communication.


def test_sums_of_messages_agree(popmodel: Call) -> None:
    found = part(popmodel, "communication", COMD)
    assert found["messages"] == sum(found["pairs"]["messages"]) == 984
    assert found["bytes"] == sum(found["pairs"]["bytes"])
    assert found["bytes"] == sum(size["bytes"] for size in found["sizes"])
    assert found["ranks_together"] == 1
    assert found["grids"] == [{"dims": [2, 2], "periodic": [True, True], "share": 1.0}]
    halo = max(found["patterns"], key=lambda pattern: pattern["bytes"])
    assert (halo["kind"], halo["exact"], halo["executions"]) == ("halo", True, 40)
    assert (halo["calls"], halo["loops"]) == ("6 MPI_Sendrecv", [4, 10])
    patterns = [one for one in found["patterns"] if one["kind"] != "collective"]
    assert sum(one["messages"] for one in patterns) == 984
    assert found["analysed"] is None


def test_the_time_of_calls_is_that_of_all_threads_in_the_part() -> None:
    table = package.read(COMD).to_dataframe("calls")
    spans = table[table.name == "MPI_Sendrecv"]
    begin, end = (int(spans.entry.quantile(share)) for share in (0.25, 0.75))

    def time(**part: Any) -> float:
        found = package.inspect(COMD, show="communication", **part).to_dict()["communication"]
        return next(call["time"] for call in found["calls"] if call["name"] == "MPI_Sendrecv")

    assert time() == pytest.approx(1e-9 * (spans.exit - spans.entry).sum(), rel=1e-12)
    cut = 1e-9 * (spans.exit.clip(begin, end) - spans.entry.clip(begin, end)).sum()
    assert time(window=(1e-9 * begin, 1e-9 * end)) == pytest.approx(cut, abs=1e-8)


def test_messages_of_an_iteration(popmodel: Call) -> None:
    found = part(popmodel, "communication", COMD, "--foa", "iterations=2")
    assert found["analysed"]["why"].startswith("iteration 2 of 4")
    assert 0 < found["messages"] <= 984 / 4 * 1.1
    assert "analysed iteration 2 of 4" in screen(popmodel, COMD, "--foa", "iterations=2")


def test_what_stays_on_a_node_is_told() -> None:
    from popmodel.reports.message_tables import facts

    found = package.inspect(COMD, show="communication").to_dict()["communication"]
    found |= {"nodes": 2, "within_nodes": {"messages": 492, "bytes": found["bytes"] // 4}}
    assert ("messages", "984, 20.39 MiB; 25 % of it within nodes") in facts(found)
