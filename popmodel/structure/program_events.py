"""What each sequence of a run does, in order: calls of MPI that act, and parallel regions.

An event is one call with all of its operations, or one outermost parallel region on a master.
Calls without operations (probes and tests that find nothing, calls that manage objects, waits for
nothing) are no events: they stand between them as part of what is neither computing nor an act.

Tokens make events comparable, the finer ones for what repeats on one sequence, the coarser ones for
what is alike on several:

- `coarse`: the name of the call or region, and the call site or user region where known;
- `tagged`: also what the operations are, their tags, and the shape of the communicator;
- `sized`: also sizes, by powers of two;
- `exact`: also partners and roots relative to the own number.

Waits count with the number of their operations only: in which order messages come is chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import numbered, spread
from popmodel.base.values import dataclass
from popmodel.simulator.program import Op
from popmodel.simulator.program_calls import sequence_calls
from popmodel.traces.caveats import delays
from popmodel.traces.codes import RUNNING, TRACING_DISABLED, Event
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.regions import parallel_regions, user_regions
from popmodel.traces.tables import offsets_of, walk, walk_locations

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.traces import Trace
    from popmodel.traces.regions import Occurrences

_ROWS = 1 << 18  # events that are put into user regions at once


@dataclass(frozen=True, eq=False)
class ProgramEvents:
    """Events of the sequences of a program, those of one sequence after the other."""

    # int64[S + 1]: Events of sequence s are ``offsets[s] .. offsets[s + 1]``; sequences as in the
    # program.
    offsets: NDArray[np.int64]
    # int64[E]: In the time of the trace, ns; of untimed traces in that of computing alone.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    # float64[E]: Computing of the sequence since its previous event, outside MPI and regions,
    # without time in which tracing was disabled or the thread waited for a CPU, ns.
    before: NDArray[np.float64]
    after: NDArray[np.float64]  # float64[S]: Computing after its last event, ns
    is_region: NDArray[np.bool_]  # bool[E]
    # float64[E]: Of a region, how long its master is in calls of MPI inside, ns; 0 of calls.
    in_calls: NDArray[np.float64]
    # float64[E]: Of a region, what it lasted longer as its threads waited for CPUs, ns.
    delayed: NDArray[np.float64]
    waited: float  # What all this has left out, ns
    # int64[E + 1]: Operations of event e are rows ``first[e] .. first[e + 1]`` of the program; none
    # of a region.
    first: NDArray[np.int64]
    name: NDArray[np.int32]  # int32[E]: Index into `names`
    names: tuple[str, ...]
    inside: NDArray[np.int32]  # int32[E]: Index into `insides`
    # User regions and call sites; the first is empty, for where none is known.
    insides: tuple[str, ...]
    # int32[E]: Tokens, ever finer.
    coarse: NDArray[np.int32]
    tagged: NDArray[np.int32]
    sized: NDArray[np.int32]
    exact: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Sequence of each event: int64[E]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def of_operation(self) -> NDArray[np.int64]:
        """Event of each operation: int64[N]."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def of_messages(self, program: Program, *kinds: Op) -> NDArray[np.int64]:
        """Event in which each message has an operation of some kinds; -1 for none: int64[M]."""
        operations = np.flatnonzero(np.isin(program.kind, kinds))
        found = np.full(len(program.messages), -1, np.int64)
        found[program.target[operations]] = self.of_operation[operations]
        return found

    @property
    def computing(self) -> NDArray[np.float64]:
        """Computing before each event, and in it if it is a region, ns: float64[E]."""
        return self.before + np.where(self.is_region, self.end - self.begin, 0)

    def gaps(
        self, start: int, stop: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What lies before each event, and behind the last one of each sequence: int64[E + S].

        Sequence, begin and end, ns: a gap begins when all events before have ended, those around
        calls in regions among them; `stop` is when sequences end.
        """
        return _gaps(self.sequence, self.begin, self.end, start, stop)


def events_of(program: Program, trace: Trace | None = None) -> ProgramEvents:
    """Events of a program."""
    operations = _operations(program)
    sequence = np.searchsorted(program.offsets, offsets_of(operations)[:-1], side="right") - 1
    first = offsets_of(operations)[:-1]
    call = program.call[first].astype(np.int64)
    names, name = _distinct(program.call_name, program.call_code[call])
    before = np.add.reduceat(program.burst, first) if len(first) else np.empty(0)
    before, after = before.astype(np.float64), program.tail.astype(np.float64)
    begin, end = _times(program, trace, call, sequence, before)
    is_region, in_calls = np.zeros(len(call), bool), np.zeros(len(call))
    regions = None if trace is None else parallel_regions(trace)
    if trace is not None and regions is not None and len(regions.on_master):
        spans = regions.on_master
        master = np.searchsorted(trace.process_offsets, spans.location)
        none = np.zeros(len(spans), np.int64)
        # A call that begins with a region is inside of it.
        order = np.lexsort(
            (
                np.append(np.ones(len(call)), none),
                np.append(_ascending(begin, sequence), spans.begin),
                np.append(sequence, master),
            )
        )
        sequence = np.append(sequence, master)[order]
        begin, end = np.append(begin, spans.begin)[order], np.append(end, spans.end)[order]
        name = np.append(name, len(names) + regions.label)[order]
        names = (*names, *regions.names)
        is_region = order >= len(call)
        operations = np.append(operations, none)[order]
        call = np.append(call, none - 1)[order]
        before = np.append(before, none.astype(np.float64))[order]
        inside = trace.calls().intervals().inside(spans.location, spans.begin, spans.end)
        in_calls = np.append(in_calls, inside.astype(np.float64))[order]
    delayed, waited = np.zeros(len(call)), 0.0
    if trace is not None and (is_region.any() or len(delays(trace))):
        where, since, until = _gaps(sequence, begin, end, trace.begin, trace.ends()[program.owner])
        computing = np.append(before, after)
        if is_region.any():  # some events are regions now
            mine = where < program.processes
            computing[mine] = _outside(trace, where[mine], since[mine], until[mine])
        if len(delays(trace)):
            waited = float(delays(trace).total().sum())
            waits = delays(trace).inside(locations_of(program, trace)[where], since, until)
            computing = np.maximum(computing - waits, 0.0)
            rows = np.flatnonzero(is_region)
            delayed[rows] = _delayed_regions(trace, sequence[rows], begin[rows], end[rows])
        before, after = np.split(computing, [len(before)])
    insides: tuple[str, ...] = ("",)
    inside = np.zeros(len(call), np.int64)
    if trace is not None:
        insides, inside = _insides(trace, sequence, begin, call)
    coarse = _mix(name, inside)
    tagged, sized, exact = _finer(program, offsets_of(operations), sequence, coarse)
    return ProgramEvents(
        offsets=np.searchsorted(sequence, np.arange(program.sequences + 1)),
        begin=begin,
        end=end,
        before=before,
        after=after,
        is_region=is_region,
        in_calls=in_calls,
        delayed=delayed,
        waited=waited,
        first=offsets_of(operations),
        name=name.astype(np.int32),
        names=names,
        inside=inside.astype(np.int32),
        insides=insides,
        coarse=_numbers(coarse),
        tagged=_numbers(tagged),
        sized=_numbers(sized),
        exact=_numbers(exact),
    )


def _operations(program: Program) -> NDArray[np.int64]:
    """How many operations each call has that has any: int64[n]."""
    new = np.ones(program.operations, bool)
    new[1:] = program.call[1:] != program.call[:-1]
    begins = program.offsets[:-1]
    new[begins[begins < program.operations]] = True
    return np.diff(np.append(np.flatnonzero(new), program.operations))


def _distinct(
    names: tuple[str, ...], code: NDArray[np.signedinteger[Any]]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names that occur, and the one of each call."""
    found, which = numbered(code.astype(np.int64))
    return tuple(names[each] for each in found.tolist()), which


def _times(
    program: Program,
    trace: Trace | None,
    call: NDArray[np.int64],
    sequence: NDArray[np.int64],
    before: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When calls begin and end in the time of the trace."""
    if trace is None:
        passed = np.cumsum(before)
        start = np.searchsorted(sequence, sequence)
        time = np.rint(passed - (passed - before)[start]).astype(np.int64)
        return time, time
    whole = trace.whole or trace
    begin = np.asarray(program.call_time, np.int64)[call]
    calls = sequence_calls(whole)
    exit_ = calls.calls.exit
    if calls.threads is not None:
        exit_ = np.empty_like(exit_)
        exit_[calls.threads.row] = calls.calls.exit
    end = exit_[call]
    if trace.pieces is not None:
        return trace.pieces.moved(begin), trace.pieces.moved(end)
    return begin, end


def _ascending(time: NDArray[np.int64], sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times that never fall on one sequence: when all events up to each one have been."""
    step = int(np.ptp(time)) + 1 if len(time) else 1
    shift = sequence * step
    raised: NDArray[np.int64] = np.maximum.accumulate(time + shift) - shift
    return raised


def _gaps(
    sequence: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    start: int,
    stop: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What lies before each event, and behind the last one of each sequence: see `gaps`."""
    reached = _ascending(end, sequence)
    since = np.append(start, reached)[: len(sequence)]
    since[np.diff(sequence, prepend=-1) != 0] = start
    last = np.full(len(stop), start, np.int64)
    np.maximum.at(last, sequence, reached)
    where = np.append(sequence, np.arange(len(stop)))
    until = np.append(begin, np.maximum(last, stop))
    since = np.append(since, last)
    return where, since, np.maximum(until, since)


def locations_of(program: Program, trace: Trace) -> NDArray[np.int64]:
    """Thread of each sequence."""
    if not len(program.threads):
        return np.asarray(trace.process_offsets[:-1], np.int64)
    return np.asarray(sequence_calls(trace.whole or trace).location, np.int64)


def _outside(
    trace: Trace,
    process: NDArray[np.int64],
    since: NDArray[np.int64],
    until: NDArray[np.int64],
) -> NDArray[np.float64]:
    """What processes compute between times: outside of calls and regions, while traced, ns."""
    others = [
        trace.calls().intervals(),
        trace.records.in_state(TRACING_DISABLED),
        parallel_regions(trace).on_master,
    ]
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    other = alone([each.at(masters) for each in others], [])
    return (until - since - other.inside(masters[process], since, until)).astype(np.float64)


def _delayed_regions(
    trace: Trace,
    process: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> NDArray[np.float64]:
    """How much longer regions lasted because threads of their teams waited for CPUs, ns.

    As long as all of them waited; but regions last as long as their busiest thread computes.
    """
    bounds = np.asarray(trace.process_offsets, np.int64)
    which, thread = spread(bounds[process], np.diff(bounds)[process])
    span = thread, begin[which], end[which]
    waited = delays(trace).inside(*span)
    own = trace.records.in_state(RUNNING).inside(*span) - waited
    busiest = np.zeros(len(process), np.int64)
    np.maximum.at(busiest, which, own)
    waited += delays(trace, Event.WOKEN).inside(*span)
    in_team = np.bincount(which, waited, len(process))
    lasted: NDArray[np.float64] = np.clip(in_team, 0.0, np.maximum(end - begin - busiest, 0))
    return lasted


def _insides(
    trace: Trace, sequence: NDArray[np.int64], begin: NDArray[np.int64], call: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """User region, else call site, of each event; the first is empty, where none is known."""
    sites = trace.sites()
    insides, inside = [""], np.zeros(len(call), np.int64)
    if len(sites.site):
        known = (call >= 0) & (call < len(sites.site))
        found, which = numbered(sites.site[call[known]].astype(np.int64))
        shown = [_site(*sites.places[each]) for each in found.tolist()]
        inside[known] = np.array([0, *range(1, len(shown) + 1)])[1:][which] if shown else 0
        insides += shown
    regions = user_regions(trace)
    if len(regions.label):
        _into_regions(trace, regions, sequence, begin, inside, insides)
    return tuple(insides), inside


def _site(function: str, place: str) -> str:
    return f"{function} ({place})" if function and place else function or place


def _into_regions(
    trace: Trace,
    regions: Occurrences,
    sequence: NDArray[np.int64],
    begin: NDArray[np.int64],
    inside: NDArray[np.int64],
    insides: list[str],
) -> None:
    """Put events of masters into the innermost user region that they begin in."""
    rows = np.flatnonzero(sequence < trace.processes)
    rows = rows[np.lexsort((begin[rows], sequence[rows]))]
    bounds = np.searchsorted(sequence[rows], np.arange(trace.processes + 1))
    begins = Intervals.of(bounds, begin[rows], begin[rows])
    process = trace.process_of_location()[regions.location].astype(np.int64)
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    some = np.flatnonzero(regions.location == masters[process])
    # Longest first, so that shorter ones overwrite it; of those as long the first name comes last.
    some = some[np.lexsort((-regions.label[some], regions.begin[some] - regions.end[some]))]
    first, count = begins.starts(
        process[some].astype(np.int64), regions.begin[some], regions.end[some]
    )
    for block in walk_locations(offsets_of(count), rows=_ROWS):
        which, row = spread(first[block], count[block])
        inside[rows[row]] = len(insides) + regions.label[some[block]][which]
    insides += regions.names


def _finer(
    program: Program,
    first: NDArray[np.int64],
    sequence: NDArray[np.int64],
    coarse: NDArray[np.uint64],
) -> list[NDArray[np.uint64]]:
    """Tokens with what the operations are; with sizes; with partners and roots."""
    kind, target = program.kind, program.target
    event = np.repeat(np.arange(len(coarse)), np.diff(first))
    me = sequence[event]
    together = (kind == Op.COLLECTIVE) | (kind == Op.ARRIVE)
    pair = (kind <= Op.POST) & ~together
    tag, partner, size, form = (np.zeros(len(kind), np.int64) for _ in range(4))
    messages, row = program.messages, target[pair]
    sends = kind[pair] <= Op.ISEND
    tag[pair] = messages.tag[row]
    partner[pair] = np.where(sends, messages.receiver[row], messages.sender[row]) - me[pair]
    size[pair] = messages.size[row]
    collectives, row = program.collectives, target[together]
    form[together] = 1 + collectives.kind[row]
    tag[together] = _shapes(program)[row]
    partner[together] = collectives.root[row]
    size[together] = collectives.sent[row] + collectives.received[row]
    what = _mix(kind, form, tag)
    of_size = _mix(what, np.frexp(size.astype(np.float64))[1].astype(np.int64))  # powers of two
    with_partner = _mix(of_size, partner)
    return [_mix(coarse, _sums(each, first)) for each in (what, of_size, with_partner)]


def _shapes(program: Program) -> NDArray[np.int64]:
    """A number for the form of the communicator of each collective, the same for all its like.

    Those of the rows of a grid are alike: what counts is how far members lie apart.
    """
    numbers, which = np.unique(program.collectives.communicator, return_inverse=True)
    forms: dict[bytes, int] = {}
    form = np.empty(len(numbers), np.int64)
    for place, number in enumerate(numbers.tolist()):
        members = np.asarray(program.communicators.get(number, ()), np.int64)
        form[place] = forms.setdefault(np.diff(members).tobytes(), len(forms))
    return form[which]


def _mix(*columns: NDArray[Any]) -> NDArray[np.uint64]:
    """A hash of each row of some columns of whole numbers (the finaliser of splitmix64)."""
    mixes = np.zeros(len(columns[0]), np.uint64)
    for block in walk(rows=len(mixes)):
        mixed = mixes[block]
        for column in columns:
            mixed *= np.uint64(0x9E3779B97F4A7C15)
            mixed += column[block].astype(np.uint64)
            mixed += np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(30)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(27)
            mixed *= np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
    return mixes


def _sums(values: NDArray[np.uint64], first: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sums over the operations of each event, whatever their order."""
    passed = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    sums: NDArray[np.uint64] = passed[first[1:]] - passed[first[:-1]]
    return sums


def _numbers(mixed: NDArray[np.uint64]) -> NDArray[np.int32]:
    return np.unique(mixed, return_inverse=True)[1].astype(np.int32)
