"""What a name on a screen means: a metric, a family of metrics, or another term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api import glossary
from popmodel.base.errors import UsageError
from popmodel.base.plain import document
from popmodel.efficiency.explain import explain as explain_metric
from popmodel.efficiency.explain import find_family, find_metric, near_names, plain
from popmodel.efficiency.hierarchy import load_families

if TYPE_CHECKING:
    from popmodel.api.glossary import Word
    from popmodel.efficiency.explain import Explanation
    from popmodel.efficiency.family import Family

SCHEMA = "popmodel/explain/1"

# what screens write behind a name: its unit
_UNITS = (", s", ", %", " %", " s", ", ratios", ",")


def explain(name: str | None = None) -> dict[str, Any]:
    """Explain a name, or list all names."""
    families = load_families()
    if name is None:
        return _catalogue(families.values(), glossary.words())
    if "." in name and name.partition(".")[0] in families:
        return _meaning(explain_metric(name, families))
    for spelling in dict.fromkeys([name, *_without_unit(name)]):
        family = find_family(spelling, families)
        if family is not None:
            return _catalogue([family])
        metric = find_metric(spelling, families) or glossary.abbreviations().get(plain(spelling))
        words = glossary.find(spelling, is_metric=metric is not None)
        if metric is not None:
            return _meaning(explain_metric(metric, families), words)
        if words:
            return _meaning(None, words)
    if symbols := glossary.find_in_formulas(name):
        return _meaning(None, symbols)
    known = {plain(id): id for family in families.values() for id in family.metrics}
    known |= {plain(id): id for id in families} | glossary.names()
    raise UsageError(
        f"unknown name {name!r}", near_names(name, known) or "popmodel explain lists all names"
    )


def _meaning(explanation: Explanation | None, words: Sequence[Word] = ()) -> dict[str, Any]:
    """The metric of a name, if there is one, and other words of that name."""
    metric = {"metric": None, "definitions": []} if explanation is None else vars(explanation)
    return document(SCHEMA, **metric, words=words)


def _catalogue(families: Iterable[Family], words: Sequence[Word] = ()) -> dict[str, Any]:
    """The metrics of families, and other words."""
    return document(
        SCHEMA,
        words=words,
        families=[
            {
                "family": family.id,
                "title": family.title,
                "use": family.use,
                "source": family.source,
                "metrics": [
                    {
                        "metric": id,
                        "name": family.metrics[id].name,
                        "depth": depth,
                        "meaning": family.metrics[id].meaning,
                    }
                    for id, depth in _depths(family).items()
                ],
            }
            for family in families
        ],
    )


def _depths(family: Family) -> dict[str, int]:
    """Every metric once, with its depth where the family's trees list it first."""
    found: dict[str, int] = {}
    for walk in family.tree():
        for line in walk.rows:
            found.setdefault(line.metric, line.depth)
    return found


def _without_unit(name: str) -> list[str]:
    bare = name.strip().rstrip(":")
    shorter = [bare.removesuffix(unit).strip() for unit in _UNITS if bare.endswith(unit)]
    return [bare, *shorter, bare.strip("()")]
