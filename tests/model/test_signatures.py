"""Signatures: the bundled ones, the grammar, and the words of every refusal with file and line."""

from pathlib import Path

import pytest

from popmodel.base.errors import UsageError
from popmodel.model import signatures as signature
from popmodel.model.kinds.collective import Collective
from popmodel.model.kinds.loops import LoopItem, Parallel, Serial
from popmodel.model.kinds.p2p import PointToPoint, Shift
from popmodel.model.signature.application import items
from popmodel.model.signature.reading import SignatureError
from popmodel.model.signatures import DEFAULT, bundled

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
BODY = "[[program]]\nserial = { trip = 5 }\n"
GRID = "[decomp]\nglobal = [64, 64]\n"


def test_bundled_signatures_read() -> None:
    assert DEFAULT in bundled()
    for name in bundled():
        loaded = signature.load(name)
        assert loaded.is_bundled
        assert loaded.name == name


def test_cannon_is_read_as_written() -> None:
    cannon = signature.load("cannon")
    assert {name: quantity.value for name, quantity in cannon.params.items()} == {"N": 8192, "w": 8}
    assert [name for name, _ in cannon.let] == [
        "s",
        "nb",
        "lanes",
        "issue",
        "line",
        "ends",
    ]
    assert cannon.grid is not None
    assert cannon.grid.periodic == (True, True)
    (loop,) = cannon.program
    assert isinstance(loop, LoopItem)
    multiply, shift_a, shift_b = loop.body
    assert isinstance(multiply, Parallel)
    assert multiply.trip.text == "nb"
    memory = "if_fits(5*w*nb**2, 0, if_fits(w*nb**2, 3*w/nb, w))"
    assert multiply.costs.bytes["MEM"].text == memory
    assert multiply.constructs["parallel_for"].text == "1"
    assert isinstance(shift_a, Shift)
    assert isinstance(shift_b, Shift)
    assert (shift_a.dim, shift_b.dim) == (1, 0)


def test_parameters_may_state_their_unit() -> None:
    params = "[params]\nN = { value = 4, unit = 'cells' }\nw = { value = 8, unit = 'B' }\nk = 2\n"
    demo = signature.from_text(HEAD + params + BODY)
    assert demo.units == {"N": "cells", "w": "B"}
    assert demo.params["w"].value == 8
    with pytest.raises(SignatureError, match="w: the unit must be B, s, 1 or what is counted"):
        signature.from_text(HEAD + params.replace("'B'", "'MiB'") + BODY)
    with pytest.raises(SignatureError, match="persistent_cv: must be in 1, not 'B'"):
        signature.from_text(
            HEAD + "[imbalance]\npersistent_cv = { value = 0.1, unit = 'B' }\n" + BODY
        )


def test_every_supported_kind_is_read() -> None:
    text = (
        HEAD
        + """
[params]
N = { value = 10, low = 8, high = 12, origin = "trace" }
[decomp]
global = ["N", "N"]
[imbalance]
persistent_cv = 0.1
growth_exponent = 0.5
[[program]]
loop = { count = 3, body = [{ serial = { trip = "n0" } }, { serial = { trip = 2 } }] }
[[program]]
parallel = { trip = "n1", chunk = 4, constructs = { parallel_for = 2, barrier = 1 } }
[[program]]
loop = { count = 10, body = [
  { p2p = { to = "(rank + 1) % P", bytes = 8, mode = "sendrecv", every = 5 } },
] }
[[program]]
collective = { op = "allreduce", bytes = "8*N", comm_threads = 1 }
[[program]]
collective = { op = "barrier" }
"""
    )
    demo = signature.from_text(text)
    kinds = [type(item) for item in items(demo.program)]
    assert kinds == [
        LoopItem,
        Serial,
        Serial,
        Parallel,
        LoopItem,
        PointToPoint,
        Collective,
        Collective,
    ]
    assert demo.params["N"].origin == "trace"
    assert demo.params["N"].high == 12
    assert demo.imbalance["persistent_cv"].value == 0.1
    assert demo.grid is not None
    assert demo.grid.dims is None


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(HEAD + BODY)
    loaded = signature.load(path)
    assert loaded.path == str(path)
    assert not loaded.is_bundled


def test_unknown_application() -> None:
    with pytest.raises(UsageError, match="no application 'canon'") as caught:
        signature.load("canon")
    assert caught.value.hint == "did you mean cannon?"
    with pytest.raises(UsageError) as caught:
        signature.load("zzz")
    assert caught.value.hint == f"choose a file or one of {', '.join(bundled())}"
