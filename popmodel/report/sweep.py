"""Splits of cores into processes and threads: the table, what to take, how to launch it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from popmodel.model.sweep.optimum import LEAST_GAIN
from popmodel.model.validity import EXTRAPOLATED, OUTSIDE
from popmodel.report.export import Record, markdown_table
from popmodel.report.heading import application, title
from popmodel.report.predict import launch_lines
from popmodel.report.render import Document, Views
from popmodel.report.splits import Entry, ordered, runs
from popmodel.report.splits import cores as split_cores
from popmodel.report.splits import name as split_name
from popmodel.report.sweep_plot import svg
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    pairs,
    paragraph,
    percent,
    table,
)
from popmodel.units import count, format_size, plural

_MARKS = {EXTRAPOLATED: "~", OUTSIDE: "!"}
COLUMNS = ("runtime s", "90 %", "PE %", "best", "mem/proc")
_LEAST_NEEDED = ("mem/proc", "90 %", "best")  # columns that a narrow screen does without, in order


def screen(document: Document, style: Style) -> list[str]:
    """All splits, on a terminal."""
    lines = [
        *title(document, [_cores(document)], style),
        *pairs([("machine", _machine(document))], style),
    ]
    if document["what_if"]:
        lines += pairs([("what if", _what_if(document))], style)
    if document["largest"]:
        lines += pairs([("largest", _largest(document))], style)
    lines += ["", *_table(document, style)]
    for choice in document["choices"]:
        lines += ["", *pairs(_advice(choice, document), style)]
    if document["growth"]:
        lines += ["", *pairs(_growth(document), style)]
    for choice in document["choices"]:
        lines.append("")
        if len(document["choices"]) > 1:
            lines.append(f"# {plural(choice['cores'], 'core')}")
        lines += launch_lines(choice["launch"], style.width)
        lines += ["or", *launch_lines(choice["launch_mpirun"], style.width)]
    return lines


def records(document: Document) -> list[Record]:
    """One line per split."""
    return [
        {
            "application": document["application"]["name"],
            "machine": document["machine"]["name"],
            "cores": one["cores"],
            "processes": one["processes"],
            "threads": one["threads"],
            **{
                f"{quantity}_{bound}": one[quantity][bound]
                for quantity in ("runtime", "parallel_efficiency")
                for bound in ("value", "low", "high")
            },
            "memory_per_process": one["memory_per_process"],
            "probability_best": one["probability_best"],
            "probability_tied": one["probability_tied"],
            "regret": one["regret"],
            "validity": one["validity"]["status"],
            "validity_factor": one["validity"]["factor"],
            "source": one["source"],
            "absent": "",
        }
        for one in document["candidates"]
    ] + [
        {
            "application": document["application"]["name"],
            "machine": document["machine"]["name"],
            "cores": one["processes"] * one["threads"],
            "processes": one["processes"],
            "threads": one["threads"],
            "absent": one["why"],
        }
        for one in document["refused"]
    ]


def markdown(document: Document) -> list[str]:
    """The table and what to take, as Markdown."""
    body = [
        [
            f"{split_name(one)}{_mark(one)}{' *' if _is_taken(one, document) else ''}",
            *_texts(one, document),
        ]
        for one in ordered(document)
    ]
    lines = [
        f"## {application(document)}, {_cores(document)}",
        "",
        f"machine {_machine(document)}",
        "",
        *([_largest(document), ""] if document["largest"] else []),
        *markdown_table(["P x T", *COLUMNS], body),
        "",
        *(f"{text}\n" for text in _beyond(document)),
    ]
    for choice in document["choices"]:
        lines += [f"- {name or 'and'}: {value}" for name, value in _advice(choice, document)]
        lines += ["", "```sh", *choice["launch"].split("\n"), "```", ""]
    return lines + [f"- {name} cores: {value}" for name, value in _growth(document)]


def _cores(document: Document) -> str:
    counts = [str(choice["cores"]) for choice in document["choices"]]
    return f"{', '.join(counts)} {'core' if counts == ['1'] else 'cores'}"


def _machine(document: Document) -> str:
    machine = document["machine"]
    return (
        f"{machine['name']} ({machine['origin']}), {plural(machine['cores_per_node'], 'core')} "
        "per node"
    )


def _what_if(document: Document) -> str:
    return ", ".join(f"{name} {factor:g}x" for name, factor in document["what_if"].items())


# -- the table


def _table(document: Document, style: Style) -> list[str]:
    """The table with as many columns as fit side by side, and what does not fit named below."""
    known = [
        name
        for name in COLUMNS
        if name != "mem/proc" or any(one["memory_per_process"] for one in document["candidates"])
    ]
    left_out: list[str] = []
    drawn = _drawn(document, known, style)
    for name in _LEAST_NEEDED:
        if drawn is not None:
            break
        if name in known:
            known.remove(name)
            left_out.append(name)
        drawn = _drawn(document, known, style)
    if drawn is None:  # nothing more to leave out: continued below rather than not shown
        drawn = _drawn(document, known, style, continued=True) or []
    if any(one["runtime"]["low"] is not None for one in document["candidates"]):
        drawn += paragraph("90 % and best: by the uncertainty of the parameters only", style)
    for text in _beyond(document):
        drawn += paragraph(text, style)
    if left_out:
        drawn += paragraph(f"no room for: {', '.join(left_out)}", style)
    return drawn


def _drawn(
    document: Document, columns: Sequence[str], style: Style, *, continued: bool = False
) -> list[str] | None:
    """The table, or None if it does not fit; refused splits say why in place of figures."""
    rows: list[Row] = []
    reasons: dict[int, tuple[str, str]] = {}  # row: what stands before the reason, and the reason
    digits = [
        max(len(str(one[key])) for one in ordered(document)) for key in ("processes", "threads")
    ]
    for cores, group in groupby(ordered(document), split_cores):
        if len(document["choices"]) > 1:
            rows.append(Row(plural(cores, "core")))
        for first, last in runs(list(group)):
            mark = "*" if _is_taken(first, document) else " "
            label = f"{mark} {first['processes']:>{digits[0]}} x {first['threads']:<{digits[1]}}"
            if "why" not in first:
                label += _mark(first)
                rows.append(Row(label, tuple(_cells(first, document, columns))))
                continue
            if last is not first:
                label = f"{label.rstrip()} .. {split_name(last)}"
            reasons[len(rows)] = (label, f"not possible: {first['why']}")
            rows.append(Row("?"))
    drawn = table([[name] for name in columns], rows, style, first="  P x T")
    if "" in drawn and not continued:
        return None
    for index, (label, reason) in reversed(reasons.items()):
        drawn[index + 1 : index + 2] = paragraph(reason, style, first=f"{label}  ", rest="     ")
    return drawn


def _mark(one: Entry) -> str:
    """How far a split goes beyond what was measured; nothing for one that is refused."""
    return _MARKS.get(one["validity"]["status"], "") if "validity" in one else ""


def _beyond(document: Document) -> list[str]:
    """What the marks mean: the splits that go farthest beyond what was measured."""
    words = {
        EXTRAPOLATED: "extrapolated",
        OUTSIDE: "outside the measured range, no interval",
    }
    texts = []
    for status, mark in _MARKS.items():
        there = [one["validity"] for one in document["candidates"]]
        there = [one for one in there if one["status"] == status]
        if there:
            farthest = max(there, key=lambda one: float(one["factor"]))
            texts.append(f"{mark} {words[status]}: up to {farthest['reasons'][0]}")
    return texts


def _is_taken(one: Entry, document: Document) -> bool:
    return [one["processes"], one["threads"]] in [c["take"] for c in document["choices"]]


def _cells(one: Entry, document: Document, columns: Sequence[str]) -> list[Cell]:
    """The figures of a split; the fastest of its cores is the 100 % of the runtime's colours."""
    runtime, efficiency = one["runtime"], one["parallel_efficiency"]
    fastest = min(
        each["runtime"]["value"] for each in document["candidates"] if each["cores"] == one["cores"]
    )
    low, high = runtime["low"], runtime["high"]
    memory = one["memory_per_process"]
    cells = {
        "runtime s": Cell(_figure(runtime["value"], 4), fastest / runtime["value"]),
        "90 %": Cell("-" if low is None else f"{_figure(low, 3)}..{_figure(high, 3)}"),
        "PE %": Cell(percent(efficiency["value"]), efficiency["value"]),
        "best": Cell(_percentage(one["probability_best"])),
        "mem/proc": Cell("-" if memory is None else format_size(memory, digits=3)),
    }
    return [cells[name] for name in columns]


