"""Splits of cores into processes and threads: the table, the recommendation, how to launch it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from popmodel.base.units import count, format_size, plural
from popmodel.prediction.prediction import EXTRAPOLATED, OUTSIDE
from popmodel.prediction.split_choice import SURE, WITHIN
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    CommandBlock,
    Facts,
    FitBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    heads,
    narrowed,
    notes,
    row,
)
from popmodel.reports.figures import percent
from popmodel.reports.prediction_words import (
    BOUND,
    INCLUDED,
    Entry,
    application,
    assumed,
    calibrated,
    doubted,
    learnt_runs,
    machine,
    main_inputs,
    measuring,
    named,
    omitted,
    ordered,
    runs,
    split_cores,
    split_name,
)
from popmodel.reports.views import Document, Views

_MARKS = {EXTRAPOLATED: "~", OUTSIDE: "!"}
COLUMNS = ("runtime s", "90 %", "PE %", "best", "mem/proc")
_LEAST_NEEDED = ("mem/proc", "90 %", "best")  # columns that a narrow screen does without, in order


def blocks(document: Document) -> list[Section]:
    """What to take, all splits, and how to launch it."""
    title = Title(application(document), (cores(document),))
    short = Title(application(document, brief=True), title.rights)
    about = Facts(facts(document))
    whole = [(split_table(document),), *further(document)]
    return [
        (
            *doubted(document),
            *omitted(document),
            *assumed(document.get("assumptions", ())),
        ),
        (Brief(((title, about),), ((short, about),)), *answer(document)),
        (Brief(tuple(whole), tuple(_in_brief(document))),),
    ]


def further(document: Document) -> list[Section]:
    """What the recommendation rests on, and how to launch each choice."""
    return [
        learnt_runs(document),
        *(
            (
                Facts(tuple(advice(choice, document))),
                *measuring((choice["doubt"] or {}).get("command"), document["machine"]),
            )
            for choice in document["choices"]
        ),
        *((NoteBlock(growth(one)),) for one in document["growth"]),
        *(
            (
                CommandBlock(
                    (choice["launch"], choice["launch_mpirun"]), _of_cores(choice, document)
                ),
            )
            for choice in document["choices"]
        ),
    ]


def answer(document: Document) -> Section:
    """What to take, and what is as good."""
    choices = document["choices"]
    if len(choices) > 1:
        counts = ", ".join(count(one["cores"]) for one in choices)
        taken = ", ".join(split_name(one["take"]) for one in choices)
        return (NoteBlock(f"best of {counts} cores: {taken}", Role.VERDICT),)
    (name, text), *others = lead(choices[0], document)
    best = "fastest" if name == "fastest" else "best"
    return (
        NoteBlock(f"{best} of {plural(choices[0]['cores'], 'core')}: {text}", Role.VERDICT),
        *notes(
            (
                f"{name} (within {100 * WITHIN:g} %): {words.partition(':')[0]}"
                for name, words in others
            ),
            Role.DOUBT,
        ),
    )


def _in_brief(document: Document) -> list[Section]:
    """The table, what decides, whether more cores are worth it, and how to launch the last."""
    choices, last = document["choices"], document["choices"][-1]
    decides = [text for name, text in advice(last, document) if name == "uncertainty"]
    return [
        (split_table(document, brief=True),),
        (Facts((("uncertainty", decides[0]),)),) if decides and len(choices) == 1 else (),
        notes(growth(one) for one in document["growth"][-1:]),
        (short_launch(document),),
    ]


def short_launch(document: Document) -> CommandBlock:
    """How to launch the last choice, in the way that suits its nodes."""
    last = document["choices"][-1]
    by_split = {(one["processes"], one["threads"]): one for one in document["candidates"]}
    one_node = by_split[tuple(last["take"])]["nodes"] == 1
    launch = last["launch_mpirun" if one_node else "launch"]
    return CommandBlock((launch,), _of_cores(last, document))


def _of_cores(choice: Entry, document: Document) -> str:
    """What a command is for, where there are several."""
    return plural(choice["cores"], "core") if len(document["choices"]) > 1 else ""


def facts(document: Document) -> tuple[tuple[str, str], ...]:
    """The machine, what was changed of it, and what the largest number of cores is."""
    per_node = plural(document["machine"]["cores_per_node"], "core")
    about = f"{machine(document)}, {per_node} per node{BOUND[document['bind']]}"
    found = [*calibrated(document), ("machine", about)]
    if document["what_if"]:
        changes = (f"{name} {factor:g}x" for name, factor in document["what_if"].items())
        found.append(("what if", ", ".join(changes)))
    found += [("largest", largest(document))] if document["largest"] else []
    return tuple(found)


def cores(document: Document) -> str:
    """The numbers of cores in words: ``16, 64 cores``."""
    counts = [str(choice["cores"]) for choice in document["choices"]]
    return f"{', '.join(counts)} {'core' if counts == ['1'] else 'cores'}"


# -- the table


_ROWS = 9  # of a table on a screen


def split_table(document: Document, *, brief: bool = False, most: int = _ROWS) -> FitBlock:
    """A line for each split; refused ones say why in place of figures; and what is left out."""
    every = ordered(document)
    digits = [max(len(str(one[key])) for one in every) for key in ("processes", "threads")]
    several = len(document["choices"]) + len(document["impossible"]) > 1
    shown = _shown(document, most) if brief else every
    rows: list[TableRow] = []
    for number, group in groupby(shown, split_cores):
        if several and not brief:
            rows.append(TableRow(plural(number, "core")))
        for first, last in runs(list(group)):
            mark = "*" if _is_taken(first, document) else " "
            label = f"{mark} {first['processes']:>{digits[0]}} x {first['threads']:<{digits[1]}}"
            if "why" not in first:
                sign = _MARKS.get(first["validity"]["status"], "")
                sign += "^" if first["regret"] is None else ""
                rows.append(row(label + sign, *_cells(first, document, brief=brief)))
                continue
            if last is not first:
                label = f"{label.rstrip()} .. {split_name(last)}"
            rows.append(TableRow(label, instead=f"not possible: {first['why']}"))
    more = []
    if left := len(document["candidates"]) - sum("why" not in one for one in shown):
        more.append(f"and {plural(left, 'other split')}, none of them recommended")
    if refused := len(document["refused"]) - sum("why" in one for one in shown):
        are = "is" if refused == 1 else "are"
        more.append(f"and {plural(refused, 'split')} that {are} not possible")
    columns = [*_columns(document), *([] if brief else [""])]
    least_needed = [name for name in _LEAST_NEEDED if name in columns]
    return narrowed(
        TableBlock(heads(columns), tuple(rows), first="  P x T"),
        *(least_needed[:number] for number in range(1, len(least_needed) + 1)),
        remarks=[*more, *_remarks(document, brief=brief)],
    )


def _columns(document: Document) -> tuple[str, ...]:
    known = any(one["memory_per_process"] for one in document["candidates"])
    return COLUMNS if known else COLUMNS[:-1]


def _shown(document: Document, most: int) -> list[Entry]:
    """What a screen shows: of several numbers of cores what to take, else the best splits."""
    every = ordered(document)
    if len(document["choices"]) > 1:
        taken = [one for one in every if _is_taken(one, document)]
        return taken[-most:]
    if sum(1 for _ in runs(every)) <= most:
        return every

    def lost(one: Entry) -> tuple[bool, float]:
        return one["regret"] is None, one["regret"] or one["runtime"]["value"]

    best = sorted((one for one in every if "why" not in one), key=lost)[:most]
    return [one for one in every if one in best]


def _remarks(document: Document, *, brief: bool) -> list[str]:
    """What the column of probabilities, the intervals and the marks mean."""
    texts = []
    sure = any(if_sure(one, "probability_best", document) for one in document["candidates"])
    if sure or (not brief and any(one["runtime"]["low"] for one in document["candidates"])):
        best = "best: probability of being the fastest"
        texts.append(best if brief else f"{best}; {INCLUDED}")
    reasons = {
        tuple(one["split"]): one["why"]
        for choice in document["choices"]
        for one in choice["checked"]["not_replayed"]
    }
    alone = [one for one in document["candidates"] if one["regret"] is None]
    if alone:
        why = reasons[alone[0]["processes"], alone[0]["threads"]]
        texts.append(f"^ closed form, not compared with replays: {why}")
    return [*texts, *_beyond(document)]


def _beyond(document: Document) -> list[str]:
    """The splits that go farthest beyond what was measured."""
    words = {
        EXTRAPOLATED: "extrapolated",
        OUTSIDE: "too far outside the measured range for an interval",
    }
    reasons: dict[str, list[str]] = {}
    for status, mark in _MARKS.items():
        there = [one["validity"] for one in document["candidates"]]
        there = [one for one in there if one["status"] == status]
        if there:
            farthest = max(there, key=lambda one: float(one["factor"]))
            reasons.setdefault(farthest["reasons"][0], []).append(f"{mark} {words[status]}")
    return [f"{', '.join(marks)}: {why}" for why, marks in reasons.items()]


def _is_taken(one: Entry, document: Document) -> bool:
    return [one["processes"], one["threads"]] in [c["take"] for c in document["choices"]]


def _cells(one: Entry, document: Document, *, brief: bool) -> Iterator[TableCell | BarBlock]:
    """The figures of a split; the fastest of its cores is the 100 % of the runtime's colours."""
    runtime, efficiency, memory = (
        one[name] for name in ("runtime", "parallel_efficiency", "memory_per_process")
    )
    rivals = (other for other in document["candidates"] if other["cores"] == one["cores"])
    fastest = min(other["runtime"]["value"] for other in rivals)
    low, high = runtime["low"], runtime["high"]
    yield TableCell(_figure(runtime["value"], 4), fastest / runtime["value"])
    yield TableCell("-" if low is None else f"{_figure(low, 3)}..{_figure(high, 3)}")
    yield TableCell(percent(efficiency["value"]), efficiency["value"])
    yield TableCell(percentage(if_sure(one, "probability_best", document)))
    if COLUMNS[-1] in _columns(document):
        yield TableCell("-" if memory is None else format_size(memory, digits=3))
    if not brief:  # as a part of the longest one
        times = [other["runtime"] for other in document["candidates"]]
        longest = max(time["high"] or time["value"] for time in times)
        ends = (runtime[end] and runtime[end] / longest for end in ("low", "high"))
        yield BarBlock(runtime["value"] / longest, *ends)


