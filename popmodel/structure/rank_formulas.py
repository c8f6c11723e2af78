"""Formulas of the rank: who takes part, and who a partner is, in the grammar of signatures.

A formula is found by trying simple forms in order and is kept only if it gives the right value on
every rank; nothing here is approximate. Forms of partners: an offset (``rank + 4``), around a ring
or around the rows of a grid (``rank // 4 * 4 + (rank + 1) % 4``), one rank for all (``0``), the
exchange across bits of the rank (``rank + 2 - 4 * (rank // 2 % 2)`` is the rank XOR 2), the mirror
(``7 - rank``) and transposes of a grid. Forms of conditions: bounds of the rank and of its
coordinates in grids, and two of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOBODY = -1
"""A rank that must have no partner: a formula has to leave the ranks there."""

ANYBODY = -2
"""A rank that a formula says nothing about."""

_WIDE = 200
"""Conditions that are tried in pairs at most."""

_BITS = 4
"""Bits of the rank that one exchange flips at most."""


class FormulaRow(NamedTuple):
    """Ranks that have one formula for their partner."""

    ranks: NDArray[np.bool_]  # bool[P]: Who they are
    formula: str  # Their partner


def split(partner: NDArray[np.int64], *, free: bool = False) -> list[FormulaRow]:
    """Find as few formulas as give the partner of every rank."""
    processes = len(partner)
    rest = partner >= 0
    rows: list[FormulaRow] = []
    while rest.any():
        wanted = np.where(rest, partner, ANYBODY)
        best: tuple[NDArray[np.bool_], str] | None = None
        for text, values in _partners(wanted):
            hit = rest & (values == partner)
            if best is None or hit.sum() > best[0].sum():
                best = hit, text
                # Wherever there is no partner the formula leads out of the ranks.
                leads_out = ((values < 0) | (values >= processes))[partner < 0]
                if free and not rows and hit.sum() == rest.sum() and leads_out.all():
                    return [FormulaRow(np.ones(processes, bool), text)]
                if hit.sum() == rest.sum():
                    break
        assert best is not None  # the offset of a rank is a form
        ranks, text = best
        if ranks.sum() == 1:
            text = str(int(partner[ranks][0]))
        rows.append(FormulaRow(ranks, text))
        rest &= ~ranks
    return rows


def colour(members: Sequence[NDArray[np.int32]], processes: int) -> str | None:
    """Formula of the rank that tells communicators apart, as the colour of MPI_Comm_split."""
    of = np.full(processes, -1, np.int64)
    for number, ranks in enumerate(members):
        of[ranks] = number
    if np.any(of < 0):
        return None
    if len(members) == 1:
        return "0"
    for text, values in _colours(np.arange(processes)):
        pairs = np.unique(np.stack([of, values]), axis=1)
        if pairs.shape[1] == len(members) == len(np.unique(values)):
            return text
    return None


def _colours(rank: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    strides = _strides(len(rank))
    for stride in strides:
        yield f"rank // {stride}", rank // stride
        yield f"rank % {stride}", rank % stride
    for block in strides:
        for stride in strides:
            if 1 < stride < block and block % stride == 0:
                text = f"rank // {block} * {stride} + rank % {stride}"
                yield text, rank // block * stride + rank % stride


@lru_cache(maxsize=64)
def _strides(processes: int) -> tuple[int, ...]:
    """Divisors of P but for 1 and P: strides and extents that a grid of all ranks can have."""
    return tuple(d for d in range(2, processes // 2 + 1) if processes % d == 0)


def _offset(text: str, offset: int) -> str:
    if not offset:
        return text
    return f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"


def _partners(wanted: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Forms of a partner with their values on all ranks, simple ones first.

    `wanted` has the partners, negative where they do not matter; it suggests the numbers in the
    forms, so that few are tried.
    """
    processes = len(wanted)
    rank = np.arange(processes)
    where = np.flatnonzero(wanted >= 0)
    first, goals = int(where[0]), wanted[where]
    offsets, often = np.unique(goals - where, return_counts=True)
    for offset in offsets[np.argsort(-often, kind="stable")][:8].tolist():
        yield _offset("rank", offset), rank + offset
    if len(where) > 1:
        values, often = np.unique(goals, return_counts=True)
        common = int(values[np.argmax(often)])
        yield str(common), np.full(processes, common)
    for offset in _around(goals - where, processes):
        yield f"({_offset('rank', offset)}) % P", (rank + offset) % processes
    mirror = int(goals[0]) + first
    yield ("P - 1 - rank" if mirror == processes - 1 else f"{mirror} - rank"), mirror - rank
    flips, often = np.unique(goals ^ where, return_counts=True)
    for flip in flips[np.argsort(-often, kind="stable")][:4].tolist():
        if flip > 0 and flip.bit_count() <= _BITS:
            yield _flip(flip), rank ^ flip
    for block in _strides(processes):
        inside = (goals - where) % block
        same = goals // block == where // block
        if same.any():
            for offset in _around(inside[same], block):
                text = f"rank // {block} * {block} + ({_offset('rank', offset)}) % {block}"
                yield text, rank // block * block + (rank + offset) % block
    for *grid, values in transposes(processes):
        yield _transposed(*grid), values


