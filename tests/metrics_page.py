"""The page of metrics, written from the families: ``popmodel/docs/metrics.md``."""

from __future__ import annotations

from collections.abc import Iterator

from console import ROOT

from popmodel.efficiency.explain import Definition, explain
from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import AGGREGATES

PAGE = ROOT / "popmodel" / "docs" / "metrics.md"

HEAD = """\
# Metrics: every efficiency, its formula and what to do when it is low

Generated from the families of metrics by `tests/update_documents.py`. `popmodel explain METRIC`
shows one metric, `popmodel explain FAMILY` a family, `popmodel metrics TRACE --family NAMES`
computes them.

An efficiency is a fraction of 1; screens show per cent. In an additive family the losses
(1 - efficiency) of the parts add up to the loss of the whole. In a multiplicative family the
efficiencies of the parts multiply to it. Where tools read a definition differently,
[definitions](definitions.md) says what popmodel does.

Which family?

| program | family |
|---|---|
| MPI only | `mpi` or `mpi-additive` |
| OpenMP, or MPI and OpenMP | `hybrid-additive` |
| the same, to compare with POP reports of earlier years | `hybrid-multiplicative` |
| the same, to compare with TALP | `talp` |
| several runs of one program | `scaling`, beside the others |
"""


def page() -> str:
    """The whole page."""
    families = load_families()
    lines = [HEAD]
    for family in families.values():
        lines += _family(family)
    return "\n".join([*lines, *_quantities()]) + "\n"


def _family(family: Family) -> Iterator[str]:
    yield f"## {family.id}: {family.title}\n"
    yield f"{family.use}\n"
    yield f"Source: {family.source}.\n"
    shown = dict.fromkeys(row.metric for walk in family.tree() for row in walk.rows)
    for id in shown:
        (definition,) = explain(f"{family.id}.{id}", {family.id: family}).definitions
        yield from _metric(id, definition)


def _metric(id: str, definition: Definition) -> Iterator[str]:
    yield f"### {definition.name}\n"
    yield f"`{definition.family}.{id}`\n"
    yield f"{definition.meaning}\n"
    yield f"- Formula: `{definition.formula}`"
    yield from (f"- Parts: `{parts}`" for parts in definition.parts)
    if definition.view_of is not None:
        yield f"- View of: {definition.view_of}"
    yield f"- If low: {definition.advice}"
    if definition.absent_when:
        yield f"- Absent: {'; '.join(definition.absent_when)}"
    yield f"- Source: {definition.source}\n"


def _quantities() -> Iterator[str]:
    yield "## Quantities in the formulas\n"
    yield "| symbol | unit | meaning |"
    yield "|---|---|---|"
    for each in AGGREGATES.values():
        yield f"| {each.symbol} | {each.unit} | {each.meaning} |"
