"""What a run is and does: all of it on a screen, and each part whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from popmodel.base import shell
from popmodel.base.errors import UsageError
from popmodel.base.units import count, format_size, format_time, percent_if_any, plural
from popmodel.reports.blocks import (
    Brief,
    Facts,
    Listing,
    MarksBlock,
    NoteBlock,
    Role,
    Section,
    Strip,
    Strips,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    first_notes,
    fitted,
    folded,
    heads,
    notes,
    texts,
    titled,
    told_title,
)
from popmodel.reports.message_tables import (
    alike,
    communication_blocks,
    message_sum,
)
from popmodel.reports.notes import warned
from popmodel.reports.phase_tables import (
    Phase,
    left_out,
    longest_first,
    phase_blocks,
    phase_label,
    phase_verdict,
)
from popmodel.reports.views import Document, Views
from popmodel.structure.structure import ASKED, LIKELY, certainty

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = ("info", "structure", "phases", "communication")
_MOST_CALLS = 12
_NAMED = 4
"""Names in a line."""
_PATTERNS, _PHASES, _WARNINGS = 2, 6, 3
_CALLS, _FEW_CALLS = 8, 3
"""Different calls of a leaf that are named in a file and on a screen."""
_LINES = 40
"""Lines of the loop nest in a file."""
_SMALL = 5e-3
"""Share of the time of a part of the nest that is not told by itself."""
_APART = 40
"""Marks of iterations that a line has room for."""

_PREFIX = r"^MPI_|\w+::(?=\w)"

Node = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """One part, or what matters of all parts with everything else behind it."""
    trace = document["trace"]
    made = [(name, _BLOCKS[name](trace, document[name])) for name in PARTS if document.get(name)]
    if "absent" not in document:  # a part was asked for
        return made[0][1]
    whole = tuple(section for _, part in made for section in part)
    return [*_overview(document), (folded(whole),)]


def picture(document: Document) -> Figure:
    """The matrix of messages."""
    from popmodel.reports.pictures import communication_matrix

    if not document.get("communication"):
        why = document.get("absent", {}).get("communication", "only communication is drawn")
        raise UsageError(f"no matrix of messages: {why}", "try --show communication -o matrix.svg")
    return communication_matrix(document["communication"])


# All parts on a screen.


def _overview(document: Document) -> list[Section]:
    known = [document[name] for name in PARTS if document[name]]
    told = list(dict.fromkeys(note for part in known for note in part["caveats"]))
    info, phases = document["info"], document["phases"]
    doubts = [note for note in told if not note.startswith("analysed ")]
    warnings = [one for one in info["warnings"] if not any(one["text"] in note for note in told)]
    if warnings:
        doubts.append(f"{plural(len(warnings), 'warning')} about the trace: {warnings[0]['text']}")
    brief = first_notes(doubts)
    facts = [*_iteration_facts(document), *_call_facts(document), *_message_facts(document)]
    verdict = [phase_verdict(phases)] if phases else []
    found = longest_first(phases) if phases else []
    title = _run_title(document)
    return fitted(
        lambda rows: [
            (Brief(((title, *notes(told)),), ((title, *notes(brief)),)),),
            (Facts(tuple(facts)),),
            _longest_phases(document, found, rows),
            notes(verdict, Role.VERDICT),
        ],
        _PHASES,
    )


def _run_title(document: Document) -> Title:
    info = document["info"]
    processes = plural(info["processes"], "process", "processes")
    least, most = min(_threads(info)), max(_threads(info))
    threads = plural(most, "thread") if least == most else f"{least} to {most} threads"
    team = "" if most == 1 else f" x {threads}"
    nodes = f" on {plural(info['nodes'], 'node')}" if info["nodes"] else ""
    time = _runtime(info)[1] if info["timed"] else "no times"
    forms = (f"{processes}{team}{nodes}, {time}", f"{processes}{team}, {time}")
    return Title(document["trace"], (*forms, f"{processes}, {time}", processes))


def _iteration_facts(document: Document) -> Iterator[tuple[str, str]]:
    structure = document["structure"]
    if not structure:
        both = document["absent"].get("phases") == document["absent"]["structure"]
        yield "iterations, phases" if both else "iterations", _unknown(document, "structure")
    elif structure["iterations"] is None:
        yield "iterations", "none found: nothing repeats in the MPI calls and parallel regions"
    else:
        number = count(len(structure["iterations"]["begins"]) - 1)
        period, times = _period(structure)
        sure = certainty(structure["confidence"])
        yield "iterations", f"{number} of {period} ({times}); confidence {sure}"
        if structure["confidence"] >= LIKELY and structure["foa"]["first"]:
            yield "", f"{_option(structure['foa'])} analyses {_which(structure['foa'])}"


def _unknown(document: Document, part: str) -> str:
    return f"not known: {document['absent'][part].removeprefix(document['trace'] + ': ')}"


def _call_facts(document: Document) -> Iterator[tuple[str, str]]:
    info, talk = document["info"], document["communication"]
    if talk and talk["analysed"]:
        yield "analysed", talk["analysed"]["why"]
    told, marked, functions = _functions(info)
    named = {
        "MPI calls": [
            f"{name.removeprefix('MPI_')} {count(number)}" for name, number in info["calls"].items()
        ],
        "regions": marked,
        told: [
            f"{function['name']} {100 * function['share']:.1f} %"
            f" (efficiency {percent_if_any(function['parallel_efficiency'])} %)"
            for function in functions
        ],
        "counters": [name.partition(" [")[0] for name in info["counters"]],
        "devices": [
            f"{one['name']} {100 * one['busy'] / max(info['duration'], _LEAST):.1f} % in kernels"
            for one in info.get("devices", ())
        ],
    }
    for name, values in named.items():
        if values:
            more = [f"{count(len(values) - _NAMED)} more"] if len(values) > _NAMED else []
            yield name, ", ".join([*values[:_NAMED], *more])


_LEAST = 1e-9  # s
_OF_STREAMS = {
    "streams": "stream",
    "kernels": "kernel",
    "copies": "copy",
    "collectives": "collective",
}
"""What there is of a device, with the word for one."""


def _message_facts(document: Document) -> Iterator[tuple[str, str]]:
    found = document["communication"]
    if not found:
        yield "messages", _unknown(document, "communication")
        return
    each = found["per_iteration"]
    often = f"; {each['messages']:.4g} per iteration" if each and each["messages"] else ""
    yield "messages", message_sum(found) + often
    ordered = alike(found)
    for at, (text, same) in enumerate(ordered[:_PATTERNS]):
        number = sum(one["executions"] for one in same)
        inexact = " (not exact)" if any(one["why"] for one in same) else ""
        yield "" if at else "patterns", f"{count(number)} x {text}{inexact}"
    if left := ordered[_PATTERNS:]:
        size = sum(one["bytes"] for _, same in left for one in same)
        yield "", f"and {count(len(left))} more with {format_size(size, digits=3)}"


def _longest_phases(document: Document, found: Sequence[Phase], most: int) -> Section:
    """The phases that take most of the time."""
    if not document["phases"]:
        absent = document["absent"]
        known = absent.get("structure") == absent["phases"]
        return () if known else (NoteBlock(f"phases not known: {absent['phases']}"),)
    if not found:
        return ()
    several = document["phases"]["processes"] > 1
    counted = any(phase["ipc"] is not None for phase in found)
    columns = ("%", "times", "mean", *(("balance %",) if several else ()), *(("IPC",) * counted))
    rows = []
    for phase in found[:most]:
        cells = [
            TableCell(f"{100 * phase['share']:.1f}"),
            TableCell(count(phase["executions"])),
            TableCell(format_time(phase["duration"]["mean"], digits=3)),
        ]
        if several:
            balance = (phase["load_balance"] or {}).get("value")
            cells.append(TableCell(percent_if_any(balance), balance))
        if counted:
            cells.append(TableCell("-" if phase["ipc"] is None else f"{phase['ipc']:.2f}"))
        rows.append(TableRow(phase_label(phase), tuple(cells)))
    listing = Listing("computing (= parallel region)", columns, tuple(rows))
    rest = found[most:]
    return (listing, NoteBlock(left_out(rest), Role.REMARK)) if rest else (listing,)


# The trace.


def _info_blocks(trace: str, info: Document) -> list[Section]:
    """Its shape, its calls and regions by number, its warnings."""
    facts = list(_info_facts(info))
    warnings = few = warned(info["warnings"])
    if len(warnings) > _WARNINGS + 1:
        left = plural(len(warnings) - _WARNINGS - 1, "warning")
        few = (*warnings[: _WARNINGS + 1], NoteBlock(f"and {left} more", Role.REMARK))
    title = Title(f"contents of {trace}", (_runtime(info)[1],))
    return fitted(
        lambda rows: [
            told_title(title, info["caveats"]),
            (Facts(tuple(facts)),),
            (Brief((warnings,), (few,)),) if warnings else (),
            _numbers("MPI calls", info["calls"], rows),
            _numbers("parallel regions", info["regions"], 0),
            *_regions(info),
        ],
        _MOST_CALLS,
        0,
    )


def describe_threads(threads: list[int]) -> str:
    """Threads in words: ``2 per process``, or how many processes have how many."""
    numbers = Counter(threads)
    if len(numbers) == 1:
        return f"{count(threads[0])} per process"
    return ", ".join(
        f"{count(number)} in {plural(processes, 'process', 'processes')}"
        for number, processes in sorted(numbers.items())
    )


def _threads(info: Document) -> list[int]:
    threads = info["threads"]
    return [threads] * info["processes"] if isinstance(threads, int) else list(threads)


def _info_facts(info: Document) -> Iterator[tuple[str, str]]:
    if info["applications"] != 1:
        yield "application", f"{info['application']} of {info['applications']}"
    yield "processes", count(info["processes"])
    yield "threads", describe_threads(_threads(info))
    yield "nodes", "not recorded" if info["nodes"] is None else count(info["nodes"])
    yield _runtime(info)
    if sizes := info["message_sizes"]:
        yield "messages", _sizes(sizes)
    window = info["analysed"]
    if any(window["left_out"].values()):
        yield "analysed", f"{window['begin']:.4g} s to {window['end']:.4g} s ({window['why']})"
    yield "counters", ", ".join(info["counters"]) or "none"
    for device in info.get("devices", ()):
        numbers = (plural(device[kind], one, kind) for kind, one in _OF_STREAMS.items())
        yield (
            "device",
            f"{device['name']}: {', '.join(numbers)}; busy {format_time(device['busy'])}",
        )
    yield "records", ", ".join(f"{count(held)} {name}" for name, held in info["records"].items())


def _runtime(info: Document) -> tuple[str, str]:
    if not info["timed"]:
        return "computation", f"up to {format_time(info['duration'])} per process; no run times"
    return "runtime", "-" if info["runtime"] is None else format_time(info["runtime"])


def _sizes(sizes: Mapping[str, float]) -> str:
    """Sizes of messages in words."""
    least, mean, most, total = (
        format_size(sizes[name]) for name in ("min", "mean", "max", "total")
    )
    each = f"{least} each" if sizes["min"] == sizes["max"] else f"{least} to {most}, mean {mean}"
    return f"{each}; {total} in total"


def _table(
    first: str, heads: tuple[tuple[str, ...], ...], rows: Sequence[TableRow], most: int
) -> Section:
    """Names and what is told of each: so many on a screen, none where it is 0."""
    if not rows:
        return ()
    whole, few = (TableBlock(heads, tuple(some), first=first) for some in (rows, rows[:most]))
    if not most:
        return (folded(((whole,),)),)
    more = NoteBlock(f"and {count(len(rows) - most)} more", Role.REMARK)
    return (Brief(((whole,),), ((few, more) if len(rows) > most else (whole,),)),)


def _numbers(first: str, numbers: Mapping[str, int], most: int) -> Section:
    """Names with how often they are met."""
    rows = [TableRow(name, texts((count(number),)), depth=1) for name, number in numbers.items()]
    return _table(first, heads(["number"]), rows, most)


_MARKED = (
    ("", "times"),
    ("", "processes"),
    ("", "threads"),
    ("", "time"),
    ("least of", "a process"),
    ("most of", "a process"),
)
_FUNCTION = (
    ("", "visits"),
    ("with all", "it calls"),
    ("useful", "own time"),
    ("", "%"),
    ("parallel", "eff. %"),
    ("load", "balance %"),
)
_FUNCTIONS = 10
"""Functions on a screen."""


def _regions(info: Document) -> list[Section]:
    """Functions by the time of their own, and regions that users mark by events of other kinds."""
    first, marked, functions = _functions(info)
    rows = [
        TableRow(name, texts(_facts_of_region(info["user_regions"][name])), 1) for name in marked
    ]
    of_functions = [
        TableRow(
            function["name"],
            (
                *texts((count(function["visits"]), format_time(function["inclusive"]))),
                *texts((format_time(function["exclusive"]), f"{100 * function['share']:.1f}")),
                *(
                    TableCell(percent_if_any(function[name]), function[name])
                    for name in ("parallel_efficiency", "load_balance")
                ),
            ),
            1,
        )
        for function in functions
    ]
    return [
        _table("user regions", _MARKED, rows, 0),
        _table(first, _FUNCTION, of_functions, _FUNCTIONS),
    ]


def _functions(info: Document) -> tuple[str, list[str], Sequence[Mapping[str, Any]]]:
    """What functions are called, regions that are none, and the functions.

    Regions that a user marks with begin and end are told like functions.
    """
    functions = info.get("functions", ())
    names = {function["name"] for function in functions}
    marked = [name for name in info["user_regions"] if name not in names]
    return "functions" if names - {*info["user_regions"]} else "user regions", marked, functions


def _facts_of_region(facts: Mapping[str, Any]) -> list[str]:
    each = facts["time_per_process"]
    numbers = [count(facts[name]) for name in ("occurrences", "processes", "threads")]
    return [*numbers, *(format_time(time) for time in (facts["time"], each["min"], each["max"]))]


# The structure.


def _structure_blocks(trace: str, document: Document) -> list[Section]:
    """What was found, the run over time, its loops, what to do with it."""
    whole, brief = list(_structure_facts(document)), list(_structure_facts(document, short=True))
    drawn = [_timeline(document, one) for one in document["timelines"]]
    tree = _tree(list(_nest_rows(document["nest"], _CALLS)), _LINES)
    lines = list(_nest_rows(document["nest"], _FEW_CALLS))
    processes = plural(document["processes"], "process", "processes")
    duration = format_time(document["end"] - document["begin"], digits=3)
    title = Title(f"structure of {trace}", (f"{processes}, {duration}", processes))
    return fitted(
        lambda rows: [
            told_title(title, document["caveats"]),
            (Brief(((Facts(tuple(whole)),),), ((Facts(tuple(brief)),),)),),
            *drawn[:1],
            *((folded((one,)),) for one in drawn[1:]),
            (Brief((tree,), (_tree(lines, rows),)),) if lines else (),
            (folded((titled("notes", document["notes"]),)),),
            (NoteBlock(_next_step(trace, document), Role.VERDICT),),
        ],
        _CALLS,
    )


def _structure_facts(document: Document, *, short: bool = False) -> Iterator[tuple[str, str]]:
    iterations = document["iterations"]
    for part in document["parts"]:
        if iterations is None or part["iterations"] or not short:
            number = f", {count(part['iterations'])} times" if part["iterations"] else ""
            sure = f"; confidence {certainty(document['confidence'])}" if number else ""
            yield part["kind"], f"{_span(part)}{number}{sure}"
    if iterations is None:
        return
    yield "period", "{} (median; {})".format(*_period(document))
    kinds = iterations["kinds"]
    if max(kinds, default=0) > 0 and not short:
        numbers = [sum(each == kind for each in kinds) for kind in sorted(set(kinds))]
        yield "kinds of steps", f"{count(len(numbers))} ({', '.join(map(count, numbers))} of each)"
    foa = document["foa"]
    yield "focus", f"{_which(foa)}, {_span(foa)}" + ("" if short else f": {foa['why']}")


def _period(document: Document) -> tuple[str, str]:
    """The median duration of an iteration, and the shortest and the longest."""
    duration = document["iterations"]["duration"]
    least, most = (format_time(duration[name], digits=3) for name in ("min", "max"))
    return format_time(document["period"], digits=3), f"{least} to {most}"


def _which(foa: Mapping[str, Any]) -> str:
    if foa["first"] is None:
        return "a window"
    if foa["first"] == foa["last"]:
        return f"iteration {count(foa['first'])}"
    return f"iterations {count(foa['first'])} to {count(foa['last'])}"


def _span(part: Mapping[str, Any]) -> str:
    begin, end = (format_time(part[name], digits=5, trim=True) for name in ("begin", "end"))
    return f"{begin} to {end}"


def _timeline(document: Document, line: Mapping[str, Any]) -> Section:
    """Processes in MPI and lengths of bursts over time, with iterations and the focus."""
    begin, end = float(line["begin"]), float(line["end"])

    def place(time: float) -> float:
        return min(max((time - begin) / (end - begin), 0.0), 1.0)

    rows: list[Strip | MarksBlock] = [
        Strip("in MPI", tuple(line["in_mpi"])),
        Strip("bursts", tuple(line["bursts"])),
    ]
    if iterations := document["iterations"]:
        inside = [time for time in iterations["begins"] if begin <= time <= end]
        step = _step(len(inside))
        ordinal = f"{step}{'nd' if step % 10 == 2 else 'th'}"
        name = "iterations" if step == 1 else f"every {ordinal}"
        rows.append(MarksBlock(name, tuple(map(place, inside[::step]))))
        foa = document["foa"]
        rows.append(MarksBlock("focus", stretches=((place(foa["begin"]), place(foa["end"])),)))
    title = {
        "run": "MPI_Init to MPI_Finalize: processes in MPI (@ all), length of bursts (@ longest)",
        "focus": "the focus and what is around it",
    }[line["span"]]
    ends = (format_time(time, digits=5, trim=True) for time in (begin, end))
    return (NoteBlock(title), Strips(tuple(rows), *ends))


def _step(number: int) -> int:
    """Every how many marks are drawn."""
    step = 1
    while number / step > _APART:
        step = {1: 2, 2: 5}.get(int(str(step)[0]), 10) * 10 ** (len(str(step)) - 1)
    return step


def _tree(rows: Sequence[tuple[float, TableRow]], most: int) -> Section:
    """The lines with most time, in the order of the program: loops have what is in them."""
    rank = sorted(range(len(rows)), key=lambda at: -rows[at][0])[:most]
    shown = [rows[at][1] for at in sorted(rank)]
    listing = Listing("loops and calls", ("times", "time %"), tuple(shown))
    more = NoteBlock(f"and {plural(len(rows) - len(shown), 'line')} with less time", Role.REMARK)
    return (listing, more) if len(rows) > most else (listing,)


def _nest_rows(nest: Sequence[Node], named: int) -> Iterator[tuple[float, TableRow]]:
    """Lines of loops with their bodies, and of places; small ones beside each other as one."""
    begins = [at for at, node in enumerate(nest) if node["depth"] == 0]
    parts = [nest[begin:end] for begin, end in pairwise([*begins, len(nest)])]
    for is_small, some in groupby(parts, lambda part: part[0]["share"] < _SMALL):
        held = list(some)
        if is_small and len(held) > 1:
            share = sum(part[0]["share"] for part in held)
            yield _nest_row(f"... {count(len(held))} small parts", "", share, 0)
        else:
            yield from (_line(node, named) for part in held for node in part)


def _nest_row(label: str, times: str, share: float, depth: int) -> tuple[float, TableRow]:
    return share, TableRow(label, texts((times, f"{100 * share:.1f}")), depth)


def _line(node: Node, named: int) -> tuple[float, TableRow]:
    depth = 2 * node["depth"]
    if node["kind"] == "places":
        return _nest_row(_called(node["calls"], named), "", node["share"], depth)
    least, most = node["least"], node["most"]
    times = f"{node['count']:.4g}" if least == most else f"{count(least)} to {count(most)}"
    name = "iterations" if node["iterative"] else "loop"
    return _nest_row(name, times, node["share"], depth)


def _called(calls: Sequence[Mapping[str, Any]], most: int) -> str:
    """Names of calls in order, with how many of a name follow each other."""
    names = [
        f"{re.sub(_PREFIX, '', one['name'])} x{one['number']}".removesuffix(" x1") for one in calls
    ]
    if len(names) > most:
        hidden = sum(one["number"] for one in calls[most - 1 :])
        names[most - 1 :] = [f"{count(hidden)} more"]
    return ", ".join(names)


def _next_step(trace: str, document: Document) -> str:
    if document["iterations"] is None:
        return "no iterations: choose what to analyse with --window or --region"
    if document["confidence"] < LIKELY:
        return "doubtful iterations: choose what to analyse with --window or --region"
    foa = document["foa"]
    return f"popmodel metrics {shell.quote(trace)} {_option(foa)} analyses {_which(foa)}"


def _option(foa: Mapping[str, Any]) -> str:
    """The option by which other commands analyse a focus."""
    if foa["why"] != ASKED:
        return "--foa auto"
    if foa["first"] is None:
        return f"--foa {foa['begin']:.9g}:{foa['end']:.9g}"
    return f"--foa iterations={foa['first']}:{foa['last']}"


_BLOCKS = {
    "info": _info_blocks,
    "structure": _structure_blocks,
    "phases": phase_blocks,
    "communication": communication_blocks,
}
VIEWS = Views(
    blocks,
    (
        "info",
        "info.records.KIND",
        "info.calls.CALL",
        "info.regions.REGION",
        "info.user_regions.REGION",
        "info.functions[]",
        "info.devices[]",
        "info.warnings[]",
        "structure.parts[]",
        "structure.foa",
        "structure.iterations[]",
        "phases.phases[]",
        "phases.calls[]",
        "communication.pairs[]",
        "communication.sizes[]",
        "communication.calls[]",
        "communication.patterns[]",
    ),
    ("trace",),
    picture,
)
