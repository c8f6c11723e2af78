"""What a metric is, in words, derived from the one definition that also computes it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from popmodel.base.errors import UsageError
from popmodel.efficiency.family import AGGREGATES, REASONS, Family, Metric, equation, label


def explain(metric: str, families: Mapping[str, Family]) -> dict[str, Any]:
    """Explain a metric: its id, and how each family that has it defines it."""
    within, separator, rest = metric.partition(".")
    if separator and within not in families:
        raise UsageError(f"unknown family {within!r}", f"families: {', '.join(families)}")
    chosen = {within: families[within]} if separator else families
    id = _find(rest if separator else metric, chosen)
    having = (family for family in chosen.values() if id in family.metrics)
    return {"metric": id, "definitions": [_define(family, id) for family in having]}


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


def _define(family: Family, id: str) -> dict[str, Any]:
    """A metric as a family defines it: every symbol of its formula, what it is part of."""
    metric = family.metrics[id]
    decompositions = family.decompositions
    return {
        "family": family.id,
        "title": family.title,
        "use": family.use,
        "name": metric.name,
        "formula": _in_full(family, metric),
        "terms": [_term(family, name) for name in _in_order(metric)],
        "meaning": metric.meaning,
        "advice": metric.advice,
        "source": metric.source,
        "parts": [equation(family, each) for each in decompositions if each.parent == id],
        "parents": [equation(family, each) for each in decompositions if id in each.parts],
        "view_of": None if metric.view_of is None else family.metrics[metric.view_of].name,
        "absent_when": _absences(family, id),
    }


def _in_full(family: Family, metric: Metric) -> str:
    def full(word: re.Match[str]) -> str:
        name = word.group()
        return label(family, name) if name in metric.formula.names else name

    return re.sub(r"[A-Za-z_]\w*", full, metric.formula.text)


def _in_order(metric: Metric) -> list[str]:
    """Names of the formula as they appear in it."""
    words = re.findall(r"[A-Za-z_]\w*", metric.formula.text)
    return [word for word in dict.fromkeys(words) if word in metric.formula.names]


def _term(family: Family, name: str) -> dict[str, str]:
    """A symbol of a formula and what it stands for; a metric has no unit."""
    if name in family.metrics:
        metric = family.metrics[name]
        return {"symbol": metric.name, "meaning": metric.meaning, "unit": ""}
    aggregate = AGGREGATES[name]
    return {"symbol": aggregate.symbol, "meaning": aggregate.meaning, "unit": aggregate.unit}


def _absences(family: Family, id: str) -> list[str]:
    reasons: dict[str, None] = {}
    for name in family.needs(id):
        for quantity in AGGREGATES[name].needs:
            reasons.update(dict.fromkeys(REASONS[quantity]))
    return list(reasons)
