"""Signatures of real traces, replayed on the ideal network beside the traces themselves.

Third-party traces are read where they are; those that the repository may hold are in `tests/data`.
What is asked: runtime within 2 %, every efficiency within .02.
"""

from pathlib import Path

import pytest

from popmodel import whatif
from popmodel.model.signatures import from_text
from popmodel.signatures import signature_from
from popmodel.signatures.compare_replay import against
from popmodel.traces import read
from popmodel.traces.selection import PROGRAM, focused

DATA = Path(__file__).parent.parent / "data" / "nas"
NAMES = (
    "cg.S.2",
    "lu.S.4",
    "mg.S.4",
    "is.S.4",
    "ft.S.4",
    "comd.4",
    "bt-mz.S.2x2",
    "epoch_1proc",
    "epoch_4proc",
    "epoch_16proc",
    "imagemagick_omp2",
    "imagemagick_omp8",
    "mix.4",
    "mixnbc.4",
    "mixpers.4",
    "mixrma.4",
)


@pytest.fixture(scope="module")
def compared(real_trace):
    """The signature of a real trace and how it compares with it; each is found once."""
    known = {}

    def of(name):
        if name not in known:
            trace, _ = focused(read(real_trace(name)), PROGRAM)
            found = signature_from([trace])
            known[name] = found, against(from_text(found.text), trace)
        return known[name]

    return of


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", NAMES)
def test_a_signature_takes_as_long_as_its_trace(name, compared):
    _, found = compared(name)
    assert found["runtime"]["signature"] == pytest.approx(found["runtime"]["trace"], rel=0.02)
    assert found["worst"] <= 0.02


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["cg.W.4", "cg.W.16", "mg.W.8", "bt-mz.W.16"])
def test_so_does_one_of_calls_that_a_network_gives_times(name, tmp_path):
    path = str(tmp_path / f"{name}.prv.gz")
    whatif(str(DATA / f"{name}.ti.txt.gz"), "smpi", flop_rate=1e9, save_trace=path)
    trace, _ = focused(read(path), PROGRAM)
    assert against(from_text(signature_from([trace]).text), trace)["worst"] <= 0.02


@pytest.mark.parametrize("name", ["comd.4", "imagemagick_omp8"])
def test_every_operation_is_the_same(name, compared):
    _, found = compared(name)
    assert found["differences"] == []


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["cg.S.2", "lu.S.4", "comd.4"])
def test_messages_are_as_many_and_as_large(name, compared):
    _, found = compared(name)
    for pairs in (found["counts"], found["bytes"]):
        messages = next(pair for pair in pairs if pair["name"] == "messages")
        assert messages["signature"] == pytest.approx(messages["trace"], rel=1e-3)


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "imagemagick_omp2", "imagemagick_omp8"])
def test_what_threads_lose_in_regions_divides_as_in_the_trace(name, compared):
    _, found = compared(name)
    pairs = {pair["name"]: pair for pair in found["metrics"]["hybrid-additive"]}
    for part in ("load_balance", "synchronisation_efficiency", "scheduling_efficiency"):
        pair = pairs[f"openmp_{part}"]
        assert pair["signature"] == pytest.approx(pair["trace"], abs=0.01)
    assert found["notes"] == []


@pytest.mark.long
def test_few_phases_keep_their_recorded_times(compared):
    found, _ = compared("epoch_16proc")
    assert len(found.fidelity.recorded) < len(found.outline.points) / 4
    assert len(found.text) < 120_000
