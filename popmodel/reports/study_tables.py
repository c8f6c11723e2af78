"""A study: what to take and how sure that is, all splits, its runs, its check, its commands."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.reports import split_tables
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    Further,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    Title,
    heads,
    notes,
    texts,
)
from popmodel.reports.heading import application, omitted
from popmodel.reports.uncertainty import about, main_inputs, measuring, named
from popmodel.reports.views import Document, Record, Views

Told = Mapping[str, Any]

NOTES = 3
"""Notes of the signature that a screen shows."""
MORE_RUNS = "more runs would narrow it: --runs, --set or a larger --budget"
_RUN_HEADS = ("runs", "runtime s", "spread", "waited", "role")


def blocks(document: Document) -> list[Section]:
    """Doubts, what to take, all splits, what to measure next; whole, also what they rest on."""
    told = document["study"]
    first, *splits = split_tables.blocks(document)
    whole: list[Section] = [
        (*first, *further_doubts(document)),
        *splits,
        measure_next(told),
        *(narrowing(one, document) for one in told["recommended"]),
        *runs(told),
        check(told),
        commands(told),
    ]
    return [(Brief(tuple(whole), tuple(_in_brief(document))),)]


def _in_brief(document: Document) -> list[Section]:
    """The answer: a screen has no room for more."""
    told, trusted = document["study"], document["trust"]["ok"]
    doubts = _doubts(document)
    answer = [
        replace(note, text=note.text.replace(", not to be trusted yet", ""))
        for note in split_tables.answer(document)
        if isinstance(note, NoteBlock)
    ]
    checked = None if told["validation"] is None else f"check: {_checked(told)}"
    size = split_tables.cores(document)
    kept = f"{size}, {plural(len(told['runs']), 'run')} in {told['folder']}"
    last: Section = measure_next(told)
    if trusted:
        by_split = {(one["processes"], one["threads"]): one for one in document["candidates"]}
        choice = document["choices"][-1]
        launch = choice["launch"], choice["launch_mpirun"]
        last = (CommandBlock((launch[by_split[tuple(choice["take"])]["nodes"] == 1],)),)
    above = [block.text for block in (*doubts, *answer) if isinstance(block, NoteBlock)]
    commands = [text for block in last if isinstance(block, CommandBlock) for text in block.texts]
    # title, heads of the table and its remarks, other heads, footer and empty lines take the rest
    room = _SCREEN - height(above) - height(commands, 66) - 11
    return [
        doubts,
        (
            Title(application(document, brief=True), (kept, size)),
            *answer,
            *([] if checked is None else [NoteBlock(checked, Role.DOUBT)]),
        ),
        (split_tables.split_table(document, brief=True, most=max(room, _LEAST_ROWS)),),
        last,
    ]


_SCREEN = 25  # lines
_LEAST_ROWS = 3
_MOST_OF_DOUBTS = 5  # lines on a screen


def height(lines: Sequence[str], width: int = 76) -> int:
    """Lines that texts take on a screen, about."""
    return sum(len(wrap(line, width, break_on_hyphens=False)) for line in lines)


def _doubts(document: Document) -> Section:
    """Why the answer is not to be trusted yet, and what is not modelled."""
    every = [] if document["trust"]["ok"] else list(document["learnt"]["doubts"])
    shown: list[str] = []
    for number, doubt in enumerate(every):
        text = doubt if shown else f"not to be trusted yet: {doubt}"
        if shown and height([*shown, text]) >= _MOST_OF_DOUBTS:
            shown[-1] += f" (and {plural(len(every) - number, 'more doubt')})"
            break
        shown.append(text)
    return (
        *notes(shown[:1], Role.WARNING),
        *notes(shown[1:], Role.BULLET),
        *omitted(document),
    )


def measure_next(told: Told) -> Section:
    """What to run next where the answer is not to be trusted yet."""
    wanted = told.get("next")
    if wanted is None:
        return ()
    if wanted["command"] is None:
        return (NoteBlock(f"next: {wanted['why']}"),)
    return (NoteBlock(f"next: {wanted['why']}:"), CommandBlock((wanted["command"],), depth=1))


def _checked(told: Told) -> str:
    """How the prediction of the configuration that was left out was, in a line."""
    one = told["validation"]
    time, run = one["runtime"], _name({**one, "settings": one["parameters"]})
    inside = ""
    if time["low"] is not None:
        is_inside = time["low"] <= time["mean"] <= time["high"]
        inside = f", {'inside' if is_inside else 'outside'} the interval"
    return f"{run}, predicted from the others: {100 * time['error']:+.1f} %{inside}"


def further_doubts(document: Document) -> Section:
    """Why the answer is not to be trusted yet, beside the heaviest reason."""
    learnt = document.get("learnt") or {"doubts": []}
    return notes(learnt["doubts"][1 : 1 + NOTES], Role.BULLET)


def narrowing(one: Told, document: Document) -> Section:
    """What would narrow the interval of the recommended split."""
    shares = one["doubtful"]
    if not shares:
        return ()
    first, measured = main_inputs(shares)
    source = one["sources"].get(first)
    facts = [(f"to narrow {one['processes']} x {one['threads']}", named(first, shares[first]))]
    if source is not None:
        facts.append(("", f"it comes from {source}; {MORE_RUNS}"))
    if measured is not None:
        text = f"largest that a benchmark measures: {named(measured, shares[measured])}"
        facts.append(("", text))
    return (
        Facts(tuple(facts)),
        *notes(about(first), Role.REMARK),
        *measuring(one["measure"], document["machine"]),
    )


def runs(told: Told) -> list[Section]:
    """What was run, and what the signature and the machine are."""
    facts = [("directory", str(told["folder"])), ("signature", _signature(told))]
    facts.append(("machine", told["machine"]["path"]))
    if told["machine"]["assumed"]:
        facts.append(("assumed", told["machine"]["assumed"]))
    if told["load"] is not None:
        used = told["load"]["foreign"] + told["load"]["stolen"]
        text = f"others used {used:.1f} of {plural(told['load']['cpus'], 'CPU')} before the runs"
        facts.append(("load", text))
    reasons: dict[str, list[str]] = {}
    for one in told["not_run"]:
        reasons.setdefault(one["why"], []).append(one["name"])
    for number, (why, names) in enumerate(reasons.items()):
        facts.append(("" if number else "not run", f"{', '.join(names)}: {why}"))
    by_name: dict[str, list[Told]] = {}
    for run in told["runs"]:
        by_name.setdefault(_name(run), []).append(run)
    rows = [TableRow(name, texts(_figures(repeats))) for name, repeats in by_name.items()]
    title = Title(f"study of {told['program']}", (plural(len(told["runs"]), "run"),))
    return [
        (title, Facts(tuple(facts))),
        (TableBlock(heads(_RUN_HEADS), tuple(rows), first="P x T"), *_disturbed(told)),
        _notes(told["signature"]),
    ]


def _figures(repeats: Sequence[Told]) -> tuple[str, ...]:
    """What is told of the repeats of a configuration; those that count are the undisturbed ones."""
    quiet = [run for run in repeats if not run["disturbed"]]
    mark = "" if quiet else "!"
    times = [run["runtime"] for run in quiet or repeats]
    spread = f"{100 * (max(times) / min(times) - 1):.0f} %" if len(times) > 1 else ""
    count = (
        f"{len(quiet)} of {len(repeats)}" if 0 < len(quiet) < len(repeats) else f"{len(repeats)}"
    )
    waited = statistics.fmean(run["waited"] for run in quiet or repeats)
    mean = statistics.geometric_mean(times)
    return count, f"{mean:.4g}{mark}", spread, f"{100 * waited:.0f} %", repeats[0]["role"]


def _disturbed(told: Told) -> Section:
    """What the marks of runs mean that did not have the machine for themselves."""
    if not any(run["disturbed"] for run in told["runs"]):
        return ()
    return (
        NoteBlock(
            "threads waited for CPUs more than 10 % of the time that they were ready to run: such "
            "runs are left out where others of their kind had the machine for themselves, else "
            "marked (!): their times are too long; run the study again on a quiet machine "
            "(--force --wait 10min)",
            Role.WARNING,
        ),
    )


def _notes(signature: Told) -> Section:
    """The first notes of the signature; its file has them all."""
    all_notes = signature["notes"]
    if not all_notes:
        return ()
    more = len(all_notes) - NOTES
    rest = [f"and {plural(more, 'more note')} in {signature['path']}"] if more > 0 else []
    return (
        Heading("what the traces leave open"),
        *notes(all_notes[:NOTES], Role.BULLET),
        *notes(rest, Role.REMARK),
    )


def _signature(told: Told) -> str:
    path, given = told["signature"]["path"], told["signature"]["given"]
    return f"{path} (given: {given})" if given is not None else f"{path} (found in the traces)"


def _name(run: Told) -> str:
    values = [f"{name}={value:g}" for name, value in run["settings"].items()]
    return " ".join([f"{run['processes']} x {run['threads']}", *values])


def check(told: Told) -> Section:
    """The prediction of the configuration that was left out."""
    one = told["validation"]
    if one is None:
        return ()
    time = one["runtime"]
    run = _name({**one, "settings": one["parameters"]})
    inside = ""
    if time["low"] is not None:
        is_inside = time["low"] <= time["mean"] <= time["high"]
        inside = f", {'inside' if is_inside else 'outside'} the interval"
    then = "" if told["signature"]["given"] is not None else ", then learnt from"
    return (
        Heading(f"check: {run} was left out, predicted from the others{then}"),
        Facts(
            (
                ("predicted", _interval({**time, "value": time["predicted"]})),
                ("measured", format_time(time["mean"])),
                ("error", f"{100 * time['error']:+.1f} %{inside}"),
            )
        ),
        *notes(one["verdict"][1:], Role.REMARK),
    )


def _interval(time: Told) -> str:
    text = format_time(time["value"])
    if time["low"] is None or time["high"] is None:
        return text
    low, high = (format_time(time[end], digits=3) for end in ("low", "high"))
    return f"{text} (90 %: {low} .. {high})"


def commands(told: Told) -> Section:
    """What does each step by itself."""
    steps: Sequence[Mapping[str, str]] = told["commands"]
    return (
        Heading("to repeat a step"),
        *(CommandBlock((one["command"],), one["step"]) for one in steps),
    )


def records(document: Document) -> list[Record]:
    """One line per split, as of a sweep."""
    return split_tables.records(document)


VIEWS = Views(blocks, records, split_tables.VIEWS.picture)


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
            Further(
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


def plan_records(document: Document) -> list[Record]:
    """One line per run."""
    return [
        {
            "run": run["name"],
            "processes": run["processes"],
            "threads": run["threads"],
            **{f"parameter_{name}": value for name, value in run["settings"].items()},
            "role": run["role"],
            "run_command": run["command"],
        }
        for run in document["runs"]
    ]


PLAN = Views(plan_blocks, plan_records)
