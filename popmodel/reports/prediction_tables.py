"""A predicted run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.efficiency.family import Family, FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.symbols import OF_MODEL, not_modelled
from popmodel.model.uncertainty import group
from popmodel.prediction.prediction import DEFAULT_REFERENCE, MAIN_FAMILY, OUTSIDE, Validity
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
    folded,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import efficiency, loses, percent, time_range, tree_rows
from popmodel.reports.notes import Reasons
from popmodel.reports.prediction_words import (
    BOUND,
    INCLUDED,
    about,
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
)
from popmodel.reports.views import Document, Views

_LACKING = "the profile lacks "  # begins a note on what is assumed
_LONGEST = 100  # characters of what a screen says of an uncertain input
_NAMED = 2  # remedies that a sentence names
_WORTH = 0.005  # of the runtime: what brings less is not named

Estimate = Mapping[str, Any]


def blocks(document: Document, families: Sequence[str] | None = None) -> list[Section]:
    """The prediction, from the setting to the command that launches the run.

    A screen has the first family, what would help most, and one way to launch the run; where no
    family is asked for, views of a metric that show no loss are left out.
    """
    reasons, fitting = Reasons(), families is None
    families = families or (MAIN_FAMILY,)
    facts = setting(document)
    whole: list[Section] = [
        *trees(document, families, reasons, fitting=fitting),
        (Facts((("reference", _reference(document)),)),),
        reasons.section(),
        (_time(document),),
        learnt_runs(document),
        _remedies(document),
        _uncertainty(document),
        titled("notes", remarks(document)),
        (CommandBlock((document["launch"], document["launch_mpirun"])),),
    ]
    return [
        (
            *doubted(document),
            *omitted(document),
            *_outside(document),
            *assumed([text for text in document["notes"] if text.startswith(_LACKING)]),
        ),
        (
            _title(document),
            Brief(((Facts(facts),),), ((Facts(facts[:2]),),)),
            answer(document),
            folded(((Facts(basis(document)),),)),
        ),
        (Brief(tuple(whole), tuple(_in_brief(document, families))),),
    ]


def _title(document: Document) -> Brief:
    forms = (Title(application(document, brief=brief), sizes(document)) for brief in (False, True))
    return Brief(*(((form,),) for form in forms))


def _in_brief(document: Document, families: Sequence[str]) -> Iterator[Section]:
    """One tree, what would help most, and one command."""
    reasons = Reasons()
    yield trees(document, families[:1], reasons, fitting=True, brief=True)[0]
    yield reasons.section()
    yield _advice(document)
    one_node = document["placement"]["nodes"] == 1
    yield (CommandBlock((document["launch_mpirun"] if one_node else document["launch"],)),)


def _outside(document: Document) -> Section:
    """That there is no interval, because of what was not measured."""
    validity = document["validity"]
    if validity["status"] != OUTSIDE:
        return ()
    reasons = "; ".join(validity["reasons"])
    return notes([f"too far outside the measured range: {reasons}"], Role.WARNING)


def answer(document: Document) -> NoteBlock:
    """How long the run takes, how sure that is, and how efficient it is."""
    runtime, efficiencies = document["runtime"], document["metrics"][MAIN_FAMILY]
    text = f"{sizes(document)[-1]} takes {format_time(runtime['value'])}"
    if runtime["low"] is not None:
        text += f" (90 %: {time_range(runtime['low'], runtime['high'])})"
    elif document["validity"]["status"] != OUTSIDE:
        text += f" (no interval: {runtime.get('why', 'not known')})"
    top = efficiencies[load_families()[MAIN_FAMILY].top]["value"]
    return NoteBlock(f"{text}, parallel efficiency {percent(top)} %", Role.VERDICT)


def _advice(document: Document) -> Section:
    """What would help most and what is uncertain; nothing where the prediction is doubted."""
    if not document["trust"]["ok"]:
        return ()
    lines = []
    if gains := [(name, one) for name, one in document["remedies"].items() if one <= -_WORTH]:
        first = ", ".join(f"{name} {change(one)}" for name, one in gains[:_NAMED])
        lines.append(f"would help: {first}")
    if shares := document["doubtful"]:
        name = next(iter(shares))
        text = named(name, shares[name], _origins(document, name))
        if len(text) > _LONGEST:  # its path is enough for `popmodel docs`
            text = f"{name}, {percent(shares[name], 0)} % of the variance"
        lines.append(f"main uncertainty: {text}")
    return notes(lines, Role.HANGING)


def sizes(document: Document) -> tuple[str, ...]:
    """P and T in words, the longest first."""
    processes, threads = document["processes"], document["threads"]
    return (
        f"{plural(processes, 'process', 'processes')} x {plural(threads, 'thread')}",
        f"{plural(processes, 'proc')} x {plural(threads, 'thread')}",
        f"{processes} x {threads}",
    )


def setting(document: Document) -> tuple[tuple[str, str], ...]:
    """What it rests on, the machine, and how the run lies on it."""
    placement = document["placement"]
    place = (
        f"{plural(placement['nodes'], 'node')} x "
        f"{plural(placement['processes_per_node'], 'process', 'processes')} x "
        f"{plural(document['threads'], 'core')}"
    )
    if placement["grid"]:
        place += f", grid {'x'.join(str(extent) for extent in placement['grid'])}"
    place += BOUND[placement["bind"]]
    facts = [*calibrated(document), ("machine", machine(document)), ("place", place)]
    memory = document["memory_per_process"]
    if memory is not None:
        facts.append(("memory", f"{format_size(memory, digits=3)} per process"))
    if not document["application"]["bundled"]:
        facts.append(("signature", PurePath(document["application"]["path"]).name))
    return tuple(facts)


def basis(document: Document) -> tuple[tuple[str, str], ...]:
    """What the runtime comes from, and how far it reaches."""
    validity, form = document["validity"], document["model_form"]
    full, none = (format_time(form[name], digits=3) for name in ("full_overlap", "no_overlap"))
    bracket = f"{full} if computation and memory traffic overlap fully, {none} if not at all"
    reach = Validity(validity["status"], validity["factor"], tuple(validity["reasons"])).text
    return (
        *_new_run(document["runtime"]),
        ("validity", reach),
        *([("overlap", bracket)] if full != none else []),
        ("method", _method(document["replay"], document["processes"])),
    )


def _new_run(runtime: Estimate) -> tuple[tuple[str, str], ...]:
    """The interval of one more run, where it is known how much runs vary."""
    one = runtime.get("new_run") or {"low": None}
    if one["low"] is None:
        return ()
    return (
        ("new run", f"90 %: {time_range(one['low'], one['high'])}, with noise from run to run"),
    )


def _method(found: Mapping[str, Any], processes: int) -> str:
    """Whether the run was replayed, or one like it, and what the closed form gives."""
    if "why" in found:
        return f"closed form, no replay: {found['why']}"
    closed, replay = (found[side]["runtime"] for side in ("closed_form", "replay"))
    part = "" if found["part"] == 1 else f" of {percent(found['part'], 0)} % of the steps"
    if found["processes"] < processes:
        part = f" of {count(found['processes'])} processes that stand for {count(processes)}"
    return (
        f"replay{part}, {count(found['operations'])} MPI operations; closed form: "
        f"{format_time(closed)} ({change(closed / replay - 1)})"
    )


def _reference(document: Document) -> str:
    """The run that scaling is measured against, and why it is this one."""
    reference = document["reference"]
    settings = " ".join(f"{name}={value:g}" for name, value in reference["settings"].items())
    text = (
        f"{reference['processes']} x {reference['threads']}{settings and ' with ' + settings}, "
        f"predicted {format_time(reference['runtime']['value'])}, {reference['mode']} scaling"
    )
    if reference["mode"] == "weak":
        text += f", {reference['work_ratio']['value']:.4g} times its work"
    return text if reference["why"] == DEFAULT_REFERENCE else f"{text} ({reference['why']})"


def _time(document: Document) -> TableBlock:
    """Parts of the runtime with their share, the largest first."""
    runtime = document["runtime"]["value"]
    largest = sorted(document["time"].items(), key=lambda part: -part[1]["value"])
    rows = tuple(
        TableRow(
            name,
            (TableCell(format_time(part["value"])), TableCell(percent(share)), BarBlock(share)),
            depth=1,
        )
        for name, part in largest
        for share in [part["value"] / runtime]
    )
    return TableBlock(heads(("time", "%", "")), rows, first="where the time goes")


def _remedies(document: Document) -> Section:
    rows = tuple(
        TableRow(label, texts([change(one)]), depth=1)
        for label, one in document["remedies"].items()
    )
    return (TableBlock(heads(("runtime",)), rows, first="what would help"),) if rows else ()


def change(fraction: float) -> str:
    """A relative change in per cent, with its sign."""
    return f"{round(100 * fraction, 1) + 0.0:+.1f} %"  # + 0.0: not -0.0


def _uncertainty(document: Document) -> Section:
    """The input with the largest share of the interval; nothing if nothing is uncertain."""
    shares = document["doubtful"]
    if not shares:
        return ()

    def told(words: str, name: str) -> NoteBlock:
        text = named(name, shares[name], _origins(document, name))
        return NoteBlock(f"{words}: {text}", Role.HANGING)

    first, measured = main_inputs(shares)
    return (
        told("main uncertainty", first),
        *notes(about(first), Role.REMARK),
        *([told("largest that a benchmark measures", measured)] if measured else []),
        *measuring(document["measure"], document["machine"]),
    )


def _origins(document: Document, name: str) -> set[str]:
    """Where the values of an uncertain input come from."""
    inputs = document["inputs"].items()
    return {value["origin"] for path, value in inputs if group(path) == name} - {OF_MODEL}


def remarks(document: Document) -> list[str]:
    """Remarks, the two ratios of the classical model, and what the prediction leaves out."""
    cores = document["processes"] * document["threads"]
    hybrid = document["threads"] > 1  # else both compare the run with itself
    notes = [
        *(_multithreading(document["e_mt"]) if hybrid else []),
        *(_message_passing(document["e_mp"], cores) if hybrid else []),
        *_speedup(document, cores),
        *(text for text in document["notes"] if not text.startswith(_LACKING)),
    ]
    if document["left_out"]:
        notes.append(not_modelled(document["left_out"]))
    if document["runtime"]["low"] is not None:
        notes.append(INCLUDED)
    return notes


def _speedup(document: Document, cores: int) -> list[str]:
    """How much faster than the reference, which the parallel efficiency does not tell."""
    scaling, reference = document["metrics"].get("scaling", {}), document["reference"]
    if not {"speedup", "global_efficiency"} <= scaling.keys() or reference["mode"] != "strong":
        return []
    used = reference["processes"] * reference["threads"]
    if used == cores:
        return []
    speedup, whole = scaling["speedup"], scaling["global_efficiency"]
    named = f"{reference['processes']} x {reference['threads']}"
    return [
        f"{speedup['value']:.3g} times as fast as {named} on {cores / used:g} times the cores: "
        f"global efficiency {percent(whole['value'])} %"
    ]


def _multithreading(estimate: Estimate) -> list[str]:
    """How much of the ideal speed-up of parallel loops the threads reach."""
    if estimate["value"] is None:
        return [f"no e_mt: {estimate.get('why', 'not known')}"]
    share = percent(estimate["value"], 0)
    return [f"e_mt {_with_interval(estimate)}: threads reach {share} % of the ideal loop speed-up"]


def _message_passing(estimate: Estimate, cores: int) -> list[str]:
    """How the time of messages compares with that of one process per core."""
    value = estimate["value"]
    if value is None:
        return [f"no e_mp: {estimate.get('why', 'not known')}"]
    # One process sends nothing, whatever others send: the ratio is 0 and has no inverse.
    inverse = f"; 1/e_mp {1 / value:.3f}" if value > 0 else ""
    return [
        f"e_mp {_with_interval(estimate)}: time of messages relative to {cores} x 1{inverse}",
    ]


def _with_interval(estimate: Estimate) -> str:
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    return f"{value:.3f}" + ("" if low is None else f" ({low:.3f} .. {high:.3f})")


VIEWS = Views(
    blocks,
    ("runtime", "time.PART", "metrics.FAMILY.METRIC", "absent.FAMILY.METRIC"),
    ("application.name", "machine.name", "processes", "threads"),
)

# Efficiencies as trees, with what the largest loss comes from.

SCALING = "scaling"
_TOLD = 0.05  # of a loss: a smaller cause is not worth a word
_FUZZ = 1e-6  # of a point: what rounding in the computation may add to 100


def trees(
    document: Document,
    families: Sequence[str],
    reasons: Reasons,
    *,
    fitting: bool,
    brief: bool = False,
) -> list[Section]:
    """The trees of some families; `fitting` leaves out views of a metric that show no loss."""
    return [
        section
        for family in map(load_families().__getitem__, families)
        for section in _of_family(document, family, reasons, fitting=fitting, brief=brief)
    ]


def _of_family(
    document: Document, family: Family, reasons: Reasons, *, fitting: bool, brief: bool
) -> Iterator[Section]:
    metrics, absent = document["metrics"][family.id], document["absent"][family.id]
    ratio = family.id == SCALING
    worst = document["limits"]
    marked = worst if worst in metrics and loses(metrics[worst]["value"]) else None

    def cells(line: FamilyLine) -> list[TableCell] | None:
        estimate = metrics.get(line.metric)
        if estimate is None:
            return [TableCell(reasons.mark(absent[line.metric]))]
        if fitting and line.view and not loses(estimate["value"]):
            return None
        exact = brief and estimate["low"] is None
        interval = "-" if exact else _interval(estimate, reasons, ratio=ratio)
        return [efficiency(estimate["value"], ratio=ratio), TableCell(interval)]

    for walk in family.tree():
        rows = tree_rows(family, walk.rows, cells, marked)
        causes = _causes(document, marked) if marked in {line.metric for line in walk.rows} else []
        tree = _tree(walk.heading or family.title, "" if ratio else "%", rows, brief=brief)
        yield (tree, *notes((f"<- {one}" for one in causes[: 1 if brief else None]), Role.HANGING))


def _tree(title: str, unit: str, rows: Sequence[TableRow], *, brief: bool) -> FitBlock:
    """Values and intervals side by side; where there is no room, intervals below or not at all."""
    wide = TableBlock(heads((unit, "90 %")), tuple(rows), title=title)
    if brief:
        short = tuple(replace(row, cells=row.cells[:1]) for row in rows)
        more = NoteBlock("not shown (terminal too narrow): 90 %", Role.REMARK)
        return FitBlock((((wide,),), ((TableBlock(heads((unit,)), short, title=title), more),)))
    narrow = TableBlock(heads((unit,)), tuple(_below(rows)), title=title)
    return FitBlock((((wide,),), ((narrow,),)))


def _causes(document: Document, metric: str) -> list[str]:
    """What of the program the loss of a metric comes from, the largest shares."""
    causes = document["causes"].get(metric)
    if not causes:
        return []
    whole = sum(causes.values())
    told = [
        f"{name} {format_time(seconds, digits=3)}"
        for name, seconds in causes.items()
        if seconds >= _TOLD * whole
    ]
    return [f"{format_time(whole, digits=3)} lost: {'; '.join(told)}"]


def _interval(estimate: Estimate, reasons: Reasons, *, ratio: bool) -> str:
    """The interval, rounded outwards: it always holds the value beside it."""
    low, high = estimate["low"], estimate["high"]
    if low is None:
        return reasons.mark(estimate.get("why", "not known"))
    if ratio:
        return f"{low:.3f} .. {high:.3f}"
    return f"{math.floor(100 * low + _FUZZ):.0f} .. {math.ceil(100 * high - _FUZZ):.0f}"


def _below(rows: Sequence[TableRow]) -> Iterator[TableRow]:
    """The rows with their second figure, the interval, on a line of its own."""
    for row in rows:
        yield replace(row, cells=row.cells[:1])
        for interval in row.cells[1:]:
            if isinstance(interval, TableCell):
                yield TableRow(f"90 %: {interval.text}", depth=row.depth + 2)
