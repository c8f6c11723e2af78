"""The figures that the READMEs of the examples state."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from popmodel.machine import profile
from popmodel.machine.profile import Profile
from popmodel.model import signatures as signature
from popmodel.model.signature.program import Signature
from popmodel.prediction.predict import predict
from popmodel.validation.comparison import compare, summary
from popmodel.validation.measurement import Measurement
from popmodel.validation.predicted import Predicted, from_prediction
from popmodel.validation.repeats import Repeated, splits
from popmodel.validation.run_times import read_table

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PROFILE = EXAMPLES / "profiles" / "two-core-vm.json"


def made_for(
    runs: Iterable[Measurement], application: Signature, machine: Profile
) -> list[Predicted]:
    """A prediction for every split and set of parameters."""
    asked = dict.fromkeys(
        (run.processes, run.threads, tuple(sorted(run.parameters.items()))) for run in runs
    )
    return [
        from_prediction(predict(application, machine, processes, threads, dict(parameters)))
        for processes, threads, parameters in asked
    ]


def _error(runtime: Repeated) -> float:
    return runtime.predicted / runtime.mean - 1


def test_the_profile_is_what_its_readme_says() -> None:
    document = json.loads(PROFILE.read_text())
    (measured,) = document["provenance"]["measurements"]
    assert (measured["jobs"], measured["launches"], measured["mode"]) == (1155, 25, "quick")
    assert measured["without_sample"] == 0
    assert not any(section["noisy"] for section in document["quality"].values())
    loaded = profile.load(PROFILE)
    assert len(loaded.quantities) == 155
    assert loaded.get("memory.kappa").origin == "measured"
    assert loaded.get("memory.kappa").value == pytest.approx(0.2, abs=0.01)
    levels = [loaded.get(f"core.overlap_with.{level}").value for level in ("L2", "L3", "MEM")]
    assert levels == [pytest.approx(0.98, abs=0.01), pytest.approx(0.51, abs=0.01), -0.3891]
    for path in ("memory.bsat", "openmp.barrier.fit.a", "net.inter"):
        assert path not in loaded.quantities
        assert loaded.absent(path), path


def test_the_validation_is_as_far_off_as_its_readme_says() -> None:
    runs = read_table(EXAMPLES / "stencil3d" / "two-core-vm.csv", ["N"]).runs
    assert {run.parameters["N"] for run in runs} == {256.0}
    stencil, machine = signature.load("stencil3d"), profile.load(PROFILE)
    found = splits(compare(made_for(runs, stencil, machine), runs))
    off = {(one.processes, one.threads): _error(one.runtime) for one in found}
    assert off == {
        (1, 1): pytest.approx(0.01, abs=0.005),
        (1, 2): pytest.approx(0, abs=0.005),
        (2, 1): pytest.approx(-0.09, abs=0.005),
    }


@pytest.mark.parametrize(
    ("program", "fastest", "slowest", "held"),
    [("stencil3d", -0.37, 0.25, 0.52), ("cannon", -0.48, 0.02, 0.5)],
)
def test_other_sizes_are_as_far_off_as_the_readmes_say(
    program: str, fastest: float, slowest: float, held: float
) -> None:
    table = EXAMPLES / program / "sizes.csv"
    application, machine = signature.load(program), profile.load(PROFILE)
    kept = [
        run
        for run in read_table(table, application.params).runs
        if (run.threads, run.parameters["N"]) not in {(2, 24), (2, 32)}  # no faster than one
    ]
    rows = compare(made_for(kept, application, machine), kept)
    off = [_error(one.runtime) for one in splits(rows)]
    assert (min(off), max(off)) == (
        pytest.approx(fastest, abs=0.01),
        pytest.approx(slowest, abs=0.01),
    )
    covered = summary(rows)["runtime"]["covered"]
    assert covered / len(rows) == pytest.approx(held, abs=0.03)


@pytest.mark.parametrize(
    "table", sorted(EXAMPLES.glob(f"*/{PROFILE.stem}.csv")), ids=lambda path: path.stem
)
def test_intervals_hold_most_splits_of_the_tables(table: Path) -> None:
    """A table is named after the profile of its machine and lies beside its program."""
    application = signature.load(table.parent.name)
    machine = profile.load(PROFILE.with_stem(table.stem))
    runs = read_table(table, application.params).runs
    found = splits(compare(made_for(runs, application, machine), runs))
    held = [one.runtime.holds for one in found]
    assert sum(map(bool, held)) >= 0.8 * len(held)
