"""What a drawing shows, as data: bars, points, curves, lanes over time, cells, or a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from popmodel.base.values import dataclass


@dataclass(frozen=True)
class PictureBar:
    """A value and how it is written."""

    value: float  # Length of the bar; at least 0
    text: str  # Stands beside it
    # Ends of its interval; None where there is none.
    low: float | None = None
    high: float | None = None
    is_worst: bool = False  # Whether it stands out


@dataclass(frozen=True)
class PictureLine:
    """A label, indented by its depth, and a bar for each column; None where there is no value.

    A label without bars is a heading.
    """

    label: str
    bars: tuple[PictureBar | None, ...] = ()
    depth: int = 0


@dataclass(frozen=True)
class Bars:
    """Lines of bars below each other, one column of bars for each of several runs."""

    heads: Sequence[str]  # What each column is
    lines: Sequence[PictureLine]  # From top to bottom
    # The value of a bar of full length, whose room is drawn; None: the largest value.
    full: float | None = None
    exact: float | None = None  # A value at which a line is drawn across all bars


class Mark(StrEnum):
    """How a point is drawn: an open circle, a filled one, a diamond, a square, a triangle.

    Where points stand side by side, a filled circle and a diamond are on a band.
    """

    PLAIN = "plain"
    MARKED = "marked"
    FIRST = "first"
    SQUARE = "square"
    TRIANGLE = "triangle"


@dataclass(frozen=True)
class PicturePoint:
    """A value of one category, with its interval where it has one."""

    category: str  # What stands below it
    # The value and the ends of its interval; None where there is none.
    value: float
    low: float | None
    high: float | None
    # All of it in words, shown by viewers that can; the value itself stands at a point that is
    # `Mark.FIRST`.
    text: str
    short: str  # The value in words
    mark: Mark  # How it is drawn


@dataclass(frozen=True)
class Panel:
    """A plot of points side by side."""

    name: str  # Begins the ids of its points
    title: str  # What the values are, with their unit
    points: tuple[PicturePoint, ...]  # From left to right
    below: tuple[str, ...] = ()  # A second line below each category; empty for none
    below_title: str = ""  # What that line is


@dataclass(frozen=True)
class Band:
    """Panels side by side that have the same categories."""

    heading: str  # Stands above them; empty for none
    panels: tuple[Panel, ...]  # From left to right
    axis: str  # What the categories are
    remarks: tuple[str, ...] = ()  # Stand below them


@dataclass(frozen=True)
class PicturePoints:
    """Panels of points below each other, and what the marks of the points mean."""

    legend: Sequence[tuple[Mark, str]]
    bands: Sequence[Band]


@dataclass(frozen=True)
class Spot:
    """A place on a chart, with a text beside it and a longer one for viewers that can show it."""

    # The place.
    x: float
    y: float
    # The short text and the longer one.
    text: str
    told: str
    mark: Mark = Mark.PLAIN  # How it is drawn
    # Ends of the interval of y; None where there is none.
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PictureCurve:
    """A line through points; `text` stands at its end."""

    points: tuple[tuple[float, float], ...]  # From left to right
    text: str = ""  # What the line is; empty where the title says it
    dots: bool = False  # Whether the points are marked
    exact: bool = False  # Whether it is where spots would be that are exact: such a line is dashed


@dataclass(frozen=True)
class PictureAxis:
    """A quantity along one side of a chart."""

    title: str  # What it is, with its unit
    # Its ends.
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]  # Values and how they are written


@dataclass(frozen=True)
class Chart:
    """Curves and spots, from left to right, over two axes.

    ``band`` lies behind them: between what is low and what is high at each x, from left to right.
    """

    name: str
    title: str
    x: PictureAxis
    y: PictureAxis
    curves: tuple[PictureCurve, ...]
    spots: tuple[Spot, ...] = ()
    band: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True)
class Charts:
    """Charts below each other, and what the marks of their spots mean."""

    charts: Sequence[Chart]
    legend: Sequence[tuple[Mark, str]] = ()


@dataclass(frozen=True)
class Lane:
    """One of several things over time: a letter for each of equal steps."""

    label: str
    letters: str


@dataclass(frozen=True)
class PictureLanes:
    """Lanes below each other over the same time."""

    name: str  # Begins its ids
    title: str
    lanes: tuple[Lane, ...]
    time: PictureAxis
    # Letter to the kind of colour, `COLOURS`; other letters are not drawn.
    colours: Mapping[str, str]
    legend: tuple[tuple[str, str], ...]  # Kinds of colours, and what they mean
    marks: tuple[float, ...] = ()  # Times that are marked by lines
    band: tuple[float, float] | None = None  # Begin and end of what stands out, in times


@dataclass(frozen=True)
class Timelines:
    """Lanes of several panels below each other."""

    panels: Sequence[PictureLanes]


@dataclass(frozen=True)
class PictureCell:
    """A cell with something in it."""

    # Where it is.
    row: int
    column: int
    shade: int  # From 1 to 9, higher for more
    told: str  # What is in it, for viewers that can show it


@dataclass(frozen=True)
class Cells:
    """A square table of shaded cells."""

    names: tuple[str, ...]  # Of the rows and of the columns alike
    cells: tuple[PictureCell, ...]  # Those that are not empty
    # What they are.
    rows: str
    columns: str
    quantity: str  # What the shades stand for
    legend: tuple[tuple[int, str], ...]  # Shades, ascending, and from what value on they are used


@dataclass(frozen=True)
class Figure:
    """A figure of a heat map."""

    text: str  # What is printed
    efficiency: float | None = None  # Gives its colour; None: no colour
    is_worst: bool = False  # Whether it stands out


@dataclass(frozen=True)
class HeatLine:
    """A label, indented by its depth, and a figure for each column; a heading without figures."""

    label: str
    figures: tuple[Figure, ...] = ()
    depth: int = 0


@dataclass(frozen=True)
class HeatMap:
    """Lines of coloured figures below each other, one column for each of several runs."""

    heads: tuple[tuple[str, ...], ...]  # For each column the lines above it
    lines: tuple[HeatLine, ...]  # From top to bottom
    scale: str  # What the colours mean


@dataclass(frozen=True)
class Picture:
    """A drawing."""

    title: str  # What is shown
    facts: Sequence[str]  # Lines below the title
    shown: Bars | PicturePoints | Charts | Timelines | Cells | HeatMap  # The drawing itself
    remarks: Sequence[str] = ()  # Stand at the bottom
