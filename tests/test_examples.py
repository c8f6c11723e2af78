"""The commands in the READMEs of the examples run, and give the figures that are stated there."""

from __future__ import annotations

import json
import re
import shlex
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.computed import Known, computed_once

from popmodel.cli import main

ROOT = Path(__file__).parent.parent
COMMANDS = [
    (readme.parent.name, command)
    for readme in sorted((ROOT / "examples").rglob("README.md"))
    for command in re.findall(r"^    popmodel (.*)$", readme.read_text(), re.MULTILINE)
]
PROFILE = "examples/profiles/two-core-vm.json"
SHARED = "examples/profiles/two-core-epyc.json"

# what the READMEs state, in per cent: fastest, slowest and median error, runs inside intervals
SIZES = {
    ("stencil3d", "sizes", "two-core-vm"): (31, 25, 5, 97),
    ("cannon", "sizes", "two-core-vm"): (2, 20, 10, 81),
    ("stencil3d", "two-core-epyc", "two-core-epyc"): (3, 27, 5, 93),
    ("cannon", "two-core-epyc", "two-core-epyc"): (3, 9, 6, 100),
    ("stencil3d", "two-core-xeon", "two-core-xeon"): (22, 19, 3, 97),
    ("cannon", "two-core-xeon", "two-core-xeon"): (12, 6, 2, 98),
    ("stencil3d", "two-core-cascadelake", "two-core-cascadelake"): (9, 7, 3, 100),
    ("cannon", "two-core-cascadelake", "two-core-cascadelake"): (7, 9, 5, 100),
    ("stencil3d", "two-core-cascadelake-launches", "two-core-cascadelake"): (16, 0, 8, 92),
    ("cannon", "two-core-cascadelake-launches", "two-core-cascadelake"): (19, 6, 7, 88),
}
LARGE = {(1, 1): 5, (1, 2): 3, (2, 1): -1}


@pytest.fixture(scope="module")
def known() -> Known:
    """What the commands compute: the figures are of the same predictions."""
    return {}


@pytest.fixture
def validated(
    known: Known, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """Give the document of a comparison with a table of runs."""
    monkeypatch.chdir(ROOT)

    def call(program: str, table: str, *options: str, machine: str = PROFILE) -> dict[str, Any]:
        words = ("validate", program, table, "--machine", machine, *options, "--format", "json")
        with computed_once("validate", known):
            assert main(words) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return call


@pytest.mark.long(after=6)
@pytest.mark.parametrize(("example", "command"), COMMANDS, ids=[c for _, c in COMMANDS])
def test_a_command_of_an_example(
    example: str,
    command: str,
    known: Known,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)
    with computed_once(words[0], known):
        assert main(words) == 0, example
    shown = capsys.readouterr()
    assert shown.out
    assert shown.err == ""


def test_every_example_is_run() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    # The tournament measures for minutes; test_tournament.py plays it with made times.
    assert folders == {example for example, _ in COMMANDS} | {"tournament"}


def _readme(folder: str) -> str:
    return " ".join((ROOT / "examples" / folder / "README.md").read_text().split())


def test_the_validation_is_as_far_off_as_its_readme_says(
    validated: Callable[..., dict[str, Any]],
) -> None:
    document = validated("stencil3d", "examples/stencil3d/two-core-vm.csv", "--set", "N=256")
    assert {one["parameters"]["N"] for one in document["splits"]} == {256.0}
    off = {
        (one["processes"], one["threads"]): 100 * one["runtime"]["error"]
        for one in document["splits"]
    }
    assert off == {split: pytest.approx(error, abs=0.6) for split, error in LARGE.items()}
    most = max(LARGE.values(), key=abs)
    assert f"within {abs(most)} % of the runs" in _readme("stencil3d")


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("program", "table", "profile"), SIZES)
def test_other_sizes_are_as_far_off_as_the_readmes_say(
    program: str, table: str, profile: str, validated: Callable[..., dict[str, Any]]
) -> None:
    document = validated(
        program,
        f"examples/{program}/{table}.csv",
        machine=f"examples/profiles/{profile}.json",
    )
    off = [100 * one["runtime"]["error"] for one in document["splits"]]
    rows = document["rows"]
    covered = 100 * sum(row["covered"] for row in rows) / len(rows)
    found = (-min(off), max(off), statistics.median(map(abs, off)), covered)
    fastest, slowest, median, held = SIZES[program, table, profile]
    assert found == pytest.approx((fastest, slowest, median, held), abs=0.6)
    assert (
        f"Predictions are {fastest} % too fast to {slowest} % too slow, {median} % off in the "
        f"median, and the intervals hold {held} % of the runs"
    ) in _readme(program)


def _shared(
    program: str,
    validated: Callable[..., dict[str, Any]],
    machine: str = SHARED,
    table: str = "two-core-epyc",
) -> dict[tuple[int, ...], float]:
    """How far predictions are off on a shared processor, %, by processes, threads and N."""
    document = validated(program, f"examples/{program}/{table}.csv", machine=machine)
    return {
        (one["processes"], one["threads"], int(one["parameters"]["N"])): 100
        * one["runtime"]["error"]
        for one in document["splits"]
    }


@pytest.mark.long
def test_what_is_far_off_on_the_shared_processor_is_what_the_readmes_name(
    validated: Callable[..., dict[str, Any]],
) -> None:
    stencil = _shared("stencil3d", validated)
    far = {case: off for case, off in stencil.items() if abs(off) > 15}
    assert far == pytest.approx({(1, 2, 24): 21, (1, 2, 32): 27, (2, 1, 128): 18}, abs=0.6)
    cannon = _shared("cannon", validated)
    assert max(map(abs, cannon.values())) < 10


@pytest.mark.long
def test_what_is_far_off_on_the_xeon_is_what_the_readmes_name(
    validated: Callable[..., dict[str, Any]],
) -> None:
    machine = "examples/profiles/two-core-xeon.json"
    stencil = _shared("stencil3d", validated, machine, "two-core-xeon")
    assert {case for case, off in stencil.items() if abs(off) > 12} == {(1, 2, 24), (1, 1, 64)}
    cannon = _shared("cannon", validated, machine, "two-core-xeon")
    assert {case for case, off in cannon.items() if abs(off) > 10} == {(1, 2, 512)}


@pytest.mark.long
def test_small_blocks_are_less_far_off_if_the_cores_are_as_near_as_in_the_fastest_runs(
    validated: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    document = json.loads((ROOT / SHARED).read_text())
    near = {"value": 1.7e-9, "low": 1.6e-9, "high": 1.8e-9}
    document["memory"]["line_takeover"]["near"].update(near)
    (tmp_path / "near.json").write_text(json.dumps(document))
    off = _shared("stencil3d", validated, str(tmp_path / "near.json"))
    assert (off[1, 2, 24], off[1, 2, 32]) == pytest.approx((9, 17), abs=0.6)


@pytest.mark.parametrize(
    "table",
    sorted((ROOT / "examples").glob(f"*/{Path(PROFILE).stem}.csv")),
    ids=lambda path: path.stem,
)
def test_intervals_hold_most_splits_of_the_tables(
    table: Path, validated: Callable[..., dict[str, Any]]
) -> None:
    """A table is named after the profile of its machine and lies beside its program."""
    machine = str(Path(PROFILE).with_stem(table.stem))
    document = validated(table.parent.name, str(table.relative_to(ROOT)), machine=machine)
    runtimes = [one["runtime"] for one in document["splits"]]
    held = [one["low"] <= one["mean"] <= one["high"] for one in runtimes]
    assert sum(held) >= 0.8 * len(held)
