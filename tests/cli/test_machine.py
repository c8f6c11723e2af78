"""``popmodel machine``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from machines.profiles import document, measured

from .conftest import Call


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two profiles in the working directory: a, and b with another memory and OpenMP."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    one, other = document(), document() | {"name": "other"}
    other["memory"] |= {"b1": measured(1.25e10), "bsat": measured(4.8e10)}
    other["openmp"]["barrier"]["seconds"][1] = measured(1e-7)
    other["core"]["loop_cycles"] = measured(0, 0)
    del other["memory"]["kappa_fs"]
    other["net"]["nic_G"] = measured(1e-10)
    Path("a.json").write_text(json.dumps(one))
    Path("b.json").write_text(json.dumps(other))


def test_compare_counts_what_is_within_the_intervals(popmodel: Call) -> None:
    status, out, err = popmodel("machine", "compare", "a.json", "b.json", "--all")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert max(map(len, out.splitlines())) <= 60
    (summary,) = [line for line in lines if line.startswith("equal within intervals")]
    compared = json.loads(popmodel("machine", "compare", "a.json", "b.json", "--format", "json")[1])
    total = compared["summary"]["compared"]
    assert summary == f"equal within intervals {total - 3} of {total}"
    start = lines.index("a b b / a")
    assert lines[start + 1 : start + 4] == [
        "core.loop_cycles 1 cycles 0 cycles 0.000",
        "memory.bsat 24 GB/s 48 GB/s 2.000",
        "openmp.barrier.seconds[T=2] 200 ns 100 ns 0.500",
    ]
    assert lines[lines.index("only in a") + 1] == "memory.kappa_fs"
    assert lines[lines.index("only in b") + 1] == "net.nic_G"


def test_values_that_differ_are_written_so(popmodel: Call) -> None:
    one, other = document(), document()
    one["net"]["thread_factor"], other["net"]["thread_factor"] = (
        {"value": value, "low": value, "high": value} for value in (0.0021312, 0.0021328)
    )
    one["net"]["intra"]["G"], other["net"]["intra"]["G"] = measured(3.3e-11, 0), measured(3e-11, 0)
    Path("c.json").write_text(json.dumps(one))
    Path("d.json").write_text(json.dumps(other))
    out = [" ".join(line.split()) for line in popmodel("machine", "compare", "c.json", "d.json")[1]
           .splitlines()]  # fmt: skip
    assert "net.thread_factor 0.002131 0.002133 1.001" in out
    assert "net.intra.G 33 ps/B 30 ps/B 0.909" in out


def test_compare_of_profiles_with_nothing_in_common(popmodel: Call) -> None:
    one = document()
    for section in ("memory", "net", "coll", "openmp"):
        del one[section]
    other = document()
    del other["core"]
    Path("c.json").write_text(json.dumps(one))
    Path("d.json").write_text(json.dumps(other))
    lines = popmodel("machine", "compare", "c.json", "d.json")[1].splitlines()
    assert " ".join(lines[2].split()) == "equal within intervals no common parameters"


def test_a_profile_that_cannot_be_used_fails_the_check(popmodel: Call) -> None:
    broken = document()
    broken["memory"]["b1"]["value"] = -1
    Path("broken.json").write_text(json.dumps(broken))
    status, out, err = popmodel("machine", "check", "broken.json")
    assert (status, out) == (1, "")
    assert err == (
        "popmodel: error: broken.json: memory.b1.value must be a number above 0, not -1\n"
        "hint: correct it, or measure again: popmodel machine measure\n"
    )


def test_a_profile_of_noise_alone_fails_the_check(popmodel: Call) -> None:
    keys = ("schema", "name", "topology", "noise")
    noise = {key: document()[key] for key in keys} | {"provenance": {"measurements": [{}]}}
    Path("noise.json").write_text(json.dumps(noise))
    status, out, err = popmodel("machine", "check", "noise.json")
    assert status == 1
    assert err == (
        "popmodel: error: noise.json: contains no parameters\n"
        "hint: measure them: popmodel machine measure\n"
    )
    assert "usable    no, 0 parameters" in out.splitlines()
    assert popmodel("machine", "show", "noise.json")[1].startswith("machine  box (measured)\n")
    status, out, _ = popmodel("machine", "check", "noise.json", "--format", "json")
    assert (status, json.loads(out)["usable"]) == (1, False)


def test_findings_are_a_condition(popmodel: Call) -> None:
    assert popmodel("machine", "check", "a.json", "--fail-if", "findings > 1")[0] == 3
    assert popmodel("machine", "show", "a.json", "--fail-if", "memory.b1 < 1e10")[0] == 0