def _figure(number: float, digits: int) -> str:
    """A number with so many digits, zeros at its end included."""
    return f"{number:#.{digits}g}".removesuffix(".")


VIEWS = Views(
    blocks,
    ("candidates[]", "refused[]"),
    ("application.name", "machine.name"),
    "split_runtimes",
)


_LEAST_POINTS = 0.05  # of efficiency: what is less rounds to nothing

_EQUAL = f"equally good (within {100 * WITHIN:g} %)"


def percentage(fraction: float | None) -> str:
    """A probability in whole per cent; ``-`` for none."""
    return "-" if fraction is None else f"{100 * fraction:.0f} %"


def advice(choice: Entry, document: Document) -> list[tuple[str, str]]:
    """The recommendation for one number of cores, as names and values.

    Lines without a name belong to the one above.
    """
    by_split = {(one["processes"], one["threads"]): one for one in document["candidates"]}
    lines = lead(choice, document)
    heading = "defaults"
    for default in choice["defaults"]:
        text = _default(default, choice, by_split)
        same = text.replace("recommended", "the same") if _is_doubted(document) else text
        lines.append((heading, same))
        heading = ""
    lines.append(("replay", _replayed(choice["checked"])))
    matters = choice["doubt"] is not None or not choice["indifferent"]
    if is_sure(choice, document) and matters and len(_compared(choice, document)) > 1:
        lines.append(("uncertainty", _uncertainty(choice, by_split[tuple(choice["take"])])))
    return lines


