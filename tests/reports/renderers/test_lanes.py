"""Lanes over time, as SVG."""

from __future__ import annotations

import re
from itertools import pairwise

from popmodel.reports.pictures import Lane, PictureAxis, PictureLanes, Timelines
from popmodel.reports.renderers.lanes import arranged

TIME = PictureAxis("time, s", 0.0, 4.0, ((0.0, "0"), (2.0, "2")))


def drawn(lanes: PictureLanes) -> str:
    _, draw = arranged(Timelines((lanes,)))
    return "\n".join(draw(0.0)[0])


def panel(
    *letters: str,
    marks: tuple[float, ...] = (),
    band: tuple[float, float] | None = None,
) -> PictureLanes:
    found = tuple(Lane(f"rank {number}", text) for number, text in enumerate(letters))
    colours = {"c": "computing", "p": "messages"}
    legend = (("computing", "computing"), ("messages", "messages"))
    return PictureLanes("run", "What processes do", found, TIME, colours, legend, marks, band)


def path(text: str, kind: str) -> str:
    """The path of a kind of lanes, the last of that kind: those before are the legend's."""
    return re.findall(rf'<path class="lane {kind}" [^>]*d="([^"]*)"', text)[-1]


def test_equal_letters_are_one_stretch() -> None:
    text = drawn(panel("ccpp", "pppp"))
    assert path(text, "computing").count("M") == 1
    assert path(text, "messages").count("M") == 2
    assert "h760.0" in path(text, "messages")


def test_letters_without_a_colour_are_not_drawn() -> None:
    text = drawn(panel("....", "cc.."))
    assert path(text, "computing").count("M") == 1
    assert "h380.0" in path(text, "computing")


def test_marks_that_would_cover_the_lanes_are_thinned() -> None:
    few = drawn(panel("cccc", marks=(0.0, 1.0, 2.0, 3.0)))
    many = drawn(panel("cccc", marks=tuple(i / 1000 for i in range(4001))))
    numbers = [
        re.findall(r'class="iteration" d="([^"]*)"', text)[0].count("M") for text in (few, many)
    ]
    assert numbers[0] == 4
    assert 50 < numbers[1] <= 760 / 6 + 1


def test_what_stands_out_has_a_frame() -> None:
    text = drawn(panel("cccc", band=(1.0, 3.0)))
    frame = re.search(r'<rect class="focus" x="([\d.]+)" [^>]*width="([\d.]+)"', text)
    assert frame is not None
    assert float(frame[2]) == 382.0


def test_labels_of_thin_lanes_do_not_overlap() -> None:
    text = drawn(panel(*["cccc"] * 64))
    labels = [float(y) for y in re.findall(r'y="([\d.]+)" class="end">rank', text)]
    assert min(b - a for a, b in pairwise(labels)) > 11
