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
from popmodel.validation.repeats import splits
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


def test_the_profile_is_what_its_readme_says() -> None:
    document = json.loads(PROFILE.read_text())
    (measured,) = document["provenance"]["measurements"]
    assert (measured["jobs"], measured["launches"], measured["mode"]) == (1025, 20, "quick")
    assert measured["without_sample"] == 0
    assert not any(section["noisy"] for section in document["quality"].values())
    loaded = profile.load(PROFILE)
    assert len(loaded.quantities) == 151
    assert loaded.get("memory.kappa").origin == "preset"
    for path in ("memory.bsat", "openmp.barrier.fit.a", "net.inter"):
        assert path not in loaded.quantities
        assert loaded.absent(path), path


def test_the_first_validation_is_as_far_off_as_its_readme_says() -> None:
    runs = read_table(EXAMPLES / "stencil3d" / "two-core-vm.csv", ["N"]).runs
    assert {run.parameters["N"] for run in runs} == {256.0}
    stencil, machine = signature.load("stencil3d"), profile.load(PROFILE)
    made = {(one.processes, one.threads): one for one in made_for(runs, stencil, machine)}
    rows = compare(list(made.values()), runs)
    for size, least, most in (
        ((1, 1), -0.2, -0.18),
        ((1, 2), -0.26, -0.24),
        ((2, 1), -0.36, -0.335),
    ):
        off = [row.difference for row in rows if (row.processes, row.threads) == size]
        assert least < min(off) <= max(off) < most
    assert summary(rows)["runtime"]["covered"] == len(rows) == 9
    # 1 x 2 and 2 x 1 are near each other as measured, not as predicted
    times = [run.runtime for run in runs if (run.processes, run.threads) in ((1, 2), (2, 1))]
    assert max(times) / min(times) < 1.03
    assert 1.1 < made[1, 2].runtime.value / made[2, 1].runtime.value < 1.2


@pytest.mark.parametrize("table", sorted(EXAMPLES.glob("*/*.csv")), ids=lambda path: path.stem)
def test_intervals_hold_most_splits_of_the_tables(table: Path) -> None:
    """A table is named after the profile of its machine and lies beside its program."""
    application = signature.load(table.parent.name)
    machine = profile.load(PROFILE.with_stem(table.stem))
    runs = read_table(table, application.params).runs
    found = splits(compare(made_for(runs, application, machine), runs))
    held = [one.runtime.holds for one in found]
    assert sum(map(bool, held)) >= 0.8 * len(held)
