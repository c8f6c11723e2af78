"""Amounts of a signature: a formula, its constants, and where they come from.

One run shows nothing of other numbers of processes. Strong scaling is assumed: the work of the
whole program stays, so that of a process goes with 1/P, and that of a thread with 1/(P T). What is
done once beside an iterative part, such as setting up, is as often done again by every process:
that is in its interval. The whole vectors of Bcast, Reduce and Allreduce stay; the parts of a
process in Gather, Scatter and Allgather go with 1/P, the blocks for one peer of Alltoall with
1/P**2. Several runs tell: their laws are collected here, found in other modules.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.signatures.document import Noted, number
from popmodel.signatures.outline import (
    TIME,
    OutlineCalls,
    OutlineMeeting,
    OutlineRepeat,
    paths,
    row_at,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.fit.counts import Count
    from popmodel.fit.law import Constant, Law
    from popmodel.signatures.outline import Outline, OutlinePoint
    from popmodel.signatures.recorded_times import Description

Key = tuple[Any, ...]  # What an amount is of: what it is, and where it stands in the outline

SCALARS = 64  # bytes that are taken for a few numbers, which no decomposition makes smaller
# How the bytes of collectives go with P in strong scaling; those of others stay.
PARTS = {"gather": "1/P", "scatter": "1/P", "allgather": "1/P", "alltoall": "1/P**2"}
_DRIFT = (0.85, 1.15)  # 90 % interval of the exponent with which work is assumed to divide
_ONCE = (0.0, 1.15)  # of what is done once: from what every process does to what they share
_MOSTLY = 0.5  # share of the time of a phase in one execution from which it is done once


@dataclass(frozen=True)
class SignatureConstant:
    """A number that was found."""

    name: str  # In formulas
    value: float  # Best estimate, in the unit
    # Ends of its 90 % interval; None where nothing is known of it.
    low: float | None = None
    high: float | None = None
    unit: str = "s"  # ``s``, ``B``, ``1`` or what is counted
    origin: str = "trace"  # ``trace``, ``fit`` or ``assumed``
    source: str = ""  # What it rests on, in words

    def entry(self) -> dict[str, Any]:
        """Return its table in a signature."""
        entry: dict[str, Any] = {"value": number(self.value)}
        if self.low is not None and self.high is not None:
            # rounding must not put the value outside
            entry["low"] = min(number(self.low), entry["value"])
            entry["high"] = max(number(self.high), entry["value"])
        if self.unit:
            entry["unit"] = self.unit
        return {**entry, "origin": self.origin, "source": self.source}


@dataclass(frozen=True)
class SignatureAmount:
    """What a key of a signature says."""

    formula: str | int | float  # Its value
    constants: tuple[SignatureConstant, ...] = ()  # Those that it needs
    note: str = ""  # Comment behind it: its origin

    @property
    def noted(self) -> Any:
        """The value, with a comment if there is one."""
        return Noted(self.formula, self.note) if self.note else self.formula


# -- from several runs


@dataclass
class LawSet:
    """Laws of several runs: what a signature takes from them, and what people are told."""

    amounts: dict[Key, SignatureAmount] = field(default_factory=dict)
    let: dict[str, Any] = field(default_factory=dict)  # Factors by which phases grow that are alike
    laws: list[dict[str, Any]] = field(default_factory=list)  # What each is of, its form, its error
    notes: list[str] = field(default_factory=list)  # Contradictions, and what runs do not tell

    def add(self, other: LawSet) -> None:
        """Put other laws behind these."""
        self.amounts |= other.amounts
        self.let |= other.let
        self.laws += other.laws
        self.notes += other.notes

    def add_law(
        self,
        what: str,
        form: str,
        formula: str,
        origin: str,
        samples: int,
        unit: str = "1",
        share: float | None = None,
        constants: Mapping[str, Constant] | None = None,
        error: float | None = None,
        rejected: Sequence[tuple[str, float]] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """Say what a law is of, its form, origin and error."""
        ends = {
            name: {"value": at.value, "low": at.low, "high": at.high, "origin": at.origin}
            for name, at in (constants or {}).items()
        }
        others = [{"form": other, "error": off} for other, off in rejected]
        self.laws.append({
            "of": what, "unit": unit, "share": share, "form": form, "formula": formula,
            "constants": ends, "origin": origin, "samples": samples, "error": error,
            "rejected": others, "notes": list(notes),
        })  # fmt: skip
        self.notes += [f"{what}: {note}" for note in notes]

    def add_fit(self, what: str, unit: str, law: Law, share: float | None = None) -> None:
        """Say what a law was fitted to."""
        self.add_law(
            what, law.form, law.formula, law.origin, law.samples, unit, share, law.constants,
            law.error, law.rejected, law.notes,
        )  # fmt: skip

    def add_exact(self, what: str, unit: str, exact: Count, samples: int) -> None:
        """Say which formula gives all runs."""
        others = [(text, 0.0) for text in exact.others]
        self.add_law(
            what, exact.text, exact.text, exact.origin, samples, unit, error=0.0, rejected=others,
            notes=exact.notes,
        )  # fmt: skip

    def add_factor(self, name: str, law: Law) -> tuple[SignatureConstant, ...]:
        """Define the factor by which phases grow, 1 at the reference; return its constants."""
        text = law.text(f"{name}_").removeprefix(f"{name}_a").removeprefix("*") or "1"
        self.let[name] = Noted(text, f"{law.origin}: {law.form}")
        return tuple(
            constant for constant in constants_of(law, name) if constant.name != f"{name}_a"
        )


def constants_of(
    law: Law, prefix: str, unit: str = "1", what: str = ""
) -> tuple[SignatureConstant, ...]:
    """The constants of a law as those of a signature; ``a`` is in its unit."""
    return tuple(
        SignatureConstant(
            f"{prefix}_{key}", at.value, at.low, at.high, unit if key == "a" else "1", at.origin,
            f"{what}, {at.meaning}" if what else at.meaning,
        )
        for key, at in law.constants.items()
    )  # fmt: skip


# -- from one run


def assumed_factors(
    outline: Outline, processes: int, threads: int, scaling: str
) -> dict[str, Noted]:
    """Names of the factors by which work is assumed to scale: ``work``, ``setup``, ``share``."""
    split = f"({processes}/P)**grows" if scaling == "strong" else f"(P/{processes})**(1 - grows)"
    factors: dict[str, Noted] = {}
    if any(point.team is None for point in outline.points):
        factors["work"] = Noted(split, f"assumed: {scaling} scaling, work of a process")
        if done_once(outline):
            note = f"assumed: {scaling} scaling, what a process does once"
            factors["setup"] = Noted(split.replace("grows", "begins"), note)
    if any(point.team is not None for point in outline.points):
        formula = f"({threads}/T)**divides*{split}"
        factors["share"] = Noted(formula, f"assumed: {scaling}, work of a thread")
    return factors


def assumed_exponents(outline: Outline) -> dict[Key, SignatureAmount]:
    """Return how sure it is that work divides: exponents that what is assumed is raised to."""
    sources = {"grows": "assumed: the work of a process goes with 1/P to this power"}
    if any(point.team is not None for point in outline.points):
        sources["divides"] = "assumed: the work of a thread goes with 1/T to this power"
    if done_once(outline):
        sources["begins"] = "assumed: what a process does once goes with 1/P to this power"
    found: dict[Key, SignatureAmount] = {}
    for name, source in sources.items():
        ends = _ONCE if name == "begins" else _DRIFT
        constant = SignatureConstant(name, 1.0, *ends, "1", "assumed", source)
        found[name,] = SignatureAmount(name, (constant,))
    return found


def done_once(outline: Outline) -> frozenset[int]:
    """Points outside of regions that are mostly computed once, beside what is computed often.

    None where that is the larger part of the run: its iterations are in no loop then.
    """
    once = set()
    for number_, point in enumerate(outline.points):
        turns = np.nansum(point.seconds, axis=0)
        if point.team is None and turns.size and turns.max() > _MOSTLY * turns.sum():
            once.add(number_)
    share = sum(outline.points[point].total for point in once) / outline.total
    return frozenset(once) if share < _MOSTLY else frozenset()


def assumed_amounts(
    outline: Outline, descriptions: Sequence[Description], processes: int, scaling: str
) -> dict[Key, SignatureAmount]:
    """Return the amounts of a signature that rests on one run."""
    found: dict[Key, SignatureAmount] = {}
    setup = done_once(outline)
    for number_, (point, times) in enumerate(zip(outline.points, descriptions, strict=True)):
        factor = "setup" if number_ in setup else "work"
        found["seconds", number_] = _seconds(point, times, processes, factor)
    for path, node in paths(outline.body):
        match node:
            case OutlineRepeat():
                found["count", path] = SignatureAmount(node.count, note="trace")
            case OutlineMeeting():
                found["bytes", path] = _part_of_collective(node, processes, scaling)
            case OutlineCalls() if node.moves is None:
                note = "as traced; for another P scaled"
                found["processes", path] = SignatureAmount(processes, note=note)
                found |= _scaled_list(node, path, processes, scaling)
            case OutlineCalls() if scaling == "strong" and outline.grid is not None:
                found |= _surfaces(node, path, outline.grid.dims)
    return found


def _seconds(
    point: OutlinePoint, times: Description, processes: int, factor: str
) -> SignatureAmount:
    rests = plural(times.executions, "execution")
    rests += f" x {plural(processes, 'process', 'processes')}" if processes > 1 else ""
    source, value, low, high = point.label, times.mean, times.low, times.high
    if point.team is not None:
        source, factor, value = f"{point.label}, average thread", "share", point.team.useful
        low, high = (None if end is None else end * value / times.mean for end in (low, high))
    if not value > 0:
        return SignatureAmount(0)
    name = TIME + point.name
    constant = SignatureConstant(name, value, low, high, "s", "trace", f"{source}, {rests}")
    return SignatureAmount(f"{name}*{factor}", (constant,))


def _surfaces(
    node: OutlineCalls, path: tuple[int, ...], dims: tuple[int, ...]
) -> dict[Key, SignatureAmount]:
    """Bytes of rows that hold on a grid: a side goes with the extents of the other dimensions."""
    found: dict[Key, SignatureAmount] = {}
    for row, move in (node.moves or {}).items():
        size = row_at(node.rows, row).get("bytes", 0)
        sides = [axis for axis, step in enumerate(move) if not step and dims[axis] > 1]
        if isinstance(size, int) and size and sides:
            over = "".join(f"*{dims[axis]}/P{axis}" for axis in sides)
            amount = SignatureAmount(f"{size}{over}", note="assumed: surface")
            found["bytes", (*path, *row)] = amount
    return found


def _scaled_list(
    node: OutlineCalls, path: tuple[int, ...], processes: int, scaling: str
) -> dict[Key, SignatureAmount]:
    """What stands for a list at another number of processes: as many messages, of a surface."""
    if not node.offsets:
        return {}
    messages = number(node.messages / processes, 4)
    size = number(node.bytes / node.messages)
    formula = f"{size:.12g}*({processes}/P)**(1/2)" if scaling == "strong" and size else size
    return {
        ("scaled messages", path): SignatureAmount(messages, note="assumed: as many messages"),
        ("scaled size", path): SignatureAmount(formula, note="assumed: surface of a plane"),
    }


def _part_of_collective(node: OutlineMeeting, processes: int, scaling: str) -> SignatureAmount:
    size = number(node.bytes, 15)
    part = PARTS.get(node.op)
    if part is None or size <= SCALARS:
        return SignatureAmount(size, note="trace")
    if scaling == "weak":
        return SignatureAmount(size, note="trace; assumed to stay with P")
    formula = f"{size:.15g}*({processes}/P){part.removeprefix('1/P')}"
    return SignatureAmount(formula, note=f"trace; assumed to go with {part}")


def assumed_instructions(
    outline: Outline,
    descriptions: Sequence[Description],
    amounts: Mapping[Key, SignatureAmount],
    threads: int,
    factors: Mapping[str, float],
) -> dict[Key, SignatureAmount]:
    """Return the instructions of phases that have no law of them: they grow as their times do."""
    found: dict[Key, SignatureAmount] = {}
    for number_, (times, point) in enumerate(zip(descriptions, outline.points, strict=True)):
        if point.instructions is None or ("instructions", number_) in amounts:
            continue
        parts = max(times.executions, 1) * len(point.seconds)
        parts *= 1 if point.team is None else threads
        factor = str(amounts["seconds", number_].formula).partition("*")[2]
        each = number(point.instructions / parts / factors.get(factor, 1.0))
        formula = f"{each:g}*{factor}" if factor and each else each
        note = "trace; as its time with P and T"
        found["instructions", number_] = SignatureAmount(formula, note=note)
    return found
