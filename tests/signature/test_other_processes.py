"""Signatures of real programs are carried out at numbers of processes that were not traced."""

from pathlib import Path

import pytest

from popmodel.machine import profile
from popmodel.model.run.call_costs import program
from popmodel.model.signatures import from_text
from popmodel.signature import signature_from
from popmodel.signature.compare_replay import carried_out
from popmodel.signature.recorded_times import figures
from popmodel.trace import read
from popmodel.trace.selection import focused

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.long
@pytest.mark.parametrize("name", ["cg.S.2", "comd.4", "is.S.4", "mix.4"])
def test_every_message_has_both_ends(name: str) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    signature = from_text(signature_from([trace]).text)
    machine = profile.load("sandybridge-fdr")
    for processes in (3, 8, 18):
        found = program(signature, machine, processes, 1, {})
        assert found.processes == processes
        assert found.operations > 0


def test_a_root_that_is_not_there_is_the_last_process() -> None:
    trace, _ = focused(read(DATA / "mix.4.prv.gz"))
    assert 'root = "min(3, P - 1)"' in signature_from([trace]).text


@pytest.mark.parametrize(("root", "said"), [(0, "max(1 - rank, 0)"), (3, "max(rank - P + 2, 0)")])
def test_what_one_process_computes_stays_with_one(root: int, said: str, tmp_path: Path) -> None:
    def lines(rank: int) -> list[str]:
        step = ["compute 1e6", f"gather 8 8 {root} 0 0"]
        step += ["compute 4e6"] * (rank == root) + [f"bcast 8 {root} 0"]
        return [f"{rank} {action}" for action in ["init", *step * 9, "finalize"]]

    path = tmp_path / "root.ti.txt"
    path.write_text("".join(f"{line}\n" for rank in range(4) for line in lines(rank)))
    text = signature_from([read(path, flop_rate=1e9)]).text
    assert said in text
    for processes in (4, 16):
        runtime = figures(carried_out(from_text(text), processes, 1)).runtime
        assert runtime == pytest.approx(9 * (4e-3 + 4e-3 / processes), rel=0.01)
