"""Loops whose data lies in other memory domains: never faster than with data of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.two_sockets import machine, ratios

from popmodel.machines import profile
from popmodel.machines.profile import Profile
from popmodel.model import signatures
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import Allocation
from popmodel.model.uncertainty import nominal

TWO = machine(2, 2, {"0-1": ratios(0.5, 0.25), "1-0": ratios(0.5, 0.25)})
LOOP = "trip = 16000000, bytes.MEM = 24, flops = {flops}"
HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'


def signature(kind: str, touch: str, flops: float = 0, table: str = "") -> str:
    key = f', first_touch = "{touch}"' if touch else ""
    loop = LOOP.format(flops=flops)
    constructs = ", constructs = {}" if kind == "parallel" else ""
    return f"{HEAD}{table}[[program]]\n{kind} = {{ {loop}{key}{constructs} }}\n"


def study(text: str, known: Profile = TWO, bind: str = "close") -> Study:
    document = dict(known.document)
    document["core"] = {
        "freq": {str(n): {"value": 2e9, "origin": "user"} for n in (1, 16)},
        "flop_per_cycle": {"value": 4.0, "origin": "user"},
        "overlap": "none",
    }
    full = profile.from_document(document)
    allocation = Allocation(nodes=1, bind=bind)
    return Study(signatures.from_text(text), full, {}, 0, 0, allocation=allocation)


def runtime(text: str, split: tuple[int, int], known: Profile = TWO, bind: str = "close") -> float:
    one = study(text, known, bind)
    return nominal(one.run(one.admit(*split), one.sources()).modelled.runtime)


def test_streams_of_a_full_node() -> None:
    """384 MB by 16 cores: 40 GB/s of each domain, of one domain, 10 GB/s of the connection."""
    times = {
        touch: runtime(signature("parallel", touch), (1, 16))
        for touch in ("threads", "interleaved", "master")
    }
    assert times["threads"] == pytest.approx(384e6 / 80e9, rel=1e-3)
    # a quarter of the bytes crosses each way, at 10 GB/s; half of them come to the master's cores
    assert times["interleaved"] == pytest.approx(96e6 / 10e9, rel=1e-3)
    assert times["master"] == pytest.approx(192e6 / 10e9, rel=1e-3)


def test_the_signature_says_it_of_all_loops_that_do_not() -> None:
    table = '[memory]\nfirst_touch = "master"\n'
    split = (1, 16)
    master = runtime(signature("parallel", "master"), split)
    assert runtime(signature("parallel", "", table=table), split) == master
    own = runtime(signature("parallel", "threads", table=table), split)
    assert own == runtime(signature("parallel", ""), split) < master


@given(
    st.sampled_from(["parallel", "serial"]),
    st.integers(0, 3).map(lambda power: (2**power, 16 // 2**power)),
    st.sampled_from(["close", "spread", "none"]),
    st.floats(0, 200),
    st.floats(0.05, 1),
    st.floats(0.05, 1),
)
def test_remote_is_never_faster(
    kind: str, split: tuple[int, int], bind: str, flops: float, one: float, all_: float
) -> None:
    known = machine(2, 2, {"0-1": ratios(one, all_)})
    local, shared, master = (
        runtime(signature(kind, touch, flops), split, known, bind)
        for touch in ("threads", "interleaved", "master")
    )
    if kind == "parallel" and bind != "none":
        assert local <= shared * (1 + 1e-9)
        assert shared <= master * (1 + 1e-9)
    if kind == "serial":
        assert master <= shared * (1 + 1e-9)
    closer = machine(2, 2, {"0-1": ratios((1 + one) / 2, (1 + all_) / 2)})
    for touch in ("threads", "interleaved", "master"):
        nearer = runtime(signature(kind, touch, flops), split, closer, bind)
        assert nearer <= runtime(signature(kind, touch, flops), split, known, bind) * (1 + 1e-9)


@pytest.mark.parametrize("touch", ["threads", "interleaved", "master"])
@pytest.mark.parametrize("split", [(1, 1), (1, 16), (2, 8)])
def test_a_measured_time_is_that_with_data_of_the_core(touch: str, split: tuple[int, int]) -> None:
    for kind in ("parallel", "serial"):
        counted = signature(kind, touch, flops=8)
        seconds = 8 / 4 / 2e9 + 24 / 20e9
        measured = counted.replace("bytes.MEM", f"seconds = {seconds}, bytes.MEM")
        assert runtime(measured, split) == pytest.approx(runtime(counted, split))
