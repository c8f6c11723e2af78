"""The figures that the README of the profiles states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from popmodel.machine import profile

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
