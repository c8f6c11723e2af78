"""What documents say in a sentence each: every number is one of theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.figures import percent
from popmodel.reports.heading import application, machine
from popmodel.reports.html.columns import PageColumn, PageValue
from popmodel.reports.networks import properties
from popmodel.reports.sensitivity_regions import SMALL
from popmodel.reports.splits import name as split_name
from popmodel.reports.sweep_advice import advice, is_sure
from popmodel.reports.views import Document

_NOTHING = 5e-4  # of an efficiency: what rounds to 0.0 points
_ALIKE = 5e-3  # of a runtime: closer runtimes are called equal
_SERIES = 3  # runs of which it is worth a word between which the efficiency falls
_GLOBAL = "global_efficiency"


def of_run(run: PageColumn) -> str:
    """How efficient a run is and what its largest loss is, in time and in core time."""
    efficiency = run.efficiency
    if efficiency is None:
        return f"{_named(run)} takes {_time(run.runtime)}; its parallel efficiency is not known."
    return (
        f"{_named(run)} takes {_time(run.runtime)} at {_percent(efficiency)} parallel efficiency; "
        f"{_largest(run)}."
    )


def _named(run: PageColumn) -> str:
    return f"{run.name} ({run.split})"


def _largest(run: PageColumn) -> str:
    """The largest loss of a run."""
    metric = run.lowest.get(run.family, "")
    share = run.shares(run.family).get(metric, 0.0)
    if share < _NOTHING:
        return "no loss is larger than 0.1 points"
    seconds = share * run.runtime.value
    return (
        f"the largest loss, {percent(share)} points, is {_lower(run.family, metric)}: "
        f"{_brief(seconds)} of each thread on average, {_brief(seconds * run.threads)} of all "
        f"{run.threads} together"
    )


def _lower(family: str, metric: str) -> str:
    """The name of a metric within a sentence."""
    name = load_families()[family].metrics[metric].name
    first = name.split(" ")[0]
    return name[0].lower() + name[1:] if first[1:].islower() else name


def trend(runs: Sequence[PageColumn]) -> str:
    """How several runs differ: over their threads, or one from the other."""
    ordered = sorted(runs, key=lambda run: run.threads)
    first, last = ordered[0], ordered[-1]
    if first.threads == last.threads:
        return _changed(runs[0], runs[-1]) if len(runs) == 2 else _spread(runs)
    before, after = first.runtime.value, last.runtime.value
    ratio = (
        f"{before / after:.3g} times as fast" if before > after else f"{after / before:.3g} times"
    )
    return (
        f"From {_named(first)} to {_named(last)} the runtime goes from {format_time(before)} to "
        f"{format_time(after)} ({ratio}){_fall(first, last)}{_steepest(ordered)}."
    )


def _whole(runs: Sequence[PageColumn]) -> list[tuple[str, float | None]]:
    """For each run the efficiency that has all losses: the global one where it is compared."""
    if all(
        run.compared and run.comparable and _GLOBAL in run.metrics.get(SCALING, {}) for run in runs
    ):
        return [("global efficiency", run.metrics[SCALING][_GLOBAL].value) for run in runs]
    found = [run.efficiency for run in runs]
    return [("parallel efficiency", None if one is None else one.value) for one in found]


def _fall(one: PageColumn, other: PageColumn) -> str:
    (what, before), (_, after) = _whole((one, other))
    if before is None or after is None:
        return ""
    text = f", {what} from {percent(before)} to {percent(after)} %"
    return text + (_mostly(one, other, lost=after < before) if one.family == other.family else "")


def _mostly(one: PageColumn, other: PageColumn, *, lost: bool) -> str:
    """The metric that explains most of the difference of two runs."""
    families = [one.family]
    if _whole((one, other))[0][0].startswith("global"):
        families.append(SCALING)
    known = {id: (one.shares(id), other.shares(id)) for id in families}
    changes = {
        (id, name): after[name] - before[name]
        for id, (before, after) in known.items()
        for name in before
        if name in after and _explains(id, name, before)
    }
    if not changes:
        return ""
    most = max(changes, key=lambda key: changes[key] if lost else -changes[key])
    if abs(changes[most]) < _NOTHING:
        return ""
    family, metric = most
    values = [percent(run.metrics[family][metric].value) for run in (one, other)]
    return f", mostly {_lower(family, metric)} ({' to '.join(values)} %)"


def _explains(id: str, metric: str, known: Collection[str]) -> bool:
    """Whether a metric is one that no other that is known explains further."""
    family = load_families()[id]
    is_whole = metric == _GLOBAL or (metric == family.top and family.top not in family.search)
    has_parts = any(part in known for part in family.parts(metric))
    return not (is_whole or has_parts or family.metrics[metric].view_of)


def _steepest(runs: Sequence[PageColumn]) -> str:
    """Between which runs the efficiency falls most, where there are more than two."""
    whole = [value for _, value in _whole(runs)]
    known = [(run.name, value) for run, value in zip(runs, whole, strict=True) if value is not None]
    if len(known) < _SERIES:
        return ""
    (before, high), (after, low) = max(pairwise(known), key=lambda pair: pair[0][1] - pair[1][1])
    if high - low < _NOTHING:
        return ""
    return f"; it falls most from {before} to {after}: {percent(high)} to {percent(low)} %"


def _changed(one: PageColumn, other: PageColumn) -> str:
    """Two runs on as many threads."""
    before, after = one.runtime.value, other.runtime.value
    change = after / before - 1
    if abs(change) < _ALIKE:
        text = f"{other.name} takes as long as {one.name} ({format_time(after)})"
    else:
        text = (
            f"{other.name} takes {percent(abs(change))} % {'longer' if change > 0 else 'less'} "
            f"than {one.name} ({format_time(after)}, {format_time(before)})"
        )
    return f"{text}{_fall(one, other)}."


def _spread(runs: Sequence[PageColumn]) -> str:
    times = sorted(runs, key=lambda run: run.runtime.value)
    fastest, slowest = times[0], times[-1]
    return (
        f"{len(runs)} runs on {plural(fastest.threads, 'thread')} take "
        f"{format_time(fastest.runtime.value)} ({fastest.name}) to "
        f"{format_time(slowest.runtime.value)} ({slowest.name})."
    )


def of_network(document: Document) -> str:
    """What half the latency and equal computing would change, of a sensitivity."""
    network, runtime = document["network"], document["runtime"]
    known = [one for one in properties(network, ()) if one.startswith(("latency", "bandwidth"))]
    values = f" ({', '.join(known)})" if known else ""
    where = f"Replayed on {network['name']}{values}"
    told = [*_half(document), *_balanced(document)]
    if not runtime or not told:
        return ""
    return f"{where}, the run takes {format_time(runtime)}; {', '.join(told)}."


def _half(document: Document) -> Iterator[str]:
    """What half the latency is worth, where the curve of the runtime tells."""
    now = document["network"].get("latency")
    curve = document["latency"]
    points = list(zip(curve["breakpoints"], curve["runtimes"], strict=True))
    if not now or not points[0][0] <= now / 2 <= points[-1][0]:
        return
    (x, before), (end, after) = next(p for p in pairwise(points) if now / 2 <= p[1][0])
    half = before + (after - before) * (now / 2 - x) / (end - x)
    yield f"half the latency {_saves(1 - half / document['runtime'])}"


def _balanced(document: Document) -> Iterator[str]:
    """What equal computing of all ranks is worth: in the region that gains most, else in all."""
    runtime = document["runtime"]
    best = min(document["regions"], key=lambda one: float(one["balanced"]), default=None)
    if best is not None and 1 - best["balanced"] / runtime >= SMALL:
        yield f"balancing {best['name']} {_saves(1 - best['balanced'] / runtime)}"
    for one in document["scenarios"]:
        if one["name"] == "balanced":
            yield f"equal computing on all ranks {_saves(one['gain'] / runtime)}"


def _saves(share: float) -> str:
    return "would not help" if share < SMALL else f"would save {percent(share)} %"


def of_prediction(document: Document, run: PageColumn) -> str:
    """A predicted run, with its intervals."""
    efficiency = run.efficiency
    text = f"{application(document)} on {machine(document)}: {run.split} is predicted to take "
    text += _time(run.runtime)
    if efficiency is not None:
        text += f" at {_percent(efficiency)} parallel efficiency; {_largest(run)}"
    return f"{text}."


def of_splits(document: Document) -> list[str]:
    """For each number of cores the recommended split, with its runtime, and what ties with it."""
    found = []
    by_split = {split_name(one): one for one in document["candidates"]}
    for choice in document["choices"]:
        told = dict(pair for pair in advice(choice, document) if pair[0])
        taken = by_split[split_name(choice["take"])]
        possible = [one for one in document["candidates"] if one["cores"] == choice["cores"]]
        which = "the recommended one is" if is_sure(choice, document) else "recommended is"
        text = (
            f"{application(document)} on {machine(document)}: of "
            f"{plural(len(possible), 'split')} of {choice['cores']} cores {which} "
            f"{told['recommended']}; it is predicted to take {_time(_value(taken['runtime']))}"
        )
        equal = f"; equally good: {told['equally good']}" if "equally good" in told else ""
        found.append(f"{text}{equal}.")
    return found


def of_replays(document: Document) -> str:
    """The runtimes that replays gave, and what changed most."""
    done = [run for run in document["runs"] if run["runtime"] is not None]
    if not done:
        return "No replay came to its end."
    times = sorted(run["runtime"] for run in done)
    against = document["against"]["what"]
    base = {"first": "the first", "ideal": "the ideal network", "measured": "the measured run"}
    changes = [run["change"] for run in done if run["change"] is not None]
    most = max(changes, key=abs, default=None)
    if len(done) == 1:
        name = done[0]["network"]["name"]
        text = f"Replayed on {name}, the run takes {format_time(times[0])}"
    else:
        text = f"{len(done)} replays take {format_time(times[0])} to {format_time(times[-1])}"
    if most is None:
        return f"{text}."
    word = "" if len(done) == 1 else "at most "
    return f"{text}, {word}{100 * most:+.1f} % against {base[against]}."


def of_projection(document: Document) -> str:
    """What the largest projected run would reach."""
    rows = [row for row in document["rows"] if row["metric"] == "runtime"]
    last = max(rows, key=lambda row: row["processes"] * row["threads"])
    size = split_name(last)
    if last["value"] is None:
        return f"No runtime can be projected to {size}."
    return f"Projected to {size}, the run takes {_time(_value(last))}."


def _value(one: Any) -> PageValue:
    return PageValue(one["value"], one.get("low"), one.get("high"))


def _time(one: PageValue) -> str:
    text = format_time(one.value)
    if one.low is None or one.high is None:
        return text
    return f"{text} (90 %: {_brief(one.low)} .. {_brief(one.high)})"


def _percent(one: PageValue) -> str:
    text = f"{percent(one.value)} %"
    if one.low is None or one.high is None:
        return text
    return f"{text} (90 %: {percent(one.low)} .. {percent(one.high)})"


def _brief(seconds: float) -> str:
    return format_time(seconds, digits=3)
