"""A predicted run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.efficiency.family import Family, FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.symbols import LAWS, OF_MODEL, not_modelled
from popmodel.model.uncertainty import group
from popmodel.prediction.prediction import DEFAULT_REFERENCE, MAIN_FAMILY, OUTSIDE, Validity
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    CommandBlock,
    Facts,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    Title,
    folded,
    heads,
    narrowed,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import efficiency, loses, percent, time_range, tree_rows
from popmodel.reports.notes import Reasons
from popmodel.reports.prediction_words import (
    BOUND,
    INCLUDED,
    TO_COMPARE,
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
    run_takes,
    sizes,
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
    facts = _setting(document)
    whole: list[Section] = [
        *trees(document, families, reasons, fitting=fitting),
        (Facts((("reference", _reference(document)),)),),
        reasons.section(),
        (_time(document),),
        learnt_runs(document),
        (_remedies(document),) if document["remedies"] else (),
        _uncertainty(document),
        titled("notes", _remarks(document)),
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
            _answer(document),
            folded(((Facts(_basis(document)),),)),
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


def _answer(document: Document) -> NoteBlock:
    """How long the run takes, how sure that is, and how efficient it is."""
    runtime, text = document["runtime"], run_takes(document)
    if runtime["low"] is None and document["validity"]["status"] != OUTSIDE:
        text += f"; no interval: {runtime.get('why', 'not known')}"
    return NoteBlock(text, Role.VERDICT)


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


def _setting(document: Document) -> tuple[tuple[str, str], ...]:
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


def _basis(document: Document) -> tuple[tuple[str, str], ...]:
    """What the runtime comes from, and how far it reaches."""
    validity, form = document["validity"], document["model_form"]
    new_run = document["runtime"].get("new_run") or {"low": None}
    facts = []
    if new_run["low"] is not None:
        interval = time_range(new_run["low"], new_run["high"])
        facts.append(("new run", f"90 %: {interval}, with noise from run to run"))
    reach = Validity(validity["status"], validity["factor"], tuple(validity["reasons"])).text
    facts.append(("validity", reach))
    full, none = (format_time(form[name], digits=3) for name in ("full_overlap", "no_overlap"))
    if full != none:
        bracket = f"{full} if computation and memory traffic overlap fully, {none} if not at all"
        facts.append(("overlap", bracket))
    return (*facts, ("method", _method(document["replay"], document["processes"])))


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
    rows = []
    for name, part in sorted(document["time"].items(), key=lambda part: -part[1]["value"]):
        share = part["value"] / runtime
        rows.append(row(name, format_time(part["value"]), percent(share), BarBlock(share), depth=1))
    return TableBlock(heads(("time", "%", "")), tuple(rows), first="where the time goes")


def _remedies(document: Document) -> TableBlock:
    rows = (row(name, change(one), depth=1) for name, one in document["remedies"].items())
    return TableBlock(heads(("runtime",)), tuple(rows), first="what would help")


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
        *notes([TO_COMPARE] if first in LAWS else [], Role.REMARK),
        *([told("largest that a benchmark measures", measured)] if measured else []),
        *measuring(document["measure"], document["machine"]),
    )


def _origins(document: Document, name: str) -> set[str]:
    """Where the values of an uncertain input come from."""
    inputs = document["inputs"].items()
    return {value["origin"] for path, value in inputs if group(path) == name} - {OF_MODEL}


def _remarks(document: Document) -> list[str]:
    """Remarks, the two ratios of the classical model, and what the prediction leaves out."""
    cores = document["processes"] * document["threads"]
    notes = []
    if document["threads"] > 1:  # else both compare the run with itself
        notes += [_multithreading(document["e_mt"]), _message_passing(document["e_mp"], cores)]
    notes += _speedup(document, cores)
    notes += (text for text in document["notes"] if not text.startswith(_LACKING))
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


def _multithreading(estimate: Estimate) -> str:
    """How much of the ideal speed-up of parallel loops the threads reach."""
    if estimate["value"] is None:
        return f"no e_mt: {estimate.get('why', 'not known')}"
    share = percent(estimate["value"], 0)
    return f"e_mt {_with_interval(estimate)}: threads reach {share} % of the ideal loop speed-up"


def _message_passing(estimate: Estimate, cores: int) -> str:
    """How the time of messages compares with that of one process per core."""
    value = estimate["value"]
    if value is None:
        return f"no e_mp: {estimate.get('why', 'not known')}"
    # One process sends nothing, whatever others send: the ratio is 0 and has no inverse.
    inverse = f"; 1/e_mp {1 / value:.3f}" if value > 0 else ""
    return f"e_mp {_with_interval(estimate)}: time of messages relative to {cores} x 1{inverse}"


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
        columns = heads(("" if ratio else "%", "90 %"))
        tree = TableBlock(columns, rows, title=walk.heading or family.title)
        block = narrowed(tree, ("90 %",)) if brief else tree
        told = (f"<- {one}" for one in causes[: 1 if brief else None])
        yield (block, *notes(told, Role.HANGING))


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
