"""What a sweep recommends, in words: the split, what others cost, what is uncertain."""

from __future__ import annotations

from popmodel.base.units import count, plural
from popmodel.prediction.prediction import OUTSIDE
from popmodel.prediction.split_choice import SURE, WITHIN
from popmodel.reports.figures import percent
from popmodel.reports.splits import Entry
from popmodel.reports.splits import name as split_name
from popmodel.reports.uncertainty import main_inputs, named
from popmodel.reports.views import Document

_LEAST_POINTS = 0.05  # of efficiency: what is less rounds to nothing

_EQUAL = f"equally good (within {100 * WITHIN:g} %)"


def percentage(fraction: float | None) -> str:
    """A probability in whole per cent; ``-`` for none."""
    return "-" if fraction is None else f"{100 * fraction:.0f} %"


def advice(choice: Entry, document: Document) -> list[tuple[str, str]]:
    """The recommendation for one number of cores, as names and values.

    Lines without a name belong to the one above.
    """
    several = len(document["choices"]) > 1
    lines = [("cores", str(choice["cores"]))] if several else []
    by_split = {(one["processes"], one["threads"]): one for one in document["candidates"]}
    is_doubted = bool(document.get("learnt", {"doubts": ()})["doubts"])
    taken, *others = map(split_name, choice["tied"])
    if is_doubted:
        tie = f"; it may be as fast as {', '.join(others)}" if others else ""
        lines.append(("fastest", f"{taken}, as far as known, not to be trusted yet{tie}"))
    else:
        lines.append(("recommended", _recommended(choice, document)))
    sure = is_sure(choice, document)
    equal = [
        f"{split_name(pair)} ({percentage(by_split[tuple(pair)]['probability_tied'])})"
        for pair in choice["tied"]
        if sure and not is_doubted
    ]
    if len(equal) > 1 and not choice["indifferent"]:
        meaning = f"probability of being within {100 * WITHIN:g} % of the best"
        lines.append(("equally good", f"{', '.join(equal)}: {meaning}"))
    heading = "defaults"
    for default in choice["defaults"]:
        text = _default(default, choice, by_split)
        lines.append((heading, text.replace("recommended", "the same") if is_doubted else text))
        heading = ""
    lines.append(("replay", _replayed(choice["checked"])))
    matters = choice["doubt"] is not None or not choice["indifferent"]
    if sure and matters and len(_compared(choice, document)) > 1:
        lines.append(("uncertainty", _uncertainty(choice, by_split[tuple(choice["take"])])))
    return lines


def is_sure(choice: Entry, document: Document) -> bool:
    """Whether every split that is compared has an interval, so that probabilities mean anything."""
    compared = _compared(choice, document)
    return not any(one["validity"]["status"] == OUTSIDE for one in compared)


def if_sure(one: Entry, key: str, document: Document) -> float | None:
    """What draws say of a split, such as a probability; None if that is not sure."""
    choices = (each for each in document["choices"] if each["cores"] == one["cores"])
    found: float | None = one[key]
    return found if all(is_sure(choice, document) for choice in choices) else None


def command(choice: Entry) -> str | None:
    """The command that measures the input that the choice depends on most."""
    doubt: Entry | None = choice["doubt"]
    return None if doubt is None else doubt["command"]


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