def lead(choice: Entry, document: Document) -> list[tuple[str, str]]:
    """What to take for one number of cores, and what is as good."""
    several = len(document["choices"]) > 1
    lines = [("cores", str(choice["cores"]))] if several else []
    by_split = {(one["processes"], one["threads"]): one for one in document["candidates"]}
    taken, *others = map(split_name, choice["tied"])
    if _is_doubted(document):
        tie = f"; it may be as fast as {', '.join(others)}" if others else ""
        return [*lines, ("fastest", f"{taken}, as far as known, not to be trusted yet{tie}")]
    lines.append(("recommended", _recommended(choice, document)))
    if len(choice["tied"]) > 1 and is_sure(choice, document) and not choice["indifferent"]:
        equal = ", ".join(
            f"{split_name(pair)} ({percentage(by_split[tuple(pair)]['probability_tied'])})"
            for pair in choice["tied"]
        )
        meaning = f"probability of being within {100 * WITHIN:g} % of the best"
        lines.append(("equally good", f"{equal}: {meaning}"))
    return lines


def _is_doubted(document: Document) -> bool:
    return bool(document.get("learnt", {"doubts": ()})["doubts"])


def is_sure(choice: Entry, document: Document) -> bool:
    """Whether every split that is compared has an interval, so that probabilities mean anything."""
    compared = _compared(choice, document)
    return not any(one["validity"]["status"] == OUTSIDE for one in compared)


