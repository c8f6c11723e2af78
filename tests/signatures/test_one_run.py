"""What a signature of one run says of other numbers of processes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from synthetic import Network, programs, run

import popmodel
from popmodel.model.signatures import from_text
from popmodel.signatures import signature_from
from popmodel.signatures.compare_replay import carried_out
from popmodel.signatures.recorded_times import figures
from popmodel.traces import Trace, read
from popmodel.traces.selection import focused


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
    found = popmodel.predict(str(signature), procs=16).to_dict()["runtime"]
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


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.long
@pytest.mark.parametrize("name", ["cg.S.2", "comd.4", "is.S.4", "mix.4"])
def test_every_message_has_both_ends(name: str) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    signature = from_text(signature_from([trace]).text)
    for processes in (3, 8, 18):
        found = carried_out(signature, processes, 1)
        assert found.processes == processes
        assert found.operations > 0


@pytest.mark.parametrize(("root", "said"), [(0, "max(1 - rank, 0)"), (3, "max(rank - P + 2, 0)")])
def test_what_a_root_computes_stays_with_the_root(root: int, said: str, tmp_path: Path) -> None:
    def lines(rank: int) -> list[str]:
        step = ["compute 1e6", f"gather 8 8 {root} 0 0"]
        step += ["compute 4e6"] * (rank == root) + [f"bcast 8 {root} 0"]
        return [f"{rank} {action}" for action in ["init", *step * 9, "finalize"]]

    path = tmp_path / "root.ti.txt"
    path.write_text("".join(f"{line}\n" for rank in range(4) for line in lines(rank)))
    text = signature_from([read(path, flop_rate=1e9)]).text
    assert said in text
    assert ('root = "min(3, P - 1)"' in text) == (root == 3)
    for processes in (4, 16):
        runtime = figures(carried_out(from_text(text), processes, 1)).runtime
        assert runtime == pytest.approx(9 * (4e-3 + 4e-3 / processes), rel=0.01)
