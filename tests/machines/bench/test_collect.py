"""Parts of a profile that are measured anew."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from machines.profiles import document

from popmodel.machines.bench import collect

NOISY = {"launches": 2, "jobs": 9, "converged": 0.8, "noisy": True, "why": ["a hog", "misfits"]}
QUIET = {"launches": 3, "jobs": 4, "converged": 0.9, "noisy": False, "why": ["misfits", "old"]}
WORSE = {
    "launches": 2,
    "converged": 0.8,
    "noisy": True,
    "why": ["a hog", "misfits", "old"],
}


def replaced(parts: list[str], kept: Any, fresh: Any) -> Any:
    """Quality of the network after these parts were measured anew."""
    before, now = document(), document()
    before["quality"], now["quality"] = copy.deepcopy({"net": kept}), copy.deepcopy({"net": fresh})
    return collect.replace_parts(before, now, parts)["quality"]["net"]


@pytest.mark.parametrize("parts", [["overlap"], ["threads"], ["collectives"], ["p2p"]])
def test_a_part_of_a_section_does_not_make_the_rest_of_it_quiet(parts: list[str]) -> None:
    assert replaced(parts, NOISY, QUIET) == WORSE
    after = replaced(parts, QUIET, NOISY)
    assert (after["noisy"], after["launches"]) == (True, 2)
    assert after["why"] == ["misfits", "old", "a hog"]


def test_what_only_a_part_tells_is_that_of_the_later_measurement() -> None:
    before = {"noisy": False, "overlap": {"residual": 0.2}, "more": 1}
    after = {"noisy": False, "overlap": {"residual": 0.1}}
    assert replaced(["overlap"], before, after) == after | {"more": 1}
    assert replaced(["overlap"], before, {"noisy": False}) == before


def test_a_reason_may_be_a_text() -> None:
    assert replaced(["overlap"], {"noisy": True, "why": "a hog"}, {"noisy": False, "why": ""}) == {
        "noisy": True,
        "why": ["a hog"],
    }
