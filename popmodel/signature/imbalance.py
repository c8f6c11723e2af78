"""How much the work of processes differs with other numbers of them than were traced.

What differs by chance from one execution to the next is no property of a process. It is left out
without knowing its law: what a process computes in every other execution of the places of a program
and what it computes in those between have only in common what lasts, so that their covariance over
the processes is the variance of that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.fit.law import ASSUMED
from popmodel.fit.physical_laws import growth
from popmodel.fit.samples import Sample
from popmodel.signature.assumed_scaling import SignatureAmount, SignatureConstant
from popmodel.signature.computing import timing
from popmodel.signature.law_notes import FittedLaws, of_growth
from popmodel.signature.toml import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.fit.physical_laws import LawGrowth
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.block_distribution import LargestBlock
    from popmodel.signature.recorded_times import Description
    from popmodel.structure.structure import Structure


_NAME = "imbalance"
_MOST = 0.5
"""Coefficient of variation of the processes beyond which they do different things."""
_UNTOLD = 1.0
"""Relative error of an imbalance from which it may be chance."""
_DIGITS = 4


def unequal(
    structure: Structure,
    threads: int,
    parameters: Mapping[str, float],
    without: int | None = None,
) -> Sample | None:
    """Return by how much the computing of processes differs for good, as their part of a law."""
    events, times = structure.events, timing(structure.events)
    processes = structure.program.sequences
    spent = times.before + times.inside
    often = np.bincount(structure.place, minlength=len(structure.places))
    several = often[structure.place] >= 2 * processes  # each has some of both halves
    if processes < (2 if without is None else 3) or not spent[several].any():
        return None
    half = structure.execution[several] % 2
    of = events.sequence[several].astype(np.int64) * 2 + half
    each = np.bincount(of, spent[several], 2 * processes).reshape(processes, 2)
    each = each if without is None else np.delete(each, without, axis=0)
    mean = each.mean(axis=0)
    if not mean.all():
        return None
    table = np.cov((each / mean).T)
    lasting, by_chance = float(table[0, 1]), float(np.diag(table).mean() - table[0, 1])
    cv = math.sqrt(max(lasting, 0.0))
    if cv > _MOST:
        return None
    chance = by_chance / (2 * lasting * math.sqrt(len(each) - 1)) if lasting > 0 else 0.0
    return Sample(processes, threads, cv, dict(parameters), max(chance, 0.0))


def grown(
    descriptions: Sequence[Description], runs: Sequence[Sample | None]
) -> tuple[FittedLaws, LawGrowth | None]:
    """Find how imbalance grows with the number of processes."""
    cvs = {
        point: one.persistent_cv * math.sqrt(len(one.by_rank) / (len(one.by_rank) - 1))
        for point, one in enumerate(descriptions)
        if one.by_rank and 0 < one.persistent_cv <= _MOST
    }
    if not cvs:
        return FittedLaws({}, {}, (), ()), None
    base, known = runs[0], [one for one in runs if one is not None and one.value > 0]
    if len(known) > 1 and base in known and _is_told(base):
        return _of_several(descriptions, cvs, known, growth(known))
    amounts: dict[Key, SignatureAmount] = {
        ("persistent_cv", point): SignatureAmount(
            number(cv, _DIGITS), note="trace; its growth assumed"
        )
        for point, cv in cvs.items()
    }
    point, cv = next(iter(cvs.items()))
    return FittedLaws(amounts, {}, (), ()), growth(
        [Sample(len(descriptions[point].by_rank), 1, cv)]
    )


def _is_told(run: Sample | None) -> bool:
    return run is not None and (run.relative_error or 0.0) < _UNTOLD


def _of_several(
    descriptions: Sequence[Description],
    cvs: Mapping[int, float],
    runs: Sequence[Sample],
    found: LawGrowth,
) -> tuple[FittedLaws, LawGrowth]:
    """Phases that are executed often enough follow the law of all work, as it was in the first run.

    What is executed once differs by chance as well, which nobody can tell from what lasts.
    """
    source = f"{found.cv.meaning} for good, all work"
    constant = SignatureConstant(
        _NAME, found.cv.value, found.cv.low, found.cv.high, "1", found.cv.origin, source
    )
    base = runs[0].value
    amounts: dict[Key, SignatureAmount] = {
        ("persistent_cv", point): SignatureAmount(
            f"{cv / base:.{_DIGITS}g}*{_NAME}", (constant,), f"{found.exponent.origin}: of other P"
        )
        if descriptions[point].executions > 1
        else SignatureAmount(number(cv, _DIGITS), note="trace; executed once")
        for point, cv in cvs.items()
    }
    notes = tuple(f"imbalance between processes: {note}" for note in found.notes)
    law = of_growth("imbalance between processes", found, len(runs))
    return FittedLaws(amounts, {}, (law,), notes), found


def imbalance(found: LawGrowth | None, largest: LargestBlock | None = None) -> dict[str, Any]:
    """Return the table ``[imbalance]`` of a signature."""
    whole = {} if largest is None else {"largest": dict(largest.entry)}
    if found is None:
        return whole
    one = found.exponent
    what = "cells between alike and independent" if one.origin == ASSUMED else one.meaning
    table = {
        "value": number(one.value, _DIGITS),
        "low": number(one.low, _DIGITS),
        "high": number(one.high, _DIGITS),
        "origin": one.origin,
        "source": what,
    }
    return {"reference_processes": found.reference_processes, "growth_exponent": table, **whole}
