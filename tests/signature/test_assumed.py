"""What one run leaves open of its growth: iterations by a little, what is done once by all."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from synthetic import Network, programs, run

import popmodel
from popmodel.signature import signature_from
from popmodel.trace import Trace


def traced(folder: Path, dims: tuple[int, int], steps: int = 20, setup: float = 0.2) -> Trace:
    program = programs.jacobi(dims, steps, cells=(2048, 2048), setup=setup)
    done = run(program, persistent=0.02, transient=0.02, seed=7, network=Network())
    return done.read(folder, f"{dims[0]}x{dims[1]}.prv")


def document(one: Trace, scaling: str = "strong") -> dict[str, Any]:
    return tomllib.loads(signature_from([one], scaling=scaling).text)


def test_every_process_may_do_again_what_is_done_once(tmp_path: Path) -> None:
    """Setting up takes a third of the run on four processes, and as long on sixteen."""
    signature = tmp_path / "app.toml"
    signature.write_text(signature_from([traced(tmp_path, (2, 2))]).text)
    found = popmodel.predict(str(signature), "sandybridge-fdr", 16, 1).to_dict()["runtime"]
    truth = popmodel.metrics(traced(tmp_path, (4, 4)).path).to_dict()["runs"][0]["runtime"]
    assert found["low"] <= truth <= found["high"]


def test_what_divides_it_is_written_apart(tmp_path: Path) -> None:
    known = document(traced(tmp_path, (2, 2)))
    assert known["let"]["setup"] == "(4/P)**begins"
    assert known["constants"]["begins"]["low"] == 0
    seconds = [one["serial"]["seconds"] for one in known["program"] if "serial" in one]
    assert seconds[0].endswith("*setup")
    assert document(traced(tmp_path, (2, 2)), "weak")["let"]["setup"] == "(P/4)**(1 - begins)"


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_that_is_mostly_done_once_has_no_iterations_to_tell_it_from(
    steps: int, tmp_path: Path
) -> None:
    assert "setup" not in document(traced(tmp_path, (2, 2), steps, 1.0))["let"]