def if_sure(one: Entry, key: str, document: Document) -> float | None:
    """What draws say of a split, such as a probability; None if that is not sure."""
    choices = (each for each in document["choices"] if each["cores"] == one["cores"])
    found: float | None = one[key]
    return found if all(is_sure(choice, document) for choice in choices) else None


def _compared(choice: Entry, document: Document) -> list[Entry]:
    """The splits of a number of cores that are compared with each other."""
    return [
        one
        for one in document["candidates"]
        if one["cores"] == choice["cores"] and one["regret"] is not None
    ]


def _recommended(choice: Entry, document: Document) -> str:
    taken = split_name(choice["take"])
    loss = f"expected loss {percent(choice['regret'], 1)} %"
    possible = _compared(choice, document)
    if not is_sure(choice, document):
        return f"none for sure: splits are too far outside the measured range; {taken} is fastest"
    if choice["indifferent"]:
        usual = [one["name"] for one in choice["defaults"] if one["split"] == choice["take"]]
        why = usual[0] if usual else "the fewest threads"
        which = "both" if len(possible) == 2 else f"all {len(possible)}"
        if choice["doubt"] is None:
            return f"{taken}, the simplest ({why}): the split does not matter, {which} are {_EQUAL}"
        return (
            f"{taken}, the simplest ({why}): none stands out, {which} are predicted within "
            f"{100 * WITHIN:g} %; {loss}"
        )
    if len(possible) == 1:
        every = [one for one in document["candidates"] if one["cores"] == choice["cores"]]
        what = "is possible" if len(every) == 1 else "could be replayed"
        return f"{taken}, the only split that {what}"
    return f"{taken}, {loss}"


def _default(default: Entry, choice: Entry, by_split: dict[tuple[int, int], Entry]) -> str:
    name = f"{default['name']} ({split_name(default['split'])})"
    candidate = by_split.get(tuple(default["split"]))
    if candidate is None:
        return f"{name}: not possible"
    if default["split"] == choice["take"]:
        return f"{name}: recommended"
    if candidate["regret"] is None:
        return f"{name}: not compared"
    return f"{name}: {_change(default['loss'])}"


