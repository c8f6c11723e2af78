"""Colours of efficiencies on pages."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from popmodel.reports.palette import LEVELS, contrast, level, rules, shade


def test_contrast_is_that_of_the_guidelines() -> None:
    """Values of WCAG 2.2: black on white is 21; #767676 is the palest grey of 4.5 on white."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#fff", "#ffffff") == 1
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("number", LEVELS)
def test_text_can_be_read_on_every_colour(number: int) -> None:
    one = shade(number / 100)
    assert contrast(one.ink, one.paper) >= 4.5


def test_greys_tell_the_same_in_even_steps() -> None:
    """Lightness, as seen: the cube root of luminance, CIE 1976."""

    def lightness(number: int) -> float:
        luminance = 1.05 / contrast("#ffffff", shade(number / 100).paper) - 0.05
        return float(116 * luminance ** (1 / 3) - 16)

    steps = [lightness(after) - lightness(before) for before, after in pairwise(LEVELS)]
    assert min(steps) > 2.2
    assert max(steps) < 4.0


@pytest.mark.parametrize(
    ("efficiency", "expected"), [(-1, 50), (0.2, 50), (0.51, 52), (0.812, 82), (1, 100), (1.7, 100)]
)
def test_efficiencies_have_the_nearest_colour(efficiency: float, expected: int) -> None:
    assert abs(level(efficiency) - expected) <= 2
    assert level(efficiency) in LEVELS


def test_a_style_sheet_has_a_class_for_every_colour() -> None:
    first, light, *found = rules().split("\n")
    papers = [re.fullmatch(r"\.heat-(\d+) \{ background: (#\w{6}); \}", one) for one in found]
    assert [int(one[1]) for one in papers if one] == list(LEVELS)
    assert [one[2] for one in papers if one] == [shade(level / 100).paper for level in LEVELS]
    assert first == '[class*="heat-"] { color: #000; }'
    dark = [int(number) for number in re.findall(r"heat-(\d+)", light)]
    assert dark == [level for level in LEVELS if shade(level / 100).ink == "#fff"]
    assert light.endswith(" { color: #fff; }")
