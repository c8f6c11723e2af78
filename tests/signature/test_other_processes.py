"""Signatures of real programs are carried out at numbers of processes that were not traced."""

from pathlib import Path

import pytest

from popmodel.machine import profile
from popmodel.model.signatures import from_text
from popmodel.model.whole import program
from popmodel.signature import signature_from
from popmodel.trace import read
from popmodel.trace.focus import focused

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
