"""Sizes and numbers of messages of several runs: known laws are found again, exactly."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from synthetic import Program, programs, run

from popmodel.base.expressions import parse
from popmodel.model.signatures import from_text
from popmodel.signatures import Run, signature_from
from popmodel.signatures.compare_replay import against
from popmodel.signatures.from_runs import LearntSignature


def extracted(
    folder: Path, made: Sequence[Program], parameters: Sequence[Mapping[str, float]] = ()
) -> LearntSignature:
    """A signature from runs of some programs."""
    given = parameters or [{} for _ in made]
    return signature_from(
        [
            Run(run(one, transient=0.01, seed=3).read(folder, f"{number}.prv"), values)
            for number, (one, values) in enumerate(zip(made, given, strict=True))
        ]
    )


def items(body: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """All items of a program."""
    for one in body:
        yield one
        yield from items(one.get("body", []))


def calls(found: LearntSignature) -> list[Mapping[str, Any]]:
    """Rows of all lists of calls."""
    program = tomllib.loads(found.text)["program"]
    return [row for one in items(program) if "messages" in one for row in one["messages"]["calls"]]


def sizes(found: LearntSignature) -> set[str]:
    """What rows say of their bytes."""
    return {str(row["bytes"]) for row in calls(found) if "bytes" in row}


def collectives(found: LearntSignature) -> dict[str, Any]:
    """Bytes of collectives by their kind."""
    program = tomllib.loads(found.text)["program"]
    every = [one["collective"] for one in items(program) if "collective" in one]
    return {one["op"]: one.get("bytes") for one in every}


def moves_the_same(compared: dict[str, Any]) -> bool:
    """Whether as many messages of as many bytes are sent."""
    pairs = [
        one for key in ("counts", "bytes") for one in compared[key] if one["name"] == "messages"
    ]
    return len(pairs) == 2 and all(one["signature"] == one["trace"] for one in pairs)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("how", ["nonblocking", "blocking"])
def test_faces_of_blocks_are_exact(how: str, periodic: bool, tmp_path: Path) -> None:
    grids = ((3, 3), (3, 4), (4, 4))
    found = extracted(
        tmp_path,
        [programs.jacobi(g, 4, cells=(480, 240), how=how, periodic=periodic) for g in grids],
    )
    assert sizes(found) == {"1920/P1", "3840/P0"}


def test_faces_of_blocks_in_three_dimensions_are_exact(tmp_path: Path) -> None:
    made = [
        programs.jacobi(g, 4, cells=(96, 48, 24), width=2)
        for g in ((2, 2, 2), (3, 2, 2), (3, 3, 2))
    ]
    found = extracted(tmp_path, made)
    assert sizes(found) == {"18432/(P1*P2)", "36864/(P0*P2)", "73728/(P0*P1)"}


def test_faces_go_with_the_size_of_the_problem(tmp_path: Path) -> None:
    cases = [((2, 2), 128.0), ((2, 4), 128.0), ((2, 2), 256.0), ((4, 4), 256.0)]
    made = [programs.jacobi(grid, 4, cells=(int(n), int(n))) for grid, n in cases]
    found = extracted(tmp_path, made, [{"N": n} for _, n in cases])
    assert sizes(found) == {"8*N/P1", "8*N/P0"}
    truth = run(programs.jacobi((3, 3), 4, cells=(384, 384)), seed=3).read(tmp_path, "truth.prv")
    compared = against(from_text(found.text), truth, {"N": 384})
    assert moves_the_same(compared)


def test_sizes_that_were_rounded_are_found_again(tmp_path: Path) -> None:
    made = [programs.jacobi(g, 4, cells=(500, 331)) for g in ((2, 2), (2, 3), (3, 3))]
    found = extracted(tmp_path, made)
    assert sizes(found) == {"2648/P1", "4000/P0"}
    assert {law["origin"] for law in found.laws if law["unit"] == "B"} == {"fit"}


def test_sizes_that_follow_no_formula_have_a_law_with_intervals(tmp_path: Path) -> None:
    words = {(2, 2): 8, (2, 4): 9, (4, 4): 7}
    made = [programs.jacobi(g, 4, cells=(256, 256), word=w) for g, w in words.items()]
    found = extracted(tmp_path, made)
    laws = [law for law in found.laws if law["unit"] == "B"]
    assert laws
    assert all(law["constants"]["a"]["low"] < law["constants"]["a"]["high"] for law in laws)
    names = {name for one in sizes(found) for name in parse(one).names}
    assert names & tomllib.loads(found.text)["constants"].keys()


def test_parts_of_collectives_are_exact(tmp_path: Path) -> None:
    found = extracted(tmp_path, [programs.transposes(p, 4, points=1 << 16) for p in (2, 4, 8)])
    assert collectives(found) == {"barrier": None, "alltoall": "1048576/P**2", "reduce": 16}


def test_two_runs_are_enough_for_a_likely_formula(tmp_path: Path) -> None:
    found = extracted(tmp_path, [programs.transposes(p, 4, points=1 << 16) for p in (2, 4)])
    assert collectives(found)["alltoall"] == "1048576/P**2"


def test_messages_to_all_others_are_counted(tmp_path: Path) -> None:
    made = [programs.transposes(p, 4, points=1 << 16, how="pairwise") for p in (2, 4, 8)]
    found = extracted(tmp_path, made)
    (scaled,) = (
        one["messages"]["scaled"]
        for one in items(tomllib.loads(found.text)["program"])
        if "messages" in one
    )
    assert scaled["messages"] == "P - 1"
    assert scaled["bytes"] == "(P - 1)*1048576/P**2"


def test_other_numbers_of_messages_than_the_calls_make_are_said(tmp_path: Path) -> None:
    found = extracted(tmp_path, [programs.butterfly(p, 4) for p in (4, 8)])
    assert sizes(found) == {"1024"}
    assert any("8 messages with P = 4, where the calls of the first run" in n for n in found.notes)


def test_the_signature_replays_what_it_was_fitted_to(tmp_path: Path) -> None:
    grids = ((2, 2), (2, 3), (3, 3))
    made = [programs.jacobi(grid, 4, cells=(300, 300)) for grid in grids]
    found = extracted(tmp_path, made)
    for number, grid in enumerate(grids):
        trace = run(made[number], transient=0.01, seed=3).read(tmp_path, f"again{grid}.prv")
        assert moves_the_same(against(from_text(found.text), trace))
