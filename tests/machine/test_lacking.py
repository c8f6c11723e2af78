"""Predictions go on where a profile lacks a number: it is assumed, wide, and named."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popmodel import predict
from popmodel.api.predict import Prediction
from popmodel.machine.findings import inspect
from popmodel.machine.profile import Profile, from_document, load

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
)
"""What the bundled stencil asks for, and lacks in some profiles."""
OPTIONAL = ("memory.q", "memory.copy_bw", "net.nic_G", "net.shm_k", "core.loop_cycles")


def without(paths: Iterable[str]) -> Profile:
    document: dict[str, Any] = copy.deepcopy(dict(load("sandybridge-fdr").document))
    for path in paths:
        *above, last = path.split(".")
        table = document
        for name in above:
            table = table[name]
        table.pop(last, None)
    return from_document(document)


@cache
def predicted(*paths: str) -> Prediction:
    return predict("stencil3d", procs=16, threads=4, machine=without(paths))


def width(found: Prediction) -> float:
    runtime = found.runtime
    assert runtime.low is not None and runtime.high is not None
    return math.log(runtime.high / runtime.low)


@pytest.mark.parametrize("path", NEEDED)
def test_a_number_that_is_lacking_is_assumed_and_named(path: str) -> None:
    found = predicted(path)
    assert f"the profile lacks {path}: " in " ".join(str(found).split())
    assert width(found) >= 0.97 * width(predicted())  # draws vary by that
    listed = [one.path for one in inspect(without([path]))]
    if path not in ("openmp.for", "openmp.reduction"):  # of few programs
        assert path in [each.removesuffix(".any") for each in listed]


@settings(max_examples=8, deadline=None)
@given(st.sets(st.sampled_from([*NEEDED, *OPTIONAL]), min_size=2))
def test_predictions_go_on_whatever_is_lacking(paths: set[str]) -> None:
    found = predicted(*sorted(paths))
    text = " ".join(str(found).split())
    for path in paths & set(NEEDED):
        assert f"the profile lacks {path}: " in text
    assert width(found) >= 0.9 * width(predicted())


def test_all_constructs_and_the_memory_may_be_lacking() -> None:
    found = predicted("openmp", "memory")
    assert width(found) > width(predicted())
