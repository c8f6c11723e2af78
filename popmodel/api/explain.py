"""What a name on a screen means: a metric, a family of metrics, or another term."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from popmodel.api import glossary
from popmodel.efficiency.explain import explain as explain_metric
from popmodel.efficiency.explain import find_family, find_metric, near_names, plain
from popmodel.efficiency.hierarchy import load_families
from popmodel.errors import UsageError
from popmodel.report.explain import catalogue, document

__all__ = ["explain"]

# what screens write behind a name: its unit
_UNITS = (", s", ", %", " %", " s", ", ratios", ",")


def explain(name: str | None = None) -> dict[str, Any]:
    """Explain a name, or list all names.

    Parameters
    ----------
    name : str, optional
        A metric, an abbreviation of one (``LB``), ``FAMILY.METRIC``, a family, a parameter of a
        machine (``memory.bsat``), a key of a signature (``parallel.trip``), a symbol, or any other
        term on a screen (``expected loss``).

    Returns
    -------
    dict
        The document, schema ``popmodel/explain/1``, without provenance.

    Raises
    ------
    UsageError
        If the name is unknown; the hint suggests similar names.
    """
    families = load_families()
    if name is None:
        return catalogue(families.values(), [asdict(word) for word in glossary.words()])
    if "." in name and name.partition(".")[0] in families:
        return document(explain_metric(name, families))
    for spelling in dict.fromkeys([name, *_without_unit(name)]):
        family = find_family(spelling, families)
        if family is not None:
            return catalogue([family])
        words = [asdict(word) for word in glossary.find(spelling)]
        metric = find_metric(spelling, families) or glossary.abbreviations().get(plain(spelling))
        if metric is not None:
            return document(explain_metric(metric, families), words)
        if words:
            return document(None, words)
    if symbols := glossary.find_in_formulas(name):
        return document(None, [asdict(symbol) for symbol in symbols])
    known = {plain(id): id for family in families.values() for id in family.metrics}
    known |= {plain(id): id for id in families} | glossary.names()
    raise UsageError(
        f"unknown name {name!r}", near_names(name, known) or "popmodel explain lists all names"
    )


def _without_unit(name: str) -> list[str]:
    bare = name.strip().rstrip(":")
    shorter = [bare.removesuffix(unit).strip() for unit in _UNITS if bare.endswith(unit)]
    return [bare, *shorter, bare.strip("()")]
