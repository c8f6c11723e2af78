"""The verdict: how the runs did in a sentence, what they cost, what to do, what to doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.advice import numbered
from popmodel.reports.figures import percent
from popmodel.reports.html import sentences
from popmodel.reports.html.columns import PageColumn, PageValue, columns
from popmodel.reports.html.contents import Contents, verb_of
from popmodel.reports.html.section import Section
from popmodel.reports.joint import joint_caveats, joint_warnings
from popmodel.reports.names import run_names
from popmodel.reports.renderers import heat
from popmodel.reports.sensitivity import conclusion
from popmodel.reports.sensitivity_regions import verdict as region_verdict
from popmodel.reports.views import Document
from popmodel.reports.warnings import warning_text
from popmodel.simulator.program import unmodelled_calls

_NOT_MEASURED = "preset, not measured"


def section(contents: Contents) -> Section | None:
    """What a reader in a hurry has to know."""
    runs = columns(contents)
    doubtful = [text for one in contents.of("metrics") for text in one["advice"]["doubts"]]
    said = [*(("Doubt", text) for text in doubtful), *_said(contents, runs)]
    if not said:
        return None
    context = {
        "lead": said[0][1],
        "more": said[1:],
        "runs": [_figures(run) for run in runs],
        "advice": [one["advice"]["verdict"] for one in contents.of("metrics")],
        "steps": list(_steps(contents, runs)),
        "doubts": list(_doubts(contents)),
        "warnings": list(_warnings(contents)),
        "left_out": contents.document.get("left_out", ()),
    }
    return Section("verdict", "Verdict", context)


def _said(contents: Contents, runs: Sequence[PageColumn]) -> Iterator[tuple[str, str]]:
    """A sentence on each thing that the report knows, with what it is about."""
    measured = [run for run in runs if run.kind == "measured"]
    predicted = iter([run for run in runs if run.kind == "predicted"])
    if measured:
        worst = "Run", sentences.of_run(measured[_worst(contents, measured)])
        series = [("Runs", sentences.trend(measured))] if len(measured) > 1 else []
        # Of what is hardly one program each run is better told for itself.
        if all(run.comparable for run in measured):
            yield from (*series, worst)
        else:
            yield from (worst, *series)
    for name, one in _networks(contents, measured):
        if text := sentences.of_network(one):
            yield name, text
    for one in contents.documents:
        verb = verb_of(one)
        if verb == "predict":
            yield "Prediction", sentences.of_prediction(one, next(predicted))
        elif verb in ("sweep", "study"):
            yield from (("Splits", text) for text in sentences.of_splits(one))
        elif verb == "validate":
            yield "Validation", "; ".join(one["verdict"]) + "."
        elif verb == "replay":
            yield "Replay", sentences.of_replays(one)
        elif verb == "project":
            yield "Projection", sentences.of_projection(one)


def _networks(contents: Contents, measured: Sequence[PageColumn]) -> list[tuple[str, Document]]:
    """The sensitivity of the run that is told of, or else all, each with its name."""
    known = contents.of("sensitivity")
    traces = [run["trace"] for one in contents.of("metrics") for run in one["runs"]]
    told = traces[_worst(contents, measured)] if measured else None
    names = run_names([one["trace"] for one in known])
    named = [(name, one) for name, one in zip(names, known, strict=True) if one["trace"] == told]
    named = named or list(zip(names, known, strict=True))
    return [("Network" + (f" of {name}" if len(known) > 1 else ""), one) for name, one in named]


def _worst(contents: Contents, runs: Sequence[PageColumn]) -> int:
    """Which run is advised on; else the one with the lowest efficiency that is known."""
    advised = {c["run"] for one in contents.of("metrics") for c in one["advice"]["causes"]}
    named = [at for at, run in enumerate(runs) if run.name in advised]
    return min(named or range(len(runs)), key=lambda at: _value(runs[at].efficiency))


def _value(efficiency: PageValue | None) -> float:
    return 1.0 if efficiency is None else efficiency.value


def _figures(run: PageColumn) -> dict[str, Any]:
    """What a run cost and lost, for the table."""
    efficiency, family = run.efficiency, run.family
    lowest = run.lowest.get(family, "")
    share = None if efficiency is None else max(0.0, 1 - efficiency.value)
    return {
        "name": run.name,
        "kind": run.kind,
        "split": run.split,
        "runtime": run.runtime.value,
        "core_time": run.runtime.value * run.threads,
        "efficiency": None if efficiency is None else percent(efficiency.value),
        "heat": None if efficiency is None else heat.level(efficiency.value),
        "lost": None if share is None else share * run.runtime.value * run.threads,
        "lowest": load_families()[family].metrics[lowest].name if lowest else "",
        "lowest_value": f"{percent(run.metrics[family][lowest].value)} %" if lowest else "",
    }


def _steps(contents: Contents, runs: Sequence[PageColumn]) -> Iterator[str]:
    """What to do next, the most worth first."""
    for one in contents.of("metrics"):
        yield from numbered(one["advice"])
    for name, one in _networks(contents, [run for run in runs if run.kind == "measured"]):
        yield f"{name}: {conclusion(one)}; {region_verdict(one)}."
    for one in (*contents.of("sweep"), *contents.of("study")):
        for choice in one["choices"]:
            if choice["doubt"] and choice["doubt"]["command"]:
                what = f"To be surer of the split of {choice['cores']} cores"
                yield f"{what}: {choice['doubt']['command']}"


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
