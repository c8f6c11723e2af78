"""What a traced run does at each site of its code: one additive pass over a trace of any size.

A site is where MPI is called (kind of call, function, file:line or address), or a parallel region.
A trace without callers tells calls apart by their position in the loops instead. The time that
belongs to a call is what its thread computes since the call or the region before. Everything is a
sum over executions and processes, so that tables of parts of a run add up to that of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.errors import PopmodelError
from popmodel.efficiency.measure import UsefulTimes, useful_times
from popmodel.efficiency.region_efficiencies import COLUMNS as OF_REGIONS
from popmodel.efficiency.region_efficiencies import region_instances
from popmodel.kernel import _kernel
from popmodel.simulator.mpi_calls import Action, action_of
from popmodel.structure.iterations import find
from popmodel.traces.calls import FOUND_NOTHING, lengths_in
from popmodel.traces.codes import Event
from popmodel.traces.intervals import Instants, Intervals, alone
from popmodel.traces.regions import WithoutWaits
from popmodel.traces.selection import PROGRAM, TracePart, focused
from popmodel.traces.tables import part_of, walk, walk_locations

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

    from popmodel.traces import Trace

REGION, BEFORE, END, OUTSIDE = "parallel region", "before region", "end", "outside regions"
"""Kinds of sites that are no calls: a region, and what the master computes before it; what is
computed behind the last call of a thread; what threads that call nothing compute outside of all
regions."""
UNITS: Mapping[str, str] = {
    "executions": "1",  # Of all processes of the group
    "executions_max": "1",  # Of the process that comes here most often
    "computing": "s",  # Useful time of all threads: before a call, inside a region
    "computing_max": "s",  # The same of the process that computes most here
    "instructions": "1",  # In the computing; NaN without counters
    "cycles": "1",
    "seconds": "s",  # In the calls, waiting included; wall time of a region
    "imbalance": "s",  # Thread time that a region loses, by cause; NaN of calls
    "synchronisation": "s",
    "locks": "s",
    "scheduling": "s",
    "mpi": "s",
    "messages": "1",  # Point to point: sent from here
    "bytes": "B",  # Sent from here, also by collectives
    "receives": "1",  # Point to point: received here
    "received": "B",
    "size_min": "B",  # Of messages, and of what a process sends or gets in a collective
    "size_median": "B",
    "size_high": "B",  # 90 % are not larger
    "size_max": "B",
    "partners": "1",  # Ranks that a process exchanges messages with here, at most
    "communicator": "1",  # Median number of its members; NaN where it is not told
}
"""Columns of amounts and their units, behind those that name the site and the group."""
_SUMS = (
    "executions", "computing", "instructions", "cycles", "seconds", "imbalance",
    "synchronisation", "locks", "scheduling", "mpi",
)  # fmt: skip
_MESSAGES = ("messages", "bytes", "receives", "received")
_EXCHANGED = ("size", "partner", "communicator")
_SENDS = (Action.SEND, Action.ISEND, Action.SENDRECEIVE)
_RECEIVES = (Action.RECEIVE, Action.IRECEIVE)
_CAUSES = ("imbalance", "synchronisation", "locks", "scheduling", "mpi")
_COUNTERS = {"instructions": Event.INSTRUCTIONS, "cycles": Event.CYCLES}
_NS = 1e9
_ROWS = 1 << 20
_GROUPS = 8
"""Groups of processes at most: what all others do is one of them."""
_MATTERS = 0.01
"""Share of all time from which on a site tells groups apart."""
_PLACED = re.compile(r"(?P<function>.*?) \((?P<place>[^()]*)\)$")
_KEY = ["kind", "where", "position"]


def sites_of(trace: Trace, part: TracePart = PROGRAM) -> pandas.DataFrame:
    """Return the table of sites of a traced run, a row for each site and group of processes.

    Processes that pass the same sites (of 1 % of the time or more) are a group. Sites are in the
    order of the program.

    Parameters
    ----------
    trace : Trace
        Of any format and size.
    part : Part
        What of the run is analysed, as for efficiencies.

    Returns
    -------
    pandas.DataFrame
        ``site`` (a number), ``kind`` (``MPI_Send``, `REGION`, `BEFORE`, `END` or `OUTSIDE`),
        ``function``, ``place`` (file:line or address), ``position`` (in the loops, of traces
        without callers; else -1), ``group``, ``processes`` (how many of the group come here),
        ``rank`` (the first of them), and the columns of `UNITS`.
    """
    return _Pass(focused(trace, part)[0]).table()


def calls_by_process(trace: Trace) -> pandas.DataFrame:
    """Return how often each process calls MPI at each site in the whole run, and with what sizes.

    Returns
    -------
    pandas.DataFrame
        ``kind``, ``place`` (file:line or address), ``process``, ``executions``; ``size_min``,
        ``size_max`` and ``amount`` (B): of messages, and of what a process sends or gets in a
        collective; NaN of calls that transfer nothing.
    """
    import pandas

    run = _Pass(trace.whole or trace)
    by = ["kind", "where", "process"]
    rows = pandas.DataFrame(run._key(slice(0, len(run.calls))))
    rows["process"] = run.process[part_of(run.calls.offsets, np.arange(len(run.calls)))]
    table = rows.groupby(by, sort=False).size().to_frame("executions")
    sizes = pandas.concat(list(run._messages()), ignore_index=True)
    sizes["amount"] = sizes["size"] * sizes["number"]
    of_site = sizes.groupby(by)
    table["size_min"], table["size_max"] = of_site["size"].min(), of_site["size"].max()
    table["amount"] = of_site["amount"].sum()
    table = table.reset_index()
    pairs = zip(table["kind"], table["where"], strict=True)
    table["place"] = [run._named(*pair)[1] for pair in pairs]
    table["kind"] = [run.kinds[kind] for kind in table["kind"]]
    return table.drop(columns="where")


class _Pass:
    """One pass over a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.whole = trace.whole or trace
        self.calls = self.whole.calls()
        self.places = self.whole.sites()
        names = [name.removesuffix(FOUND_NOTHING) for name in self.calls.names]
        self.names = sorted(set(names))
        self.useful = useful_times(trace)
        self.kinds = [*self.names, REGION, BEFORE, END, OUTSIDE]
        self.name = np.array([self.names.index(name) for name in names], np.int64)
        self.process = trace.process_of_location().astype(np.int64)
        self.position = self._positions()
        self.inside = np.zeros(len(self.calls), bool)  # calls of which the analysed part has some
        for block in walk(rows=len(self.calls)):
            number, time = lengths_in(trace, block)
            instant = self.calls.exit[block] == self.calls.entry[block]
            self.inside[block] = (number > 0) & ((time > 0) | instant)

    def table(self) -> pandas.DataFrame:
        """Sums by site and process, then by site and group."""
        import pandas

        sums = pandas.concat(list(self._sums()), ignore_index=True)
        times = sums.groupby(_KEY)["time"].min().sort_values(kind="stable")
        messages = pandas.concat(list(self._messages()), ignore_index=True)
        of_process = [*_KEY, "process"]
        by_process = sums.groupby(of_process)[list(_SUMS)].sum(min_count=1)
        by_process = by_process.join(messages.groupby(of_process)[list(_MESSAGES)].sum())
        passed = by_process[["executions", "computing", "seconds"]].gt(0).any(axis=1)
        by_process = by_process[passed].fillna(dict.fromkeys(_MESSAGES, 0)).reset_index()
        sites = times.index[times.index.isin(by_process.set_index(_KEY).index)]
        number = pandas.Series(range(len(sites)), sites, name="site")
        by_process = by_process.join(number, on=_KEY)
        group = _groups(by_process, self.trace.processes)
        by_process["group"] = group[by_process["process"]]
        of_group = by_process.groupby(["site", "group"])
        table = of_group[[*_SUMS, *_MESSAGES]].sum(min_count=1)
        table[["executions_max", "computing_max"]] = of_group[["executions", "computing"]].max()
        table[["processes", "rank"]] = of_group["process"].agg(["nunique", "min"])
        messages = messages.join(number, on=_KEY).dropna(subset=["site"])
        messages["group"] = group[messages["process"]]
        table = table.join(_distribution(messages)).reset_index()
        key = sites.to_frame(index=False).iloc[table["site"].to_numpy()].reset_index(drop=True)
        named = [self._named(*one) for one in zip(key["kind"], key["where"], strict=True)]
        table["kind"] = np.array(self.kinds, object)[key["kind"].to_numpy()]
        table["function"], table["place"] = zip(*named, strict=True) if named else ((), ())
        table["position"] = key["position"]
        first = ["site", "kind", "function", "place", "position", "group", "processes", "rank"]
        return table.reindex(columns=[*first, *UNITS])

    def _named(self, kind: int, where: int) -> tuple[str, str]:
        if self.kinds[kind] in (REGION, BEFORE):
            name = self.useful.regions.names[where]
            found = _PLACED.match(name)
            return (name, "") if found is None else (found["function"], found["place"])
        return self.places.places[where] if kind < len(self.names) and where >= 0 else ("", "")

    def _positions(self) -> NDArray[np.int64] | None:
        """Place in the loops of each call that acts, of a trace without callers; else -1."""
        if len(self.places.places) > 1 or not len(self.calls):
            return None
        position = np.full(len(self.calls), -1, np.int64)
        try:
            found = find(self.trace)
        except PopmodelError:  # messages without calls: kinds of calls alone tell sites apart
            return position
        events, program = found.events, found.program
        acts = np.flatnonzero(~np.asarray(events.is_region))
        rows = program.call[np.asarray(events.first)[acts]].astype(np.int64)
        made = rows < len(position)  # forks and joins of threads that call MPI stand behind calls
        position[rows[made]] = np.asarray(found.place)[acts[made]]
        return position

    def _key(self, rows: Any) -> dict[str, NDArray[np.int64]]:
        """Kind, caller and position of some calls."""
        name = self.name[self.calls.name[rows]]
        nothing = np.full(len(name), -1, np.int64)
        site = self.places.site
        return {
            "kind": name,
            "where": site[rows].astype(np.int64) if len(site) else nothing,
            "position": nothing if self.position is None else self.position[rows],
        }

    def _sums(self) -> Iterator[pandas.DataFrame]:
        """Sums by site and process, block by block."""
        useful, trace = self.useful, self.trace
        masters = np.zeros(trace.locations, bool)
        masters[trace.process_offsets[:-1]] = True
        regions, functions = useful.regions.on_master, useful.regions.in_function
        inside = alone([regions, functions.at(np.flatnonzero(~masters))], [])
        counters = {
            name: _divided(readings, inside) for name, readings in _counters(trace, useful).items()
        }
        waits = _divided(useful.running.waits, inside)[0]
        serial = WithoutWaits.of_running(alone([useful.running], [inside]), waits)
        yield from self._of_regions({name: parts[1] for name, parts in counters.items()})
        outside = {name: parts[0] for name, parts in counters.items()}
        starts = np.asarray(self.calls.offsets) + np.asarray(regions.offsets)
        for block in walk_locations(starts, rows=_ROWS):
            yield self._of_locations(block, serial, outside, masters)

    def _of_locations(
        self,
        block: slice,
        serial: Intervals,
        counters: Mapping[str, Instants],
        masters: NDArray[np.bool_],
    ) -> pandas.DataFrame:
        """Calls of some threads, their regions, and the ends: what they compute before each."""
        calls, regions = self.calls, self.useful.regions.on_master
        rows = slice(*(int(calls.offsets[end]) for end in (block.start, block.stop)))
        called = np.repeat(np.arange(block.start, block.stop), np.diff(calls.offsets)[block])
        number, time = lengths_in(self.trace, rows)
        kept, entry, pieces = self.inside[rows], calls.entry[rows], self.trace.pieces
        here = slice(*(int(regions.offsets[end]) for end in (block.start, block.stop)))
        forked = regions.location[here]
        last = np.arange(block.start, block.stop)
        busy = masters[last] | (np.diff(calls.offsets)[block] > 0)
        of_call = self._key(rows)
        nothing, none = np.full(len(forked), -1, np.int64), np.full(len(last), -1, np.int64)
        columns = {
            "location": (called, forked, last),
            "time": (
                entry if pieces is None else pieces.moved(entry), regions.begin[here],
                np.full(len(last), self.trace.end, np.int64),
            ),
            "kind": (
                np.where(kept, of_call["kind"], self.kinds.index(END)),
                nothing + 1 + self.kinds.index(BEFORE),
                np.where(busy, self.kinds.index(END), self.kinds.index(OUTSIDE)),
            ),
            "where": (np.where(kept, of_call["where"], -1), self.useful.regions.label[here], none),
            "position": (np.where(kept, of_call["position"], -1), nothing, none),
            "executions": (number * kept, nothing + 1, none + 1),
            "seconds": (time * kept / _NS, 0.0 * forked, 0.0 * last),
        }  # fmt: skip
        found = {name: np.concatenate(parts) for name, parts in columns.items()}
        # a call that begins with a region is inside of it; the end is behind all
        turn = np.repeat([1, 0, 2], [len(part) for part in columns["time"]])
        order = np.lexsort((turn, found["time"], found["location"]))
        found = {name: values[order] for name, values in found.items()}
        location, until = found["location"], found["time"]
        new = np.append(True, location[1:] != location[:-1])
        since = np.where(new, self.trace.begin, np.append(0, until[:-1]))
        amounts = {"computing": serial.inside(location, since, until) / _NS}
        for name, readings in counters.items():
            since_all = np.where(new, self.trace.begin - 1, since)
            amounts[name] = readings.inside(location, since_all, until).astype(np.float64)
        return self._added(found | amounts)

    def _of_regions(self, counters: Mapping[str, Instants]) -> Iterator[pandas.DataFrame]:
        """Regions, block by block: what their threads do inside."""
        trace, useful = self.trace, self.useful
        regions = useful.regions.on_master
        if not len(regions):
            return
        calls, bounds = trace.calls(), np.asarray(trace.process_offsets, np.int64)
        in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit)
        found, apart, waits = useful.regions, useful.apart, useful.running.waits
        for rows, values in region_instances(trace, useful.running, in_calls, found, apart, waits):
            process = self.process[regions.location[rows]]
            column = dict(zip(OF_REGIONS, values.T / _NS, strict=True))
            nothing = np.full(len(process), -1, np.int64)
            amounts = {}
            for name, readings in counters.items():
                which, location = spread(bounds[process], np.diff(bounds)[process])
                begin, end = regions.begin[rows][which], regions.end[rows][which]
                counted = readings.inside(location, begin, end)
                amounts[name] = np.bincount(which, counted, len(process))
            yield self._added(
                {
                    "kind": nothing + 1 + self.kinds.index(REGION),
                    "where": found.label[rows],
                    "position": nothing,
                    "location": regions.location[rows],
                    "time": regions.begin[rows],
                    "executions": nothing + 2,
                    "computing": column["useful"],
                    "seconds": column["wall"],
                    **{name: column[name] for name in _CAUSES},
                    **amounts,
                }
            )

    def _added(self, columns: Mapping[str, NDArray[Any]]) -> pandas.DataFrame:
        """Rows summed by site and process."""
        import pandas

        rows = pandas.DataFrame(columns)
        rows["process"] = self.process[rows.pop("location").to_numpy()]
        by = rows.groupby([*_KEY, "process"], sort=False)
        sums = by[[name for name in _SUMS if name in rows]].sum()
        sums["time"] = by["time"].min()
        return sums.reset_index().reindex(columns=[*_KEY, "process", "time", *_SUMS])

    def _messages(self) -> Iterator[pandas.DataFrame]:
        """Messages sent and received, and collectives: how many of each size, and with whom."""
        calls, messages, given = self.calls, self.whole.messages, self.calls.collectives
        yield self._exchanged(np.empty(0, np.int64), {})
        if calls.partner is not None and calls.bytes is not None:
            action = [action_of(*each) for each in zip(calls.group, calls.names, strict=True)]
            sends, receives = (
                np.array([each in some for each in action], bool) for some in (_SENDS, _RECEIVES)
            )
            for block in walk(rows=len(calls)):
                name, known = calls.name[block], calls.partner[block] >= 0
                for is_of, what in ((sends, _sent), (receives, _received)):
                    row = block.start + np.flatnonzero(known & is_of[name])
                    partner = calls.partner[row].astype(np.int64)
                    yield self._exchanged(row, what(calls.bytes[row]) | {"partner": partner})
        for block in walk(rows=len(messages.size)):
            ends = (
                messages.sender[block].astype(np.int64),
                messages.receiver[block].astype(np.int64),
            )
            sides = (ends[0], ends[1], messages.logical_send, _sent), (
                ends[1], ends[0], messages.logical_receive, _received
            )  # fmt: skip
            for me, partner, time, what in sides:
                row = _kernel.locate(calls.offsets, calls.entry, me, time[block])
                row = np.where(row >= calls.offsets[me], row, -1)
                yield self._exchanged(row, what(messages.size[block]) | {"partner": partner})
        members = {number: len(ranks) for number, ranks in self.whole.communicators.items()}
        for block in walk(rows=len(given.call)):
            sent, received = given.sent[block], given.received[block]
            size = [members.get(number, 0) for number in given.communicator[block].tolist()]
            amounts = {"bytes": sent, "received": received, "size": np.maximum(sent, received)}
            yield self._exchanged(given.call[block], amounts | {"communicator": np.array(size)})

    def _exchanged(
        self, row: NDArray[np.int64], columns: Mapping[str, NDArray[np.int64]]
    ) -> pandas.DataFrame:
        """What some calls of the analysed part exchange, equal ones together."""
        import pandas

        mine = np.flatnonzero((row >= 0) & self.inside[row])
        row = row[mine]
        found = {name: values[mine] for name, values in columns.items()}
        rows = pandas.DataFrame(self._key(row) | found)
        rows["process"] = self.process[part_of(self.calls.offsets, row)]
        rows["number"] = 1
        rows = rows.reindex(columns=[*_KEY, "process", *_EXCHANGED, *_MESSAGES, "number"])
        rows = rows.fillna({"partner": -1, "communicator": 0, **dict.fromkeys(_MESSAGES, 0)})
        by = rows.groupby([*_KEY, "process", *_EXCHANGED], sort=False)
        return by[[*_MESSAGES, "number"]].sum().reset_index()


