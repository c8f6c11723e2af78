"""From traces of runs to a signature: laws, times that are kept, and what the runs do not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.expressions import parse
from popmodel.fit.samples import described
from popmodel.model.signatures import from_text
from popmodel.signature.align_runs import Run, RunTable
from popmodel.signature.assumed_scaling import amounts, exponents, let
from popmodel.signature.block_distribution import largest
from popmodel.signature.compare_replay import carried_out
from popmodel.signature.cross_validation import learnt_from
from popmodel.signature.document import Draft, rendered
from popmodel.signature.imbalance import grown, imbalance, unequal
from popmodel.signature.laws import fitted
from popmodel.signature.outline import OutlineRepeat, walk
from popmodel.signature.phase_times import instructed
from popmodel.signature.recorded_times import Fidelity, figures
from popmodel.signature.toml import Noted, TomlTable, number, text_of
from popmodel.simulator.program import unmodelled_calls
from popmodel.trace.caveats import devices
from popmodel.trace.formats import FORMATS
from popmodel.units import format_time, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from popmodel.model.signature.program import Signature
    from popmodel.signature.assumed_scaling import Key, SignatureAmount
    from popmodel.signature.outline import Outline
    from popmodel.trace import Trace


# What a program asks of its number of processes, from runs that it refused.
#
# A refusal says one thing: not so many. Programs refuse for few reasons, and those that agree with
# every run, made or refused, are all asked for: who takes a number that a program refuses loses
# more than who leaves one out.


_USUAL = (
    "is_square(P)",
    "log2(P) == floor(log2(P))",
    "P % 2 == 0",
    "P % 3 == 0",
    "P > 1",
)
"""Conditions of programs on squares, powers of two, pairs and planes of processes."""


@dataclass(frozen=True)
class Required:
    """What is asked of runs."""

    conditions: tuple[str, ...]  # As ``limits.require`` of a signature has them
    note: str  # One line, for users


def required(
    made: Sequence[Mapping[str, float]], refused: Sequence[Mapping[str, float]]
) -> Required | None:
    """Find the conditions that hold for all runs that were made, and for none that was refused."""
    taken = {one["P"] for one in made}
    refused = [one for one in refused if one["P"] not in taken]
    if not refused:
        return None
    agreeing = [
        one
        for one in _conditions(made)
        if all(_holds(one, run) for run in made) and not any(_holds(one, run) for run in refused)
    ]
    numbers = sorted({int(one["P"]) for one in refused})
    places = ", ".join(map(str, numbers))
    if not agreeing:
        only = tuple(f"P != {one}" for one in numbers)
        return Required(only, f"P = {places} was refused, for no usual reason: others may be, too")
    asked = " and ".join(agreeing)
    return Required(tuple(agreeing), f"P = {places} was refused: {asked} is asked of others")


def _conditions(made: Sequence[Mapping[str, float]]) -> Iterator[str]:
    yield from _USUAL
    for name in made[0]:
        if name not in ("P", "T"):
            yield f"{name} % P == 0"


def _holds(condition: str, run: Mapping[str, float]) -> bool:
    return bool(np.all(parse(condition).evaluate(run)))


# The signature of a run that was traced.


_NS = 1e9
MOST_LINES = 1000
"""Lines that are taken, at most, for a replay that is nearer to the trace."""
_BETTER = 0.5
"""How much nearer it has to be: its difference over that of a shorter signature."""
_APART = 0.2
"""Relative difference of what equal runs compute, from which it is said."""
_NOTEWORTHY = 0.02
"""By how much a replay of the signature may be off before it is said."""


@dataclass(frozen=True)
class LearntSignature:
    """A signature, and what it rests on."""

    name: str  # Of the application
    text: str  # The signature as TOML
    # What it was found in, that on the most cores first: its times and messages are kept.
    runs: tuple[Run, ...]
    outline: Outline  # Its program
    fidelity: Fidelity  # What of its times is kept, and what its replay gives
    amounts: Mapping[Key, SignatureAmount]  # What was found, with where it comes from
    notes: tuple[str, ...]  # What could not be known or is not as it was traced, one line each
    # Laws of several runs: what they are of, form, origin and error.
    laws: tuple[dict[str, Any], ...] = ()
    # What of the runs is not in the signature: to be known before anything else.
    caveats: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as JSON types."""
        return {
            "application": self.name,
            "caveats": list(self.caveats),
            "runs": [run.to_dict() for run in self.runs],
            "loops": sum(isinstance(node, OutlineRepeat) for node in walk(self.outline.body)),
            "phases": [self._phase(point) for point in range(len(self.outline.points))],
            "constants": [
                one.to_dict() for amount in self.amounts.values() for one in amount.constants
            ],
            "laws": [dict(law) for law in self.laws],
            "replay": {
                "traced": self.fidelity.traced.to_dict(),
                "written": self.fidelity.written.to_dict(),
                "recorded": len(self.fidelity.recorded),
            },
            "notes": list(self.notes),
            "signature": self.text,
        }

    def _phase(self, point: int) -> dict[str, Any]:
        one, amount = self.fidelity.descriptions[point], self.amounts["seconds", point]
        counted = self.amounts.get(("instructions", point))
        return {
            "label": self.outline.labels[point],
            "parallel": self.outline.teams[point] is not None,
            "seconds": one.mean,
            "low": one.low,
            "high": one.high,
            "executions": one.executions,
            "total": self.outline.points[point].total,
            "persistent_cv": one.persistent_cv,
            "transient_cv": one.transient_cv,
            "formula": str(amount.formula),
            "instructions": None if counted is None else str(counted.formula),
            "recorded": point in self.fidelity.recorded,
        }


