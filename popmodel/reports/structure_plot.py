"""A run over time as a drawing: what processes do, how long their bursts are, its iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_time, plural
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Lane, Picture, PictureAxis, PictureLanes, Timelines
from popmodel.reports.views import Document

_SPANS = {"run": "MPI_Init to MPI_Finalize", "focus": "the focus and what is around it"}
_TOLD = "Thin lines: an iteration begins. Frame: the focus of analysis."
_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_MEANINGS = {
    "computing": "computing",
    "parallel": "parallel region",
    "messages": "messages",
    "collective": "collective",
    "other": "other MPI",
}


def picture(document: Document) -> Picture:
    """What processes do and how long their bursts are, of the run and of the focus."""
    panels = [panel for line in document["timelines"] for panel in _panels(document, line)]
    iterations = document["iterations"]
    facts = [f"trace {document['trace']}, {plural(document['processes'], 'process', 'processes')}"]
    if iterations:
        number = plural(len(iterations["begins"]) - 1, "iteration")
        facts.append(
            f"{number}, median {format_time(document['period'], digits=3)}; confidence "
            f"{document['confidence']:.2f}; focus: {document['foa']['why']}"
        )
    else:
        facts.append("no iterations found")
    remarks = [_TOLD] if iterations else []
    if any(len(line["processes"]) < document["processes"] for line in document["timelines"]):
        remarks.append("Not all processes are drawn.")
    return Picture("Structure of a run", facts, Timelines(panels), remarks)


def _panels(document: Document, line: Mapping[str, Any]) -> Iterator[PictureLanes]:
    begin, end = line["begin"], line["end"]
    unit, factor = next((one for one in _TIMES if end * one[1] >= 1), _TIMES[-1])
    low, high = begin * factor, end * factor
    labelled = tuple((value, f"{value:g}") for value in ticks(low, high))
    time = PictureAxis(f"time, {unit}", low, high, labelled)
    iterations, foa = document["iterations"], document["foa"]
    marks: Sequence[float] = ()
    band = None
    if iterations:
        inside = [at * factor for at in iterations["begins"] if begin <= at <= end]
        marks = inside
        band = foa["begin"] * factor, foa["end"] * factor
    what = (
        "MPI_Init to MPI_Finalize" if line["span"] == "run" else "the focus and what is around it"
    )
    ranks = [f"rank {count(process)}" for process in line["processes"]]
    kinds = {letter: kind for letter, kind in line["activities"].items() if kind in _MEANINGS}
    there = set("".join(line["activity"]))
    yield PictureLanes(
        f"{line['span']}-activity",
        f"What processes do: {what}",
        tuple(map(Lane, ranks, line["activity"])),
        time,
        kinds,
        tuple((kind, _MEANINGS[kind]) for letter, kind in kinds.items() if letter in there),
        tuple(marks),
        band,
    )
    durations = line["durations"]
    if not durations:
        return
    texts = [format_time(each, digits=2) for each in durations]
    legend = [(f"level{level}", texts[level - 1]) for level in range(3, 9, 2) if len(texts) > 1]
    if legend:
        legend = [
            ("level1", f"up to {texts[0]}"), *legend, ("level9", f"above {texts[-1]}"),
        ]  # fmt: skip
    else:
        legend = [("level1", f"about {texts[0]}")]
    yield PictureLanes(
        f"{line['span']}-bursts",
        f"Useful duration, length of the burst that is computed: {what}",
        tuple(map(Lane, ranks, line["duration"])),
        time,
        {str(level): f"level{level}" for level in range(1, 10)},
        tuple(legend),
        tuple(marks),
        band,
    )
