"""From traces of runs to a signature: laws, times that are kept, and what the runs do not tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.base.expressions import parse
from popmodel.base.files import run_path
from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.fit.samples import described
from popmodel.model.signature.application import LearntRun, LearntRuns
from popmodel.model.signatures import from_text
from popmodel.signatures.align_runs import Run, RunTable
from popmodel.signatures.amounts import (
    LawSet,
    assumed_amounts,
    assumed_exponents,
    assumed_factors,
    assumed_instructions,
)
from popmodel.signatures.compare_replay import carried_out
from popmodel.signatures.document import Noted, TomlTable, number, signature_text, text_of
from popmodel.signatures.imbalance import add_imbalance
from popmodel.signatures.laws import fitted_laws
from popmodel.signatures.outline import OutlineRepeat, own_times, paths
from popmodel.signatures.recorded_times import Fidelity, figures
from popmodel.simulator.program import unmodelled_calls
from popmodel.traces.caveats import contradictions, contradictory_runs, devices, waiting
from popmodel.traces.trace_formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.model.signature.application import Signature
    from popmodel.signatures.amounts import Key, SignatureAmount
    from popmodel.signatures.outline import Outline
    from popmodel.traces import Trace

_NS = 1e9
MOST_LINES = 1000  # that are taken, at most, for a replay that is nearer to the trace
_BETTER = 0.5  # how much nearer: its difference over that of a shorter signature
_APART = 0.2  # relative difference of what equal runs compute, from which it is said
_NOTEWORTHY = 0.02  # by how much a replay of the signature may be off before it is said
_LEAST = 3  # configurations, the left out one among them, from which a law can be tested
# Programs on squares, powers of two, pairs and planes of processes.
_USUAL = ("is_square(P)", "log2(P) == floor(log2(P))", "P % 2 == 0", "P % 3 == 0", "P > 1")
_CELLS = "cells are not known: as many per process along each dimension, to choose grids by"
_LEARNT = (
    "The runs behind this file: ideal, written and left_out are replays on the ideal network, of "
    "the trace, of this file, and of one learnt without the run relative to its trace."
)


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
    replays: tuple[tuple[Run, LearntRun], ...] = ()  # Of each run with times, and of the signature

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as JSON types."""
        body = paths(self.outline.body)
        amounts = self.amounts.values()
        replay = {
            "traced": self.fidelity.traced.to_dict(),
            "written": self.fidelity.written.to_dict(),
            "recorded": len(self.fidelity.recorded),
        }
        return {
            "values": [dict(vars(one)) for amount in amounts for one in amount.constants],
            "fidelity": [
                {
                    "run": run.trace.path,
                    "processes": run.processes,
                    "threads": run.threads,
                    "parameters": dict(run.parameters),
                    "measured": replay.ideal,
                    "replayed": replay.written,
                }
                for run, replay in self.replays
            ],
            "caveats": list(self.caveats),
            "notes": list(self.notes),
            "unknown": [],
            "traces": {
                "runs": [run.to_dict() for run in self.runs],
                "loops": sum(isinstance(node, OutlineRepeat) for _, node in body),
                "phases": [self._phase(point) for point in range(len(self.outline.points))],
                "laws": [dict(law) for law in self.laws],
                "replay": replay,
            },
        }

    def _phase(self, number_: int) -> dict[str, Any]:
        point, times = self.outline.points[number_], self.fidelity.descriptions[number_]
        counted = self.amounts.get(("instructions", number_))
        return {
            "label": point.label,
            "parallel": point.team is not None,
            "seconds": times.mean,
            "low": times.low,
            "high": times.high,
            "executions": times.executions,
            "total": point.total,
            "persistent_cv": times.persistent_cv,
            "transient_cv": times.transient_cv,
            "formula": str(self.amounts["seconds", number_].formula),
            "instructions": None if counted is None else str(counted.formula),
            "recorded": number_ in self.fidelity.recorded,
        }


def signature_from(
    runs: Sequence[Run | Trace],
    *,
    name: str | None = None,
    scaling: str = "strong",
    made: Sequence[Mapping[str, float]] = (),
    refused: Sequence[Mapping[str, float]] = (),
) -> LearntSignature:
    """Find the signature of a program that was traced, and test it on runs that are left out.

    Further configurations, of runs that were made or that the program refused, tell what it asks
    of its number of processes.
    """
    every = [run if isinstance(run, Run) else Run(run) for run in runs]
    found = _signature_of(every, name, scaling, made, refused)
    replays = _replays(found, scaling)
    if not replays:
        return found
    openmp = any(run.threads > 1 or run.structure.events.is_region.any() for run in found.runs)
    learnt = LearntRuns(openmp, tuple(replay for _, replay in replays))
    table = text_of((), (TomlTable("learnt", learnt.entries(), (_LEARNT,)),), ())
    return replace(found, text=f"{found.text}\n{table}", replays=tuple(replays))


