"""Conditions on the number of processes, from runs that a program refused."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import programs, run

import popmodel
from popmodel.errors import UsageError
from popmodel.signature import signature_from
from popmodel.signature.from_runs import required


def of(processes: Sequence[int], **parameters: float) -> list[dict[str, float]]:
    return [{"P": float(one), "T": 1.0, **parameters} for one in processes]


@pytest.mark.parametrize(
    ("made", "refused", "conditions"),
    [
        ((1, 4), (2,), ("is_square(P)",)),
        ((1, 2, 4), (3,), ("log2(P) == floor(log2(P))",)),
        ((2, 6), (3,), ("P % 2 == 0",)),
        ((2, 3), (1,), ("P > 1",)),
        ((1, 2, 5), (3, 4), ("P != 3", "P != 4")),
    ],
)
def test_what_holds_for_all_runs_and_no_refused_one_is_asked(
    made: Sequence[int], refused: Sequence[int], conditions: tuple[str, ...]
) -> None:
    found = required(of(made), of(refused))
    assert found[0] == conditions
    assert f"P = {', '.join(map(str, refused))} was refused" in found[1]


def test_all_that_agree_are_asked() -> None:
    found = required(of((1, 4)), of((3,)))
    assert found[0] == ("is_square(P)", "log2(P) == floor(log2(P))")


def test_parameters_that_processes_must_divide() -> None:
    found = required(of((1, 2, 3, 6), N=96), of((5,), N=96))
    assert found[0] == ("N % P == 0",)


@pytest.mark.parametrize("refused", [(), (2,)])
def test_a_number_that_was_made_with_others_is_not_refused(refused: Sequence[int]) -> None:
    assert required(of((1, 2)), of(refused, N=7)) == ((), "")


def test_a_signature_refuses_what_its_program_refuses(tmp_path: Path) -> None:
    traces = [
        run(programs.jacobi((side, side), 3)).read(tmp_path, f"{side}.prv") for side in (1, 2)
    ]
    found = signature_from(traces, made=of((9,)), refused=of((2, 3)))
    assert tomllib.loads(found.text)["limits"]["require"] == ["is_square(P)"]
    assert any("P = 2, 3 was refused" in note for note in found.notes)
    (tmp_path / "app.toml").write_text(found.text)
    with pytest.raises(UsageError, match=r"is_square\(P\)"):
        popmodel.predict(str(tmp_path / "app.toml"), "sandybridge-fdr", 8, 1)
