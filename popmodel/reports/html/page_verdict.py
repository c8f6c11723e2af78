"""The verdict: what to doubt, how runs did, what to do; at the end, where all comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from popmodel.base.units import format_size, plural
from popmodel.efficiency.verdict import verdict
from popmodel.reports import blocks
from popmodel.reports.blocks import (
    CommandBlock,
    Heading,
    NoteBlock,
    Role,
    TableBlock,
    TableRow,
    flat,
)
from popmodel.reports.figures import run_names
from popmodel.reports.html.contents import Contents, Section, verb_of
from popmodel.reports.notes import joint_caveats, joint_warnings, warning_text
from popmodel.reports.registry import views_of
from popmodel.reports.renderers.html import html
from popmodel.reports.views import Document, pasteable
from popmodel.simulator.program import unmodelled_calls

_NOT_MEASURED = "preset, not measured"


def verdict_section(contents: Contents) -> Section | None:
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
        if verb_of(document) == "validate":
            yield from document["verdict"][:1]
        elif verb_of(document) != "metrics" and "sensitivity" not in document:
            for block in flat(views_of(document).blocks(document), brief=True):
                if isinstance(block, NoteBlock) and block.role is Role.VERDICT:
                    yield block.text[:1].upper() + block.text[1:]


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


def provenance_section(contents: Contents) -> Section:
    """Commands, versions, hosts, times and input files of all documents."""
    shown = {"body": html(_origins(contents), heading=3)}
    return Section("provenance", "Provenance", {"shown": [shown]}, template="results")


def _origins(contents: Contents) -> Iterator[blocks.Section]:
    for number, document in enumerate(contents.documents, start=1):
        if stamp := document.get("provenance"):
            yield (
                Heading(f"{number}. {verb_of(document)}"),
                NoteBlock(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}"),
                CommandBlock((pasteable(stamp["command"]),)),
            )
            rows = tuple(
                TableRow(
                    file["path"],
                    blocks.texts([format_size(file["size"]), f"{file['head_sha256'][:16]}..."]),
                )
                for file in stamp["inputs"]
            )
            if rows:
                heads = blocks.heads(("size", "SHA-256 of its first 64 KiB"))
                yield (TableBlock(heads, rows, first="input file"),)