def _signature_of(
    runs: Sequence[Run],
    name: str | None,
    scaling: str,
    made: Sequence[Mapping[str, float]] = (),
    refused: Sequence[Mapping[str, float]] = (),
    *,
    replayed: bool = True,
) -> LearntSignature:
    """Find a signature; one that is not replayed may take more lines to be as its trace."""
    every, doubts = _distinct(sorted(runs, key=_size, reverse=True))
    first = every[0]
    trace, threads, processes = first.trace, first.threads, first.processes
    outline, fidelity = first.layout, first.fidelity
    descriptions = fidelity.descriptions
    laws = LawSet(assumed_amounts(outline, descriptions, processes, scaling))
    notes = [*devices(trace), *first.structure.notes, *outline.notes, *doubts]
    waited = max(run.structure.events.waited for run in every) / _NS
    if waited:
        notes.insert(0, f"times are without {format_time(waited)} that threads waited for CPUs")
    if len(every) > 1:
        table = RunTable(every)
        laws = fitted_laws(table, descriptions, laws.amounts, scaling)
        notes += table.notes
    else:
        laws.amounts |= assumed_exponents(outline)
        laws.let |= assumed_factors(outline, processes, threads, scaling)
    shares = [run.shares for run in every]
    imbalance = add_imbalance(laws, descriptions, shares, has_grid=outline.grid is not None)
    values = _values(laws, first)
    laws.amounts |= assumed_instructions(outline, descriptions, laws.amounts, threads, values)
    notes += laws.notes
    conditions, note = required([*(run.configuration for run in every), *made], refused)
    notes += [note] if note else []
    lacking = [run.structure.program.unmodelled for run in every]
    unmodelled = next((calls for calls in lacking if calls), "")
    wrong = [(run.trace.path, text) for run in every for text in contradictions(run.trace)]
    caveats = (
        *contradictory_runs(wrong),
        *unmodelled_calls(unmodelled),
    )
    called = name or _name_of(trace.path)
    decomp: dict[str, Any] = {}
    if outline.grid is not None:  # on which lists of calls hold
        cells = Noted(outline.grid.cells, _CELLS)
        decomp = {"global": cells, "grid": "auto", "periodic": list(outline.grid.periodic)}
    constants = [one for amount in laws.amounts.values() for one in amount.constants]
    tables: dict[str, Mapping[str, Any]] = {
        "app": {"name": called, **({"not_modelled": unmodelled} if unmodelled else {})},
        "params": {key: number(value) for key, value in first.parameters.items()},
        "constants": {constant.name: constant.entry() for constant in constants},
        "let": laws.let,
        "limits": {"require": Noted([*conditions], "refused runs")} if conditions else {},
        "decomp": decomp,
        "imbalance": imbalance,
    }

    text = signature_text(tables, laws.amounts, outline, fidelity)
    found = LearntSignature(
        called, text, every, outline, fidelity, laws.amounts, (), tuple(laws.laws), caveats
    )
    if not replayed:
        return found
    # what the file says is replayed, not what it was made of: lists may differ from the trace
    written = figures(carried_out(from_text(text), processes, threads))
    off = written.off(fidelity.traced)
    if off > _NOTEWORTHY and outline.summed and first.limit < MOST_LINES:
        again = [replace(first, limit=2 * first.limit), *every[1:]]
        longer = _signature_of(again, name, scaling, made, refused)
        if longer.fidelity.written.off(longer.fidelity.traced) < _BETTER * off:
            return longer
    if off > _NOTEWORTHY:
        runtime = 100 * (written.runtime / fidelity.traced.runtime - 1)
        parallel = 100 * (written.parallel - fidelity.traced.parallel)
        notes.append(
            f"the signature does not replay as the trace does: runtime {runtime:+.1f} %, parallel "
            f"efficiency {parallel:+.1f} points; popmodel signature check --against shows where"
        )
    fidelity = replace(fidelity, written=written)
    head = text_of(_head(called, every, fidelity, (*caveats, *notes)), (), ())
    return replace(found, text=head + text, fidelity=fidelity, notes=tuple(notes))


def _values(laws: LawSet, run: Run) -> dict[str, float]:
    """Values of what ``let`` defines, with the P, T and parameters of a run."""
    values = {one.name: one.value for amount in laws.amounts.values() for one in amount.constants}
    values |= run.configuration
    left = {name: parse(noted.value) for name, noted in laws.let.items()}
    while left:
        ready = {name: one for name, one in left.items() if one.names.isdisjoint(left)}
        values |= {name: float(one.evaluate(values)) for name, one in ready.items()}
        left = {name: one for name, one in left.items() if name not in ready}
    return values


def _distinct(runs: Sequence[Run]) -> tuple[tuple[Run, ...], list[str]]:
    """Runs without copies of one and the same, and what is to be said of runs that are equal."""
    kept: list[Run] = []
    notes = []
    for run in runs:
        same = next((other for other in kept if _is_copy(other, run)), None)
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
        map(np.array_equal, run.computing, other.computing)
    )


