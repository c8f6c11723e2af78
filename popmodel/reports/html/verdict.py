"""The verdict: what to doubt, how the runs did, what they cost, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.verdict import verdict
from popmodel.reports import palette
from popmodel.reports.blocks import NoteBlock, Role, flat
from popmodel.reports.figures import percent
from popmodel.reports.html.columns import PageColumn, columns
from popmodel.reports.html.contents import Contents, verb_of
from popmodel.reports.html.section import Section
from popmodel.reports.joint import joint_caveats, joint_warnings
from popmodel.reports.names import run_names
from popmodel.reports.registry import views_of
from popmodel.reports.views import Document
from popmodel.reports.warnings import warning_text
from popmodel.simulator.program import unmodelled_calls

_NOT_MEASURED = "preset, not measured"


def section(contents: Contents) -> Section | None:
    """What a reader in a hurry has to know."""
    runs = columns(contents)
    found = verdict(contents.of("metrics"), _sensitivities(contents))
    statements = [*found.doubts, *found.statements, *_answers(contents)]
    if not statements:
        return None
    context = {
        "lead": statements[0],
        "more": statements[1:],
        "runs": [_figures(run) for run in runs],
        "steps": [*found.causes, *found.steps],
        "doubts": list(_doubts(contents)),
        "warnings": list(_warnings(contents)),
        "left_out": contents.document.get("left_out", ()),
    }
    return Section("verdict", "Verdict", context)


def _sensitivities(contents: Contents) -> Sequence[Document]:
    """What the runtime of the run that is advised on depends on, or else of all."""
    known = contents.sensitivities
    advised = {c["trace"] for one in contents.of("metrics") for c in one["advice"]["causes"]}
    return [one for one in known if one["trace"] in advised] or known


def _answers(contents: Contents) -> Iterator[str]:
    """What the screens of other results answer first."""
    for document in contents.documents:
        if verb_of(document) != "metrics" and "sensitivity" not in document:
            for block in flat(views_of(document).blocks(document), brief=True):
                if isinstance(block, NoteBlock) and block.role is Role.VERDICT:
                    yield block.text


def _figures(run: PageColumn) -> dict[str, Any]:
    """What a run cost and lost, for the table."""
    efficiency, family = run.efficiency, run.family
    lowest = run.lowest.get(family, "")
    share = None if efficiency is None else max(0.0, 1 - efficiency.value)
    return {
        "name": run.name,
        "kind": run.kind,
        "split": run.split,
        "runtime": run.runtime.value,
        "core_time": run.runtime.value * run.threads,
        "efficiency": None if efficiency is None else percent(efficiency.value),
        "heat": None if efficiency is None else palette.level(efficiency.value),
        "lost": None if share is None else share * run.runtime.value * run.threads,
        "lowest": load_families()[family].metrics[lowest].name if lowest else "",
        "lowest_value": f"{percent(run.metrics[family][lowest].value)} %" if lowest else "",
    }


def _doubts(contents: Contents) -> Iterator[str]:
    """What limits the numbers."""
    for one in contents.of("metrics"):
        runs = one["runs"]
        yield from joint_caveats(runs, run_names([run["trace"] for run in runs]))
        yield from one["scaling"]["notes"]
    for one in contents.documents:
        known = one.get("application")
        if isinstance(known, dict):
            for text in unmodelled_calls(known.get("not_modelled", "")):
                yield f"{verb_of(one)}: {text}"
    for one in contents.documents:
        known = one.get("machine")
        if isinstance(known, dict) and known.get("preset"):
            yield f"{verb_of(one)}: the machine {known['name']} is a {_NOT_MEASURED}"


def _warnings(contents: Contents) -> Iterator[str]:
    for one in contents.of("metrics"):
        runs = one["runs"]
        names = run_names([run["trace"] for run in runs])
        yield from map(warning_text, joint_warnings(runs, names))
    for one in contents.of("validate"):
        yield from one["warnings"]
