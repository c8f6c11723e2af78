"""``popmodel bench``: launches that fail, and measurements that give nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel.machines.bench import collect

from .played_machine import load

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


@pytest.mark.usefixtures("machine")
def test_a_launch_that_dies_is_told_and_the_rest_is_measured(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE", "ping_pong 1048576")
    status, out, err = popmodel("bench", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    warning = "launch 2 (mpi) failed in ping_pong bytes=1048576 tier=node: "
    line, lacking = [line for line in err.splitlines() if "warning" in line]
    assert lacking.startswith("popmodel: warning: m.core-p2p.samples: ")
    assert line.startswith(f"popmodel: warning: {warning}")
    assert "signal SIGKILL" in line
    document = load("m.json")
    (failure,) = document["provenance"]["measurements"][0]["failures"]
    assert failure.startswith(warning)
    assert document["net"]["intra"]["classes"]
    assert "warnings" in out
    assert "launch 2 (mpi) failed in ping_pong" in " ".join(out.split())


@pytest.mark.usefixtures("machine")
def test_a_program_that_does_not_begin_leaves_its_parts_absent(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMB", "mpi")
    status, _, err = popmodel("bench", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    assert err.splitlines()[2] == "hint: full output: m.core-p2p.samples/launch-002.log"
    document = load("m.json")
    assert "net" not in document
    assert document["absent"]["net.intra"].startswith(
        "launch 2 (mpi) failed before its first job: "
    )
    assert "there is no network" in document["absent"]["net.intra"]


@pytest.mark.usefixtures("machine")
def test_nothing_measured_is_a_failure(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMB", "node")
    status, out, err = popmodel("bench", "--only", "core", "-o", "m.json")
    assert (status, out) == (1, "")
    assert "popmodel: error: nothing could be measured: launch 1 (node) failed before" in err
    assert "there is no network" in err
    assert not Path("m.json").exists()
    monkeypatch.delenv("DUMB")
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 0  # and can be tried again


@pytest.mark.usefixtures("machine")
def test_nothing_measured_of_what_was_asked_is_a_failure(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMB", "mpi")
    status, out, err = popmodel("bench", "--only", "p2p", "-o", "m.json")
    assert (status, out) == (1, "")
    lines = err.splitlines()
    assert err.count("launch 2 (mpi)") == 1
    assert lines[-3] == (
        "popmodel: samples are kept in m.p2p.samples: run the same command to resume"
    )
    assert lines[-2].startswith(
        "popmodel: error: p2p: nothing could be measured: launch 2 (mpi) failed before its "
        "first job: "
    )
    assert "there is no network" in lines[-2]
    assert lines[-1] == "hint: full output: m.p2p.samples/launch-002.log"
    assert not Path("m.json").exists()
    monkeypatch.delenv("DUMB")
    status, _, err = popmodel("bench", "--only", "p2p", "-o", "m.json")
    assert (status, err.startswith("popmodel: resuming, ")) == (0, True)


def test_what_is_absent_is_the_reason_where_no_launch_failed() -> None:
    document = {"absent": {"core.smt_factor": "no SMT", "net.thread_factor": "no such level"}}
    error = collect.nothing_of(("threads",), document, ())
    assert error.message == "threads: nothing could be measured: no such level"
    assert error.hint == "popmodel doctor shows what works on this machine"
    error = collect.nothing_of(("core", "p2p"), {}, ())
    assert error.message == ("core, p2p: nothing could be measured: there are no samples")