def _size(run: Run) -> tuple[float, ...]:
    """The run on the most cores comes first: what is kept of it is nearest to what is predicted.

    Of several on as many that of the most processes, which communicates the most, and of these
    that of the largest problem.
    """
    values = [float(value) for value in run.parameters.values()]
    return run.processes * run.threads, run.processes, float(np.prod(values))


def _name_of(path: str) -> str:
    name = run_path(path).name.removesuffix(".gz")
    for suffix in (suffix for form in FORMATS for suffix in form.suffixes):
        if name.endswith(suffix):
            return name.removesuffix(suffix) or "app"
    return name or "app"


def _head(
    name: str, runs: Sequence[Run], fidelity: Fidelity, notes: Sequence[str]
) -> tuple[str, ...]:
    traced, written = fidelity.traced, fidelity.written
    recorded, phases = len(fidelity.recorded), plural(len(fidelity.descriptions), "phase")
    files = []
    for run in runs:
        size = plural(run.trace.processes, "process", "processes")
        size += f" x {plural(run.threads, 'thread')}" if run.threads > 1 else ""
        values = "".join(f", {name}={value:g}" for name, value in run.parameters.items())
        part = "" if run.part is None else f"; {run.part}"
        files.append(f"{run_path(run.trace.path).name} ({size}{values}{part})")
    return (
        f"Signature of {name}, found by popmodel in {'; '.join(files)}.",
        f"Replayed on the ideal network, the {'first ' if len(runs) > 1 else ''}trace takes "
        f"{traced.runtime:.6g} s and this file {written.runtime:.6g} s; parallel efficiency "
        f"{traced.parallel:.3f} and {written.parallel:.3f}. Recorded times are kept of {recorded} "
        f"of {phases}.",
        *(f"Note: {note}." for note in notes),
    )


# -- what a program asks of its number of processes

# A refusal says one thing: not so many. Programs refuse for few reasons, and those that agree with
# every run, made or refused, are all asked for: who takes a number that a program refuses loses
# more than who leaves one out.


def required(
    made: Sequence[Mapping[str, float]], refused: Sequence[Mapping[str, float]]
) -> tuple[tuple[str, ...], str]:
    """Find the conditions that hold for all runs that were made, and for none that was refused.

    Conditions are as ``limits.require`` of a signature has them, with a line for users; both are
    empty where nothing was refused.
    """
    taken = {run["P"] for run in made}
    refused = [run for run in refused if run["P"] not in taken]
    if not refused:
        return (), ""
    by_parameter = (f"{name} % P == 0" for name in made[0] if name not in ("P", "T"))
    agreeing = tuple(
        condition
        for condition in (*_USUAL, *by_parameter)
        if all(_holds(condition, run) for run in made)
        and not any(_holds(condition, run) for run in refused)
    )
    numbers = sorted({int(run["P"]) for run in refused})
    places = f"P = {', '.join(map(str, numbers))} was refused"
    if not agreeing:
        only = tuple(f"P != {refusal}" for refusal in numbers)
        return only, f"{places}, for no usual reason: others may be, too"
    return agreeing, f"{places}: {' and '.join(agreeing)} is asked of others"


def _holds(condition: str, run: Mapping[str, float]) -> bool:
    return bool(np.all(parse(condition).evaluate(run)))


# -- how well runs are predicted


def _replays(found: LearntSignature, scaling: str) -> list[tuple[Run, LearntRun]]:
    """Keep what protects predictions: times of the runs, replayed and predicted from the others."""
    signature = from_text(found.text, checked=False) if len(found.runs) > 1 else None
    learnt: list[LearntRun] = []
    runs = []
    for run in found.runs:
        ideal = figures(own_times(run.structure)).runtime
        if not ideal > 0:
            continue
        runs.append(run)
        written = found.fidelity.written.runtime
        if signature is not None and run is not found.runs[0]:
            written = _replay(signature, run)
        learnt.append(
            LearntRun(
                run.processes,
                run.threads,
                ideal,
                written,
                run.parameters,
                run.trace.duration / _NS if run.trace.timed else None,
                waiting(run.trace),
            )
        )
    configurations = dict.fromkeys(run.configuration for run in learnt)
    for configuration in configurations if len(configurations) >= _LEAST else ():
        left_out = [index for index, run in enumerate(learnt) if run.configuration == configuration]
        others = [run for index, run in enumerate(runs) if index not in left_out]
        try:
            text = _signature_of(others, None, scaling, replayed=False).text
            predicted = _replay(from_text(text, checked=False), runs[left_out[0]])
        except PopmodelError:  # such as a grid that the others do not have: nothing is told
            continue
        for index in left_out:
            learnt[index] = replace(learnt[index], left_out=predicted / learnt[index].ideal)
    return list(zip(runs, learnt, strict=True))


def _replay(signature: Signature, run: Run) -> float:
    """How long a signature takes on the ideal network with P, T and parameters of a run, s."""
    return figures(carried_out(signature, run.processes, run.threads, run.parameters)).runtime
