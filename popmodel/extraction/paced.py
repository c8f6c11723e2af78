"""Times of phases as instructions times seconds per instruction, each by a law of its own.

Instructions repeat from run to run where times do not, so that their law tells what every process
does again from what is divided, and what processes execute for each other. How long an instruction
takes hardly changes with P; where it does, caches or a memory that is shared are behind it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.extraction.amounts import Amount
from popmodel.extraction.factors import Factor
from popmodel.extraction.spent import ERROR_OF_COUNTS
from popmodel.extraction.told import factor_of, told
from popmodel.extraction.written import Noted
from popmodel.extraction.written import number as rounded
from popmodel.fitting.law import law
from popmodel.fitting.pooling import pooled
from popmodel.fitting.samples import Sample
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.fitting.pooling import Pool

_DIGITS = 6


@dataclass(frozen=True)
class Executed:
    """Instructions of phases that grow alike, by a law."""

    pool: Pool  # The law, and the size of each part
    factor: Factor  # By which they grow
    name: str  # Of the factor

    def amount(self, part: int, turns: int) -> Amount:
        """Instructions of an execution of a part."""
        size = rounded(self.pool.sizes[part].value / turns, _DIGITS)
        note = f"{self.pool.law.origin}: {self.pool.law.form}"
        return Amount(f"{size:.12g}*{self.name}", self.factor.constants, note)


def executed_by(
    prefix: str, what: Sequence[str], parts: Sequence[Sequence[Sample]], likely: Sequence[str]
) -> list[Executed]:
    """Find the laws of instructions."""
    found = []
    pools = pooled(parts, hints=likely, between=ERROR_OF_COUNTS)
    for order, pool in enumerate(pools, start=1):
        name = f"{prefix}_instructions" + (str(order) if order > 1 else "")
        let, constants = factor_of(name, pool.law)
        members = list(pool.sizes)
        of = _of([what[index] for index in members])
        home = pool.law.constants["a"].value
        values = tuple(
            pool.law.at(one.processes, one.threads, one.parameters).value / home
            for one in parts[members[0]]
        )
        label = f"instructions {of}"
        notes = tuple(f"{label}: {note}" for note in pool.law.notes)
        laws = (told(label, "1", pool.law, None),)
        meaning = pool.law.constants["a"].meaning
        found.append(Executed(pool, Factor(let, constants, values, meaning, laws, notes), name))
    return found


def _of(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} alike"


def paced(
    name: str,
    one: Executed,
    times: Mapping[int, Sequence[Sample]],
    parts: Sequence[Sequence[Sample]],
) -> tuple[Factor, float | None]:
    """Find the factor on times from that on instructions."""
    first = next(iter(times.values()))
    spent = np.array([[each.value for each in samples] for samples in times.values()]).sum(axis=0)
    done = np.array([[each.value for each in parts[index]] for index in times]).sum(axis=0)
    samples = [
        Sample(run.processes, run.threads, float(time / count), run.parameters)
        for run, time, count in zip(first, spent, done, strict=True)
        if time > 0 and count > 0
    ]
    found = law(samples, hints=("1",))
    pace = f"{name}_pace"
    let, constants = factor_of(pace, found)
    home = found.constants["a"].value
    values = tuple(
        value * found.at(run.processes, run.threads, run.parameters).value / home
        for value, run in zip(one.factor.values, first, strict=True)
    )
    label = "seconds per instruction " + one.factor.laws[0]["of"].removeprefix("instructions ")
    whole: dict[str, Any] = {
        name: Noted(f"{one.name}*{pace}", "instructions times seconds per instruction")
    }
    errors = (one.pool.law.error, found.error)
    known = [error for error in errors if error is not None]
    return (
        Factor(
            {**one.factor.let, **let, **whole},
            (*one.factor.constants, *constants),
            values,
            one.factor.meaning,
            (told(label, "s", found, None),),
            tuple(f"{label}: {note}" for note in found.notes),
        ),
        math.hypot(*known) if len(known) == len(errors) else None,
    )
