"""The figures that the READMEs of the examples state."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

import pytest

from popmodel.machine import profile
from popmodel.machine.profile import Profile
from popmodel.measurements.measurement import Measurement
from popmodel.measurements.table import read_table
from popmodel.model import signatures as signature
from popmodel.model.signature.program import Signature
from popmodel.prediction.predict import predict
from popmodel.validation.comparison import compare
from popmodel.validation.errors import summary
from popmodel.validation.predicted import Predicted, from_prediction
from popmodel.validation.repeats import Repeated, splits

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PROFILE = EXAMPLES / "profiles" / "two-core-vm.json"

# what the READMEs state, in per cent: fastest, slowest and median error, runs inside intervals
SIZES = {"stencil3d": (37, 34, 5, 91), "cannon": (16, 16, 5, 89)}
LARGE = {(1, 1): 6, (1, 2): 3, (2, 1): 0}


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
    readme = (PROFILE.parent / "README.md").read_text()
    assert f"{measured['jobs']:,} jobs in {measured['launches']} launches" in readme
    assert (measured["mode"], measured["without_sample"]) == ("quick", 0)
    loaded = profile.load(PROFILE)
    for path in ("memory.kappa", "memory.inner_kappa.L1", "memory.inner_kappa.L2"):
        assert loaded.get(path).origin == "measured"
    assert loaded.get("memory.kappa").value == pytest.approx(0.2, abs=0.03)
    assert loaded.get("memory.inner_kappa.L2").value == pytest.approx(1.25, abs=0.15)
    assert loaded.get("memory.write_back.L2").value == pytest.approx(2.2, abs=0.3)
    assert loaded.get("memory.write_back.L3").value < 0.2
    by_level = [loaded.get(f"core.overlap_with.{level}").value for level in ("L2", "L3", "MEM")]
    assert by_level[0] > 0.9 > 0.8 > by_level[1] > 0.4 > 0.1 > by_level[2]
    for path in ("memory.bsat", "openmp.barrier.fit.a", "net.inter"):
        assert path not in loaded.quantities
        assert loaded.absent(path), path


def _readme(folder: str) -> str:
    return " ".join((EXAMPLES / folder / "README.md").read_text().split())


def test_the_validation_is_as_far_off_as_its_readme_says() -> None:
    runs = read_table(EXAMPLES / "stencil3d" / "two-core-vm.csv", ["N"]).runs
    assert {run.parameters["N"] for run in runs} == {256.0}
    stencil, machine = signature.load("stencil3d"), profile.load(PROFILE)
    found = splits(compare(made_for(runs, stencil, machine), runs))
    off = {(one.processes, one.threads): 100 * _error(one.runtime) for one in found}
    assert off == {split: pytest.approx(error, abs=0.6) for split, error in LARGE.items()}
    most = max(LARGE.values(), key=abs)
    assert f"within {abs(most)} % of the runs" in _readme("stencil3d")


@pytest.mark.parametrize("program", SIZES)
def test_other_sizes_are_as_far_off_as_the_readmes_say(program: str) -> None:
    table = EXAMPLES / program / "sizes.csv"
    application, machine = signature.load(program), profile.load(PROFILE)
    kept = [
        run
        for run in read_table(table, application.params).runs
        if (run.threads, run.parameters["N"]) not in {(2, 24), (2, 32)}  # no faster than one
    ]
    rows = compare(made_for(kept, application, machine), kept)
    off = [100 * _error(one.runtime) for one in splits(rows)]
    covered = 100 * summary(rows)["runtime"]["covered"] / len(rows)
    found = (-min(off), max(off), statistics.median(map(abs, off)), covered)
    fastest, slowest, median, held = SIZES[program]
    assert found == pytest.approx((fastest, slowest, median, held), abs=0.6)
    assert (
        f"Predictions are {fastest} % too fast to {slowest} % too slow, {median} % off in the "
        f"median, and the intervals hold {held} % of the runs"
    ) in _readme(program)


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
