"""``popmodel bench``: what it measures, writes and shows, on a machine that is played."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from popmodel.machines.bench import bench_plan as plan
from popmodel.machines.bench import collect

from .played_machine import CACHE, FILES, calls, load

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


def test_it_measures_and_writes_profile_and_page(popmodel: Call, machine: Path) -> None:
    status, out, err = popmodel("bench", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    assert err == (
        f"popmodel: {sum(calls('m.core-p2p.samples').values())} jobs in 6 launches; "
        "samples go to m.core-p2p.samples\n"
    )
    document = load("m.json")
    assert document["schema"] == "popmodel/machine/1"
    assert document["host"]["cpu"] == "Played CPU"
    assert document["topology"]["cores_per_node"] == 4
    assert document["net"]["intra"]["classes"][0]["alpha"]["value"] == pytest.approx(1e-6, rel=0.1)
    provenance = document["provenance"]
    assert provenance["command"] == "popmodel bench --only core,p2p -o m.json"
    assert len(provenance["inputs"]) == 6
    (measured,) = provenance["measurements"]
    assert measured["samples"] == "m.core-p2p.samples"
    assert (measured["mode"], measured["parts"]) == ("quick", ["core", "p2p"])
    assert measured["seed"] >= 0
    assert document["absent"]["net.inter"].startswith("needs 2 nodes")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.split() == ["cpu", "Played", "CPU"] for line in lines)
    assert "one node" in lines
    assert machine.joinpath("m.core-p2p.samples", "plan.json").exists()


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_without_a_file_the_samples_are_kept_in_the_cache(popmodel: Call, tmp_path: Path) -> None:
    status, out, err = popmodel("bench", "--only", "core", "--format", "json")
    assert status == 0
    assert json.loads(out)["schema"] == "popmodel/machine/1"
    folder = tmp_path / "cache" / "bench" / f"{os.uname().nodename}.core.samples"
    before = calls(str(folder))
    assert err.splitlines() == [
        f"popmodel: 66 jobs in 3 launches; samples go to {folder}",
        f"popmodel: to save this profile: popmodel bench collect {folder} -o machine.json",
    ]
    # Measured again, not taken from there, when asked again; and what was there is kept.
    for number in (1, 2):
        err = popmodel("bench", "--only", "core")[2]
        aside = folder.with_name(f"{os.uname().nodename}.core.{number}.samples")
        assert err.splitlines()[:2] == [
            f"popmodel: the samples of the previous measurement are now in {aside}",
            f"popmodel: 66 jobs in 3 launches; samples go to {folder}",
        ]
        assert calls(str(aside)) == before
        assert popmodel("bench", "collect", str(aside), "-o", f"{number}.json")[0] == 0
    err = popmodel("bench", "--only", "core", "--force")[2]
    assert err.startswith("popmodel: 66 jobs in 3 launches")
    # Other parts go to a place of their own.
    err = popmodel("bench", "--only", "noise")[2]
    assert "now in" not in err
    assert calls(str(folder)) == before


@pytest.mark.usefixtures("machine")
def test_the_profile_can_go_to_standard_output(popmodel: Call) -> None:
    status, out, _ = popmodel("bench", "--only", "core", "-o", "-")
    assert status == 0
    document = json.loads(out)
    assert document["core"]["freq"]["1"]["origin"] == "measured"


@pytest.mark.usefixtures("machine")
def test_other_formats_of_the_page(popmodel: Call) -> None:
    assert (
        "| core | value | 90 % |"
        in (popmodel("bench", "--only", "core", "--format", "markdown")[1])
    )
    assert popmodel("bench", "--only", "core", "--format", "csv")[1].startswith("path,value,low")


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_parts_measured_anew_replace_those_of_the_profile(popmodel: Call) -> None:
    assert popmodel("bench", "--only", "core,p2p,noise", "-o", "m.json")[0] == 0
    before = load("m.json")
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 2
    assert load("m.json") == before
    assert popmodel("bench", "--only", "core", "-o", "m.json", "--force")[0] == 0
    after = load("m.json")
    assert (after["net"], after["noise"]) == (before["net"], before["noise"])
    assert after["absent"] == before["absent"]
    parts = [each["parts"] for each in after["provenance"]["measurements"]]
    assert parts == [["core", "p2p", "noise"], ["core"]]
    assert Path("m.core-p2p-noise.samples").is_dir()
    assert popmodel("bench", "--only", "core", "-o", "m.json", "--force")[0] == 0
    assert popmodel("machine", "diff", "m.json", "m.json")[0] == 0


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_a_profile_is_as_old_as_its_oldest_part(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "measured 2020-09-13"
    monkeypatch.setenv("STARTED", "1.6e9")
    assert old in popmodel("bench", "--only", "core,noise", "-o", "m.json")[1]
    assert old in popmodel("bench", "collect", "m.core-noise.samples")[1]
    monkeypatch.setenv("STARTED", "1.7e9")
    assert old in popmodel("bench", "--only", "core", "-o", "m.json", "--force")[1]
    document = load("m.json")
    assert document["host"]["measured"] == "2020-09-13T12:26:40Z"
    assert [one["started"] for one in document["provenance"]["measurements"]] == [
        "2020-09-13T12:26:40Z",
        "2023-11-14T22:13:20Z",
    ]
    assert "days ago" in popmodel("machine", "check", "m.json")[1]
    # With the last of the old parts its age goes as well.
    assert (
        "measured 2023-11-14" in popmodel("bench", "--only", "noise", "-o", "m.json", "--force")[1]
    )


def test_parts_of_another_machine_are_not_put_together(
    popmodel: Call, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert popmodel("bench", "--only", "core,noise", "-o", "m.json")[0] == 0
    monkeypatch.setenv("RUNTIME", "libomp.so.5")
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json", "--force")
    assert status == 2
    assert err.splitlines()[1:] == [
        "popmodel: error: --only: OpenMP is libomp.so.5 (OpenMP 201511), but was "
        "libgomp.so.1 (OpenMP 201511) when the profile was measured",
        "hint: measure everything again, or write this part to another file with -o",
        "hint: m.json was not written: it is what an earlier command left",
    ]
    assert machine.joinpath("m.core.samples").is_dir()  # nothing measured is lost


@pytest.mark.usefixtures("machine")
def test_a_profile_to_be_completed_has_to_be_one(popmodel: Call) -> None:
    Path("m.json").write_text("{}")
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json", "--force")
    assert status == 1
    assert err.startswith("popmodel: error: m.json: is not a machine profile: its schema is None")
    assert not Path("m.core.samples").exists()


@pytest.mark.usefixtures("machine")
def test_a_machine_that_hides_its_caches_has_a_profile(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {path: text for path, text in FILES.items() if not path.startswith(CACHE)}
    monkeypatch.setenv("FILES", json.dumps(hidden))
    status, out, err = popmodel("bench", "--only", "core,memory", "-o", "m.json")
    assert status == 0, err
    document = load("m.json")
    assert "caches" not in document["topology"]
    why = document["absent"]["topology.caches"]
    assert why == "sysfs does not report the caches"
    assert why in " ".join(out.split())
    assert popmodel("bench", "collect", "m.core-memory.samples")[0] == 0


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("output", ["m.json", "-"])
def test_a_profile_that_cannot_be_read_replaces_none(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 0
    before = Path("m.json").read_text()
    real = collect.collect

    def damaged(*folders: Any) -> tuple[dict[str, Any], list[Path]]:
        document, paths = real(*folders)
        return {**document, "topology": {}}, paths

    monkeypatch.setattr(collect, "collect", damaged)
    status, out, err = popmodel(
        "bench", "collect", "m.core.samples", "-o", output, *["--force"] * (output != "-")
    )
    assert (status, out) == (1, "")
    assert err.splitlines()[0].endswith(": topology.cores_per_node is missing")
    assert Path("m.json").read_text() == before


@pytest.mark.usefixtures("machine")
def test_a_measurement_that_takes_longer_than_its_mode_says_so(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = plan.MODES["quick"]._replace(seconds=0.1)
    monkeypatch.setattr(plan, "MODES", {"quick": short})
    err = popmodel("bench", "--only", "core", "-o", "m.json")[2]
    assert err.splitlines()[1:] == [
        "popmodel: this may take up to 1.6 s on so many cores; --only measures fewer parts"
    ]
