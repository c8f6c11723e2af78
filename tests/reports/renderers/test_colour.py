"""Colours of a heat map."""

from __future__ import annotations

from popmodel.reports.renderers.colour import Depth, depth_of, heat


def test_colours_go_from_red_over_yellow_to_green() -> None:
    assert heat("x", 0.1, Depth.SIXTEEN) == "\x1b[30;41mx\x1b[0m"
    assert heat("x", 0.7, Depth.SIXTEEN) == "\x1b[30;43mx\x1b[0m"
    assert heat("x", 1.2, Depth.SIXTEEN) == "\x1b[30;42mx\x1b[0m"
    assert heat("x", 0.1, Depth.PALETTE) == "\x1b[38;5;16;48;5;167mx\x1b[0m"
    assert heat("x", 0.98, Depth.PALETTE) == "\x1b[38;5;16;48;5;71mx\x1b[0m"
    assert heat("x", 0.85, Depth.TRUE) == "\x1b[38;2;0;0;0;48;2;213;213;108mx\x1b[0m"
    assert heat("x", 0.8, Depth.TRUE) == "\x1b[38;2;0;0;0;48;2;248;212;104mx\x1b[0m"
    assert heat("x", 1.5, Depth.TRUE) == heat("x", 1.0, Depth.TRUE)
    assert heat("x", 0.5, Depth.NONE) == "x"


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