def _figure(number: float, digits: int) -> str:
    """A number with so many digits, zeros at its end included."""
    return f"{number:#.{digits}g}".removesuffix(".")


def _texts(one: Entry, document: Document) -> list[str]:
    if "why" in one:
        return [f"not possible: {one['why']}", *[""] * (len(COLUMNS) - 1)]
    return [cell.text for cell in _cells(one, document, COLUMNS)]


# -- what to take


def _percentage(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.0f} %"


def _change(loss: Entry) -> str:
    """A relative change with its interval."""
    text = f"{100 * loss['value']:+.1f} %"
    if loss["low"] is None:
        return text
    return f"{text} ({100 * loss['low']:+.1f} .. {100 * loss['high']:+.1f})"


def _advice(choice: Entry, document: Document) -> list[tuple[str, str]]:
    several = len(document["choices"]) > 1
    lines = [("cores", str(choice["cores"]))] if several else []
    by_split = {(one["processes"], one["threads"]): one for one in document["candidates"]}
    tied = [
        f"{split_name(pair)} {_percentage(by_split[tuple(pair)]['probability_tied'])}"
        for pair in choice["tied"]
    ]
    if len(tied) > 1:
        lines.append(("tie set", ", ".join(tied)))
        lines.append(("", "(probability to be within 2 % of the best)"))
    regret = f"expected regret {percent(choice['regret'], 2)} %"
    lines.append(("take", f"{split_name(choice['take'])}, {regret}"))
    heading = "defaults"
    for default in choice["defaults"]:
        loss = default["loss"]
        if default["split"] == choice["take"]:
            cost = "is what to take"
        else:
            cost = "is not possible" if loss is None else _change(loss)
        lines.append((heading, f"{default['name']} ({split_name(default['split'])}) {cost}"))
        heading = ""
    lines += [
        ("tuned", _tuned(one)) for one in document["tuned"] if one["cores"] == choice["cores"]
    ]
    lines.append(("checked", _checked(choice["checked"])))
    lines.append(("doubtful", _doubt(choice, by_split[tuple(choice["take"])])))
    return lines


