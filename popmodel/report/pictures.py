"""What a drawing shows, as data: bars, points, curves, lanes over time, cells, or a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from popmodel.values import dataclass


@dataclass(frozen=True)
class Bar:
    """A value and how it is written.

    Attributes
    ----------
    value : float
        Length of the bar; at least 0.
    low, high : float or None
        Ends of its interval; None where there is none.
    text : str
        Stands beside it.
    is_worst : bool
        Whether it stands out.
    """

    value: float
    text: str
    low: float | None = None
    high: float | None = None
    is_worst: bool = False


@dataclass(frozen=True)
class Line:
    """A label, indented by its depth, and a bar for each column; None where there is no value.

    A label without bars is a heading.
    """

    label: str
    bars: tuple[Bar | None, ...] = ()
    depth: int = 0


@dataclass(frozen=True)
class Bars:
    """Lines of bars below each other, one column of bars for each of several runs.

    Attributes
    ----------
    heads : sequence of str
        What each column is.
    lines : sequence of Line
        From top to bottom.
    full : float or None
        The value of a bar of full length, whose room is drawn; None: the largest value.
    exact : float or None
        A value at which a line is drawn across all bars.
    """

    heads: Sequence[str]
    lines: Sequence[Line]
    full: float | None = None
    exact: float | None = None


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
class Point:
    """A value of one category, with its interval where it has one.

    Attributes
    ----------
    category : str
        What stands below it.
    value, low, high : float
        The value and the ends of its interval; None where there is none.
    text : str
        All of it in words, shown by viewers that can; the value itself stands at a point that
        is `Mark.FIRST`.
    short : str
        The value in words.
    mark : Mark
        How it is drawn.
    """

    category: str
    value: float
    low: float | None
    high: float | None
    text: str
    short: str
    mark: Mark


@dataclass(frozen=True)
class Panel:
    """A plot of points side by side.

    Attributes
    ----------
    name : str
        Begins the ids of its points.
    title : str
        What the values are, with their unit.
    points : tuple of Point
        From left to right.
    below : tuple of str
        A second line below each category; empty for none.
    below_title : str
        What that line is.
    """

    name: str
    title: str
    points: tuple[Point, ...]
    below: tuple[str, ...] = ()
    below_title: str = ""


@dataclass(frozen=True)
class Band:
    """Panels side by side that have the same categories.

    Attributes
    ----------
    heading : str
        Stands above them; empty for none.
    panels : tuple of Panel
        From left to right.
    axis : str
        What the categories are.
    remarks : tuple of str
        Stand below them.
    """

    heading: str
    panels: tuple[Panel, ...]
    axis: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Points:
    """Panels of points below each other, and what the marks of the points mean."""

    legend: Sequence[tuple[Mark, str]]
    bands: Sequence[Band]


@dataclass(frozen=True)
class Spot:
    """A place on a chart, with a text beside it and a longer one for viewers that can show it.

    Attributes
    ----------
    x, y : float
        The place.
    text, told : str
        The short text and the longer one.
    mark : Mark
        How it is drawn.
    low, high : float or None
        Ends of the interval of y; None where there is none.
    """

    x: float
    y: float
    text: str
    told: str
    mark: Mark = Mark.PLAIN
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """A line through points; `text` stands at its end.

    Attributes
    ----------
    points : tuple of (float, float)
        From left to right.
    text : str
        What the line is; empty where the title says it.
    dots : bool
        Whether the points are marked.
    exact : bool
        Whether it is where spots would be that are exact: such a line is dashed.
    """

    points: tuple[tuple[float, float], ...]
    text: str = ""
    dots: bool = False
    exact: bool = False


@dataclass(frozen=True)
class Axis:
    """A quantity along one side of a chart.

    Attributes
    ----------
    title : str
        What it is, with its unit.
    low, high : float
        Its ends.
    ticks : tuple of (float, str)
        Values and how they are written.
    """

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Chart:
    """Curves and spots, from left to right, over two axes.

    ``band`` lies behind them: between what is low and what is high at each x, from left to right.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
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
class Lanes:
    """Lanes below each other over the same time.

    Attributes
    ----------
    name : str
        Begins its ids.
    title : str
    lanes : tuple of Lane
    time : Axis
    colours : mapping of str to str
        Letter to the kind of colour, `COLOURS`; other letters are not drawn.
    legend : tuple of (str, str)
        Kinds of colours, and what they mean.
    marks : tuple of float
        Times that are marked by lines.
    band : tuple of (float, float) or None
        Begin and end of what stands out, in times.
    """

    name: str
    title: str
    lanes: tuple[Lane, ...]
    time: Axis
    colours: Mapping[str, str]
    legend: tuple[tuple[str, str], ...]
    marks: tuple[float, ...] = ()
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class Timelines:
    """Lanes of several panels below each other."""

    panels: Sequence[Lanes]


@dataclass(frozen=True)
class Cell:
    """A cell with something in it.

    Attributes
    ----------
    row, column : int
        Where it is.
    shade : int
        From 1 to 9, higher for more.
    told : str
        What is in it, for viewers that can show it.
    """

    row: int
    column: int
    shade: int
    told: str


@dataclass(frozen=True)
class Cells:
    """A square table of shaded cells.

    Attributes
    ----------
    names : tuple of str
        Of the rows and of the columns alike.
    cells : tuple of Cell
        Those that are not empty.
    rows, columns : str
        What they are.
    quantity : str
        What the shades stand for.
    legend : tuple of (int, str)
        Shades, ascending, and from what value on they are used.
    """

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    rows: str
    columns: str
    quantity: str
    legend: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Figure:
    """A figure of a heat map.

    Attributes
    ----------
    text : str
        What is printed.
    efficiency : float or None
        Gives its colour; None: no colour.
    is_worst : bool
        Whether it stands out.
    """

    text: str
    efficiency: float | None = None
    is_worst: bool = False


@dataclass(frozen=True)
class HeatLine:
    """A label, indented by its depth, and a figure for each column; a heading without figures."""

    label: str
    figures: tuple[Figure, ...] = ()
    depth: int = 0


@dataclass(frozen=True)
class HeatMap:
    """Lines of coloured figures below each other, one column for each of several runs.

    Attributes
    ----------
    heads : tuple of tuple of str
        For each column the lines above it.
    lines : tuple of HeatLine
        From top to bottom.
    scale : str
        What the colours mean.
    """

    heads: tuple[tuple[str, ...], ...]
    lines: tuple[HeatLine, ...]
    scale: str


@dataclass(frozen=True)
class Picture:
    """A drawing.

    Attributes
    ----------
    title : str
        What is shown.
    facts : sequence of str
        Lines below the title.
    shown : Bars, Points, Charts, Timelines, Cells or HeatMap
        The drawing itself.
    remarks : sequence of str
        Stand at the bottom.
    """

    title: str
    facts: Sequence[str]
    shown: Bars | Points | Charts | Timelines | Cells | HeatMap
    remarks: Sequence[str] = ()
