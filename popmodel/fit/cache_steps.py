"""Work whose cost rises where its data leave a cache.

Of data of W beyond a capacity C, the part ``W**q/(W**q + C**q)`` comes from the memory behind the
cache: none far below, all far above, half where both are equal. Seconds are then those of the work
in the cache and, of that part, more. What W is in bytes nobody has to know: it goes with the work
of a run, where processes share the cache, or with that of a process or thread, where each has its
own. C is looked for between the sizes that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from popmodel.fit.candidates import LAST, Form
from popmodel.fit.samples import Array, LawPoints
from popmodel.fit.terms import LawTerm, number, product

_STEEP = (1, 2, 4)
"""Exponents q that are tried: from random to nearly regular use of the data."""
_DIGITS = 3
_MOST = 12
"""Capacities that are tried at most."""


def edged(points: LawPoints, works: Sequence[Form]) -> list[Form]:
    """Return forms of work with an edge of a cache."""
    found: list[Form] = []
    for work in works:
        (term,) = work.terms
        for size in _sizes(term):
            found += [
                Form((term, _beyond(term, size, capacity, steep)), LAST)
                for capacity in _capacities(size.at(points.configurations))
                for steep in _STEEP
            ]
    return found


def _sizes(work: LawTerm) -> list[LawTerm]:
    """What the data may go with: the work of a process, and that of all where the problem grows."""
    factors = work.factors or {}
    whole = product({name: one for name, one in factors.items() if name not in ("P", "T")})
    return [work, *([whole] if whole.names and whole.text != work.text else [])]


def _capacities(sizes: Array) -> list[float]:
    """Middles between neighbouring sizes, on a logarithmic scale."""
    different = np.unique(sizes[sizes > 0])
    middles = np.sqrt(different[:-1] * different[1:]).tolist()
    step = math.ceil(len(middles) / _MOST) or 1
    return [float(f"{one:.{_DIGITS}g}") for one in middles[::step]]


def _beyond(work: LawTerm, size: LawTerm, capacity: float, steep: int) -> LawTerm:
    over = size.text if size.text.isidentifier() else f"({size.text})"
    ratio = f"({number(capacity)}/{over})"
    beyond = ratio if steep == 1 else f"{ratio}**{steep}"
    return LawTerm(f"{work.text}/(1 + {beyond})", None)