def _around(offsets: NDArray[np.int64], extent: int) -> list[int]:
    """The most frequent offsets around a ring, as the shorter way."""
    steps, often = np.unique(offsets % extent, return_counts=True)
    chosen = steps[np.argsort(-often, kind="stable")][:4].tolist()
    return [step - extent if 2 * step > extent else step for step in chosen]


def _flip(flip: int) -> str:
    """The rank XOR a number."""
    text = _offset("rank", flip)
    for bit in (1 << place for place in range(flip.bit_length()) if flip >> place & 1):
        here = "rank % 2" if bit == 1 else f"rank // {bit} % 2"
        text += f" - {2 * bit} * ({here})"
    return text


def transposes(processes: int) -> Iterator[tuple[int, int, int, NDArray[np.int64]]]:
    """Grids in which rank (i, j, k) exchanges with (j, i, k), and the partner of each rank.

    Blocks of k ranks, columns, rows.
    """
    rank = np.arange(processes)
    for block in (1, *_strides(processes)):
        tile = rank // block
        for columns in _strides(processes // block):
            rows = processes // block // columns
            yield (
                block,
                columns,
                rows,
                ((tile % columns * rows + tile // columns) * block + rank % block),
            )


def _transposed(block: int, columns: int, rows: int) -> str:
    """The partner of a rank, as a formula."""
    if block == 1:
        return f"rank % {columns} * {rows} + rank // {columns}"
    return (
        f"(rank // {block} % {columns} * {rows} + rank // {block * columns}) * {block}"
        f" + rank % {block}"
    )


def who(ranks: NDArray[np.bool_]) -> str | list[int]:
    """Say which ranks, as a condition of the rank; empty for all, a list where nothing fits."""
    text = _condition(ranks.tobytes(), len(ranks))
    return np.flatnonzero(ranks).tolist() if text is None else text


@lru_cache(maxsize=4096)
def _condition(mask: bytes, processes: int) -> str | None:
    ranks: NDArray[np.bool_] = np.frombuffer(mask, bool)
    if ranks.all():
        return ""
    few = np.flatnonzero(ranks)
    if len(few) == 1:
        only = int(few[0])
        return "rank == P - 1" if only == processes - 1 > 0 else f"rank == {only}"
    texts, masks = _bounds(processes)
    wanted = np.packbits(ranks)
    exact = np.flatnonzero((masks == wanted).all(axis=1))
    if len(exact):
        return texts[int(exact[0])]
    # Two together: each of them holds on all the ranks that are meant.
    wide = np.flatnonzero((masks & wanted == wanted).all(axis=1))[:_WIDE]
    for place, one in enumerate(wide):
        both = masks[one] & masks[wide[place + 1 :]]
        found = np.flatnonzero((both == wanted).all(axis=1))
        if len(found):
            return f"{texts[one]} and {texts[wide[place + 1 + int(found[0])]]}"
    return None


@lru_cache(maxsize=16)
def _bounds(processes: int) -> tuple[list[str], NDArray[np.uint8]]:
    """Conditions with one comparison, simple ones first, and their ranks as bits."""
    texts, masks = [], []
    for text, mask in _comparisons(processes):
        texts.append(text)
        masks.append(np.packbits(mask))
    return texts, np.array(masks)


def _comparisons(processes: int) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    rank = np.arange(processes)
    yield "rank > 0", rank > 0
    yield "rank < P - 1", rank < processes - 1
    strides = _strides(processes)
    for stride in strides:
        yield from [
            (f"rank % {stride} == 0", rank % stride == 0),
            (f"rank % {stride} > 0", rank % stride > 0),
            (f"rank % {stride} == {stride - 1}", rank % stride == stride - 1),
            (f"rank % {stride} < {stride - 1}", rank % stride < stride - 1),
            (f"rank >= {stride}", rank >= stride),
            (f"rank < P - {stride}", rank < processes - stride),
            (f"rank < {stride}", rank < stride),
            (f"rank >= P - {stride}", rank >= processes - stride),
        ]
    for stride in strides:
        for block in strides:
            if stride < block and block % stride == 0:
                inside = rank % block // stride
                last = block // stride - 1
                text = f"rank % {block} // {stride}"
                yield from [
                    (f"{text} == 0", inside == 0),
                    (f"{text} > 0", inside > 0),
                    (f"{text} == {last}", inside == last),
                    (f"{text} < {last}", inside < last),
                ]
    for stride in (1, *strides):
        for half in range(2):
            if 2 * stride < processes:
                text = "rank % 2" if stride == 1 else f"rank // {stride} % 2"
                yield f"{text} == {half}", rank // stride % 2 == half
    for bound in range(2, min(processes - 1, 256)):
        yield f"rank < {bound}", rank < bound
        yield f"rank >= {bound}", rank >= bound
    for stride in strides:
        for value in range(1, min(stride - 1, 64)):
            yield f"rank % {stride} == {value}", rank % stride == value
        for value in range(1, min(processes // stride - 1, 64)):
            yield f"rank // {stride} == {value}", rank // stride == value
