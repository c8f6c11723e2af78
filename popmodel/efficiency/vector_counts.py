"""Floating-point instructions by the width of their vectors, from counters where a trace has them.

Intel's counters FP_ARITH_INST_RETIRED.* count retired instructions by vector length and precision
(a fused multiply-add counts twice), under the names of PAPI, Extrae, perf and Score-P:
``FP_ARITH:SCALAR_DOUBLE``, ``fp_arith_inst_retired.256b_packed_double``. Some processors offer sums
of several (``SCALAR``, ``4_FLOPS``, ``8_FLOPS``). No public definition of POP exists; these shares
are popmodel's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.values import dataclass
from popmodel.efficiency.family import REASONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

# compiled where a trace has counters
_NAME = r"(?i:(?:\w+::)?FP_ARITH(?:_INST_RETIRED)?[:.](?P<masks>\w+(?:[:.]\w+)*?)(?:[:.]\w+=\w+)*)"
_OF_MASK: Mapping[str, frozenset[tuple[str, int]]] = {
    "SCALAR": frozenset({("double", 1), ("single", 1)}),
    "SCALAR_DOUBLE": frozenset({("double", 1)}),
    "SCALAR_SINGLE": frozenset({("single", 1)}),
    **{
        f"{bits}B_PACKED_{precision.upper()}": frozenset({(precision, bits // size)})
        for bits in (128, 256, 512)
        for precision, size in (("double", 64), ("single", 32))
    },
    "4_FLOPS": frozenset({("single", 4), ("double", 4)}),
    "8_FLOPS": frozenset({("single", 8), ("double", 8)}),
}
"""Precision and elements of the instructions that a counter counts, by the mask of its name."""
_NEEDED = {"double": (1, 2, 4), "single": (1, 4, 8)}
"""Elements whose counters are needed of each precision; processors without AVX-512 have no more."""
_MASK_OF = {next(iter(kinds)): mask for mask, kinds in _OF_MASK.items() if len(kinds) == 1}


@dataclass(frozen=True)
class VectorCounts:
    """Floating-point work in the useful time of all threads."""

    flops: float  # Operations: each instruction counts as often as it has elements
    vector_flops: float  # Those in instructions of more than one element
    instructions: float
    packed_instructions: float  # Those of more than one element

    def aggregates(self) -> dict[str, float]:
        """Scalars that formulas use."""
        return {
            "flops": self.flops,
            "vector_flops": self.vector_flops,
            "float_instructions": self.instructions,
            "packed_instructions": self.packed_instructions,
        }


def width_of(name: str) -> int | None:
    """Elements of the instructions that a counter counts; None for any other counter."""
    kinds = _kinds(name)
    return None if kinds is None else next(iter(kinds))[1]


def _kinds(name: str) -> frozenset[tuple[str, int]] | None:
    """Precision and elements of what a counter counts, if these are equally many for all."""
    found = re.fullmatch(_NAME, name)
    if found is None:
        return None
    masks = [_OF_MASK.get(mask.upper()) for mask in re.split("[:.]", found["masks"])]
    kinds = frozenset[tuple[str, int]]().union(*(mask or () for mask in masks))
    if None in masks or len({elements for _, elements in kinds}) != 1:
        return None
    return kinds


def vector_counters(names: Sequence[str]) -> tuple[list[str], str]:
    """Choose the counters that tell of all widths once, or say why they do not (``""`` if they do).

    Sums of several kinds go before their parts.
    """
    known = {name: kinds for name in names if (kinds := _kinds(name))}
    chosen: list[str] = []
    covered: set[tuple[str, int]] = set()
    for name, kinds in sorted(known.items(), key=lambda one: -len(one[1])):
        if covered.isdisjoint(kinds):
            chosen.append(name)
            covered |= kinds
        elif not kinds <= covered:
            return [], f"{name} counts in part what other counters do"
    if not chosen:
        return [], NO_COUNTERS
    missing = [
        _MASK_OF[precision, elements]
        for precision in {precision for precision, _ in covered}
        for elements in _NEEDED[precision]
        if (precision, elements) not in covered
    ]
    if missing:
        return [], f"no counter FP_ARITH_INST_RETIRED:{', '.join(sorted(missing))}"
    return chosen, ""


NO_COUNTERS = REASONS["vector_counts"][0]


def vector_counts(sums: Mapping[str, NDArray[np.float64]]) -> VectorCounts:
    """Add up counts of all threads, by the names of their counters."""
    number = {name: float(counts.sum()) for name, counts in sums.items()}
    width = {name: width_of(name) or 0 for name in sums}
    return VectorCounts(
        flops=sum(width[name] * number[name] for name in sums),
        vector_flops=sum(width[name] * number[name] for name in sums if width[name] > 1),
        instructions=sum(number.values()),
        packed_instructions=sum(number[name] for name in sums if width[name] > 1),
    )
