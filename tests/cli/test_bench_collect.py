"""``popmodel bench``: a profile of samples that are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .played_machine import load

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_samples_of_several_directories_make_one_profile(popmodel: Call) -> None:
    popmodel("bench", "--only", "core", "-o", "a.json")
    popmodel("bench", "--only", "noise,p2p", "-o", "b.json")
    status, out, err = popmodel(
        "bench", "collect", "a.core.samples", "b.p2p-noise.samples", "-o", "both.json"
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
    popmodel("bench", "--only", "core", "-o", "a.json")
    monkeypatch.setenv("RUNTIME", "libomp.so.5")
    popmodel("bench", "--only", "core", "-o", "b.json")
    status, _, err = popmodel("bench", "collect", "a.core.samples", "b.core.samples")
    assert status == 1
    assert err == (
        "popmodel: error: b.core.samples/launch-001.jsonl: OpenMP runtime is libomp.so.5, but "
        "it is "
        "libgomp.so.1 in a.core.samples/launch-001.jsonl\n"
        "hint: collect the samples of each machine into a separate profile\n"
    )


@pytest.mark.usefixtures("machine")
def test_samples_beside_a_damaged_plan_can_be_collected(popmodel: Call) -> None:
    popmodel("bench", "--only", "core", "-o", "m.json")
    Path("m.core.samples/plan.json").write_text("{")
    Path("m.json").unlink()
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json")
    assert status == 1
    assert err.splitlines()[-1] == (
        "hint: restart with --force, or collect the samples: popmodel bench collect m.core.samples"
    )
    status, _, err = popmodel("bench", "collect", "m.core.samples", "-o", "m.json")
    assert status == 0
    assert err.startswith(
        "popmodel: warning: m.core.samples: m.core.samples/plan.json:1: is not JSON: "
    )
    assert err.endswith(": missing jobs cannot be counted\n")
    assert load("m.json")["core"]


@pytest.mark.usefixtures("machine")
def test_directories_without_samples_are_refused(popmodel: Call) -> None:
    Path("empty").mkdir()
    for name, problem in (("empty", "contains no samples (*.jsonl)"), ("no", "is not a directory")):
        assert popmodel("bench", "collect", name)[::2] == (
            1,
            f"popmodel: error: {name}: {problem}\n"
            "hint: give the directory of the samples, such as machine.samples\n",
        )
