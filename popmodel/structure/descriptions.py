"""The structure, the phases and the communication of a run as plain data, in SI units.

What the keys mean stands in ``docs/json.md``, section ``popmodel/inspect/1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.arrays import distinct, spread
from popmodel.base.units import count
from popmodel.base.values import plain
from popmodel.simulator.program import unmodelled_calls
from popmodel.structure import traffic
from popmodel.structure.bursts import bursts, regions
from popmodel.structure.focus import on_sequences, part_of_run, structure_of
from popmodel.structure.iterations import find
from popmodel.structure.patterns import find_communication
from popmodel.structure.phase_variation import causes, idle_regions, interruptions
from popmodel.structure.phases import phases
from popmodel.structure.structure import (
    ASKED,
    Leaf,
    StructureFocus,
    loops_around,
    with_common_places,
)
from popmodel.traces.calls import calls_made
from popmodel.traces.caveats import caveats, crowding, describe_losses, devices, losses
from popmodel.traces.selection import PROGRAM, TracePart, focused, program_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.patterns import Pattern
    from popmodel.structure.phases import Phase, Phases
    from popmodel.structure.structure import FoundLoop, Structure
    from popmodel.traces import Trace

_NS = 1e9
_BINS = 480
_ROWS = 64
"""Processes whose bursts are drawn; of more, every second, third, ... one."""
_ALIKE = 1.1
_AROUND = 0.25
"""Part of the focus that is drawn before it and after it."""
_LEVELS = 9
_MOST_PHASES = 5000
"""Phases from which on small ones are summed up."""
_COUNTERS = ("instructions", "cycles")
_QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}


# The structure.


def structure_facts(trace: Trace, asked: TracePart) -> dict[str, Any]:
    """Iterations, loops and the focus of analysis, of the whole run; `asked`: of another focus."""
    structure, whole = structure_of(trace)
    focus = _focus(asked, structure, whole)
    lost = losses(whole)
    return {
        "processes": structure.program.processes,
        "begin": whole.begin / _NS,
        "end": whole.end / _NS,
        "caveats": [*devices(whole), *crowding(whole), *([describe_losses(lost)] if lost else [])],
        "notes": list(structure.notes),
        "parts": [
            {
                "kind": part.kind,
                "begin": part.begin / _NS,
                "end": part.end / _NS,
                "iterations": part.iterations,
            }
            for part in structure.parts
        ],
        "period": structure.period,
        "confidence": structure.confidence,
        "foa": {
            "begin": focus.begin / _NS,
            "end": focus.end / _NS,
            "first": focus.first + 1 if focus.last >= focus.first else None,
            "last": focus.last + 1 if focus.last >= focus.first else None,
            "why": focus.why,
        },
        "iterations": _iterations(structure),
        "nest": _nest(structure, whole),
        "timelines": _timelines(structure, whole, focus) if whole.timed else [],
    }


def _focus(asked: TracePart, structure: Structure, trace: Trace) -> StructureFocus:
    """The focus that is asked for, else the one that was found."""
    if asked.auto or not (asked.has_window or asked.iterations):
        return structure.focus
    part = part_of_run(asked, trace)
    begin = trace.begin if part.begin is None else part.begin
    end = trace.end if part.end is None else part.end
    if asked.iterations is None:
        return StructureFocus(begin, end, 0, -1, ASKED)
    first, last = asked.iterations
    last = len(structure.iterations) - 1 if last is None else last
    return StructureFocus(begin, end, first - 1, last - 1, ASKED)


def _iterations(structure: Structure) -> dict[str, Any] | None:
    """When iterations begin (on the process that does so last) and how long they last."""
    if structure.loop is None or len(structure.iterations) < 2:
        return None
    begins = structure.iterations.max(axis=1)
    lasting = np.diff(structure.iterations, axis=0).mean(axis=1) / _NS
    return {
        "begins": (begins / _NS).tolist(),
        "kinds": plain(structure.kinds),
        "duration": {
            "median": float(np.median(lasting)),
            "min": float(lasting.min()),
            "max": float(lasting.max()),
        },
    }


def _nest(structure: Structure, trace: Trace) -> list[dict[str, Any]]:
    """Loops, places and what part of the run's time they take; the body of a loop follows it."""
    events = structure.events
    lasting = events.before + (events.end - events.begin) * (
        events.is_region | np.full(len(events.begin), trace.timed)
    )
    # What comes before MPI is initialised is the launcher's doing.
    starts = [name.startswith(("MPI_Init", "MPI_Session_init")) for name in events.names]
    lasting = np.where(np.array(starts, bool)[events.name], 0.0, lasting)
    spent = np.bincount(structure.place, lasting, len(structure.places))
    total = float(spent.sum() + events.after.sum()) or 1.0
    # A collective that its members call at several places is one call of an iteration.
    called = np.bincount(with_common_places(structure).place, minlength=len(structure.places)) > 0

    def share(each: Leaf | FoundLoop) -> float:
        if isinstance(each, Leaf):
            return float(spent[list(each.places)].sum()) / total
        return sum(map(share, each.body))

    def lines(nest: Sequence[Leaf | FoundLoop], depth: int) -> Iterator[dict[str, Any]]:
        for each in nest:
            about = {"depth": depth, "share": share(each)}
            if isinstance(each, Leaf):
                names = [structure.places[place].name for place in each.places if called[place]]
                calls = [{"name": name, "number": len(list(same))} for name, same in groupby(names)]
                yield {"kind": "places", **about, "calls": calls}
                continue
            yield {
                "kind": "loop",
                **about,
                "iterative": each is structure.loop,
                "count": each.count,
                "least": min(each.counts, default=0),
                "most": max(each.counts, default=0),
            }
            yield from lines(each.body, depth + 1)

    return list(lines(structure.nest, 0))


