"""Predictions go on where a profile lacks a number: it is assumed, wide, and named."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from popmodel import predict, whatif
from popmodel.cli.predict import Prediction
from popmodel.machines.profile import DEFAULT_PRESET, Profile, from_document, load
from popmodel.machines.profile_findings import inspect
from popmodel.reports.renderers.terminal import screen_text
from popmodel.reports.renderers.text import Style
from popmodel.reports.result import Result

DATA = Path(__file__).parent.parent / "data"
EXAMPLES = DATA.parent.parent / "examples" / "profiles"
NAMES = (DEFAULT_PRESET, *(f"two-core-{name}" for name in ("vm", "epyc", "xeon", "cascadelake")))
NEEDED = (
    "core.freq",
    "core.flop_per_cycle",
    "core.load_per_cycle",
    "core.store_per_cycle",
    "memory.bsat",
    "memory.kappa",
    "net.intra.eager_threshold",
    "net.inter.eager_threshold",
    "net.reduce_gamma",
    "openmp.for",
    "openmp.reduction",
    "net.intra",
    "net.inter",
    "net.intra.classes",
    "memory.b1",
    "topology.caches",
)
"""What the bundled stencil asks for, and lacks in some profiles."""
SPLITS = st.sampled_from([(2, 1), (1, 2)])
OPTIONAL = ("memory.q", "memory.copy_bw", "net.nic_G", "net.shm_k", "core.loop_cycles")


@cache
def profile(name: str) -> Profile:
    return load(EXAMPLES / f"{name}.json" if name != DEFAULT_PRESET else name)


def without(paths: Iterable[str], name: str = DEFAULT_PRESET) -> Profile:
    document: dict[str, Any] = copy.deepcopy(dict(profile(name).document))
    for path in paths:
        *above, last = path.split(".")
        table = document
        for name in above:
            table = table.get(name, {})
        table.pop(last, None)
    return from_document(document)


@cache
def predicted(*paths: str) -> Prediction:
    return predict("stencil3d", procs=16, threads=4, machine=without(paths))


def said(found: Result) -> str:
    """The whole screen on one line."""
    blocks = found.views.blocks(found._stamped())
    return " ".join(screen_text(blocks, Style(whole=True)).replace("\n - ", " ").split())


def width(found: Prediction) -> float:
    runtime = found.runtime
    assert runtime.low is not None and runtime.high is not None
    return math.log(runtime.high / runtime.low)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("path", NEEDED)
def test_a_number_that_is_lacking_is_assumed_and_named(path: str) -> None:
    found = predicted(path)
    lacking = path.removesuffix(".classes")
    assert f"the profile lacks {lacking}: " in said(found)
    assert width(found) >= 0.97 * width(predicted())  # draws vary by that
    listed = [one.path for one in inspect(without([path]))]
    if path.startswith("openmp."):  # one sentence for all constructs that are lacking
        texts = [one.text for one in inspect(without([path])) if " are assumed, " in one.text]
        assert f" {path.removeprefix('openmp.')}, " in texts[0]
    else:
        assert path.removesuffix(".classes") in [each.removesuffix(".any") for each in listed]


@pytest.mark.long
@settings(max_examples=8, deadline=None, phases=(Phase.generate,))
@given(st.sets(st.sampled_from(sorted({*NEEDED, *OPTIONAL} - {"topology.caches"})), min_size=2))
def test_predictions_go_on_whatever_is_lacking(paths: set[str]) -> None:
    found = predicted(*sorted(paths))
    text = said(found)
    for path in paths & set(NEEDED):
        assert f"the profile lacks {path.removesuffix('.classes')}: " in text
    assert width(found) >= 0.9 * width(predicted())


def test_all_constructs_and_the_memory_may_be_lacking() -> None:
    found = predicted("openmp", "memory")
    assert width(found) > width(predicted())


def parts(name: str) -> list[str]:
    """Every section of numbers, key and tier that a profile could lack, and still be one."""
    document = profile(name).document
    found = [f"topology.{key}" for key in document["topology"] if key != "cores_per_node"]
    for section in ("core", "memory", "openmp", "net", "coll"):
        keys = document.get(section, {})
        found += [section, *(f"{section}.{key}" for key in keys)]
        tiers = [key for key in keys if section == "net" and "classes" in keys[key]]
        found += [f"net.{tier}.{key}" for tier in tiers for key in keys[tier]]
    return found


@cache
def measured_width(name: str, processes: int, threads: int) -> float:
    return width(predict("stencil3d", procs=processes, threads=threads, machine=profile(name)))


@pytest.mark.long
@settings(max_examples=25, deadline=None, phases=(Phase.generate,))
@given(st.data())
def test_predictions_and_sweeps_go_on_whatever_parts_are_lacking(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    paths = data.draw(st.sets(st.sampled_from(parts(name)), min_size=1))
    processes, threads = (2, 4) if name == DEFAULT_PRESET else data.draw(SPLITS)
    machine = without(paths, name)
    found = predict("stencil3d", procs=processes, threads=threads, machine=machine)
    # effects without a number are left out, and named; they widen intervals a little
    assert width(found) >= 0.9 * measured_width(name, processes, threads)
    text = said(found)
    if processes > 1 and "intra" not in machine.tiers():
        assert "the profile lacks net.intra: latency of a message is assumed, 200 ns" in text
    if "freq" not in machine.document.get("core", {}):
        assert "the profile lacks core.freq: " in text
    swept = predict("stencil3d", cores=processes * threads, machine=machine)
    assert swept.choices
    for note in found.notes:
        if note.startswith("the profile lacks "):
            assert note in swept.to_dict()["assumptions"]
            assert note in said(swept)


@pytest.mark.parametrize("tier", ["intra", "inter"])
def test_replays_name_the_tier_that_is_lacking(tier: str) -> None:
    trace = DATA / "cg.S.2.prv.gz"
    mapping = "block:2" if tier == "intra" else "block:1"
    found = whatif(trace, machine=without([f"net.{tier}"]), mapping=mapping)
    text = said(found)
    assert (
        f"the profile lacks net.{tier}: latency of a message is assumed, 200 ns to 50 us; "
        "replayed with 3 us"
    ) in text
    assert f"the profile lacks net.{tier}.eager_threshold: " in text


def test_bandwidth_beyond_the_cores_that_were_measured_grows_or_stays() -> None:
    document: dict[str, Any] = copy.deepcopy(dict(profile(DEFAULT_PRESET).document))
    memory = document["memory"]
    known = {"value": 2e10, "low": 1.9e10, "high": 2.1e10, "origin": "measured"}
    memory["by_cores"] = {"2": known}
    del memory["b1"], memory["bsat"]
    machine = from_document(document)
    for threads, lacking in ((8, "memory.bsat"), (1, "memory.b1")):
        found = predict("stencil3d", procs=1, threads=threads, machine=machine)
        assert f"the profile lacks {lacking}: " in said(found)
    del memory["by_cores"]["2"]
    memory["by_cores"] = {"1": known, "8": known}
    found = predict("stencil3d", procs=1, threads=8, machine=from_document(document))
    assert "the profile lacks memory" not in said(found)


def test_an_empty_list_of_caches_is_none() -> None:
    document: dict[str, Any] = copy.deepcopy(dict(profile(DEFAULT_PRESET).document))
    document["topology"]["caches"] = []
    found = predict("stencil3d", procs=16, threads=4, machine=from_document(document))
    assert "the profile lacks topology.caches: " in said(found)
