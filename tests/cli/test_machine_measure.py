"""``popmodel machine measure``: what it measures, writes and shows, on a machine that is played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from popmodel.machines.bench import bench_plan as plan
from popmodel.machines.bench import collect

from .conftest import Call
from .played_machine import CACHE, FILES, calls, load


def test_it_measures_and_writes_profile_and_page(popmodel: Call, machine: Path) -> None:
    status, out, err = popmodel("machine", "measure", "--only", "core,p2p", "-o", "m.json")
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
    assert provenance["command"] == "popmodel machine measure --only core,p2p -o m.json"
    assert len(provenance["inputs"]) == 6
    (measured,) = provenance["measurements"]
    assert measured["samples"] == "m.core-p2p.samples"
    assert (measured["mode"], measured["parts"]) == ("quick", ["core", "p2p"])
    assert measured["seed"] >= 0
    assert document["absent"]["net.inter"].startswith("needs 2 nodes")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.split() == ["cpu", "Played", "CPU"] for line in lines)
    assert any(line.startswith("latency, one node") for line in lines)
    assert machine.joinpath("m.core-p2p.samples", "plan.json").exists()


@pytest.mark.usefixtures("machine")
def test_without_a_name_the_profile_is_in_the_current_directory(popmodel: Call) -> None:
    status, out, _ = popmodel("machine", "measure", "--only", "core", "--format", "json")
    assert status == 0
    assert json.loads(out) == load("machine.json")
    assert popmodel("machine", "measure", "--only", "core")[0] == 2
    assert popmodel("machine", "measure", "--only", "core", "--force")[0] == 0


@pytest.mark.usefixtures("machine")
def test_a_profile_may_only_be_shown(popmodel: Call) -> None:
    out = popmodel("machine", "measure", "--only", "core", "-o", "-")[1]
    assert out.startswith("machine   played")
    assert not Path("machine.json").exists()
    shown = popmodel("machine", "measure", "--samples", "machine.core.samples", "-o", "-")[1]
    assert shown.splitlines()[:-2] == out.splitlines()[:-2]  # but for the time


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_parts_measured_anew_replace_those_of_the_profile(popmodel: Call) -> None:
    assert popmodel("machine", "measure", "--only", "core,p2p,noise", "-o", "m.json")[0] == 0
    before = load("m.json")
    assert popmodel("machine", "measure", "--only", "core", "-o", "m.json")[0] == 2
    assert load("m.json") == before
    assert popmodel("machine", "measure", "--only", "core", "-o", "m.json", "--force")[0] == 0
    after = load("m.json")
    assert (after["net"], after["noise"]) == (before["net"], before["noise"])
    assert after["absent"] == before["absent"]
    parts = [each["parts"] for each in after["provenance"]["measurements"]]
    assert parts == [["core", "p2p", "noise"], ["core"]]
    assert Path("m.core-p2p-noise.samples").is_dir()
    assert popmodel("machine", "measure", "--only", "core", "-o", "m.json", "--force")[0] == 0
    assert popmodel("machine", "compare", "m.json", "m.json")[0] == 0


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_a_profile_is_as_old_as_its_oldest_part(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "measured 2020-09-13"
    monkeypatch.setenv("STARTED", "1.6e9")
    assert old in popmodel("machine", "measure", "--only", "core,noise", "-o", "m.json")[1]
    assert old in popmodel("machine", "measure", "--samples", "m.core-noise.samples")[1]
    monkeypatch.setenv("STARTED", "1.7e9")
    assert old in popmodel("machine", "measure", "--only", "core", "-o", "m.json", "--force")[1]
    document = load("m.json")
    assert document["host"]["measured"] == "2020-09-13T12:26:40Z"
    assert [one["started"] for one in document["provenance"]["measurements"]] == [
        "2020-09-13T12:26:40Z",
        "2023-11-14T22:13:20Z",
    ]
    assert "days ago" in popmodel("machine", "check", "m.json")[1]
    # With the last of the old parts its age goes as well.
    assert (
        "measured 2023-11-14"
        in popmodel("machine", "measure", "--only", "noise", "-o", "m.json", "--force")[1]
    )


def test_parts_of_another_machine_are_not_put_together(
    popmodel: Call, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert popmodel("machine", "measure", "--only", "core,noise", "-o", "m.json")[0] == 0
    monkeypatch.setenv("RUNTIME", "libomp.so.5")
    status, _, err = popmodel("machine", "measure", "--only", "core", "-o", "m.json", "--force")
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
    status, _, err = popmodel("machine", "measure", "--only", "core", "-o", "m.json", "--force")
    assert status == 1
    assert err.startswith("popmodel: error: m.json: is not a machine profile: it has no schema")
    assert not Path("m.core.samples").exists()


@pytest.mark.usefixtures("machine")
def test_a_machine_that_hides_its_caches_has_a_profile(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {path: text for path, text in FILES.items() if not path.startswith(CACHE)}
    monkeypatch.setenv("FILES", json.dumps(hidden))
    status, _, err = popmodel("machine", "measure", "--only", "core,memory", "-o", "m.json")
    assert status == 0, err
    document = load("m.json")
    assert "caches" not in document["topology"]
    why = document["absent"]["topology.caches"]
    assert why == "sysfs does not report the caches"
    assert why in " ".join(popmodel("machine", "show", "m.json", "--all")[1].split())
    assert popmodel("machine", "measure", "--samples", "m.core-memory.samples")[0] == 0


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("output", ["m.json", "-"])
def test_a_profile_that_cannot_be_read_replaces_none(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    assert popmodel("machine", "measure", "--only", "core", "-o", "m.json")[0] == 0
    before = Path("m.json").read_text()
    real = collect.collect

    def damaged(*folders: Any) -> tuple[dict[str, Any], list[Path]]:
        document, paths = real(*folders)
        return {**document, "topology": {}}, paths

    monkeypatch.setattr(collect, "collect", damaged)
    status, out, err = popmodel(
        "machine",
        "measure",
        "--samples",
        "m.core.samples",
        "-o",
        output,
        *["--force"] * (output != "-"),
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
    err = popmodel("machine", "measure", "--only", "core", "-o", "m.json")[2]
    assert err.splitlines()[1:] == [
        "popmodel: this may take up to 1.6 s on so many cores; --only measures fewer parts"
    ]


# -- from samples that are there


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_samples_of_several_directories_make_one_profile(popmodel: Call) -> None:
    popmodel("machine", "measure", "--only", "core", "-o", "a.json")
    popmodel("machine", "measure", "--only", "noise,p2p", "-o", "b.json")
    status, out, err = popmodel(
        "machine",
        "measure",
        "--samples",
        "a.core.samples",
        "--samples",
        "b.p2p-noise.samples",
        "-o",
        "both.json",
    )
    assert (status, err) == (0, "")
    document = load("both.json")
    assert {"core", "net", "noise"} <= set(document)
    assert [each["samples"] for each in document["provenance"]["measurements"]] == [
        "a.core.samples",
        "b.p2p-noise.samples",
    ]
    assert "one node" in out


@pytest.mark.usefixtures("machine")
def test_samples_of_different_machines_are_refused(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    popmodel("machine", "measure", "--only", "core", "-o", "a.json")
    monkeypatch.setenv("RUNTIME", "libomp.so.5")
    popmodel("machine", "measure", "--only", "core", "-o", "b.json")
    status, _, err = popmodel(
        "machine", "measure", "--samples", "a.core.samples", "--samples", "b.core.samples"
    )
    assert status == 1
    assert err == (
        "popmodel: error: b.core.samples/launch-001.jsonl: OpenMP runtime is libomp.so.5, but "
        "it is "
        "libgomp.so.1 in a.core.samples/launch-001.jsonl\n"
        "hint: collect the samples of each machine into a separate profile\n"
    )


@pytest.mark.usefixtures("machine")
def test_samples_beside_a_damaged_plan_can_be_collected(popmodel: Call) -> None:
    popmodel("machine", "measure", "--only", "core", "-o", "m.json")
    Path("m.core.samples/plan.json").write_text("{")
    Path("m.json").unlink()
    status, _, err = popmodel("machine", "measure", "--only", "core", "-o", "m.json")
    assert status == 1
    assert err.splitlines()[-1] == (
        "hint: restart with --force, or collect the samples: popmodel machine measure --samples "
        "m.core.samples"
    )
    status, _, err = popmodel("machine", "measure", "--samples", "m.core.samples", "-o", "m.json")
    assert status == 0
    assert err.startswith(
        "popmodel: warning: m.core.samples: m.core.samples/plan.json:1: is not JSON: "
    )
    assert err.endswith(": missing jobs cannot be counted\n")
    assert load("m.json")["core"]


# -- failures


@pytest.mark.usefixtures("machine")
def test_a_launch_that_dies_is_told_and_the_rest_is_measured(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE", "ping_pong 1048576")
    status, out, err = popmodel("machine", "measure", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    warning = "launch 2 (mpi) failed in ping_pong bytes=1048576 tier=node: "
    line, lacking = [line for line in err.splitlines() if "warning" in line]
    assert lacking.startswith("popmodel: warning: m.core-p2p.samples: ")
    assert line.startswith(f"popmodel: warning: {warning}")
    assert "signal SIGKILL" in line
    document = load("m.json")
    (failure,) = document["provenance"]["measurements"][0]["failures"]
    assert failure.startswith(warning)
    assert document["net"]["intra"]["classes"]
    assert "launch 2 (mpi) failed in ping_pong" in " ".join(out.split())


@pytest.mark.usefixtures("machine")
def test_a_program_that_does_not_begin_leaves_its_parts_absent(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMB", "mpi")
    status, _, err = popmodel("machine", "measure", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    assert err.splitlines()[2] == "hint: full output: m.core-p2p.samples/launch-002.log"
    document = load("m.json")
    assert "net" not in document
    assert document["absent"]["net.intra"].startswith(
        "launch 2 (mpi) failed before its first job: "
    )
    assert "there is no network" in document["absent"]["net.intra"]


@pytest.mark.usefixtures("machine")
def test_nothing_measured_is_a_failure(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMB", "node")
    status, out, err = popmodel("machine", "measure", "--only", "core", "-o", "m.json")
    assert (status, out) == (1, "")
    assert "popmodel: error: nothing could be measured: launch 1 (node) failed before" in err
    assert "there is no network" in err
    assert not Path("m.json").exists()
    monkeypatch.delenv("DUMB")
    assert (
        popmodel("machine", "measure", "--only", "core", "-o", "m.json")[0] == 0
    )  # and can be tried again


@pytest.mark.usefixtures("machine")
def test_nothing_measured_of_what_was_asked_is_a_failure(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMB", "mpi")
    status, out, err = popmodel("machine", "measure", "--only", "p2p", "-o", "m.json")
    assert (status, out) == (1, "")
    lines = err.splitlines()
    assert err.count("launch 2 (mpi)") == 1
    assert lines[-2].startswith(
        "popmodel: error: p2p: nothing could be measured: launch 2 (mpi) failed before its "
        "first job: "
    )
    assert "there is no network" in lines[-2]
    assert lines[-1] == "hint: full output: m.p2p.samples/launch-002.log"
    assert not Path("m.json").exists()
    monkeypatch.delenv("DUMB")
    status, _, err = popmodel("machine", "measure", "--only", "p2p", "-o", "m.json")
    assert (status, err.startswith("popmodel: resuming, ")) == (0, True)


def test_what_is_absent_is_the_reason_where_no_launch_failed() -> None:
    document = {"absent": {"core.smt_factor": "no SMT", "net.thread_factor": "no such level"}}
    error = collect.nothing_of(("threads",), document, ())
    assert error.message == "threads: nothing could be measured: no such level"
    assert error.hint == "popmodel machine check shows what works on this machine"
    error = collect.nothing_of(("core", "p2p"), {}, ())
    assert error.message == ("core, p2p: nothing could be measured: there are no samples")
