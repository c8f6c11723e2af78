"""The page of metrics, written from the families: ``popmodel/docs/metrics.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from console import ROOT

from popmodel.base.units import format_time
from popmodel.efficiency.explain import explain
from popmodel.efficiency.family import AGGREGATES, Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.verdict import GOOD, POP
from popmodel.traces.caveats import MEASURABLE

PAGE = ROOT / "popmodel" / "docs" / "metrics.md"

HEAD = """\
# Every efficiency: formula, meaning, advice

Generated from the families of metrics. `popmodel docs METRIC`
shows one metric, `popmodel docs FAMILY` a family, `popmodel metrics TRACE --family NAMES`
computes them.

An efficiency is a fraction of 1; screens show per cent. In an additive family the losses
(1 - efficiency) of the parts add up to the loss of the whole. In a multiplicative family the
efficiencies of the parts multiply to give it. Where tools read a definition differently,
[definitions](definitions.md) says what popmodel does.

Which family?

| program | family |
|---|---|
| MPI only | `mpi` or `mpi-additive` |
| OpenMP, or MPI and OpenMP | `hybrid-additive` |
| the same, to compare with POP reports of earlier years | `hybrid-multiplicative` |
| the same, to compare with TALP | `talp` |
| several runs of one program | `scaling`, beside the others |

## What `metrics` advises

The run with the lowest global efficiency leads. Its loss is divided among the metrics that nothing
explains further, by the core time (threads x runtime) that each costs: 1 - parallel efficiency
among its parts, parallel efficiency x (1 - computation scaling) among the parts of computation
scaling; in a sum by what parts lack to 1, in a product by their logarithms. The costliest is named
first, with what the run shows about its cause; others follow if they cost 5 % or more.

- No advice from {good} on: parallel efficiency and computation scaling of all runs.
- POP considers {pop} good; the first line says on which side of it the run is.
- No advice on less than {least}, or on a run below 1 s with fewer than 10 MPI calls and parallel
  regions.
- "Doubtful": threads share cores, or neither a slow network nor fork and join explain the loss.
"""


def page() -> str:
    """The whole page."""
    families = load_families()
    least = format_time(MEASURABLE, trim=True)
    lines = [HEAD.format(good=f"{GOOD:.0%}", pop=f"{POP:.0%}", least=least)]
    for family in families.values():
        lines += _family(family)
    return "\n".join([*lines, *_quantities()]) + "\n"


def _family(family: Family) -> Iterator[str]:
    yield f"## {family.id}: {family.title}\n"
    yield f"{family.use}\n"
    yield f"Source: {family.source}.\n"
    shown = dict.fromkeys(row.metric for walk in family.tree() for row in walk.rows)
    for id in shown:
        (definition,) = explain(f"{family.id}.{id}", {family.id: family})["definitions"]
        yield from _metric(id, definition)


def _metric(id: str, definition: dict[str, Any]) -> Iterator[str]:
    yield f"### {definition['name']}\n"
    yield f"`{definition['family']}.{id}`\n"
    yield f"{definition['meaning']}\n"
    yield f"- Formula: `{definition['formula']}`"
    yield from (f"- Parts: `{parts}`" for parts in definition["parts"])
    if definition["view_of"] is not None:
        yield f"- View of: {definition['view_of']}"
    yield f"- If low: {definition['advice']}"
    if definition["absent_when"]:
        yield f"- Absent: {'; '.join(definition['absent_when'])}"
    yield f"- Source: {definition['source']}\n"


def _quantities() -> Iterator[str]:
    yield "## Quantities in the formulas\n"
    yield "| symbol | name in a family's file | unit | meaning |"
    yield "|---|---|---|---|"
    for each in AGGREGATES.values():
        yield f"| {each.symbol} | `{each.name}` | {each.unit} | {each.meaning} |"