def _checked(checked: Entry) -> str:
    """What replays say of the closed form."""
    count, gap = len(checked["replayed"]), checked["largest_gap"]
    others = [one for one in checked["not_replayed"] if one["split"][0] > 1]
    reason = ""
    if others:
        reason = f"{split_name(others[0]['split'])}: {others[0]['why']}"
        if len(others) > 1:
            reason += f"; {plural(len(others) - 1, 'other split')} likewise"
    if gap is None:
        return f"no replay: {reason or checked['not_replayed'][0]['why']}"
    text = (
        f"{plural(count, 'split')} replayed; largest gap in PE "
        f"{100 * gap['parallel_efficiency']:+.1f} points ({split_name(gap['split'])})"
    )
    return f"{text}; no replay of {reason}" if reason else text


def _doubt(choice: Entry, taken: Entry) -> str:
    doubt = choice["doubt"]
    if doubt is None:
        sure = _percentage(taken["probability_best"])
        return f"nothing: {split_name(choice['take'])} is the best in {sure} of the draws"
    name = next(iter(doubt["inputs"]), None)
    what = (
        "no single input decides"
        if name is None
        else f"{name} decides ({_percentage(doubt['inputs'][name])} of the variance)"
    )
    return f"{what}; measure {split_name(doubt['measure'])} next"


def _largest(document: Document) -> str:
    """What the search for the largest number of cores has found."""
    largest = document["largest"]
    fastest = min(document["candidates"], key=lambda one: one["runtime"]["value"])
    efficiency = fastest["parallel_efficiency"]
    low, high = efficiency["low"], efficiency["high"]
    interval = "" if low is None else f", 90 %: {percent(low)} .. {percent(high)}"
    text = (
        f"{plural(largest['cores'], 'core')} {'keeps' if largest['cores'] == 1 else 'keep'} a "
        f"parallel efficiency of {100 * largest['parallel_efficiency']:g} % with the fastest split "
        f"({split_name(fastest)} has "
        f"{percent(largest['reached'])} %{interval})"
    )
    beyond = largest["beyond"]
    if beyond["cores"] is None:
        return f"{text}; the machine has no more"
    return f"{text}; {count(beyond['cores'])} cores have {percent(beyond['parallel_efficiency'])} %"


def _tuned(one: Entry) -> str:
    """The best value of a parameter; one at the end of what was tried is no minimum."""
    name, best, now = one["name"], one["best"], one["now"]
    if best == now:
        return f"{name} = {now:g} stays: no value is more than {100 * LEAST_GAIN:g} % faster"
    text = f"{name} = {best:.6g} (now {now:g}): runtime {_change(one['change'])}"
    least, most = one["tried"]
    if best in (least, most):
        return f"{text}; the {'least' if best == least else 'largest'} value that was tried"
    low, high = one["good"]
    return text if low == high else f"{text}; {low:.4g} .. {high:.4g} are within 1 %"


def _growth(document: Document) -> list[tuple[str, str]]:
    lines = []
    for one in document["growth"]:
        fewer, more = one["cores"]
        speedup = one["speedup"]
        interval = (
            "" if speedup["low"] is None else f" ({speedup['low']:.2f} .. {speedup['high']:.2f})"
        )
        before, after = (percent(value) for value in one["parallel_efficiency"])
        text = f"{speedup['value']:.2f}x faster{interval}, PE {before} -> {after} %"
        lines.append((f"{fewer} -> {more}", text))
    return lines


VIEWS = Views(screen, records, markdown, svg)
