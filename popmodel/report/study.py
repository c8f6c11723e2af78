"""A study: its small runs, all splits, how good the prediction is, what to take, all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.report import sweep
from popmodel.report.blocks import (
    Command,
    Facts,
    Heading,
    Note,
    Role,
    Row,
    Section,
    Table,
    Title,
    heads,
    notes,
    texts,
)
from popmodel.report.sweep_advice import is_sure
from popmodel.report.uncertainty import about, main_inputs, measuring, named
from popmodel.report.views import Document, Record, Views
from popmodel.units import format_time, plural

Told = Mapping[str, Any]

NOTES = 3
"""Notes of the signature that a screen shows."""
MORE_RUNS = "more runs would narrow it: --runs, --set or a larger --budget"
_RUN_HEADS = ("run s", "runtime s", "role")


def blocks(document: Document) -> list[Section]:
    """The runs, all splits, the check, the recommendation, and the commands of the steps."""
    told = document["study"]
    first, *splits = sweep.blocks(document)  # what is not modelled comes before the runs
    return [
        first,
        *runs(told),
        *splits,
        check(told),
        *(recommended(one, document) for one in told["recommended"]),
        commands(told),
    ]


def runs(told: Told) -> list[Section]:
    """What was run, and what the signature and the machine are."""
    facts = [("directory", str(told["folder"])), ("signature", _signature(told))]
    if told["machine"]["assumed"]:
        facts.append(("assumed", told["machine"]["assumed"]))
    for number, one in enumerate(told["not_run"]):
        facts.append(("" if number else "not run", f"{one['name']}: {one['why']}"))
    rows = [Row(_name(run), texts(_figures(run))) for run in told["runs"]]
    return [
        (
            Title(f"study of {told['program']}", (plural(len(rows), "run"),)),
            Facts(tuple(facts)),
        ),
        (Table(heads(_RUN_HEADS), tuple(rows), first="P x T"),),
        _disturbed(told),
        _notes(told["signature"]),
    ]


def _figures(run: Told) -> tuple[str, str, str]:
    mark = "!" if run["disturbed"] else ""
    return f"{run['seconds']:.4g}", f"{run['runtime']:.4g}{mark}", run["role"]


def _disturbed(told: Told) -> Section:
    """The warning for runs that did not have the machine for themselves."""
    disturbed = [run for run in told["runs"] if run["disturbed"]]
    if not disturbed:
        return ()
    waited = ", ".join(f"{100 * run['waited']:.2g} % in {_name(run)}" for run in disturbed)
    return (
        Note(
            f"threads waited for CPUs (!), of the time that they were ready to run {waited}: "
            "these times are too long, and so is what is predicted from them; run the study "
            "again on an idle machine (--force)",
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
    if given is not None:
        return f"{path} (given: {given})"
    learnt = sum(run["role"] == "learnt from" for run in told["runs"])
    return f"{path} (found in {plural(learnt, 'trace')})"


def _name(run: Told) -> str:
    values = [f"{name}={value:g}" for name, value in run["settings"].items()]
    return " ".join([f"{run['processes']} x {run['threads']}", *values])


def check(told: Told) -> Section:
    """The prediction of the run that was left out."""
    one = told["validation"]
    time = one["runtime"]
    run = _name({**one, "settings": one["parameters"]})
    inside = {None: "", 0: ", outside the interval", 1: ", inside the interval"}[time["covered"]]
    return (
        Heading(f"check: {run} was left out and predicted from the others"),
        Facts(
            (
                ("predicted", _interval(time["predicted"], time["low"], time["high"])),
                ("measured", format_time(time["mean"])),
                ("error", f"{100 * time['error']:+.1f} %{inside}"),
            )
        ),
        *notes(one["verdict"][1:], Role.REMARK),
    )


def recommended(one: Told, document: Document) -> Section:
    """What to take, its interval, and what would narrow that."""
    time = one["runtime"]
    value = _interval(time["value"], time["low"], time["high"])
    if time["low"] is None and time.get("why"):
        value = f"{value}; no interval: {time['why']}"
    split = f"{one['processes']} x {one['threads']} on {plural(one['cores'], 'core')}"
    choices = [each for each in document["choices"] if each["cores"] == one["cores"]]
    sure = all(is_sure(choice, document) for choice in choices)
    facts = (("recommended" if sure else "fastest", f"{split}: {value}"),)
    shares = one["doubtful"]
    if not shares:
        return (Facts(facts),)
    first, measured = main_inputs(shares)
    source = one["sources"].get(first)
    lines = [("to narrow it", named(first, shares[first]))]
    if source is not None:
        lines.append(("", f"it comes from {source}; {MORE_RUNS}"))
    if measured is not None:
        lines.append(
            ("", f"largest that a benchmark measures: {named(measured, shares[measured])}")
        )
    return (
        Facts((*facts, *lines)),
        *notes(about(first), Role.REMARK),
        *measuring(one["measure"], document["machine"]),
    )


def _interval(value: float, low: float | None, high: float | None) -> str:
    text = format_time(value)
    if low is None or high is None:
        return text
    return f"{text} (90 %: {format_time(low, digits=3)} .. {format_time(high, digits=3)})"


def commands(told: Told) -> Section:
    """What does each step by itself."""
    steps: Sequence[Mapping[str, str]] = told["commands"]
    return (
        Heading("to repeat a step"),
        *(Command((one["command"],), one["step"]) for one in steps),
    )


def records(document: Document) -> list[Record]:
    """One line per split, as of a sweep."""
    return sweep.records(document)


VIEWS = Views(blocks, records, sweep.VIEWS.picture)


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
    ]
    rows = [Row(_name(run), texts((run["role"],))) for run in document["runs"]]
    return [
        (
            Title(f"plan of a study of {document['program']}", (f"{cores} cores",)),
            Facts(tuple(facts)),
        ),
        (Table(heads(("role",)), tuple(rows), first="P x T"),),
        (
            Heading("each run does"),
            *(Command((run["command"],), run["name"]) for run in document["runs"]),
        ),
        (Note("threads are dropped if the first run shows no OpenMP", Role.REMARK),),
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
