"""What screens of predictions say alike: subject, uncertainty, splits; a formula of a metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.machines.profile import measured_file
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import part_of
from popmodel.model.model_error import RESIDUALS
from popmodel.model.symbols import label
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    EquationBlock,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    Title,
    folded,
    heads,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import interval_text, percent, time_range, value_text
from popmodel.reports.views import Document, Views
from popmodel.simulator.program import unmodelled_calls


def application(document: Document, *, brief: bool = False) -> str:
    """Name of the application, whether it came with popmodel, its parameters, what else was set."""
    one = document["application"]
    bundled = " (bundled)" if one["bundled"] else ""
    given = {**one["settings"], **one["imbalance"]}
    words = [f"{name}={value:g}" for name, value in given.items()]
    if brief and len(words) > _PARAMETERS:
        words[_PARAMETERS:] = ["..."]
    settings = " ".join(words)
    return f"{one['name']}{bundled}  {settings}".rstrip()


def assumed(texts: Sequence[str]) -> Section:
    """What a prediction needs and the profile lacks: on a screen the first, and how many more."""
    if not texts:
        return ()
    more = f" ({plural(len(texts) - 1, 'more assumption')}: --all)" if len(texts) > 1 else ""
    brief = notes([texts[0] + more], Role.WARNING)
    return (Brief((notes(texts, Role.WARNING),), (brief,)),)


_PARAMETERS = 4  # that a screen names


def omitted(document: Document) -> Section:
    """What of the program the signature does not contain, which comes before all else."""
    return notes(unmodelled_calls(document["application"].get("not_modelled", "")))


def doubted(document: Document) -> Section:
    """That predictions are not to be trusted yet, why, and the run that would tell most."""
    learnt = document.get("learnt")
    if learnt is None or not learnt["doubts"]:
        return ()
    first, *more = learnt["doubts"]
    run = learnt["next_run"]
    others = f" ({plural(len(more), 'other doubt')})" if more else ""
    decides = f"a run of {run['processes']} x {run['threads']} would tell most"
    return notes([f"not to be trusted yet: {first}{others}; {decides}"], Role.WARNING)


def learnt_runs(document: Document) -> Section:
    """The runs behind the signature predicted back, and from the others; repeats are one row."""
    learnt = document.get("learnt")
    if learnt is None or not learnt["runs"]:
        return ()
    from statistics import geometric_mean  # takes long to import

    repeats: dict[str, list[Mapping[str, Any]]] = {}
    for run in learnt["runs"]:
        values = "".join(f", {name}={value:g}" for name, value in run["parameters"].items())
        repeats.setdefault(f"{run['processes']} x {run['threads']}{values}", []).append(run)

    def off(runs: Sequence[Mapping[str, Any]], key: str) -> str:
        known = [1 + run[key] for run in runs if run[key] is not None]
        return f"{100 * (geometric_mean(known) - 1):+.1f}" if known else "-"

    def repeated(name: str, runs: Sequence[Mapping[str, Any]]) -> TableRow:
        times = [run["measured"] for run in runs if run["measured"] is not None]
        measured = format_time(geometric_mean(times)) if times else "-"
        errors = (off(runs, key) for key in ("error", "left_out_error"))
        return row(name, measured, format_time(runs[0]["predicted"]), *errors, depth=1)

    heading = heads(("measured", "predicted", "off %", "left out %"))
    rows = tuple(repeated(*pair) for pair in repeats.items())
    table = TableBlock(heading, rows, first="learnt runs")
    shares = ", ".join(
        f"{one['name']} {100 * one['weight']:.0f} %" for one in learnt.get("candidates", ())
    )
    return (table, *notes([f"weights: {shares}"] if shares else [], Role.REMARK))


BOUND = {"close": "", "spread": ", threads spread", "none": ", threads not bound"}
"""What headings say of the binding."""


def calibrated(document: Document) -> tuple[tuple[str, str], ...]:
    """By what runs the signature was calibrated, as a fact with its name; nothing if it was not."""
    known = document["application"]["calibration"]
    if known is None:
        return ()
    text = f"by {plural(known['runs'], 'run')} on {known['machine']}"
    if not known["same_machine"]:
        text += "; on this machine only what they tell of the program holds"
    if known["changed"]:
        names = ", ".join(known["changed"])
        text += f"; changed by hand since, what they told of it is forgotten: {names}"
    return (("calibrated", text),)


def machine(document: Document) -> str:
    """Name of the machine, and how far its values were measured."""
    one = document["machine"]
    origin = "preset, not measured" if one["preset"] else one["origin"]
    noisy = f"; noisy: {', '.join(one['noisy'])}" if one["noisy"] else ""
    return f"{one['name']} ({origin}{noisy})"


def run_takes(document: Document) -> str:
    """How long a run takes, how sure that is, and how efficient it is."""
    runtime = document["runtime"]
    if runtime["value"] is None:
        return f"{split_name(document)} has no runtime: {runtime['why']}"
    text = f"{split_name(document)} takes {format_time(runtime['value'])}"
    if runtime["low"] is not None:
        text += f" (90 %: {time_range(runtime['low'], runtime['high'])})"
    for family in sorted(document["metrics"], key=lambda family: family != MAIN_FAMILY):
        if (found := document["metrics"][family].get("parallel_efficiency")) is not None:
            return f"{text}, parallel efficiency {percent(found['value'])} %"
    return text


INCLUDED = "intervals include the uncertainty of parameters and of the model's laws"
TO_COMPARE = "no benchmark measures a law: compare with measured runs (popmodel validate)"


def named(path: str, share: float, origins: Iterable[str] = ()) -> str:
    """An uncertain input and its part, ``saturated memory bandwidth (memory.bsat), 82 %``."""
    inside = ", ".join([path, *sorted(set(origins))])
    name = f"{RESIDUALS[path].meaning} ({path})" if path in RESIDUALS else label(path)
    text = f"{name} ({inside})" if name == path else name.replace(f"({path})", f"({inside})")
    return f"{text}, {percent(share, 0)} % of the variance"


def main_inputs(shares: Mapping[str, float]) -> tuple[str, str | None]:
    """The input with the largest share, and the largest other one that a benchmark measures."""
    first = next(iter(shares))
    measured = next((path for path in shares if part_of(path)), first)
    return first, measured if measured != first else None


def measuring(command: str | None, machine: Mapping[str, Any]) -> Section:
    """The command that measures an input of a machine, or nothing without one."""
    if command is None:
        return ()
    add = f", then add --machine {measured_file(command)}" if machine["preset"] else ""
    return (NoteBlock(f"measure{add}:", Role.REMARK), CommandBlock((command,), depth=1))


LONG_RUN = 3  # so many splits refused for one reason are told together

Entry = Mapping[str, Any]


def split_name(split: Entry | Sequence[int]) -> str:
    """Processes and threads: ``16 x 4``."""
    if isinstance(split, Mapping):
        return f"{split['processes']} x {split['threads']}"
    processes, threads = split
    return f"{processes} x {threads}"


def varied(splits: Sequence[Entry]) -> list[str]:
    """Parameters in which measured runs differ."""
    first = splits[0]["parameters"]
    return [key for key in first if any(one["parameters"][key] != first[key] for one in splits)]


def described(split: Entry, differing: Sequence[str]) -> str:
    """A split with the parameters that tell it apart: ``16 x 4 N=512``."""
    return " ".join(
        [split_name(split), *(f"{key}={split['parameters'][key]:g}" for key in differing)]
    )


def split_cores(one: Entry) -> int:
    """Cores of a split."""
    return int(one["processes"] * one["threads"])


def ordered(document: Document) -> list[Entry]:
    """Possible and refused splits, by cores and threads."""
    return sorted(
        [*document["candidates"], *document["refused"]],
        key=lambda one: (split_cores(one), one["threads"]),
    )


def runs(splits: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """First and last of splits that follow each other and are refused for one reason."""
    groups: list[list[Entry]] = []
    for one in splits:
        if groups and _same_reason(groups[-1][-1], one):
            groups[-1].append(one)
        else:
            groups.append([one])
    for group in groups:
        if len(group) < LONG_RUN:
            yield from ((one, one) for one in group)
        else:
            yield group[0], group[-1]


def _same_reason(one: Entry, other: Entry) -> bool:
    """Whether two splits are refused in the same words, their own numbers aside."""
    if "why" not in one or "why" not in other:
        return False
    words, others = one["why"].split(), other["why"].split()
    own = {(str(one[key]), str(other[key])) for key in ("processes", "threads")}
    return len(words) == len(others) and all(
        pair[0] == pair[1] or pair in own for pair in zip(words, others, strict=True)
    )


NEGLIGIBLE = 0.005
"""Per cent of the result for one per cent of an input: what is below is not worth a line."""

_HEADINGS: Mapping[str, str] = {
    "metric": "",
    "run": "of the run",
    "process": "of an average process, whole run",
    "item": "of each part of the program, once",
    "signature": "of the application",
    "machine": "of the machine",
}


def blocks(document: Document) -> list[Section]:
    """The equations from the result down to the symbols, then the elasticities."""
    symbols = tuple(
        EquationBlock(one["name"], "", one["latex"], _given(one)) for one in document["symbols"]
    )
    first, *others = _equations(document)
    further: list[Section] = [*others, (Heading("symbols"), *symbols) if symbols else ()]
    facts = (("machine", machine(document)), ("formula", document["metric"]))
    return [
        omitted(document),
        (Title(application(document), sizes(document)), Facts(facts)),
        first,
        (folded(tuple(further)),),
        _elasticities(document),
        (folded((titled("notes", document["notes"]),)),),
    ]


def sizes(document: Document) -> tuple[str, ...]:
    """P and T in words, the longest first."""
    processes, threads = document["processes"], plural(document["threads"], "thread")
    return (
        f"{plural(processes, 'process', 'processes')} x {threads}",
        f"{plural(processes, 'proc')} x {threads}",
        split_name(document),
    )


def _equations(document: Document) -> Iterator[Section]:
    """Equations by what they are about, with a heading."""
    for kind, heading in _HEADINGS.items():
        found = [
            EquationBlock(one["name"], one["text"], one["latex"], _value(one))
            for one in document["parts"]
            if one["kind"] == kind
        ]
        if found:
            yield (Heading(heading or document["title"]), *found)


def _value(one: Mapping[str, Any]) -> str:
    try:
        float(one["text"])
    except ValueError:
        return f"= {_quantity_text(one)}: {one['meaning']}"
    return str(one["meaning"])  # the formula is the value


def _quantity_text(one: Mapping[str, Any]) -> str:
    return value_text(_quantity(one), one["unit"] or "1", digits=4)


def _quantity(one: Mapping[str, Any]) -> Quantity:
    return Quantity(one["value"], one.get("low"), one.get("high"))


def _given(one: Mapping[str, Any]) -> str:
    interval = ""
    if one["low"] is not None:
        interval = f"{interval_text(_quantity(one), one['unit'] or '1')}, "
    return f"= {_quantity_text(one)} ({interval}{one['origin']}): {one['meaning']}"


def _elasticities(document: Document) -> Section:
    """What a change of each input does, as far as it is worth a line."""
    found = document["elasticities"]
    shown = [one for one in found if max(abs(one["falling"]), abs(one["rising"])) >= NEGLIGIBLE]
    left = len(found) - len(shown)
    if not shown:
        nothing = f"elasticities: all {left} below {NEGLIGIBLE:g} %"
        return (NoteBlock(nothing),) if left else ()
    kinks = [one for one in shown if not one["smooth"]]
    rows = []
    for one in shown:
        mark = f" [{kinks.index(one) + 1}]" if one in kinks else ""
        rows.append(row(f"1 % more {one['label']}{mark}", f"{one['value']:+.2f} %", depth=1))
    remarks = [
        f"[{number}] not smooth: {-one['falling']:+.2f} % for 1 % less, {one['rising']:+.2f} % for "
        "1 % more"
        for number, one in enumerate(kinks, 1)
    ]
    head = "runtime" if document["metric"] == "runtime" else "metric"
    others = f"{plural(left, 'other input')}: below {NEGLIGIBLE:g} %"
    return (
        TableBlock(heads((head,)), tuple(rows), first="elasticities"),
        *(NoteBlock(text, Role.HANGING, 1) for text in remarks),
        *([NoteBlock(others, Role.REMARK)] if left else []),
    )


VIEWS = Views(
    blocks,
    ("parts[]", "symbols[]", "elasticities[]"),
    ("application.name", "machine.name", "processes", "threads", "metric"),
)
