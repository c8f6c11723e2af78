"""The machine of a study: nodes like this one, with a network that one node cannot measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from patience import measuring

import popmodel
from popmodel.base.errors import FileError
from popmodel.machines import profile
from popmodel.machines.bench import bench_plan as plan
from popmodel.studies import study_machine
from popmodel.studies.study_machine import target

EXAMPLE = Path(__file__).parents[2] / "examples" / "profiles" / "two-core-vm.json"


def test_cores_of_this_machine_need_no_other(tmp_path: Path) -> None:
    here = profile.load(EXAMPLE)
    found = target(here, [1, 2], tmp_path / "target.json")
    assert found.profile is here
    assert found.assumed is None
    assert not list(tmp_path.iterdir())


def test_more_cores_are_on_more_nodes_with_an_assumed_network(tmp_path: Path) -> None:
    path = tmp_path / "target.json"
    found = target(profile.load(EXAMPLE), [6, 64], path)
    assert found.file == str(path)
    assert found.assumed is not None
    assert "sandybridge-fdr" in found.assumed
    there = profile.load(path)
    assert there.topology.nodes == 32
    network = there.get("net.inter.classes[0].alpha")
    assert network == profile.load("sandybridge-fdr").get("net.inter.classes[0].alpha")
    assert network.origin == "preset"
    assert "net.inter" not in json.loads(path.read_text())["absent"]
    assert there.get("memory.b1") == profile.load(EXAMPLE).get("memory.b1")


def test_it_can_be_predicted_for(tmp_path: Path) -> None:
    path = tmp_path / "target.json"
    target(profile.load(EXAMPLE), [64], path)
    found = popmodel.predict("stencil3d", machine=path, cores=64)
    assert (64, 1) in [one.split for one in found.candidates]


def test_what_was_measured_of_a_network_stays(tmp_path: Path) -> None:
    here = profile.load("sandybridge-fdr")
    found = target(here, [4096], tmp_path / "target.json")
    assert found.profile.topology.nodes == 256
    assert found.assumed is None


def test_measuring_again_improves_the_profile_of_this_machine(tmp_path: Path) -> None:
    found = target(profile.load(EXAMPLE), [64], tmp_path / "target.json")
    assert found.profile.path == str(EXAMPLE)


def test_a_machine_that_cannot_be_measured_is_assumed_and_named(tmp_path: Path) -> None:
    here = study_machine.unknown(tmp_path / "machine.json")
    found = popmodel.predict("stencil3d", machine=here, cores=here.topology.cores_per_node)
    assert found.candidates
    said = found.to_dict()["assumptions"]
    assert any("memory.b1" in text for text in said)
    time = found.choices[0].taken.runtime
    assert time.low is not None
    assert time.high is not None
    assert time.high / time.low > 2


@pytest.mark.long
@measuring()
def test_this_machine_is_measured_into_the_directory_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = plan.MODES["quick"]._replace(rounds=1, seconds=0.2, least=3, most=5, shortest=0.001)
    monkeypatch.setattr(plan, "MODES", {"quick": mode})
    monkeypatch.setattr(study_machine, "PARTS", ("core",))
    path = tmp_path / "machine.json"
    assert study_machine.measure(path) == ()
    assert profile.load(path).get("core.freq.1").value > 1e8
    assert profile.load(path).origin == "measured"
    samples = {one.name: one.stat().st_mtime_ns for one in (tmp_path / "machine.samples").iterdir()}
    path.unlink()
    study_machine.measure(path)  # nothing is measured again
    kept = {one.name: one.stat().st_mtime_ns for one in (tmp_path / "machine.samples").iterdir()}
    assert {name for name, time in samples.items() if kept[name] != time} <= {"plan.json"}
    assert path.exists()


def test_without_samples_there_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        study_machine.of_samples(tmp_path / "machine.json")
