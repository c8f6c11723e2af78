"""A study: what to take and how sure that is, all splits, its runs, its check, its commands."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.reports import split_tables
from popmodel.reports.blocks import (
    SCREEN,
    Brief,
    CommandBlock,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    Title,
    first_notes,
    folded,
    heads,
    lines_of,
    notes,
    texts,
    titled,
)
from popmodel.reports.prediction_words import application, omitted
from popmodel.reports.views import Document, Views

Told = Mapping[str, Any]

_RUN_HEADS = ("runs", "runtime s", "spread", "waited", "role")
_LEAST_ROWS = 3
_NOTES = 8  # of the signature; its file has all
_BUSY = (
    "threads waited for CPUs more than 10 % of the time that they were ready to run: such runs are "
    "left out where others of their kind had the machine for themselves, else marked (!)"
)


def blocks(document: Document) -> list[Section]:
    """Doubts, what to take, all splits, what to run next; whole, also what they rest on."""
    told, trusted = document["study"], document["trust"]["ok"]
    learnt = document.get("learnt", {"doubts": []})
    doubts = [] if trusted else [*learnt["doubts"]] or [document["trust"]["why"]]
    doubts[:1] = [f"not to be trusted yet: {doubt}" for doubt in doubts[:1]]
    brief = first_notes(doubts)
    answer = [
        replace(block, text=block.text.replace(", not to be trusted yet", ""))
        for block in split_tables.answer(document)
        if isinstance(block, NoteBlock)
    ]
    if told["validation"] is not None:
        answer.append(NoteBlock(f"check: {_checked(told)}", Role.DOUBT))
    size = split_tables.cores(document)
    kept = f"{size}, {plural(len(told['runs']), 'run')} in {told['folder']}"
    launch: Section = (split_tables.short_launch(document),) if trusted else ()
    to_run = _next(told)
    commands = [
        text
        for block in (*launch, *to_run)
        if isinstance(block, CommandBlock)
        for text in block.texts
    ]
    notes_above = [block for block in (*omitted(document), *answer) if isinstance(block, NoteBlock)]
    above = [*brief, *(block.text for block in notes_above)]
    # title, head of the table, its remarks, footer and empty lines take the rest
    room = SCREEN - lines_of(above, 3) - lines_of(commands, 12) - 10 - trusted
    short = split_tables.split_table(document, brief=True, most=max(room, _LEAST_ROWS))
    return [
        (
            Brief((_doubts(doubts),), (_doubts(brief),)),
            *omitted(document),
            *notes(document["assumptions"], Role.WARNING),
        ),
        (Title(application(document, brief=True), (kept, size)), *answer),
        (Brief(((split_tables.split_table(document),),), ((short,),)),),
        launch,
        to_run,
        (folded((*split_tables.further(document), *_runs(told), _commands(told))),),
    ]


def _doubts(lines: Sequence[str]) -> Section:
    """Why the answer is not to be trusted yet, the heaviest reason first."""
    return (*notes(lines[:1], Role.WARNING), *notes(lines[1:], Role.BULLET))


def _next(told: Told) -> Section:
    """What to run next."""
    wanted = told["next"]
    if wanted is None:
        return ()
    if wanted["command"] is None:
        return (NoteBlock(f"next: {wanted['why']}"),)
    return (NoteBlock(f"next: {wanted['why']}:"), CommandBlock((wanted["command"],), depth=1))


def _checked(told: Told) -> str:
    """How the prediction of the configuration that was left out was."""
    one = told["validation"]
    time, run = one["runtime"], _name({**one, "settings": one["parameters"]})
    inside = ""
    if time["low"] is not None:
        is_inside = time["low"] <= time["mean"] <= time["high"]
        inside = f", {'inside' if is_inside else 'outside'} the interval"
    return f"{run}, predicted from the others: {100 * time['error']:+.1f} %{inside}"


def _runs(told: Told) -> list[Section]:
    """What was run, what the signature and the machine are, and what the check says."""
    signature, load = told["signature"], told["load"]
    given = "found in the traces" if signature["given"] is None else f"given: {signature['given']}"
    facts = [("signature", f"{signature['path']} ({given})"), ("machine", told["machine"]["path"])]
    if told["machine"]["assumed"]:
        facts.append(("assumed", told["machine"]["assumed"]))
    if load is not None:
        used = load["foreign"] + load["stolen"]
        text = f"others used {used:.1f} of {plural(load['cpus'], 'CPU')} before the runs"
        facts.append(("load", text))
    reasons: dict[str, list[str]] = {}
    for one in told["not_run"]:
        reasons.setdefault(one["why"], []).append(one["name"])
    facts += [("not run", f"{', '.join(names)}: {why}") for why, names in reasons.items()]
    by_name: dict[str, list[Told]] = {}
    for run in told["runs"]:
        by_name.setdefault(_name(run), []).append(run)
    rows = [TableRow(name, texts(_figures(repeats))) for name, repeats in by_name.items()]
    busy = any(run["disturbed"] for run in told["runs"])
    checked, left_open = told["validation"], list(signature["notes"][:_NOTES])
    if (more := len(signature["notes"]) - _NOTES) > 0:
        left_open.append(f"and {plural(more, 'more note')} in {signature['path']}")
    return [
        (Title(f"study of {told['program']}", (str(told["folder"]),)), Facts(tuple(facts))),
        (
            TableBlock(heads(_RUN_HEADS), tuple(rows), first="P x T"),
            *notes([_BUSY] if busy else [], Role.WARNING),
        ),
        titled("what the traces leave open", left_open),
        titled("the check", checked["verdict"] if checked else ()),
    ]


def _figures(repeats: Sequence[Told]) -> tuple[str, ...]:
    """What is told of the repeats of a configuration; those that count are the undisturbed ones."""
    quiet = [run for run in repeats if not run["disturbed"]]
    times = [run["runtime"] for run in quiet or repeats]
    spread = f"{100 * (max(times) / min(times) - 1):.0f} %" if len(times) > 1 else ""
    all_count = 0 < len(quiet) < len(repeats)
    count = f"{len(quiet)} of {len(repeats)}" if all_count else f"{len(repeats)}"
    waited = statistics.fmean(run["waited"] for run in quiet or repeats)
    mean = f"{statistics.geometric_mean(times):.4g}{'' if quiet else '!'}"
    return count, mean, spread, f"{100 * waited:.0f} %", repeats[0]["role"]


def _name(run: Told) -> str:
    values = [f"{name}={value:g}" for name, value in run["settings"].items()]
    return " ".join([f"{run['processes']} x {run['threads']}", *values])


def _commands(told: Told) -> Section:
    """What does each step by itself."""
    steps = (CommandBlock((one["command"],), one["step"]) for one in told["commands"])
    return (Heading("to repeat a step"), *steps)


VIEWS = replace(split_tables.VIEWS, blocks=blocks)


# -- the plan


def plan_blocks(document: Document) -> list[Section]:
    """What would be run, and how."""
    cores = ", ".join(map(str, document["cores"]))
    facts = [
        ("directory", str(document["folder"])),
        ("runs use", f"up to {plural(document['cores_of_runs'], 'core')}"),
        ("budget", f"{format_time(document['budget'], trim=True)} for all runs"),
        ("machine", document["machine"] or "measured, about a minute"),
        ("target", _target(document)),
        ("time", "known after the first run; those that exceed the budget are left out"),
        ("repeats", "each run three times in turn, then until times stand or the budget is used"),
    ]
    for role in ("learnt from", "predicted"):
        names = [_name(run) for run in document["runs"] if run["role"] == role]
        facts += [(role, ", ".join(names))] if names else []
    if document["job"] is not None:
        facts += [("job", document["job"]), ("submit it", document["submit"])]
        facts.append(("then", "the same command goes on with its results"))
    return [
        (
            Title(f"plan of a study of {document['program']}", (f"{cores} cores",)),
            Facts(tuple(facts)),
        ),
        (NoteBlock("threads are dropped if the first run shows no OpenMP", Role.REMARK),),
        (
            folded(
                (
                    (
                        Heading("each run does"),
                        *(CommandBlock((run["command"],), run["name"]) for run in document["runs"]),
                    ),
                )
            ),
        ),
    ]


def _target(document: Document) -> str:
    machine = document["target_machine"] or "nodes like this one"
    values = [f"{name}={value:g}" for name, value in document["target"].items()]
    return ", ".join([machine, *values])


PLAN = Views(plan_blocks, ("runs[]",))
