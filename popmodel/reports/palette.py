"""Colours of pages, pictures and terminals: efficiencies go from dark, much is lost, to light.

The colours lie on a straight line of OKLab (B. Ottosson, A perceptual color space for image
processing, 2020): equal steps of an efficiency look equally large, in greys as well, and as the
line runs from blue to yellow, people who see red and green alike see the same. The colour only
repeats what the figure on it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from popmodel.base.values import dataclass

LEVELS = range(0, 101, 4)
"""Efficiencies that have a colour of their own, in per cent."""
_LOW, _HIGH = "#0b2a5c", "#fff1b8"
_DARK_LOW, _DARK_HIGH = "#ffd75e", "#262b33"  # on a dark page: what is lost shines
_BLACK, _WHITE = "#000", "#fff"
KIND_COLOURS = {
    "computing": "#0072b2",
    "parallel": "#56b4e9",
    "point-to-point": "#e69f00",
    "wait": "#c9629a",
    "collective": "#d55e00",
    "other-mpi": "#7d4a1c",
    "openmp": "#b8a800",
    "idle": "#868c92",
    "kernel": "#00795a",
    "transfer": "#7fc97f",
    "device-call": "#6a51a3",
}
"""What threads do, `popmodel.timeline.lanes.KINDS`: as on light pages (style.css, timeline.css)."""

# From linear red, green and blue to cones, and from the cube roots of these to OKLab.
_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_ROOTS = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_LIGHT = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
_WEIGHTS = (0.2126, 0.7152, 0.0722)  # of the luminance


@dataclass(frozen=True)
class Shade:
    """Colour of a cell, and of the text on it, as ``#rrggbb`` or ``#rgb``."""

    paper: str
    ink: str


def level(efficiency: float) -> int:
    """The nearest of `LEVELS`, per cent, of an efficiency as a fraction."""
    step = LEVELS.step
    return min(max(round(100 * efficiency / step) * step, LEVELS[0]), LEVELS[-1])


def shade(efficiency: float, *, dark: bool = False) -> Shade:
    """The colour of an efficiency and of text on it, on a light or a dark page.

    It goes with the square of the efficiency: most of the runs that are looked at lie above 0.5.
    """
    share = (level(efficiency) / LEVELS[-1]) ** 2
    ends = (_DARK_LOW, _DARK_HIGH) if dark else (_LOW, _HIGH)
    low, high = map(_oklab, ends)
    paper = _hex([a + share * (b - a) for a, b in zip(low, high, strict=True)])
    return Shade(paper, max((_BLACK, _WHITE), key=lambda ink: contrast(ink, paper)))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21, as the Web Content Accessibility Guidelines define it."""
    low, high = sorted(
        sum(weight * part for weight, part in zip(_WEIGHTS, _linear(colour), strict=True))
        for colour in (one, other)
    )
    return (high + 0.05) / (low + 0.05)


def rules() -> str:
    """The rules of a style sheet: a class ``heat-80`` and so on for each of `LEVELS`."""
    lines = []
    for number in LEVELS:
        light, dark = shade(number / 100), shade(number / 100, dark=True)
        ink = f"light-dark({light.ink},{dark.ink})"
        lines.append(
            f".heat-{number}{{color:{ink};background:light-dark({light.paper},{dark.paper})}}"
        )
    return "\n".join(lines)


def _linear(colour: str) -> Iterator[float]:
    """Red, green and blue of ``#rrggbb`` or ``#rgb`` as amounts of light (IEC 61966-2-1)."""
    digits = len(colour) // 3
    for at in range(3):
        value = int(colour[1 + at * digits : 1 + (at + 1) * digits], 16) / (16**digits - 1)
        yield value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _oklab(colour: str) -> list[float]:
    cones = _times(_CONES, list(_linear(colour)))
    return _times(_OKLAB, [cone ** (1 / 3) for cone in cones])


def _hex(lab: Sequence[float]) -> str:
    light = _times(_LIGHT, [root**3 for root in _times(_ROOTS, lab)])
    return "#" + "".join(f"{round(255 * _encoded(part)):02x}" for part in light)


def _encoded(part: float) -> float:
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


def _times(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


# The same on terminals.

_RESET = "\x1b[0m"
COLOURS = (
    r"(\x1b\[(?:0|97;44|30;4[36]|38;5;(?:16|231);48;5;\d{2,3}"
    r"|38;2;(?:0;0;0|255;255;255);48;2;\d{1,3};\d{1,3};\d{1,3})m)"
)
"""The escape sequences that are used here, as a pattern."""
_SIXTEEN = ((0.65, "97;44"), (0.85, "30;46"), (float("inf"), "30;43"))  # blue, cyan, yellow


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
    """Put a text on the colour of an efficiency; ink and paper are always set together."""
    if depth is Depth.NONE:
        return text
    if depth is Depth.SIXTEEN:
        code = next(code for limit, code in _SIXTEEN if efficiency < limit)
        return f"\x1b[{code}m{text}{_RESET}"
    colour = shade(efficiency)
    paper = [int(colour.paper[at : at + 2], 16) for at in (1, 3, 5)]
    ink = 0 if colour.ink == _BLACK else 255
    if depth is Depth.TRUE:
        red, green, blue = paper
        return f"\x1b[38;2;{ink};{ink};{ink};48;2;{red};{green};{blue}m{text}{_RESET}"
    # Of 256 colours, 216 are a cube of six steps for each of red, green and blue.
    red, green, blue = (round(part / 51) for part in paper)
    number = 16 + 36 * red + 6 * green + blue
    return f"\x1b[38;5;{16 if ink == 0 else 231};48;5;{number}m{text}{_RESET}"
