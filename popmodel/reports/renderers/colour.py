"""Colours of a heat map, for terminals that have them.

Foreground and background are always set together, so that the figures stay readable on light and
dark terminals alike. The colour only repeats what the figure says; without colour nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from itertools import pairwise

_RESET = "\x1b[0m"
COLOURS = r"(\x1b\[(?:0|30;4[123]|38;5;16;48;5;\d{2,3}|38;2;0;0;0;48;2;\d{1,3};\d{1,3};\d{1,3})m)"
"""The escape sequences that are used here, as a pattern."""

# From red over yellow to green; an efficiency of 0.8 is where a POP audit starts to worry, so the
# middle of the scale lies there and not at one half.
_STOPS = (
    (0.50, (230, 108, 94)),
    (0.65, (240, 152, 92)),
    (0.80, (248, 212, 104)),
    (0.90, (178, 214, 112)),
    (1.00, (100, 186, 106)),
)
_COLOURS_256 = ((0.50, 167), (0.60, 209), (0.70, 215), (0.80, 221), (0.90, 149), (1.00, 71))
_COLOURS_16 = ((0.65, 41), (0.85, 43), (1.00, 42))


class Depth(IntEnum):
    """How many colours a terminal shows."""

    NONE = 0
    SIXTEEN = 1
    PALETTE = 2
    TRUE = 3


def depth_of(environment: Mapping[str, str], *, terminal: bool) -> Depth:
    """How many colours may be used."""
    if environment.get("NO_COLOR"):
        return Depth.NONE
    if not terminal and environment.get("FORCE_COLOR", "0") in {"", "0"}:
        return Depth.NONE
    kind = environment.get("TERM", "")
    if kind in {"", "dumb"}:
        return Depth.NONE
    if environment.get("COLORTERM", "") in {"truecolor", "24bit"}:
        return Depth.TRUE
    return Depth.PALETTE if "256" in kind else Depth.SIXTEEN


def heat(text: str, efficiency: float, depth: Depth) -> str:
    """Put `text` on the colour of an efficiency (0.5 and less red, 0.8 yellow, 1 and more
    green).
    """
    if depth is Depth.NONE:
        return text
    if depth is Depth.TRUE:
        red, green, blue = _mix(efficiency)
        return f"\x1b[38;2;0;0;0;48;2;{red};{green};{blue}m{text}{_RESET}"
    if depth is Depth.PALETTE:
        nearest = min(_COLOURS_256, key=lambda stop: abs(stop[0] - efficiency))
        return f"\x1b[38;5;16;48;5;{nearest[1]}m{text}{_RESET}"
    code = next((code for limit, code in _COLOURS_16 if efficiency < limit), _COLOURS_16[-1][1])
    return f"\x1b[30;{code}m{text}{_RESET}"


def _mix(efficiency: float) -> tuple[int, int, int]:
    """Colour between the two stops around an efficiency."""
    if efficiency <= _STOPS[0][0]:
        return _STOPS[0][1]
    if efficiency >= _STOPS[-1][0]:
        return _STOPS[-1][1]
    below, above = next(pair for pair in pairwise(_STOPS) if efficiency <= pair[1][0])
    share = (efficiency - below[0]) / (above[0] - below[0])
    red, green, blue = (
        round(low + share * (high - low)) for low, high in zip(below[1], above[1], strict=True)
    )
    return red, green, blue