def _change(loss: Entry) -> str:
    """A relative change with its interval."""
    text = f"{100 * loss['value']:+.1f} %"
    if loss["low"] is None:
        return text
    return f"{text} ({100 * loss['low']:+.1f} .. {100 * loss['high']:+.1f})"


def _replayed(checked: Entry) -> str:
    """How many splits were replayed, and by how much the closed form is off."""
    gap = checked["largest_gap"]
    others = [one for one in checked["not_replayed"] if one["split"][0] > 1]
    if gap is None:
        if not others:
            return f"not needed: {checked['not_replayed'][0]['why']}"
        more = f"; likewise {plural(len(others) - 1, 'other split')}" if len(others) > 1 else ""
        return f"none, closed form: {split_name(others[0]['split'])}: {others[0]['why']}{more}"
    points = 100 * gap["parallel_efficiency"]
    side = "lower" if points > 0 else "higher"
    text = f"{plural(len(checked['replayed']), 'split')}; closed form " + (
        f"up to {abs(points):.1f} points of PE {side} ({split_name(gap['split'])})"
        if abs(points) >= _LEAST_POINTS
        else "agrees"
    )
    if not others:
        return text
    return f"{text}; not {', '.join(split_name(one['split']) for one in others)}: too large"


def _uncertainty(choice: Entry, taken: Entry) -> str:
    doubt = choice["doubt"]
    if doubt is None and taken["probability_best"] < SURE:
        return f"none that matters: measuring would save {percent(choice['regret'], 2)} % at most"
    if doubt is None:
        sure = percentage(taken["probability_best"])
        return f"none that matters: {split_name(choice['take'])} is the best in {sure} of the draws"
    shares, run = doubt["inputs"], f"measure a run of {split_name(doubt['measure'])} to decide"
    if not shares:
        return f"no input stands out; {run}"
    first, measured = main_inputs(shares)
    told = f"{named(first, shares[first])}; {run}"
    if measured is not None:
        told += f"; largest that a benchmark measures: {named(measured, shares[measured])}"
    return told


def largest(document: Document) -> str:
    """What the search for the largest number of cores has found."""
    found = document["largest"]
    compared = [one for one in document["candidates"] if one["regret"] is not None]
    fastest = min(compared, key=lambda one: one["runtime"]["value"])
    efficiency = fastest["parallel_efficiency"]
    low, high = efficiency["low"], efficiency["high"]
    interval = "" if low is None else f" (90 %: {percent(low)} .. {percent(high)})"
    keeps = "keeps" if found["cores"] == 1 else "keep"
    text = (
        f"{plural(found['cores'], 'core')} {keeps} a parallel efficiency of "
        f"{100 * found['parallel_efficiency']:g} %: {split_name(fastest)}, the fastest split, has "
        f"{percent(found['reached'])} %{interval}"
    )
    beyond = found["beyond"]
    if beyond["cores"] is None:
        return f"{text}; the machine has no more cores"
    return f"{text}; {count(beyond['cores'])} cores have {percent(beyond['parallel_efficiency'])} %"


def growth(one: Entry) -> str:
    """Whether more cores are worth it: how much faster, and what a run then costs."""
    fewer, more = one["cores"]
    speedup, efficiency = one["speedup"], one["efficiency"]
    interval = (
        "" if speedup["low"] is None else f" (90 %: {speedup['low']:.2f} .. {speedup['high']:.2f})"
    )
    times = f"{speedup['value']:.2f} times as fast as {count(fewer)}{interval}"
    if speedup["value"] <= 1 + WITHIN:
        return f"{count(more)} cores are {times}: not worth it, use {count(fewer)}"
    cost = 1 / efficiency - 1
    used = f"{abs(100 * cost):.0f} % {'more' if cost >= 0 else 'less'} core time per run"
    before, after = (percent(value) for value in one["parallel_efficiency"])
    return (
        f"{count(more)} cores are {times} at {percent(efficiency, 0)} % of the efficiency: {used} "
        f"(PE {before} -> {after} %)"
    )
