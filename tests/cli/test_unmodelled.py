"""What a replay, a model or a signature does not contain stands first on every screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

ONE_SIDED = str(Path(__file__).parent.parent / "data" / "mixrma.4.prv.gz")
SHARE = "not modelled, assumed to take no time: 10 % of the time in 40 MPI_Win_fence (7.9 %)"


def first_words(out: str) -> str:
    return " ".join(out.split())[: len(SHARE)]


@pytest.mark.parametrize("verb", ["whatif", "metrics"])
def test_of_a_trace(popmodel: Call, verb: str) -> None:
    status, out, _ = popmodel(verb, ONE_SIDED, *(["--from-start"] if verb == "whatif" else []))
    assert status == 0
    words = " ".join(out.split())
    where = words.index("not modelled, assumed to take no time: ")
    assert "40 MPI_Win_fence" in words[where : where + 150]
    if verb == "metrics":  # before the tree
        assert where < words.index("Parallel efficiency 12.2 Load balance")


@pytest.mark.long
def test_of_its_signature(popmodel: Call, tmp_path: Path) -> None:
    made = tmp_path / "mix.toml"
    status, out, _ = popmodel("signature", "from", ONE_SIDED, "-o", str(made))
    assert (status, first_words(out)) == (0, SHARE)
    assert made.read_text().count(SHARE) == 1
    runs = tmp_path / "runs.csv"
    runs.write_text("processes,threads,runtime\n4,1,0.02\n2,1,0.03\n")
    for command in (
        ("signature", "check", str(made)),
        ("signature", "check", str(made), "--against", ONE_SIDED),
        ("predict", str(made), "--procs", "4"),
        ("predict", str(made), "--procs", "4", "--formula", "runtime"),
        ("predict", str(made), "--cores", "4"),
        ("whatif", str(made), "--procs", "4"),
        ("validate", str(made), str(runs)),
        ("signature", "from", str(made), str(runs), "-o", str(tmp_path / "cal.toml")),
    ):
        status, out, err = popmodel(*command)
        assert (status, first_words(out)) == (0, SHARE), (command, err)
    page = tmp_path / "page.html"
    assert popmodel("report", str(made), "--cores", "4", "-o", str(page))[0] == 0
    assert SHARE in page.read_text()


def test_of_a_program_for_another_simulator(popmodel: Call, tmp_path: Path) -> None:
    goal = str(tmp_path / "mix.goal")
    status, out, err = popmodel("convert", ONE_SIDED, "-o", goal)
    assert status == 0
    assert SHARE in " ".join((out + err).split())


def test_without_any_modelled_call_no_network_is_said_to_matter(
    popmodel: Call, tmp_path: Path
) -> None:
    from oracle.script import Script

    script = Script(2)
    for p in range(2):
        script.compute(p, 10_000_000)
        script.call(p, "Put", 10_000_000)
    script.end()
    trace = tmp_path / "puts.prv"
    script.writer.write(trace)
    document = json.loads(popmodel("whatif", str(trace), "--format", "json")[1])
    first, second, *_ = document["caveats"]
    assert first.startswith("no call of MPI that is modelled")
    assert second.endswith("50 % of the time in 2 MPI_Put")
