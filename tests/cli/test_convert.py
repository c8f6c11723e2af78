"""``popmodel convert``, and the other verbs on what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from extras import needs_matplotlib

import popmodel as package
from popmodel.base.errors import UsageError

from .conftest import Call

DATA = Path(__file__).parent.parent / "data"


def test_a_timeline_for_viewers(tmp_path: Path) -> None:
    goal = tmp_path / "x.perfetto.json"
    written = package.convert(DATA / "cg.S.2.prv.gz", goal)
    assert (written.format, written.counts["slices"]) == ("Trace Event Format", 20_173)
    assert len(json.loads(goal.read_text())["traceEvents"]) > 20_173


def test_an_archive_has_the_metrics_of_its_trace(tmp_path: Path) -> None:
    pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")
    package.convert(DATA / "cg.S.2.prv.gz", tmp_path / "x.otf2")
    run, of_archive = (
        package.metrics(path).runs[0] for path in (DATA / "cg.S.2.prv.gz", tmp_path / "x.otf2")
    )
    assert of_archive.observables.ideal_runtime == run.observables.ideal_runtime
    assert of_archive.observables.runtime == run.observables.runtime


@needs_matplotlib
def test_a_timeline_as_a_drawing(popmodel: Call, tmp_path: Path) -> None:
    goal = tmp_path / "x.svg"
    status, out, _ = popmodel("convert", str(DATA / "cg.S.2.prv.gz"), "-o", str(goal))
    assert (status, out.splitlines()[0]) == (0, f"{goal}: SVG, 2 processes, 2 lanes")
    text = goal.read_text()
    assert "popmodel convert" in text
    assert ">Measured</text>" in text
    assert ">Replayed: " in text


@needs_matplotlib
def test_a_timeline_that_has_no_replay_says_so(tmp_path: Path) -> None:
    trace = tmp_path / "x.prv"
    trace.write_text("#Paraver (20/11/2026 at 23:14):9_ns:1(4):1:1(1:1),0\n1:1:1:1:1:0:9:1\n")
    written = package.convert(trace, tmp_path / "x.perfetto.json.gz")
    assert written.notes == ("no ideal replay beside the run: no MPI calls",)
    assert written.counts == {"processes": 1, "slices": 1, "messages": 0}
    written = package.convert(trace, tmp_path / "x.svg")
    assert written.notes == ("no ideal replay: no MPI calls",)


@pytest.mark.parametrize("suffix", ["ti.txt.gz", "goal"])
def test_a_replay_of_it_is_the_replay_of_the_trace(
    popmodel: Call, tmp_path: Path, suffix: str
) -> None:
    path = str(tmp_path / f"x.{suffix}")
    trace = str(DATA / "comd.4.prv.gz")
    assert popmodel("convert", trace, "-o", path)[0] == 0
    rate = ("--flop-rate", "1Gf") if "ti" in suffix else ()
    runtimes = []
    for one in ((trace,), (path, *rate)):
        out = popmodel("whatif", *one, "--network", "smpi", "--format", "json")[1]
        runtimes.append(json.loads(out)["runs"][0]["runtime"])
    assert runtimes[1] == pytest.approx(runtimes[0], rel=1e-9)


def test_contents_and_metrics_of_it(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "x.goal"
    path.write_text("num_ranks 1\nrank 0 {\nsend 8b to 0\nrecv 8b from 0\ncalc 2000\n}\n")
    status, out, _ = popmodel("inspect", str(path), "--show", "info")
    assert status == 0
    assert "computation  up to 2.000 us per process; no run times\n" in out
    assert "messages     8 B each; 8 B in total\n" in out
    assert popmodel("metrics", str(path)) == (
        1,
        "",
        f"popmodel: error: {path}: has no measured times, only what processes compute and call\n"
        "hint: popmodel whatif simulates the run on a network\n",
    )


def test_a_file_that_is_there_stays(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "x.ti"
    path.write_text("mine")
    trace = str(DATA / "is.S.4.prv.gz")
    status, _, err = popmodel("convert", trace, "-o", str(path))
    assert (status, path.read_text()) == (2, "mine")
    assert f"-o {path}: the file exists" in err
    with pytest.raises(UsageError, match="is a directory"):
        (tmp_path / "d.ti").mkdir()
        package.convert(trace, tmp_path / "d.ti")
    assert package.convert(trace, path, force=True).format == "SimGrid SMPI"
    assert path.read_text() != "mine"


def test_a_failure_says_that_the_old_file_is_not_its_result(popmodel: Call, tmp_path: Path) -> None:
    trace, path = tmp_path / "x.ti", tmp_path / "y.ti"
    trace.write_text("0 send 1 0 1 6\n1 recv 0 0 1 6\n")
    words = ("convert", str(trace), "--flop-rate", "1Gf", "-o", str(path), "--force")
    assert popmodel(*words)[0] == 0
    old = path.read_bytes()
    trace.write_text("0 send 1 0 1 6\n1 jump\n")
    status, _, err = popmodel(*words)
    assert status == 1
    assert err.splitlines()[-1] == (
        f"hint: {path} was not written: it is what an earlier command left"
    )
    assert path.read_bytes() == old
    path.unlink()
    assert "an earlier command" not in popmodel(*words)[2]


def test_a_window_that_cuts_collectives(popmodel: Call, tmp_path: Path) -> None:
    trace = str(DATA / "is.S.4.prv.gz")
    path = str(tmp_path / "x.ti")
    assert popmodel("convert", trace, "-o", path, "--window", "0.379554698:0.379571554")[0] == 0
    assert popmodel("whatif", path, "--flop-rate", "1Gf", "--network", "smpi")[0] == 0


def test_the_sensitivity_of_a_program_without_times(popmodel: Call) -> None:
    trace = str(DATA / "smpi" / "jac2048.4.ti.txt.gz")
    status, _, err = popmodel("whatif", trace)
    assert (status, "no flop rate is set" in err) == (2, True)
    found = package.whatif(trace, flop_rate=1e9, network="smpi", sensitivity=True).to_dict()
    found = found["sensitivity"]
    # SimGrid's runtime on this network, whose shares add up to it.
    assert found["runtime"] == pytest.approx(0.180093939, rel=1e-9)
    assert sum(found["shares"].values()) == pytest.approx(found["runtime"], rel=1e-9)


def test_a_program_of_dimemas_on_a_machine_of_dimemas(popmodel: Call, tmp_path: Path) -> None:
    program, machine = tmp_path / "case.dim", tmp_path / "case.cfg"
    program.write_text(
        '#DIMEMAS:"x":1,0:2(1,1),1,0,0\nd:1:1:2:0:1\n'
        "2:0:0:1:-1:1048576:7:1:0\n3:1:0:0:-1:1048576:7:1:0\n"
    )
    machine.write_text(
        '"environment information" {"", 0, "", 2, 100, 0, 1};;\n'
        '"multi node information" {0, 2, "n", 1, 1, 0, 0, 0, 1, 1, 1e-3, 1, 1, 0.0};;\n'
    )
    call = ("whatif", str(program), "--network", str(machine), "--format", "json")
    document = json.loads(popmodel(*call)[1])
    # The latency on both sides, at the same time, and a MB of 2**20 at 100 MB/s.
    assert document["runs"][0]["runtime"] == pytest.approx(1e-3 + 1e-2)
    assert document["runs"][0]["network"]["name"] == str(machine)
    read = {each["path"] for each in document["provenance"]["inputs"]}
    assert read == {str(program), str(machine)}
    status, _, err = popmodel("whatif", str(program), "--network", str(tmp_path / "no.cfg"))
    assert (status, "cannot be read: no such file or directory" in err) == (1, True)
