"""``--bind`` of predict and validate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel as package
from popmodel.base.errors import UsageError

from .conftest import Call

RUN = ("predict", "--procs", "2", "--threads", "4", "--nodes", "1")
ONE = ("predict", "--procs", "1", "--threads", "4", "--nodes", "1")


def predicted(popmodel: Call, *words: str) -> Any:
    return json.loads(popmodel(*words, "--format", "json")[1])


@pytest.mark.long
def test_the_layout_is_in_the_document(shown: Call) -> None:
    close, spread, loose = (
        predicted(shown, *ONE, "--bind", bind)["placement"] for bind in ("close", "spread", "none")
    )
    assert close == {
        "nodes": 1,
        "processes_per_node": 1,
        "grid": [1, 1, 1],
        "bind": "close",
        "cores_per_process": 4,
        "active": 4,
        "active_serial": 1,
        "sockets_spanned": 1,
        "domains_spanned": 1,
    }
    assert spread == {
        **close,
        "bind": "spread",
        "cores_per_process": 16,
        "active": 2,
        "sockets_spanned": 2,
        "domains_spanned": 2,
    }
    assert loose == {**spread, "bind": "none"}


@pytest.mark.long
def test_close_is_the_default(popmodel: Call) -> None:
    runtimes = [predicted(popmodel, *RUN, *more)["runtime"] for more in ((), ("--bind", "close"))]
    assert runtimes[0] == runtimes[1]


@pytest.mark.long
def test_the_screen_and_the_launch_lines_say_what_binds_threads(shown: Call) -> None:
    out = shown(*RUN, "--bind", "none", "--all")[1]
    assert "grid 1x1x2, threads not bound" in out
    assert "OMP_PROC_BIND=false" in out
    assert "nothing binds threads to cores" in " ".join(out.split())
    assert ", threads spread\n" in shown(*RUN, "--bind", "spread")[1]
    assert "thread" not in shown(*RUN)[1].splitlines()[2]


def test_all_splits_are_placed_so(shown: Call) -> None:
    words = ("predict", "--cores", "4", "--bind", "spread")
    document = predicted(shown, *words)
    assert document["bind"] == "spread"
    assert "OMP_PROC_BIND=spread" in document["choices"][0]["launch"]
    assert ", threads spread " in " ".join(shown(*words)[1].split())


@pytest.mark.long
def test_measured_runs_are_compared_with_runs_that_nothing_binds(
    popmodel: Call, tmp_path: Path
) -> None:
    runs = tmp_path / "runs.csv"
    runs.write_text("processes,threads,runtime\n2,4,1.0\n")
    words = ("validate", "stencil3d", str(runs), "--nodes", "1", "--bind", "none")
    (split,) = json.loads(popmodel(*words, "--format", "json")[1])["splits"]
    runtime = predicted(popmodel, *RUN, "--bind", "none")["runtime"]
    assert split["runtime"]["predicted"] == pytest.approx(runtime["value"])


def test_an_unknown_binding_is_refused() -> None:
    with pytest.raises(UsageError, match="bind: unknown value 'far'") as caught:
        package.predict("stencil3d", procs=2, bind="far")
    assert caught.value.hint == "choose one of close, spread, none"


@pytest.mark.long
def test_formulas_are_those_of_the_layout(shown: Call) -> None:
    words = (*ONE, "--formula", "runtime", "--all")
    assert "memory bandwidth of 4 active cores of a domain" in shown(*words)[1]
    assert "memory bandwidth of 2 active cores of a domain" in shown(*words, "--bind", "spread")[1]
