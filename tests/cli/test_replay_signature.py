"""``popmodel replay`` of a run that a signature describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import popmodel
from popmodel.base.errors import UsageError
from popmodel.cli import main

CALLS = """schema = "popmodel/signature/1"
[app]
name = "ring"
[params]
N = 1000
[[program]]
loop = { count = 5 }
[[program.body]]
[program.body.messages]
name = "round"
calls = [
  { do = "compute", seconds = "1e-6 * N" },
  { do = "sendrecv", to = "(rank + 1) % P", from = "(rank - 1) % P", bytes = "8 * N" },
]
"""


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    path = tmp_path / "ring.toml"
    path.write_text(CALLS)
    return path


def test_it_is_replayed_on_any_network(ring: Path) -> None:
    found = popmodel.replay(ring, ["ideal", "alpha-beta"], procs=4, latency="10us", bandwidth=1e9)
    ideal, real = (one.found.runtime for one in found.outcomes)
    assert ideal == pytest.approx(5e-3 + 5 * 10e-6 + 5 * 8000 / 1e9)
    assert real == pytest.approx(ideal)
    assert popmodel.replay(ring, procs=4).outcomes[0].found.runtime == pytest.approx(5e-3)


def test_settings_hold(ring: Path) -> None:
    found = popmodel.replay(ring, procs=4, settings={"N": 2000})
    assert found.outcomes[0].found.runtime == pytest.approx(1e-2)


def test_a_loaded_signature_and_a_bundled_one_are_taken(ring: Path) -> None:
    loaded = popmodel.load_signature(ring)
    assert popmodel.replay(loaded, procs=2).outcomes[0].found.operations == 5 * 2 * 3
    bundled = popmodel.replay("cannon", procs=4, settings={"N": 64})
    assert bundled.outcomes[0].found.runtime > 0


def test_efficiencies_are_given(ring: Path) -> None:
    found = popmodel.replay(ring, "ideal", latency="1ms", procs=4, metrics=True)
    values = found.outcomes[0].evaluations["mpi"].values
    assert values["transfer_efficiency"] == pytest.approx(0.5)
    assert values["load_balance"] == pytest.approx(1)


def test_threads_have_efficiencies_as_well() -> None:
    found = popmodel.replay("stencil3d", procs=4, threads=2, settings={"N": 64}, metrics=True)
    assert "hybrid-additive" in found.outcomes[0].evaluations


def test_the_command_says_whose_computation_it_is(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(ring), "--procs", "4", "--set", "N=2000", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"][0]["runtime"] == pytest.approx(1e-2)
    assert document["caveats"] == [
        "computation is that of 4 x 1 on sandybridge-fdr, as predicted, not measured"
    ]
    assert document["window"]["why"] == "every step of the signature"
    assert document["measured_runtime"] is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "how many processes?"),
        ({"procs": 4, "window": "1s:2s"}, "window: a signature has no trace to take it from"),
        ({"procs": 4, "flop_rate": 1e9}, "flop rate: a signature has no trace to take it from"),
        ({"procs": 4, "output": "x.prv"}, "output as a trace: a signature has no trace to take"),
        ({"procs": 4, "against": "measured"}, "no measured times to compare with"),
    ],
)
def test_what_only_traces_have_is_refused(
    ring: Path, more: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        popmodel.replay(ring, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "named"),
    [(("--procs", "4"), "--procs"), (("--threads", "2"), "--threads"), (("--set", "N=2"), "--set")],
)
def test_what_only_signatures_have_is_refused_for_a_trace(
    options: tuple[str, str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = "tests/data/cg.S.2.prv.gz"
    assert main(["replay", trace, *options]) == 2
    said = f"popmodel: error: {trace}: {named} is for signatures; this is a trace, which is"
    assert capsys.readouterr().err.startswith(said)
    with pytest.raises(UsageError, match="--procs is for signatures"):
        popmodel.replay(popmodel.read(trace), procs=4)


def test_the_screen_and_the_document_say_that_it_is_a_signature(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(ring), "--procs", "2"]) == 0
    assert f"\nsignature  {ring}\n" in capsys.readouterr().out
    assert popmodel.replay(ring, procs=2).to_dict()["kind"] == "signature"
    assert popmodel.replay("tests/data/cg.S.2.prv.gz").to_dict()["kind"] == "trace"


def test_a_deadlock_of_a_signature_names_no_time_of_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mutual.toml"
    path.write_text(
        CALLS.replace("sendrecv", "send")
        .replace(', from = "(rank - 1) % P"', "")
        .replace("\n]", '\n  { do = "recv", from = "(rank - 1) % P", bytes = "8 * N" },\n]')
    )
    assert main(["replay", str(path), "--procs", "2", "--eager-threshold", "10"]) == 1
    said = capsys.readouterr().err
    assert "2 of 2 ranks wait forever: rank 0 in send at 0.001000000 s of the replay" in said
    assert "trace" not in said