_LEARNT = (
    "The runs behind this file: ideal, written and left_out are replays on the ideal network, of "
    "the trace, of this file, and of one learnt without the run relative to its trace."
)


def signature_from(
    runs: Sequence[Run | Trace],
    *,
    name: str | None = None,
    scaling: str = "strong",
    made: Sequence[Mapping[str, float]] = (),
    refused: Sequence[Mapping[str, float]] = (),
) -> LearntSignature:
    """Find the signature of a program that was traced, and test it on runs that are left out."""
    found = _signature_of(runs, name=name, scaling=scaling, made=made, refused=refused)

    def without(kept: Sequence[Run]) -> Signature:
        return from_text(_signature_of(kept, scaling=scaling, replayed=False).text, checked=False)

    signature = from_text(found.text, checked=False)
    learnt = learnt_from(found.runs, signature, found.fidelity.written.runtime, without)
    if not learnt.runs:
        return found
    table = text_of((), (TomlTable("learnt", learnt.entries(), (_LEARNT,)),), ())
    return replace(found, text=f"{found.text}\n{table}")


def _signature_of(
    runs: Sequence[Run | Trace],
    *,
    name: str | None = None,
    scaling: str,
    made: Sequence[Mapping[str, float]] = (),
    refused: Sequence[Mapping[str, float]] = (),
    replayed: bool = True,
) -> LearntSignature:
    """Find a signature; one that is not replayed may take more lines to be as its trace."""
    every, doubts = _distinct(
        _in_order([run if isinstance(run, Run) else Run(run) for run in runs])
    )
    first = every[0]
    trace, threads, processes = first.trace, first.threads, first.processes
    outline, fidelity = first.layout, first.fidelity
    found = amounts(outline, fidelity.descriptions, processes, scaling)
    waited = max(run.structure.events.waited for run in every) / _NS
    notes = [*devices(trace), *first.structure.notes, *outline.notes, *doubts]
    if waited:
        notes.insert(0, f"times are without {format_time(waited)} that threads waited for CPUs")
    laws: tuple[dict[str, Any], ...] = ()
    factors = let(outline, processes, threads, scaling)
    if len(every) > 1:
        table = RunTable(every)
        fit = fitted(table, fidelity.descriptions, found, scaling)
        found, laws, factors = dict(fit.amounts), fit.laws, dict(fit.let)
        notes += [*table.notes, *fit.notes]
    else:
        found |= exponents(outline)
    uneven = [run.unequal for run in every]
    block = largest([run.dealt for run in every], has_grid=outline.grid is not None)
    if block is not None:
        notes.append(block.note)
        if block.without is not None:
            uneven[0] = unequal(first.structure, threads, first.parameters, block.without)
    differing, growth = grown(fidelity.descriptions, uneven)
    found |= differing.amounts
    laws += differing.laws
    notes += differing.notes
    at_first = _values(factors, found, first)
    found |= instructed(outline, fidelity.descriptions, found, threads, at_first)
    asked = required([*(run.configuration for run in every), *made], refused)
    notes += [asked.note] if asked else []
    lacking = [run.structure.program.unmodelled for run in every]
    unmodelled = next((calls for calls in lacking if calls), "")
    caveats = unmodelled_calls(unmodelled)
    called = name or _name_of(trace.path)
    draft = Draft(
        name=called,
        omitted={"not_modelled": unmodelled} if unmodelled else {},
        head=_head(called, every, fidelity, (*caveats, *notes)),
        params={key: number(value) for key, value in first.parameters.items()},
        let=factors,
        limits={"require": Noted([*asked.conditions], "refused runs")} if asked else {},
        decomp=_decomp(outline),
        imbalance=imbalance(growth, block),
        amounts=found,
        processes=processes,
    )
    if not replayed:
        text = rendered(draft, outline, fidelity)
        return LearntSignature(
            called, text, every, outline, fidelity, found, tuple(notes), laws, caveats
        )
    # what the file says is replayed, not what it was made of: lists may differ from the trace
    signature = from_text(rendered(draft, outline, fidelity))
    fidelity = replace(fidelity, written=figures(carried_out(signature, processes, threads)))
    off = fidelity.written.off(fidelity.traced)
    if off > _NOTEWORTHY and outline.summed and first.limit < MOST_LINES:
        again = [replace(first, limit=2 * first.limit), *every[1:]]
        longer = _signature_of(again, name=name, scaling=scaling, made=made, refused=refused)
        if longer.fidelity.written.off(longer.fidelity.traced) < _BETTER * off:
            return longer
    if off > _NOTEWORTHY:
        notes.append(_beside_the_trace(fidelity))
    draft = replace(draft, head=_head(called, every, fidelity, (*caveats, *notes)))
    text = rendered(draft, outline, fidelity)
    return LearntSignature(
        called, text, every, outline, fidelity, found, tuple(notes), laws, caveats
    )


