"""What is predicted: the application on the left, how large on the right; and on which machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.reports.blocks import Brief, Role, Section, TableBlock, TableRow, heads, notes, texts
from popmodel.reports.views import Document
from popmodel.simulator.program import unmodelled_calls


def application(document: Document, *, brief: bool = False) -> str:
    """Name of the application, whether it came with popmodel, its parameters, what else was set."""
    one = document["application"]
    bundled = " (bundled)" if one["bundled"] else ""
    given = {**one["settings"], **one["imbalance"]}
    words = [f"{name}={value:g}" for name, value in given.items()]
    if brief and len(words) > _PARAMETERS:
        words[_PARAMETERS:] = ["..."]
    settings = " ".join(words)
    return f"{one['name']}{bundled}  {settings}".rstrip()


def assumed(texts: Sequence[str]) -> Section:
    """What a prediction needs and the profile lacks: on a screen the first, and how many more."""
    if not texts:
        return ()
    more = f" ({plural(len(texts) - 1, 'more assumption')}: --all)" if len(texts) > 1 else ""
    brief = notes([texts[0] + more], Role.WARNING)
    return (Brief((notes(texts, Role.WARNING),), (brief,)),)


_PARAMETERS = 4  # that a screen names


def omitted(document: Document) -> Section:
    """What of the program the signature does not contain, which comes before all else."""
    return notes(unmodelled_calls(document["application"].get("not_modelled", "")))


def doubted(document: Document) -> Section:
    """That predictions are not to be trusted yet, why, and the run that would tell most."""
    learnt = document.get("learnt")
    if learnt is None or not learnt["doubts"]:
        return ()
    first, *more = learnt["doubts"]
    run = learnt["next_run"]
    others = f" ({plural(len(more), 'other doubt')})" if more else ""
    decides = f"a run of {run['processes']} x {run['threads']} would tell most"
    return notes([f"not to be trusted yet: {first}{others}; {decides}"], Role.WARNING)


def learnt_runs(document: Document) -> Section:
    """The runs behind the signature predicted back, and from the others; repeats are one row."""
    learnt = document.get("learnt")
    if learnt is None or not learnt["runs"]:
        return ()
    repeats: dict[str, list[Mapping[str, Any]]] = {}
    for run in learnt["runs"]:
        values = "".join(f", {name}={value:g}" for name, value in run["parameters"].items())
        repeats.setdefault(f"{run['processes']} x {run['threads']}{values}", []).append(run)

    def off(runs: Sequence[Mapping[str, Any]], key: str) -> str:
        known = [1 + run[key] for run in runs if run[key] is not None]
        return f"{100 * (geometric_mean(known) - 1):+.1f}" if known else "-"

    def row(name: str, runs: Sequence[Mapping[str, Any]]) -> TableRow:
        times = [run["measured"] for run in runs if run["measured"] is not None]
        cells = (
            format_time(geometric_mean(times)) if times else "-",
            format_time(runs[0]["predicted"]),
            off(runs, "error"),
            off(runs, "left_out_error"),
        )
        return TableRow(name, texts(cells), depth=1)

    heading = heads(("measured", "predicted", "off %", "left out %"))
    rows = tuple(row(*pair) for pair in repeats.items())
    table = TableBlock(heading, rows, first="learnt runs")
    shares = ", ".join(
        f"{one['name']} {100 * one['weight']:.0f} %" for one in learnt.get("candidates", ())
    )
    return (table, *notes([f"weights: {shares}"] if shares else [], Role.REMARK))


BOUND = {"close": "", "spread": ", threads spread", "none": ", threads not bound"}
"""What headings say of the binding."""


def calibrated(document: Document) -> tuple[tuple[str, str], ...]:
    """By what runs the signature was calibrated, as a fact with its name; nothing if it was not."""
    known = document["application"]["calibration"]
    if known is None:
        return ()
    text = f"by {plural(known['runs'], 'run')} on {known['machine']}"
    if not known["same_machine"]:
        text += "; on this machine only what they tell of the program holds"
    if known["changed"]:
        names = ", ".join(known["changed"])
        text += f"; changed by hand since, what they told of it is forgotten: {names}"
    return (("calibrated", text),)


def machine(document: Document) -> str:
    """Name of the machine, and how far its values were measured."""
    one = document["machine"]
    origin = "preset, not measured" if one["preset"] else one["origin"]
    noisy = f"; noisy: {', '.join(one['noisy'])}" if one["noisy"] else ""
    return f"{one['name']} ({origin}{noisy})"
