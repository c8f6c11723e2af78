"""What a signature keeps of its runs: those left out predicted from the others, those refused."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import programs, run

import popmodel
from popmodel.base.errors import PopmodelError, UsageError
from popmodel.machines import profile
from popmodel.model import signatures
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import ImpossibleSplit
from popmodel.model.signature.application import LearntRuns
from popmodel.signatures.from_runs import Run, required, signature_from


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
        popmodel.predict(str(tmp_path / "app.toml"), procs=8)


GRIDS = ((1, 2), (2, 2), (2, 4))


def learnt(
    folder: Path, sizes: tuple[float, ...], grids: tuple[tuple[int, int], ...]
) -> LearntRuns:
    """What is kept of runs of a Jacobi solver whose cells take as long as ``sizes`` say."""
    runs = []
    for dims, size in zip(grids, sizes, strict=True):
        done = run(programs.jacobi(dims, 4, cells=(256, 256), per_cell=1e-6 * size), seed=3)
        trace = done.read(folder, f"jacobi{len(runs)}.prv")
        runs.append(Run(trace, {"N": 256.0}))
    found = signatures.from_text(signature_from(runs).text).learnt
    assert found is not None
    return found


def test_runs_are_kept_with_their_times_and_predicted_from_the_others(tmp_path: Path) -> None:
    found = learnt(tmp_path, (1.0, 1.0, 1.0), GRIDS)
    assert [one.processes for one in found.runs] == [8, 4, 2]
    assert not found.openmp
    assert found.ranges == {"N": (256.0, 256.0)}
    for one in found.runs:
        assert one.runtime is not None
        assert one.runtime >= one.ideal == pytest.approx(one.written, rel=0.05)
        assert one.left_out == pytest.approx(1, abs=0.1)


def test_a_run_that_contradicts_the_others_is_seen_when_it_is_left_out(tmp_path: Path) -> None:
    found = learnt(tmp_path, (1.0, 1.0, 1.6), GRIDS)
    largest = found.runs[0]
    assert largest.left_out is not None
    assert largest.left_out < 0.8  # what the smaller ones say is too little


def test_repeats_are_left_out_together_and_two_configurations_test_nothing(tmp_path: Path) -> None:
    found = learnt(tmp_path, (1.0, 1.0, 1.01, 1.01), (*GRIDS[:2], *GRIDS[:2]))
    assert [one.left_out for one in found.runs] == [None] * 4
    assert len({one.configuration for one in found.runs}) == 2


TEXT = """schema = "popmodel/signature/1"
[app]
name = "demo"
[params]
N = 100
[[program]]
serial = { trip = 1, seconds = 1 }
[learnt]
openmp = false
runs = [{ P = 2, T = 1, parameters = { N = 100 }, ideal = 1.5, written = 1.4, runtime = 1.6 }]
"""


def test_threads_are_refused_where_no_run_had_a_parallel_region() -> None:
    study = Study(signatures.from_text(TEXT), profile.load(profile.DEFAULT_PRESET), {}, 0, 0)
    assert study.is_possible(4, 1)
    with pytest.raises(ImpossibleSplit, match=r"none of the runs .* has a parallel region"):
        study.admit(4, 2)
    threaded = signatures.from_text(TEXT.replace("openmp = false", "openmp = true"))
    assert Study(threaded, study.profile, {}, 0, 0).is_possible(4, 2)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("openmp = false\n", "", r"openmp is missing in learnt"),
        ("P = 2", "P = 0", r"runs\[0\]\.P must be a whole number, at least 1"),
        ("written = 1.4, ", "", r"runs\[0\]\.written is missing"),
        ("{ N = 100 }", "{ M = 100 }", r"runs\[0\] must have the parameters .*\(N\)"),
        ("runtime = 1.6", "seconds = 1.6", r"runs\[0\]\.seconds is not a known key"),
    ],
)
def test_what_is_wrong_in_the_table_is_told(old: str, new: str, problem: str) -> None:
    with pytest.raises(PopmodelError, match=problem) as caught:
        signatures.from_text(TEXT.replace(old, new))
    assert str(caught.value).startswith("signature:8: ")