def _sent(size: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    return {"messages": np.ones_like(size), "bytes": size, "size": size}


def _received(size: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    return {"receives": np.ones_like(size), "received": size, "size": size}


def _groups(by_process: pandas.DataFrame, processes: int) -> NDArray[np.int64]:
    """Group of each process: those that pass the same sites; all that are rare are one.

    Only sites that matter count: at its edges a window cuts off different calls of each process.
    """
    time = by_process["computing"] + by_process["seconds"]
    matters = time.groupby(by_process["site"]).transform("sum") >= _MATTERS * time.sum()
    passed = by_process[matters].groupby("process")["site"].agg(frozenset).reindex(range(processes))
    often = passed.value_counts(dropna=False)
    kept = often.index[: len(often) if len(often) <= _GROUPS else _GROUPS - 1]
    numbers: dict[Any, int] = {}
    group = [numbers.setdefault(sites if sites in kept else None, len(numbers)) for sites in passed]
    return np.array(group, np.int64)


def _distribution(messages: pandas.DataFrame) -> pandas.DataFrame:
    """Sizes, partners and members of communicators by site and group."""
    import pandas

    of_group = ["site", "group"]
    found = {
        name: _quantile(messages, "size", share)
        for name, share in (
            ("size_min", 0.0), ("size_median", 0.5), ("size_high", 0.9), ("size_max", 1.0)
        )
    }  # fmt: skip
    pairs = messages[messages["partner"] >= 0].drop_duplicates([*of_group, "process", "partner"])
    partners = pairs.groupby([*of_group, "process"]).size().groupby(of_group).max()
    members = _quantile(messages[messages["communicator"] > 0], "communicator", 0.5)
    return pandas.DataFrame(found | {"partners": partners, "communicator": members})


def _quantile(rows: pandas.DataFrame, column: str, share: float) -> pandas.Series:
    """The least value by site and group that a share of the number of rows does not exceed."""
    rows = rows.sort_values(["site", "group", column])
    by = rows.groupby(["site", "group"])["number"]
    reached = by.cumsum() >= share * by.transform("sum")
    return rows[reached].groupby(["site", "group"])[column].first()


def _counters(trace: Trace, useful: UsefulTimes) -> dict[str, Instants]:
    """Readings of hardware counters in useful time; none of a counter that is broken.

    As for the efficiencies: a reading at time t belongs to the running record with
    begin < t <= end, and of several at one time the first counts.
    """
    running, found = useful.running, {}
    readings = trace.records.counters(tuple(_COUNTERS.values()), slice(0, trace.locations))
    for name, each in zip(_COUNTERS, readings, strict=True):
        location = each.location
        new = np.append(True, (np.diff(each.time) != 0) | (np.diff(location) != 0))[: len(each)]
        counts = _inside(each, running) & new
        if len(each) and not (each.value[counts] < 0).any():
            found[name] = _some(each, counts)
    return found


def _divided(readings: Instants, inside: Intervals) -> tuple[Instants, Instants]:
    """What is told outside and inside of some intervals."""
    within = _inside(readings, inside)
    return _some(readings, ~within), _some(readings, within)


def _inside(readings: Instants, intervals: Intervals) -> NDArray[np.bool_]:
    location = readings.location
    if not len(intervals):
        return np.zeros(len(readings), bool)
    row = np.asarray(
        _kernel.locate(intervals.offsets, intervals.begin, location, readings.time - 1)
    )
    return (row >= intervals.offsets[location]) & (
        readings.time <= intervals.end[np.maximum(row, 0)]
    )


def _some(readings: Instants, rows: NDArray[np.bool_]) -> Instants:
    kept = np.concatenate([[0], np.cumsum(rows)])
    return Instants(kept[readings.offsets], readings.time[rows], readings.value[rows])