def _values(
    let: Mapping[str, Any], found: Mapping[Key, SignatureAmount], run: Run
) -> dict[str, float]:
    """Values of what ``let`` defines, with the P, T and parameters of a run."""
    values = {one.name: one.value for amount in found.values() for one in amount.constants}
    values |= run.configuration
    left = {name: parse(str(getattr(one, "value", one))) for name, one in let.items()}
    while left:
        ready = {name: one for name, one in left.items() if one.names.isdisjoint(left)}
        values |= {name: float(one.evaluate(values)) for name, one in ready.items()}
        left = {name: one for name, one in left.items() if name not in ready}
    return values


def _beside_the_trace(fidelity: Fidelity) -> str:
    runtime = fidelity.written.runtime / fidelity.traced.runtime - 1
    parallel = 100 * (fidelity.written.parallel - fidelity.traced.parallel)
    return (
        f"the signature does not replay as the trace does: runtime {100 * runtime:+.1f} %, "
        f"parallel efficiency {parallel:+.1f} points; popmodel signature check --against "
        "shows where"
    )


def _decomp(outline: Outline) -> dict[str, Any]:
    """The grid on which lists of calls hold."""
    grid = outline.grid
    if grid is None:
        return {}
    note = "cells are not known: as many per process along each dimension, to choose grids by"
    return {"global": Noted(grid.cells, note), "grid": "auto", "periodic": list(grid.periodic)}


def _distinct(runs: Sequence[Run]) -> tuple[tuple[Run, ...], list[str]]:
    """Runs without copies of one and the same, and what is to be said of runs that are equal."""
    kept: list[Run] = []
    notes = []
    for run in runs:
        same = next((one for one in kept if _is_copy(one, run)), None)
        if same is None:
            kept.append(run)
        else:
            notes.append(f"{run.trace.path} and {same.trace.path} are one run: it counts once")
    configurations = {described(run.configuration): run.configuration for run in kept}
    for place, configuration in configurations.items():
        done = [
            sum(map(np.sum, run.computing)) for run in kept if run.configuration == configuration
        ]
        apart = max(done) / min(done) - 1 if min(done) > 0 else 0.0
        if apart > _APART:
            notes.append(
                f"{len(done)} runs at {place} compute up to {100 * apart:.0f} % longer than each "
                "other: intervals are as much wider"
            )
    return tuple(kept), notes


def _is_copy(run: Run, other: Run) -> bool:
    return run.configuration == other.configuration and all(
        np.array_equal(mine, theirs)
        for mine, theirs in zip(run.computing, other.computing, strict=True)
    )


def _in_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The run on the most cores first: what is kept of one is nearest to what is predicted.

    Of several on as many that of the most processes, which communicates the most, and of these
    that of the largest problem.
    """

    def size(run: Run) -> tuple[float, ...]:
        values = [float(value) for value in run.parameters.values()]
        return run.processes * run.threads, run.processes, float(np.prod(values))

    return tuple(sorted(runs, key=size, reverse=True))


def _name_of(path: str) -> str:
    name = PurePath(path).name.removesuffix(".gz")
    for suffix in (suffix for form in FORMATS for suffix in form.suffixes):
        if name.endswith(suffix):
            return name.removesuffix(suffix) or "app"
    return name or "app"


def _head(
    name: str, runs: Sequence[Run], fidelity: Fidelity, notes: Sequence[str]
) -> tuple[str, ...]:
    traced, written = fidelity.traced, fidelity.written
    recorded, phases = len(fidelity.recorded), plural(len(fidelity.descriptions), "phase")
    files = "; ".join(_said(run) for run in runs)
    return (
        f"Signature of {name}, found by popmodel in {files}.",
        f"Replayed on the ideal network, the {'first ' if len(runs) > 1 else ''}trace takes "
        f"{traced.runtime:.6g} s and this file {written.runtime:.6g} s; parallel efficiency "
        f"{traced.parallel:.3f} and {written.parallel:.3f}. Recorded times are kept of {recorded} "
        f"of {phases}.",
        *(f"Note: {note}." for note in notes),
    )


def _said(run: Run) -> str:
    size = plural(run.trace.processes, "process", "processes")
    size += f" x {plural(run.threads, 'thread')}" if run.threads > 1 else ""
    values = "".join(f", {name}={value:g}" for name, value in run.parameters.items())
    part = "" if run.part is None else f"; {run.part}"
    return f"{PurePath(run.trace.path).name} ({size}{values}{part})"
