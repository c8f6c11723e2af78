"""A checked launch: what is wrong with it and what that costs, where it ran, a better line."""

from __future__ import annotations

from statistics import median

from popmodel.base.units import format_time, plural
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    NoteBlock,
    Role,
    Section,
    notes,
)
from popmodel.reports.run_tables import describe_threads
from popmodel.reports.views import Document, Views
from popmodel.studies.launch_check import NOTHING

_LINES = 4  # of the placement, on a screen
_NOT_A_FAULT = ("foreign_load", "domains", "unset")  # Or its cause, which is told as well
_WAITING = ("share", "overlap", "oversubscribed", "hyperthreads", "foreign_load")
_DOUBTFUL = 0.02  # of the time of all threads
_PARTS = (
    ("parallel_efficiency", "parallel efficiency"),
    ("process_load_balance", "load balance of processes"),
    ("process_communication_efficiency", "communication"),
    ("thread_efficiency", "threads"),
)


def blocks(document: Document) -> list[Section]:
    """The verdict, the findings, the better line; then placement and efficiencies."""
    findings = document["findings"]
    return [
        notes([_verdict(document)], Role.VERDICT),
        notes([_told(finding) for finding in findings[1:]], Role.BULLET),
        _better(document),
        _placement(document),
        notes(document["notes"], Role.WARNING),
        _efficiencies(document),
    ]


def _verdict(document: Document) -> str:
    findings = document["findings"]
    if not findings:
        return "Nothing wrong with the launch."
    first = _told(findings[0])
    if not any(map(_is_fault, findings)):
        return f"Nothing wrong with the launch, but {first}."
    return f"Wrong: {first}."


def _is_fault(finding: Document) -> bool:
    """Whether another launch, or a correct program, would do better than this one."""
    costs = finding["cost"]
    return finding["id"] not in _NOT_A_FAULT and (costs is None or costs >= NOTHING)


def _told(finding: Document) -> str:
    """A finding with its cost."""
    cost, text = finding["cost"], str(finding["text"])
    hours = "" if finding["core_hours"] is None else f" ({_hours(finding['core_hours'])})"
    if cost is None or finding["id"] == "idle":
        return text + hours
    if cost < NOTHING:
        return f"{text}: costs next to nothing"
    return f"{text}: costs {100 * cost:.0f} points of efficiency{hours}"


def _hours(hours: float) -> str:
    return f"{hours:.2g} core hours" if hours >= 1e-3 else f"{3600 * hours:.2g} core seconds"


def _better(document: Document) -> Section:
    line, proved = document["better"], document["proved"]
    if line is None:
        why = document["why_none"]
        return notes([f"no better line: {why}"] if why else [])
    if proved is None:
        return (CommandBlock((line,), "better"),)
    value, low, high = (proved["speedup"][key] for key in ("value", "low", "high"))
    way = "faster"
    if value < 1:
        way, value, low, high = "slower", 1 / value, 1 / high, 1 / low
    given, better = (format_time(median(proved[which])) for which in ("given", "better"))
    said = (
        f"measured: {given} as given, {better} so: {value:.3g} times {way} (90 %: {low:.3g} .. "
        f"{high:.3g}, {plural(len(proved['given']), 'pair')} of runs)"
    )
    title = "better" if way == "faster" else "not better here"
    return (CommandBlock((line,), title), *notes([said]))


def _placement(document: Document) -> Section:
    nodes, team = document["nodes"], document["threads"]
    cores = sorted({node["cores"] for node in nodes})
    sizes = plural(cores[0], "core") if len(cores) == 1 else f"{cores[0]} to {cores[-1]} cores"
    who = plural(document["processes"], "process", "processes")
    is_uniform = isinstance(team, int)
    threads = f"x {plural(team, 'thread')}" if is_uniform else f"({describe_threads(team)})"
    head = NoteBlock(f"{who} {threads} on {plural(len(nodes), 'node')} of {sizes}")
    lines = [f"{who}: {where}" for who, where in document["placed"]]
    whole: Section = (head, *notes(lines, Role.REMARK))
    if len(lines) <= _LINES + 1:
        return whole
    shown = [*lines[:_LINES], f"{len(lines) - _LINES} more: --all"]
    return (Brief((whole,), ((head, *notes(shown, Role.REMARK)),)),)


def _efficiencies(document: Document) -> Section:
    values = document["metrics"].get("hybrid-additive", {})
    parts = [f"{name} {100 * values[id]:.1f} %" for id, name in _PARTS if id in values]
    if not parts:
        return ()
    whole = f"runtime {format_time(document['runtime'])}, {parts[0]}: {', '.join(parts[1:])}"
    remarks = []
    lost = sum(wrong["cost"] or 0 for wrong in document["findings"] if wrong["id"] in _WAITING)
    if lost > _DOUBTFUL:
        remarks.append("doubtful: threads waited for CPUs, which counts as useful or as loss")
    if document["library"]:
        remarks.append("transfer and serialisation, which are parts of communication, need a trace")
    return (NoteBlock(whole), *notes(remarks, Role.REMARK))


VIEWS = Views(
    blocks,
    ("findings[]", "metrics.FAMILY.METRIC", "placement[].threads[]"),
    ("placement[].rank", "placement[].host", "placement[].pid"),
)
