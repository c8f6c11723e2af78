"""What source code says against the signatures of the same programs that were written by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.expressions import parse
from popmodel.model.signature.reading import EXTRA_FUNCTIONS
from popmodel.model.signatures import read

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"stencil3d": {"N": "cells", "steps": "steps"}, "cannon": {"N": "rows"}}
"""Parameters written by hand, with their names in the source."""


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The drafts of both programs."""
    folder, found = tmp_path_factory.mktemp("drafts"), {}
    for name in SIZES:
        found[name] = folder / f"{name}.toml"
        popmodel.signature(EXAMPLES / name / f"{name}.c").save(found[name])
    return found


def items(program: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """All items with their kinds, in order."""
    found = []
    for one in program:
        (kind,) = one.keys() - {"body"}
        found.append((kind, one[kind]))
        found += items(one.get("body", []))
    return found


def value(text: Any, document: Mapping[str, Any], names: Mapping[str, float], cache: float) -> Any:
    """A formula as a number; a cache holds sets of up to so many bytes."""
    if not isinstance(text, str) or (text.isalpha() and len(text) > 5):
        return text  # a word such as static
    formula = parse(text, EXTRA_FUNCTIONS)
    known = dict(names)
    for name in formula.names - known.keys():
        known[name] = value(document["let"][name], document, names, cache)

    def if_fits(size: float, hit: float, miss: float, *_: Any) -> float:
        return hit if size <= cache else miss

    return float(formula.evaluate(known, {"if_fits": if_fits}))


# kind, number among its kind in the source's file (behind the set-up) and in that by hand, keys
SAME = {
    "stencil3d": (
        ("loop", 0, 0, ("count",)),
        ("halo", 0, 0, ("width", "bytes_per_cell", "mode")),
        ("parallel", 1, 0, ("trip", "inner", "schedule", "constructs", "flops", "loads", "stores",
                            "bytes.L2", "bytes.L3", "written.L2", "written.L3", "written.MEM")),
        ("serial", 0, 0, ("loads", "stores")),
        ("serial", 1, 1, ("loads", "stores")),
        ("serial", 4, 2, ("trip", "stores")),
        ("serial", 5, 3, ("trip", "stores")),
        ("collective", 1, 0, ("op", "bytes", "every")),
    ),
    "cannon": (
        ("parallel", 1, 0, ("trip", "inner", "schedule", "constructs", "flops", "loads", "stores")),
        ("shift", 0, 0, ("dim", "by", "bytes")),
        ("shift", 1, 1, ("dim", "by", "bytes")),
    ),
}  # fmt: skip


def key(entry: Mapping[str, Any], name: str) -> Any:
    for part in name.split("."):
        entry = entry[part]
    return entry


@pytest.mark.parametrize("name", SIZES)
def test_keys_are_those_written_by_hand(name: str, drafts: Mapping[str, Path]) -> None:
    draft = tomllib.loads(drafts[name].read_text())
    hand = tomllib.loads(read(name)[2])
    other = []
    for kind, mine, theirs, keys in SAME[name]:
        of_source = [one for each, one in items(draft["program"]) if each == kind][mine]
        by_hand = [one for each, one in items(hand["program"]) if each == kind][theirs]
        for each in keys:
            for processes in (1, 4, 36):
                grid = {f"P{dim}": round(processes ** (1 / 2)) for dim in range(3)}
                names: dict[str, Any] = {"P": processes, "T": 4, **grid, "n0": 60, "n1": 50}
                names |= {"n2": 40, "steps": 100, "products": 1, "s": processes**0.5, "w": 8}
                names |= {"N": 720, "rows": 720, "cells": 720, "nb": 720 / processes**0.5}
                for cache in (1e4, 1e5, 1e7):
                    a = value(key(of_source, each), draft, names, cache)
                    b = value(key(by_hand, each), hand, names, cache)
                    if a != (pytest.approx(b, rel=1e-9) if isinstance(b, float) else b):
                        other.append((kind, mine, each, processes, cache, a, b))
    assert other == []


@pytest.mark.long
@pytest.mark.parametrize("name", SIZES)
def test_predictions_are_within_15_percent_of_those_by_hand(
    name: str, drafts: Mapping[str, Path]
) -> None:
    values = {"N": 512 if name == "stencil3d" else 8192, "steps": 100}
    given = {hand: values[hand] for hand in SIZES[name]}
    renamed = {SIZES[name][hand]: number for hand, number in given.items()}
    for processes, threads in ((1, 1), (4, 1), (4, 4), (16, 1), (16, 4), (64, 4)):
        split = {"procs": processes, "threads": threads}
        by_hand = popmodel.predict(name, settings=given, **split).runtime.value
        of_source = popmodel.predict(drafts[name], settings=renamed, **split).runtime.value
        assert of_source == pytest.approx(by_hand, rel=0.155), split
