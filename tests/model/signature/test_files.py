"""Signatures: the bundled ones, the grammar, and the words of every refusal with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from popmodel.errors import UsageError
from popmodel.model import signatures as signature
from popmodel.model.grammar.reading import SignatureError
from popmodel.model.kinds import KINDS
from popmodel.model.kinds.collective import Collective
from popmodel.model.kinds.loops import LoopItem, Parallel, Serial
from popmodel.model.kinds.p2p import PointToPoint, Shift
from popmodel.model.signature.program import items
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


def test_units_that_clash_are_refused_before_anything_is_predicted() -> None:
    text = (
        HEAD
        + "[params]\nN = { value = 4, unit = 'cells' }\n"
        + "[[program]]\ncollective = { op = 'bcast', bytes = 'N' }\n"
    )
    with pytest.raises(SignatureError) as refused:
        signature.from_text(text, "demo.toml")
    (line,) = [n for n, one in enumerate(text.splitlines(), 1) if "bcast" in one]
    assert refused.value.message == f"demo.toml:{line}: bytes: 'N' gives a number, not bytes"
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("N is a number (line ")


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


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("schema = 3\n[app]\nname='a'\n" + BODY, 1, "schema must be 'popmodel/signature/1', not 3"),
        (HEAD + "[let]\na='if_fits(1, 2, 3)'\n" + BODY, 5, "unknown function 'if_fits'"),
        (
            HEAD + "[limits]\nrequire=['if_fits(1, 2, 3) > 2']\n" + BODY,
            5,
            "unknown function 'if_fits'",
        ),
        (HEAD + "[limit]\nrequire=['1']\n" + BODY, 4, "unknown key 'limit'"),
        (BODY, None, "schema is missing"),
        ('schema = "popmodel/signature/1"\n' + BODY, None, "app is missing"),
        (HEAD, None, "program is missing"),
        (HEAD.replace('"demo"', "3") + BODY, 3, "name must be text, not 3"),
        (HEAD + "[params]\nP = 3\n" + BODY, 5, "the name P is reserved: the number of proc"),
        (HEAD + "[params]\nmax = 3\n" + BODY, 5, "the name max is reserved: a function"),
        (HEAD + "[params]\n'a b' = 3\n" + BODY, 5, "'a b' cannot be a name"),
        (
            HEAD + "[params]\nN = 'x'\n" + BODY,
            5,
            "N: value must be a number, at least 0, not 'x'",
        ),
        (HEAD + "[params]\nN = { value = 1, origin = 'x' }\n" + BODY, 5, "N: origin must be one"),
        (HEAD + "[params]\nN = 1\n[let]\nN = 2\n" + BODY, 7, "N is defined twice"),
        (HEAD + "[let]\na = 'b'\n" + BODY, 5, "a: unknown name 'b' in 'b'"),
        (HEAD + "[let]\nx = '2'\na = 'a + x'\n" + BODY, 6, "by itself: a needs itself"),
        (
            HEAD + "[let]\na = 'b'\nb = 'c + P'\nc = '2*a'\n" + BODY,
            5,
            "let defines a name by itself: a needs b needs c needs a",
        ),
        (
            HEAD + "[let]\nc = 'n0'\nb = '2*c'\n[decomp]\nglobal = [8, 'b']\n" + BODY,
            8,
            "global uses b, which needs the grid that it defines",
        ),
        (HEAD + "[let]\nb = 'n2'\n[decomp]\nglobal = [8, 8]\n" + BODY, 5, "unknown name 'n2'"),
        (HEAD + "[let]\nb = 'n0'\n[decomp]\ngrid = ['P']\n" + BODY, 5, "unknown name 'n0'"),
        (
            HEAD + "[let]\na = 'sin(1)'\n" + BODY,
            5,
            "a: expression 'sin.1.', column 1: unknown func",
        ),
        (HEAD + "[let]\na = true\n" + BODY, 5, "a must be a number or a formula, not True"),
        (HEAD + "[limits]\nrequire = 'P > 1'\n" + BODY, 5, "require must be a list of formulas"),
        (HEAD + "[limits]\nmemory = 1\n" + BODY, 5, "unknown key 'memory' in limits"),
        (HEAD + "[decomp]\nperiodic = true\n" + BODY, 4, "decomp needs global"),
        (
            HEAD + "[decomp]\ngrid=['P']\nglobal=[1,2]\n" + BODY,
            5,
            "grid has 1 dimensions but global has 2",
        ),
        (HEAD + "[decomp]\ngrid=[1,1,1,'P']\n" + BODY, 4, "decomp has 4 dimensions; at most 3"),
        (HEAD + "[decomp]\ngrid=['P']\nperiodic=[1]\n" + BODY, 6, "periodic must be true, false"),
        (HEAD + "[imbalance]\ngrowth_exponent = 2\n" + BODY, 5, "must be between 0 .smooth."),
        ("program = 3\n" + HEAD, 1, "program must be a list with at least one item"),
        ("program = [3]\n" + HEAD, 1, "an item must be a table with one kind"),
        (HEAD + "[[program]]\nseriel = {trip = 1}", 5, "unknown kind of item 'seriel'"),
        (HEAD + "[[program]]\n", 4, "an item must have exactly one kind, not none"),
        (
            HEAD + "[[program]]\nserial = {trip=1}\nparallel = {trip=1}",
            4,
            "exactly one kind, not serial, parallel",
        ),
        (HEAD + "[[program]]\nhalo = { width = 1 }", 5, "bytes_per_cell is missing in halo"),
        (
            HEAD + "[[program]]\nhalo = { width = 1, bytes_per_cell = 8 }",
            5,
            "halo needs decomp with global",
        ),
        (
            HEAD + GRID + "[[program]]\nhalo = { width = 1, bytes_per_cell = 8, mode = 'fast' }",
            7,
            "mode must be nonblocking or blocking, not 'fast'",
        ),
        (
            HEAD + GRID + "[[program]]\nhalo = { width = 1, bytes_per_cell = 8, pack = 'x' }",
            7,
            "pack must be serial, parallel or none, not 'x'",
        ),
        (
            HEAD + "[[program]]\npipeline = { dims = [0], blocks = 1, seconds = 1, bytes = 1 }",
            5,
            "pipeline needs decomp",
        ),
        (
            HEAD
            + GRID
            + "[[program]]\npipeline = { dims = [0, 0], blocks = 1, seconds = 1, bytes = 1 }",
            7,
            "dims must list grid dimensions, each once, not .0, 0.",
        ),
        *(
            (
                HEAD
                + GRID
                + f"[[program]]\npipeline = {{ dims = [0], direction = {direction}, blocks = 1, "
                "seconds = 1, bytes = 1 }",
                7,
                problem,
            )
            for direction, problem in (
                ('"up"', "direction must be forward, backward or a list of them, not 'up'"),
                ('["up"]', "direction must be forward, backward or a list of them, not .'up'."),
                ('["forward", "backward"]', "direction has 2 entries, dims has 1"),
            )
        ),
        (
            HEAD + "[[program]]\nparallel = { trip = 1, critical = 3 }",
            5,
            "critical must be a table",
        ),
        (
            HEAD + "[[program]]\nparallel = { trip = 1, critical = { entries = 1 } }",
            5,
            "seconds is missing in critical",
        ),
        (HEAD + "[[program]]\ncritical = { entries = 1 }", 5, "unknown kind of item 'critical'"),
        (HEAD + "[[program]]\ntask = { count = 1 }", 5, "seconds is missing in task"),
        (HEAD + "[[program]]\nserial = 3", 5, "serial must be a table"),
        (HEAD + "[[program]]\nserial = { flops = 3 }", 5, "trip is missing in serial"),
        (HEAD + "[[program]]\nserial = { trip = 3, flop = 3 }", 5, "unknown key 'flop' in serial"),
        (HEAD + "[[program]]\nserial = { trip = 3, bytes = 3 }", 5, "bytes must give a level"),
        (
            HEAD + "[[program]]\nserial = { trip = 3, comm_threads = 2 }",
            5,
            "comm_threads in serial: it sends no messages",
        ),
        (
            HEAD + "[[program]]\n[program.parallel]\ntrip = 1\nschedule = 'auto'",
            7,
            "schedule must be static, dynamic or guided, not 'auto'",
        ),
        (
            HEAD + "[[program]]\nparallel = {trip=1, constructs=1}",
            5,
            "constructs must be a table",
        ),
        (
            HEAD + "[[program]]\nshift = {dim=0, by=1, bytes=1}",
            5,
            "shift needs decomp",
        ),
        (
            HEAD + "[decomp]\ngrid=['P']\n[[program]]\nshift = {dim=1, by=1, bytes=1}",
            7,
            "dim must be a grid dimension, not 1",
        ),
        (
            HEAD + "[[program]]\np2p = {to=0, bytes=1, mode='x'}",
            5,
            "mode must be send or sendrecv, not 'x'",
        ),
        (HEAD + "[[program]]\nserial = {trip='rank'}", 5, "trip: unknown name 'rank' in 'rank'"),
        (
            HEAD + "[[program]]\ncollective = {op='all2all', bytes=1}",
            5,
            "unknown collective 'all2all'",
        ),
        (
            HEAD + "[[program]]\ncollective = {op='bcast', bytes=1, comm='row'}",
            5,
            "comm must be world, node, leaders, grid dimensions or a formula of rank, not 'row'",
        ),
        (HEAD + "[[program]]\ncollective = {op='bcast'}", 5, "collective needs bytes"),
        (HEAD + "[[program]\n", 4, "is not TOML"),
        (HEAD + "a = " + "[" * 100_000, None, "is nested too deeply"),
        (HEAD + f"a = {'1' * 5000}\n", None, "contains a number with too many digits"),
        (
            "params = 3\nprogram = [{serial={trip=1}}]\n" + HEAD,
            1,
            "params must be a table",
        ),
    ],
)
def test_refused_with_file_and_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(SignatureError, match=words) as caught:
        signature.from_text(text, "demo.toml")
    assert "\n" not in caught.value.message
    if line is not None:
        assert caught.value.line == line
        assert re.match(rf"demo\.toml:{line}(:\d+)?: ", caught.value.message)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (HEAD + "[limit]\nrequire=['1']\n" + BODY, "did you mean limits?"),
        (HEAD + "[params]\nnrows = 4\n[let]\nb = 'nrow'\n" + BODY, "did you mean nrows?"),
        (HEAD + "[[program]]\nparalel = {}", "did you mean parallel?"),
        (
            HEAD + "[[program]]\nbarrier = {}",
            f"known: {', '.join(KINDS)}",
        ),
        (
            HEAD + "[[program]]\ncritical = { entries = 1 }",
            "put critical inside parallel",
        ),
        (
            HEAD + "[[program]]\ncollective = {op='all2all', bytes=1}",
            "did you mean alltoall?",
        ),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(SignatureError) as caught:
        signature.from_text(text)
    assert caught.value.hint == hint


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    with pytest.raises(SignatureError, match="cannot be read: No such file"):
        signature.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SignatureError, match="is not UTF-8 text"):
        signature.load(path)
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
