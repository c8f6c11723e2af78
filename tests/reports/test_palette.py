"""Colours of efficiencies on pages."""

import re
from itertools import pairwise

import pytest

from popmodel.reports.palette import (
    COLOURS,
    LEVELS,
    Depth,
    contrast,
    depth_of,
    heat,
    level,
    rules,
    shade,
)


def test_contrast_is_that_of_the_guidelines() -> None:
    """Values of WCAG 2.2: black on white is 21; #767676 is the palest grey of 4.5 on white."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#fff", "#ffffff") == 1
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_every_colour(dark: bool) -> None:
    for number in LEVELS:
        one = shade(number / 100, dark=dark)
        assert contrast(one.ink, one.paper) >= 4.5, number


@pytest.mark.parametrize("dark", [False, True])
def test_greys_tell_the_same_and_good_ones_most(dark: bool) -> None:
    """Lightness, as seen: the cube root of luminance, CIE 1976."""

    def lightness(number: int) -> float:
        luminance = 1.05 / contrast("#ffffff", shade(number / 100, dark=dark).paper) - 0.05
        return float(116 * luminance ** (1 / 3) - 16)

    steps = [lightness(after) - lightness(before) for before, after in pairwise(LEVELS)]
    sign = -1 if dark else 1
    assert all(sign * step > -0.3 for step in steps)  # of what is rounded to whole numbers
    assert min(sign * step for step in steps[13:]) > 1


@pytest.mark.parametrize(
    ("efficiency", "expected"), [(-1, 0), (0.2, 20), (0.51, 52), (0.812, 82), (1, 100), (1.7, 100)]
)
def test_efficiencies_have_the_nearest_colour(efficiency: float, expected: int) -> None:
    assert abs(level(efficiency) - expected) <= 2
    assert level(efficiency) in LEVELS


def test_a_style_sheet_has_a_class_for_every_colour() -> None:
    found = rules().split("\n")
    assert len(found) == len(LEVELS)
    for number, rule in zip(LEVELS, found, strict=True):
        light, dark = (shade(number / 100, dark=dark) for dark in (False, True))
        assert rule == (
            f".heat-{number}{{color:light-dark({light.ink},{dark.ink});"
            f"background:light-dark({light.paper},{dark.paper})}}"
        )


def test_terminals_have_the_same_colours() -> None:
    assert heat("x", 0.1, Depth.TRUE) == "\x1b[38;2;255;255;255;48;2;13;43;93mx\x1b[0m"
    assert heat("x", 1.2, Depth.TRUE) == "\x1b[38;2;0;0;0;48;2;255;241;184mx\x1b[0m"
    assert heat("x", 0.1, Depth.PALETTE) == "\x1b[38;5;231;48;5;24mx\x1b[0m"
    assert heat("x", 0.98, Depth.PALETTE) == "\x1b[38;5;16;48;5;223mx\x1b[0m"
    assert [heat("x", value, Depth.SIXTEEN) for value in (0.1, 0.7, 1.2)] == [
        f"\x1b[{code}mx\x1b[0m" for code in ("97;44", "30;46", "30;43")
    ]
    assert heat("x", 0.5, Depth.NONE) == "x"


@pytest.mark.parametrize("depth", [Depth.SIXTEEN, Depth.PALETTE, Depth.TRUE])
def test_every_colour_is_known_to_what_cleans_a_screen(depth: Depth) -> None:
    for number in LEVELS:
        before, *others = re.split(COLOURS, heat("x", number / 100, depth))
        assert (before, others[1::2]) == ("", ["x", ""])


def test_colour_depth_follows_the_terminal_and_the_user() -> None:
    xterm = {"TERM": "xterm-256color"}
    assert depth_of(xterm, terminal=True) is Depth.PALETTE
    assert depth_of(xterm | {"COLORTERM": "truecolor"}, terminal=True) is Depth.TRUE
    assert depth_of({"TERM": "linux"}, terminal=True) is Depth.SIXTEEN
    assert depth_of({"TERM": "dumb"}, terminal=True) is Depth.NONE
    assert depth_of({}, terminal=True) is Depth.NONE
    assert depth_of(xterm, terminal=False) is Depth.NONE
    assert depth_of(xterm | {"FORCE_COLOR": "1"}, terminal=False) is Depth.PALETTE
    assert depth_of(xterm | {"FORCE_COLOR": "0"}, terminal=False) is Depth.NONE
    assert depth_of(xterm | {"FORCE_COLOR": "1", "NO_COLOR": "1"}, terminal=True) is Depth.NONE
    assert depth_of(xterm | {"NO_COLOR": ""}, terminal=True) is Depth.PALETTE