def _timelines(structure: Structure, trace: Trace, focus: StructureFocus) -> list[dict[str, Any]]:
    """The program (MPI_Init to MPI_Finalize), and the focus with what is around it."""
    program = program_of(trace)
    spans = [("run", program.begin, program.end)]
    if structure.loop is not None:
        around = round(_AROUND * (focus.end - focus.begin))
        begin, end = max(focus.begin - around, trace.begin), min(focus.end + around, trace.end)
        if begin < end and end - begin < (program.end - program.begin) / 2:
            spans.append(("focus", begin, end))
    return [
        _timeline(name, structure, trace, begin, end) for name, begin, end in spans if begin < end
    ]


def _timeline(
    name: str, structure: Structure, trace: Trace, begin: int, end: int
) -> dict[str, Any]:
    """In equal steps: the share of all processes that is in MPI, and how long bursts are."""
    bins = max(1, min(_BINS, end - begin))
    edges = begin + (np.arange(bins + 1) * ((end - begin) / bins)).astype(np.int64)
    edges[-1] = end
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    in_calls = trace.calls().intervals().at(masters)
    in_mpi = np.diff(in_calls.passed(edges)) / np.maximum(np.diff(edges) * trace.processes, 1)
    shown = np.arange(0, trace.processes, -(-trace.processes // _ROWS))
    return {
        "span": name,
        "begin": begin / _NS,
        "end": end / _NS,
        "in_mpi": np.round(in_mpi, 4).tolist(),
        "bursts": np.round(_levels(_longest(structure, trace, edges, shown)), 4).tolist(),
    }


def _longest(
    structure: Structure, trace: Trace, edges: NDArray[np.int64], shown: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Longest burst or region that reaches into each bin of some processes, s: float64[K, B]."""
    longest = np.zeros((len(shown), len(edges) - 1))
    line = np.full(trace.processes, -1)
    line[shown] = np.arange(len(shown))
    for rows in (bursts(structure, trace), regions(structure)):
        rows = rows.at(
            (rows.end > edges[0])
            & (rows.begin < edges[-1])
            & (rows.end > rows.begin)
            & (line[structure.program.owner[rows.sequence]] >= 0)
        )
        first = np.searchsorted(edges, rows.begin, side="right") - 1
        last = np.searchsorted(edges, rows.end, side="left") - 1
        first, last = np.maximum(first, 0), np.minimum(last, longest.shape[1] - 1)
        which, at = spread(first, last - first + 1)
        process = structure.program.owner[rows.sequence[which]]
        np.maximum.at(longest, (line[process], at), rows.wall[which])
    return longest


def _levels(burst: NDArray[np.float64]) -> NDArray[np.float64]:
    """How long bursts are, on average over the processes: float64[B] from 0 to 1.

    A burst has one of nine levels, alike in ratio; where all are about equal they are the first.
    """
    some = burst[burst > 0]
    if not some.size:
        return np.zeros(burst.shape[1])
    low, high = np.quantile(some, (0.05, 0.99))
    steps = (burst > 0).astype(np.int64)
    if high >= _ALIKE * low:
        limits = np.geomspace(max(low, high / 1e4), max(high, 1e-9), _LEVELS - 1)
        steps *= np.searchsorted(limits, burst) + 1
    mean: NDArray[np.float64] = steps.mean(axis=0) / _LEVELS
    return mean


# Phases.


def phase_facts(trace: Trace, asked: TracePart) -> dict[str, Any]:
    """What is computed where in a part of a run, and why processes differ."""
    part, focus = focused(trace, part_of_run(asked, trace))
    structure, whole = structure_of(trace if asked.region is None else part)
    limits = on_sequences(asked, trace) if asked.region is None else None
    found = phases(structure, whole, part, limits, _MOST_PHASES)
    owner = structure.program.owner.astype(np.int64)
    useful, *counted = (_summed(found, name, owner) for name in ("useful", *_COUNTERS))
    useful = np.zeros(found.processes) if useful is None else useful
    balance = causes(useful, *counted)
    interrupted, remark = interruptions(found)
    told = [text for text in (remark, idle_regions(found)) if text]
    iterations = _iterations_inside(structure, found)
    return {
        "processes": found.processes,
        "threads": int(part.locations),
        "analysed": focus.to_dict(),
        "caveats": [*(caveats(part, focus) if part.timed else focus.caveats), *told],
        "notes": [*found.notes, *structure.notes],
        "iterations": iterations,
        "computing": found.seconds,
        "useful": float(useful.sum()),
        "load_balance": balance,
        "interrupted": interrupted,
        "phases": [_of_phase(found, phase, owner, balance) for phase in found.phases],
        "calls": traffic.calls_in_part(structure, whole, found.begin, found.end, iterations),
    }


def _summed(found: Phases, name: str, owner: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Sum over phases by process; None where a phase lacks the counter."""
    columns = [getattr(phase, name) for phase in found.phases]
    if not columns or any(column is None for column in columns):
        return None
    total = np.zeros(found.processes)
    for phase, column in zip(found.phases, columns, strict=True):
        total += _by_process(phase, column, owner, found.processes)
    return total


def _by_process(
    phase: Phase, values: NDArray[np.float64], owner: NDArray[np.int64], processes: int
) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.bincount(owner[phase.sequence], values, processes).astype(
        np.float64
    )
    return sums


def _of_phase(
    found: Phases, phase: Phase, owner: NDArray[np.int64], balance: dict[str, Any] | None
) -> dict[str, Any]:
    useful = _by_process(phase, phase.useful, owner, found.processes)
    counted = {
        name: None if values is None else _by_process(phase, values, owner, found.processes)
        for name, values in (("instructions", phase.instructions), ("cycles", phase.cycles))
    }
    instructions, cycles = counted["instructions"], counted["cycles"]
    spread = phase.imbalance
    excess = None if balance is None else float(useful[balance["process"]] - useful.mean())
    quantiles = phase.quantiles(tuple(_QUANTILES.values()))
    return {
        "name": phase.name,
        "kind": phase.kind,
        "place": phase.place,
        "part": phase.part or None,
        "small": phase.small,
        "executions": phase.executions,
        "processes": int(np.count_nonzero(np.bincount(owner[phase.sequence]))),
        "time": float(phase.wall.sum()),
        "share": found.share(phase),
        "useful": float(phase.useful.sum()),
        "duration": {
            "mean": float(phase.wall.mean()),
            **dict(zip(_QUANTILES, quantiles, strict=True)),
            "min": float(phase.wall.min()),
            "max": float(phase.wall.max()),
        },
        "persistent": spread.persistent,
        "transient": spread.transient,
        "common": spread.common,
        "by_process": [None if one != one else one for one in spread.by_rank.tolist()],
        "excess": excess,
        "load_balance": causes(useful, instructions, cycles),
        "instructions": None if instructions is None else float(instructions.sum()),
        "cycles": None if cycles is None else float(cycles.sum()),
        "ipc": _quotient(instructions, cycles),
        "frequency": _quotient(cycles, useful),
        "team": _team(phase),
    }


def _quotient(above: NDArray[np.float64] | None, below: NDArray[np.float64] | None) -> float | None:
    if above is None or below is None or not below.sum() > 0:
        return None
    return float(above.sum() / below.sum())


def _team(phase: Phase) -> dict[str, Any] | None:
    """Threads inside a parallel region."""
    if phase.team is None:
        return None
    return {
        "threads": int(phase.team.threads.max()),
        "imbalance": phase.team.imbalance,
        "busiest": phase.team.worst,
        "by_thread": phase.team.by_thread.tolist(),
        "overhead": phase.overhead,
    }


def _iterations_inside(structure: Structure, found: Phases) -> float | None:
    """Iterations that lie in what is analysed, parts of them included; None without any."""
    if structure.loop is None or len(structure.iterations) < 2:
        return None
    begins, most = structure.iterations, len(structure.iterations) - 2

    def passed(time: NDArray[np.int64]) -> NDArray[np.float64]:
        """Iterations that each sequence has done, that which it is in by its part."""
        turn = np.clip((begins <= time).sum(axis=0) - 1, 0, most)
        since, until = begins[[turn, turn + 1], np.arange(len(time))]
        part = np.divide(time - since, until - since, where=until > since,
                         out=(time >= since).astype(np.float64))  # fmt: skip
        done: NDArray[np.float64] = turn + np.clip(part, 0.0, 1.0)
        return done

    return float((passed(found.end) - passed(found.begin)).mean()) or None


# Communication.


def communication_facts(trace: Trace, asked: TracePart) -> dict[str, Any]:
    """Who talks to whom, how much, and in which patterns; `asked` by default all of the run."""
    wanted = part_of_run(asked, trace)
    part, focus = (trace, None) if wanted == PROGRAM else focused(trace, wanted)
    structure = find(part)
    program = structure.program
    nodes = len(distinct(program.nodes[: program.processes])) if trace.nodes else None
    rows = traffic.sent(program)
    pairs = traffic.pairs(program, rows)
    together, shown = traffic.gathered(pairs, program.processes)
    within = pairs.within
    partners = np.bincount(pairs.sender[pairs.sender != pairs.receiver], minlength=1)
    partners = np.concatenate([partners, np.zeros(program.processes, np.int64)])
    neighbours = partners[: program.processes]
    loops = loops_around(structure.nest)
    meaning = find_communication(structure)
    found: dict[str, Any] = plain(
        {
            "processes": program.processes,
            "nodes": nodes,
            "analysed": focus,
            "caveats": [
                *unmodelled_calls(program.unmodelled),
                *devices(trace),
                *(() if focus is None else focus.caveats),
            ],
            "messages": len(rows),
            "bytes": program.messages.size[rows].sum(),
            "within_nodes": None
            if nodes is None
            else {"messages": pairs.messages[within].sum(), "bytes": pairs.bytes[within].sum()},
            "neighbours": {
                "min": neighbours.min(initial=program.processes),
                "mean": float(neighbours.mean()),
                "max": neighbours.max(initial=0),
            },
            "per_iteration": traffic.sent_in_iterations(structure),
            "sizes": traffic.by_size(program, rows),
            "calls": traffic.uses(program, calls_made(part), traffic.times(part)),
            "ranks_together": together,
            "pairs": {
                "from": shown.sender,
                "to": shown.receiver,
                "messages": shown.messages,
                "bytes": shown.bytes,
                "within_node": shown.within,
            },
            "grids": [
                {"dims": grid.dims, "periodic": grid.periodic, "share": grid.confidence}
                for grid in meaning.grids
            ],
            "grid_note": meaning.why or None,
            "patterns": [_described(structure, loops, one) for one in meaning.patterns],
            "notes": [*program.notes, *structure.notes],
        }
    )
    return found


def _described(
    structure: Structure, loops: Sequence[tuple[FoundLoop, ...]], pattern: Pattern
) -> dict[str, Any]:
    """A pattern, and where it stands: calls, loops around it, and the region or call site."""
    places = [structure.places[place] for place in pattern.places]
    inside = list(dict.fromkeys(place.inside for place in places if place.inside))
    return {
        "kind": pattern.kind,
        "places": [place.number for place in places],
        "calls": _in_words([place.name for place in places]),
        "inside": inside,
        "loops": [loop.count for loop in loops[pattern.places[0]]],
        "executions": pattern.executions,
        "messages": pattern.messages,
        "bytes": pattern.bytes,
        "exact": pattern.exact,
        "why": pattern.why or None,
        "facts": pattern.facts,
    }


def _in_words(names: Sequence[str]) -> str:
    """Calls in order, equal ones that follow each other once."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    return ", ".join(name if number == 1 else f"{count(number)} {name}" for name, number in runs)
