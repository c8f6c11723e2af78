"""The figures that the README of the profiles states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from popmodel.machines import profile
from popmodel.machines.register import OPERATIONS

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PROFILE = EXAMPLES / "profiles" / "two-core-vm.json"


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


def test_the_profile_of_a_shared_processor_is_what_its_readme_says() -> None:
    path = PROFILE.with_name("two-core-epyc.json")
    document = json.loads(path.read_text())
    runs = document["provenance"]["measurements"]
    readme = " ".join((path.parent / "README.md").read_text().split())
    jobs, launches = (sum(one[key] for one in runs) for key in ("jobs", "launches"))
    assert f"{jobs:,} jobs in {launches} launches" in readme.partition(path.name)[2]
    assert [(one["mode"], one["without_sample"]) for one in runs] == [("full", 0)] * 2
    core = document["quality"]["core"]
    assert not core["noisy"]
    assert "shared the cores in 51 % of the batches" in " ".join(core["why"])
    loaded = profile.load(path)
    clock, rate = loaded.get("core.freq.1"), loaded.get("core.instructions_per_cycle")
    assert (clock.value / 1e9, rate.value) == pytest.approx((3.23, 6.6), abs=0.05)
    assert (clock.high - clock.low) / 2 < 0.01 * clock.value
    assert (rate.high - rate.low) / 2 == pytest.approx(0.03 * rate.value, rel=0.2)
    assert loaded.get("core.loop_cycles").value == pytest.approx(1, abs=5e-4)
    assert loaded.get("core.window").value == pytest.approx(128, abs=1)
    by_level = [loaded.get(f"core.overlap_with.{level}").value for level in ("L2", "L3", "MEM")]
    assert min(by_level[:2]) > 0.97 > by_level[2] == pytest.approx(0.95, abs=0.01)
    taken = loaded.get("memory.line_takeover.near")
    assert taken.value == pytest.approx(3.1e-9, abs=5e-11)
    assert taken.low < 1.7e-9 < 5.7e-9 < taken.high


def of_five_rounds(path: Path) -> dict[str, Any]:
    """Read a profile of five full measurements, of whose jobs its README says how many they are."""
    document: dict[str, Any] = json.loads(path.read_text())
    runs = document["provenance"]["measurements"]
    readme = " ".join((path.parent / "README.md").read_text().split()).partition(path.name)[2]
    jobs, launches = (sum(one[key] for one in runs) for key in ("jobs", "launches"))
    assert f"{jobs:,} jobs in {launches} launches" in readme
    assert [(one["mode"], one["without_sample"]) for one in runs] == [("full", 0)] * 5
    return document


def test_the_profile_of_the_older_xeon_is_what_its_readme_says() -> None:
    path = PROFILE.with_name("two-core-cascadelake.json")
    of_five_rounds(path)
    core = profile.load(path)
    found = [core.get(f"core.{name}_cycles").value for name in OPERATIONS]
    assert found == pytest.approx((4, 4, 14), abs=0.01)
    assert core.get("core.window").value == pytest.approx(117, abs=0.5)
    assert core.get("core.instructions_per_cycle").value == pytest.approx(4, abs=0.05)
    near, last = (core.get(f"core.overlap_issue.{level}") for level in ("L2", "L3"))
    assert (near.value, last.value) == pytest.approx((0.99, 0.77), abs=0.005)
    assert (last.low, last.high) == pytest.approx((0.2, 0.9), abs=0.02)
    behind = [core.get(f"core.{name}.MEM").value for name in ("overlap_with", "overlap_issue")]
    assert behind == pytest.approx((0.66, 0.24), abs=0.005)  # as signatures.md says


def test_the_profile_of_the_xeon_is_what_its_readme_says() -> None:
    path = PROFILE.with_name("two-core-xeon.json")
    document = of_five_rounds(path)
    core = document["quality"]["core"]
    assert not core["noisy"]
    assert "shared the cores in 9 % of the batches" in " ".join(core["why"])
    loaded = profile.load(path)
    ends = [loaded.get(f"core.{name}").value for name in ("branch_miss", "predicted_trip")]
    assert ends == pytest.approx((20, 44), abs=0.5)
    lost = loaded.get("core.branch_miss")
    assert (lost.low, lost.high) == pytest.approx((16, 24), abs=0.5)
    hidden = {
        table: [loaded.get(f"core.{table}.{level}").value for level in ("L2", "MEM")]
        for table in ("overlap_with", "overlap_issue")
    }
    assert hidden["overlap_with"] == pytest.approx((0.96, 0.26), abs=0.005)
    assert hidden["overlap_issue"] == pytest.approx((0.26, -0.705), abs=0.005)
    usable = loaded.get("memory.kappa")
    assert usable.value == pytest.approx(71.5 / 480, abs=0.001)
    assert usable.high > 110 / 480
