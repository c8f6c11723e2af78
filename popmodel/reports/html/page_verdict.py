"""The verdict: what to doubt, how the runs did, what they cost, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from popmodel.base.units import plural
from popmodel.efficiency.verdict import verdict
from popmodel.reports.blocks import NoteBlock, Role, flat
from popmodel.reports.figures import run_names
from popmodel.reports.html.contents import Contents, verb_of
from popmodel.reports.html.section import Section
from popmodel.reports.notes import joint_caveats, joint_warnings, warning_text
from popmodel.reports.registry import views_of
from popmodel.reports.views import Document
from popmodel.simulator.program import unmodelled_calls

_NOT_MEASURED = "preset, not measured"


def section(contents: Contents) -> Section | None:
    """What a reader in a hurry has to know."""
    found = verdict(contents.of("metrics"), _sensitivities(contents))
    statements = list(dict.fromkeys([*found.doubts, *found.statements, *_answers(contents)]))
    if not statements:
        return None
    steps = [*found.causes, *found.steps]
    doubts, warnings = list(_doubts(contents)), list(_warnings(contents))
    left_out = contents.document.get("left_out", ())
    hidden = len(statements[2:]) + len(steps[1:])
    behind = [
        plural(hidden, "more sentence") if hidden else "",
        plural(len(doubts), "limit") if doubts else "",
        plural(len(warnings) + len(left_out), "warning") if warnings or left_out else "",
    ]
    context = {
        "lead": statements[0],
        "more": statements[1:],
        "steps": steps,
        "doubts": doubts,
        "warnings": warnings,
        "left_out": left_out,
        "behind": ", ".join(filter(None, behind)),
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
