"""``popmodel replay`` on the networks of machines, and with ranks on other nodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel.machines.profile import load

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")


def test_the_network_of_a_machine(popmodel: Call, tmp_path: Path) -> None:
    profile = json.loads(Path(load("sandybridge-fdr").path).read_text())
    del profile["net"]["intra"]["os"]
    file = tmp_path / "sandybridge-fdr.json"
    file.write_text(json.dumps(profile))
    words = ("replay", PURE, "--network", "ideal", "--machine", str(file))
    out = popmodel(*words)[1]
    assert "within a node latency 520 ns, bandwidth up to 7.326 GB/s, eager" in out
    assert "2    sandybridge-fdr" in out
    assert "machines: best estimates of the profile, processes on nodes as traced" in out
    document = json.loads(popmodel(*words, "--format", "json")[1])
    ideal, machine = document["runs"]
    assert "tiers" not in ideal["network"]
    assert list(machine["network"]["tiers"]) == ["within"]
    # one size class, so that the network is a flat one with these values
    flat = ("--latency", "520ns", "--bandwidth", "7326007326.007326B/s")
    like = (*flat, "--eager-threshold", "65537", "--format", "json")
    (same,) = json.loads(popmodel("replay", PURE, *like)[1])["runs"]
    assert machine["runtime"] == pytest.approx(same["runtime"], rel=1e-12)
    assert document["provenance"]["inputs"][-1]["path"].endswith("sandybridge-fdr.json")


def test_a_machine_tells_what_sending_keeps_a_process_from(popmodel: Call) -> None:
    out = popmodel("replay", PURE, "--machine", "sandybridge-fdr")[1]
    assert "latency 437 ns" in out
    assert "send overhead 83 ns" in out


def test_machines_take_what_their_profile_does_not_say(popmodel: Call) -> None:
    words = ("replay", PURE, "--machine", "sandybridge-fdr", "--cpu-factor", "1,2")
    document = json.loads(popmodel(*words, "--format", "json")[1])
    assert [run["network"]["cpu_factor"] for run in document["runs"]] == [1.0, 2.0]
    status, out, err = popmodel(*words, "--latency", "1us")
    assert (status, out) == (2, "")
    assert err == (
        "popmodel: error: latency: already set by the machine profile\n"
        "hint: leave it out, or name a network as well, such as ideal\n"
    )


def test_machines_of_one_name_are_told_apart(popmodel: Call, tmp_path: Path) -> None:
    document = json.loads(Path(load("sandybridge-fdr").path).read_text())
    document["net"]["intra"]["classes"][0]["alpha"]["value"] = 4e-6
    document["net"]["intra"]["classes"][0]["alpha"]["high"] = 5e-6
    other = tmp_path / "slow.json"
    other.write_text(json.dumps(document))
    words = ("replay", PURE, "--machine", f"sandybridge-fdr,{other}", "--format", "json")
    runs = json.loads(popmodel(*words)[1])["runs"]
    assert [run["network"]["name"] for run in runs] == ["sandybridge-fdr", str(other)]
    assert runs[0]["runtime"] < runs[1]["runtime"]


def test_other_placements_of_ranks(tmp_path: Path, popmodel: Call) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\na\nb\n")
    words = ("replay", PURE, "--machine", "sandybridge-fdr")
    mappings = ("--mapping", f"traced,block:4,block:2,cyclic:2,{hosts}")
    document = json.loads(popmodel(*words, *mappings, "--format", "json")[1])
    names = [run["network"].get("mapping") for run in document["runs"]]
    assert names == [None, "block:4", "block:2", "cyclic:2", str(hosts)]
    traced, together, block, cyclic, as_listed = (run["runtime"] for run in document["runs"])
    assert traced == together
    assert cyclic == as_listed
    assert len({together, block, cyclic}) == 3
    lines = popmodel(*words, *mappings)[1].splitlines()
    assert any(line.split()[:2] == ["1", "traced"] for line in lines)
    assert "processes on nodes as traced or as" in "\n".join(lines)


def test_a_mapping_that_changes_nothing_is_refused(popmodel: Call) -> None:
    status, _, err = popmodel("replay", PURE, "--network", "alpha-beta", "--mapping", "block:2")
    assert status == 2
    assert "mapping block:2: changes nothing on alpha-beta" in err


def test_what_is_no_mapping_is_refused(popmodel: Call) -> None:
    words = ("replay", PURE, "--machine", "sandybridge-fdr", "--mapping")
    assert "'blck:2': must be traced, block:N, cyclic:N or a file" in popmodel(*words, "blck:2")[2]
