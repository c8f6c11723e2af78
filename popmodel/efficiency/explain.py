"""What a metric is, in words, derived from the one definition that also computes it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass
from popmodel.efficiency.family import AGGREGATES, REASONS, Family, Metric, equation, label


@dataclass(frozen=True)
class ExplainedTerm:
    """A symbol of a formula and what it stands for; ``unit`` is empty for a metric."""

    symbol: str
    meaning: str
    unit: str


@dataclass(frozen=True)
class Definition:
    """A metric as one family defines it."""

    # Id and title of the family, and when to choose it.
    family: str
    title: str
    use: str
    name: str  # Name of the metric
    formula: str  # The formula with symbols and names in full
    terms: tuple[ExplainedTerm, ...]  # Every symbol of the formula
    # What it says, what to look at when it is low, and where it is defined.
    meaning: str
    advice: str
    source: str
    # Equations in which the metric is explained, and in which it explains another.
    parts: tuple[str, ...]
    parents: tuple[str, ...]
    view_of: str | None  # Name of the metric that this one shows from another side
    absent_when: tuple[str, ...]  # What makes the metric absent


@dataclass(frozen=True)
class Explanation:
    """A metric in every family that has it."""

    metric: str
    definitions: tuple[Definition, ...]


def explain(metric: str, families: Mapping[str, Family]) -> Explanation:
    """Explain a metric."""
    within, separator, rest = metric.partition(".")
    if separator and within not in families:
        raise UsageError(f"unknown family {within!r}", f"families: {', '.join(families)}")
    chosen = {within: families[within]} if separator else families
    id = _find(rest if separator else metric, chosen)
    return Explanation(
        id, tuple(_define(family, id) for family in chosen.values() if id in family.metrics)
    )


def find_family(wanted: str, families: Mapping[str, Family]) -> Family | None:
    """The family of that id or title, however written; None if it is not one."""
    by_name = {plain(family.title): family for family in families.values()}
    by_name |= {plain(id): family for id, family in families.items()}
    return by_name.get(plain(wanted))


def find_metric(wanted: str, families: Mapping[str, Family]) -> str | None:
    """The id of the metric of that id or name, however written; None if there is none."""
    return _known(families).get(plain(wanted))


def _known(families: Mapping[str, Family]) -> dict[str, str]:
    """Ids of metrics by their plain names and ids."""
    ids = {id: id for family in families.values() for id in family.metrics}
    names = {
        plain(metric.name): id
        for family in families.values()
        for id, metric in family.metrics.items()
    }
    return names | ids  # an id wins over the name of another metric


def _find(wanted: str, families: Mapping[str, Family]) -> str:
    by_name = _known(families)
    if plain(wanted) in by_name:
        return by_name[plain(wanted)]
    hint = near_names(wanted, by_name | {plain(family): family for family in families})
    raise UsageError(
        f"unknown metric {wanted!r}", hint or "popmodel docs --all lists families and metrics"
    )


def near_names(wanted: str, by_name: Mapping[str, str]) -> str | None:
    """A question with names like the wanted one; None if there are none."""
    text = plain(wanted)
    # A part of a name is likelier than a misspelling of another one.
    near = [name for name in by_name if len(text) > 1 and text in name][:_NEAR]
    near = near or difflib.get_close_matches(text, by_name, n=3)
    suggestions = " or ".join(dict.fromkeys(by_name[each] for each in near))
    return f"did you mean {suggestions}?" if near else None


_NEAR = 6


def plain(text: str) -> str:
    """A name without what people write differently: case, blanks, hyphens, American spelling."""
    return re.sub(r"[\s_-]+", "_", text.strip().casefold()).replace(
        "serialization", "serialisation"
    )


def _define(family: Family, id: str) -> Definition:
    metric = family.metrics[id]
    return Definition(
        family=family.id,
        title=family.title,
        use=family.use,
        name=metric.name,
        formula=_in_full(family, metric),
        terms=tuple(_term(family, name) for name in _in_order(metric)),
        meaning=metric.meaning,
        advice=metric.advice,
        source=metric.source,
        parts=tuple(equation(family, each) for each in family.decompositions if each.parent == id),
        parents=tuple(equation(family, each) for each in family.decompositions if id in each.parts),
        view_of=None if metric.view_of is None else family.metrics[metric.view_of].name,
        absent_when=_absences(family, id),
    )


def _in_full(family: Family, metric: Metric) -> str:
    def full(word: re.Match[str]) -> str:
        name = word.group()
        return label(family, name) if name in metric.formula.names else name

    return re.sub(r"[A-Za-z_]\w*", full, metric.formula.text)


def _in_order(metric: Metric) -> list[str]:
    """Names of the formula as they appear in it."""
    words = re.findall(r"[A-Za-z_]\w*", metric.formula.text)
    return [word for word in dict.fromkeys(words) if word in metric.formula.names]


def _term(family: Family, name: str) -> ExplainedTerm:
    if name in family.metrics:
        return ExplainedTerm(family.metrics[name].name, family.metrics[name].meaning, "")
    aggregate = AGGREGATES[name]
    return ExplainedTerm(aggregate.symbol, aggregate.meaning, aggregate.unit)


def _absences(family: Family, id: str) -> tuple[str, ...]:
    reasons: dict[str, None] = {}
    for name in family.needs(id):
        for quantity in AGGREGATES[name].needs:
            reasons.update(dict.fromkeys(REASONS[quantity]))
    return tuple(reasons)
