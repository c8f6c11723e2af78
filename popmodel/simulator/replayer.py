"""A program that is replayed on several networks: what does not depend on them is made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from popmodel.base.arrays import distinct
from popmodel.base.errors import ReplayError, UsageError
from popmodel.base.values import NamedTuple
from popmodel.kernel import _kernel
from popmodel.network.network import AT_ONCE
from popmodel.network.point_to_point import NO_ROUTES, Routes, over_links, within_nodes
from popmodel.simulator.algorithms import carry_out
from popmodel.simulator.costs import (
    BETWEEN,
    SELF,
    TABLES,
    Charges,
    Classes,
    CostQuantity,
    MessageClasses,
    Price,
    Rule,
    charge,
    classes,
    core,
    costs,
    filled,
    rendezvous,
)
from popmodel.simulator.execution import CriticalPath, Execution, Moments, stopped
from popmodel.simulator.expand_collectives import LaidOut, lay_out, moments_of, path_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.collectives import Selection
    from popmodel.network.network import Network
    from popmodel.network.placement import RankMapping
    from popmodel.simulator.program import Program


# A program that is replayed on several networks: what does not depend on them is made once.


_NS = 1e9

_ROUNDING = 1e-13  # as the engine: what differs less is equal
Along = Literal["latency", "bytes"]
Side = Literal["right", "left"]


class _AtOnce(NamedTuple):
    """The replays of a program whose collectives are written out."""

    replayer: Replayer
    laid: LaidOut


class Replayer:
    """A program, ready to be replayed on networks.

    Notes
    -----
    Memory beyond the program: 4 B for each message and each collective. A replay takes another 4 B
    for each message and 48 B for each collective, eight networks at once 280 B for each collective;
    the states of messages (32 B, or 160 B) are there while they are under way. A critical path
    takes 24 B for every wait that another process ended.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._classes: Classes = classes(program)
        self._core = core(program, self._classes.message, self._classes.collective)
        self._carried: dict[
            tuple[tuple[Selection, ...], bool], tuple[_kernel.Carried, MessageClasses]
        ] = {}
        self._placed: dict[RankMapping, Replayer] = {}

    def __repr__(self) -> str:
        return f"<Replayer of {self.program!r}>"

    def run(self, network: Network, *, places: NDArray[np.int32] | None = None) -> Execution:
        """Replay the program on a network."""
        if network.mapping is not None:
            execution = self._on(network.mapping).run(network.with_(mapping=None), places=places)
            return replace(execution, network=network)
        if (other := self._at_once(network)) is not None:
            execution = other.replayer.run(network, places=places)
            return replace(execution, operations=self.program.operations)
        if network.contended:
            return self._contended(network, places)
        given = costs([self._charges(network)], [self._cpu(network)])
        if places is None:
            end, stuck_at = self._core.run(given, self._messages_of(network))
            return self._execution(network, end, stuck_at)
        program = self.program
        names, number = len(program.call_name), int(places.max(initial=0)) + 1
        end, stuck_at, in_calls = self._core.spent(
            given,
            self._messages_of(network),
            program.call,
            program.call_code.astype(np.int16, copy=False),
            places,
            names,
            number,
        )
        return self._execution(network, end, stuck_at, in_calls.reshape(number, names) / _NS)

    def scenarios(self, networks: Iterable[Network]) -> list[Execution]:
        """Replay the program on several networks, eight of them at once where they are alike.

        Networks are alike where the same messages are sent eagerly and the same rules hold. The
        result is that of single replays, bit for bit.
        """
        given = list(networks)
        executions_of: dict[int, Execution] = {}
        for mapping in dict.fromkeys(network.mapping for network in given):
            mine = [k for k, network in enumerate(given) if network.mapping == mapping]
            if mapping is not None:
                bare = [given[k].with_(mapping=None) for k in mine]
                executions = self._on(mapping).scenarios(bare)
                for k, execution in zip(mine, executions, strict=True):
                    executions_of[k] = replace(execution, network=given[k])
                continue
            executions_of |= {k: self.run(given[k]) for k in mine if self._is_alone(given[k])}
            for some in self._lanes(given, [k for k in mine if k not in executions_of]):
                executions_of |= zip(some, self._together([given[k] for k in some]), strict=True)
        return [executions_of[k] for k in range(len(given))]

    def slopes(
        self, networks: Sequence[Network], side: Side = "right", along: Along = "latency"
    ) -> list[tuple[float, float]]:
        """Replay the program on several networks; runtime, s, and its derivative of each.

        Eight at once, as `scenarios`: in place of a path each, which tells what the derivative is
        made of.
        """
        sign = 1.0 if side == "right" else -1.0
        slope_of: dict[int, tuple[float, float]] = {}
        for k, network in enumerate(networks):
            if self._is_alone(network):
                path = self.path(network, side, along)
                column = path.latency if along == "latency" else path.bytes
                slope_of[k] = path.runtime, float(column.sum())
        for some in self._lanes(networks, [k for k in range(len(networks)) if k not in slope_of]):
            slopes = self._slopes([networks[k] for k in some], sign, CostQuantity(along))
            slope_of |= zip(some, slopes, strict=True)
        return [slope_of[k] for k in range(len(networks))]

    def _slopes(
        self, networks: Sequence[Network], sign: float, by: CostQuantity
    ) -> list[tuple[float, float]]:
        cpu = filled([self._cpu(n) for n in networks])
        times = filled([self._charges(n) for n in networks])
        first = networks[0]
        links = {"latency": first.latency, "bandwidth": first.bandwidth}
        alike = all(network.with_(**links) == first for network in networks)
        if alike and first.tiers is None:  # latency is paid as often on all, and bytes
            slopes = filled([self._charges(first, by)])
        else:
            slopes = filled([self._charges(n, by) for n in networks])
        given = costs(
            times + slopes,
            cpu + [np.zeros_like(one) for one in cpu],
            signs=[1.0] * len(times) + [sign] * len(slopes),
        )
        end, stuck_at = self._core.slopes(given, self._messages_of(networks[0]))
        ends, by_end = end.reshape(2, _kernel.LANES, -1)
        if (error := stopped(self.program, stuck_at, ends[0])) is not None:
            raise error
        last = ends.max(axis=1, initial=0.0)
        near = ends >= last[:, None] * (1 - _ROUNDING)
        steepest = np.where(near, by_end, -np.inf).max(axis=1, initial=-np.inf)
        return [
            (float(t) / _NS, sign * float(dt))
            for t, dt in zip(last[: len(networks)], steepest, strict=False)
        ]

    def _is_alone(self, network: Network) -> bool:
        """Whether a network has no lane beside others."""
        return (
            network.contended or network.mapping is not None or self._at_once(network) is not None
        )

    def _lanes(self, networks: Sequence[Network], some: Iterable[int]) -> Iterator[list[int]]:
        """Numbers of networks that differ in times only, as many at a time as there are lanes."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in some:
            network = networks[number]
            key = (
                network.collectives,
                network.algorithms,
                network.tiers is None,
                network.rules == "dimemas",
                rendezvous(self._classes_on(network), network).tobytes(),
            )
            groups.setdefault(key, []).append(number)
        for alike in groups.values():
            for first in range(0, len(alike), _kernel.LANES):
                yield alike[first : first + _kernel.LANES]

    def _together(self, networks: Sequence[Network]) -> list[Execution]:
        """Replays of up to as many networks as the engine has lanes; the last one fills them."""
        if len(networks) == 1:
            return [self.run(networks[0])]
        charges = filled([self._charges(n) for n in networks])
        given = costs(charges, filled([self._cpu(n) for n in networks]))
        end, stuck_at = self._core.run(given, self._messages_of(networks[0]))
        rows = end.reshape(_kernel.LANES, -1)
        return [
            self._execution(network, row, stuck_at)
            for network, row in zip(networks, rows, strict=False)
        ]

    def moments(self, network: Network) -> Moments:
        """Replay the program on a network and tell when each operation begins and ends."""
        if network.mapping is not None:
            return self._on(network.mapping).moments(network.with_(mapping=None))
        if (other := self._at_once(network)) is not None:
            expanded, cpu = other.replayer.moments(network), self._cpu(network)
            times = moments_of(self.program, other.laid, expanded.begin, expanded.end, cpu)
            return Moments(*times, expanded.last)
        if network.contended:
            return self._shared(network, moments=True)
        given = costs([self._charges(network)], [self._cpu(network)])
        last, stuck_at, begin, end = self._core.moments(given, self._messages_of(network))
        if (error := stopped(self.program, stuck_at, last)) is not None:
            raise error
        return Moments(begin, end, last)

    def path(
        self,
        network: Network,
        side: Side = "right",
        along: Along = "latency",
    ) -> CriticalPath:
        """Replay the program on a network and tell what its runtime is made of."""
        if network.contended:
            raise UsageError(
                "a network whose links messages share has no critical path that adds up",
                "leave out limits of links and buses, and topologies",
            )
        if network.mapping is not None:
            placed = self._on(network.mapping)
            return placed.path(network.with_(mapping=None), side, along)
        if (other := self._at_once(network)) is not None:
            return path_of(other.laid, other.replayer.path(network, side, along))
        sign = 1.0 if side == "right" else -1.0
        times = self._charges(network)
        by_quantity: dict[CostQuantity, Charges] = {
            q: self._charges(network, q) for q in CostQuantity if q is not CostQuantity.TIME
        }
        slopes = by_quantity[CostQuantity(along)]
        cpu = self._cpu(network)
        given = costs([times, slopes], [cpu, np.zeros_like(cpu)], signs=(1.0, sign))
        end, stuck_at, process, source, operation, part, row, table, index = self._core.path(
            given, self._messages_of(network)
        )
        if (error := stopped(self.program, stuck_at, end)) is not None:
            raise error
        first = np.cumsum([0, *(len(getattr(times, name)) for name in TABLES)])
        charged = table > 0
        entry = first[table[charged].astype(np.int64) - 1] + index[charged]

        def column(charges: Charges) -> NDArray[np.float64]:
            values = np.zeros(len(table))
            values[charged] = np.concatenate([getattr(charges, name) for name in TABLES])[entry]
            return values

        time = column(times)
        time[~charged] = self._computing(process[~charged], operation[~charged], cpu)
        latency, count, latency_time, bytes_time = (
            column(by_quantity[q])
            for q in (
                CostQuantity.LATENCY,
                CostQuantity.BYTES,
                CostQuantity.LATENCY_TIME,
                CostQuantity.BYTES_TIME,
            )
        )
        overhead = np.where(charged, time - latency_time - bytes_time, 0.0)
        overhead[np.abs(overhead) <= 1e-12 * time] = 0.0
        tier = np.full(len(table), -1, np.int8)
        tier[charged] = self._tiers(network)[entry]
        runtime = float(end.max(initial=0.0))
        if abs(float(time.sum()) - runtime) > 1e-9 * runtime:
            raise AssertionError("the steps of the critical path do not add up to the runtime")
        if len(self.program.threads):
            process, source = (self.program.owner[each] for each in (process, source))
        paid = (time != 0) | (latency != 0) | (count != 0)
        columns: dict[str, NDArray[Any]] = {
            "process": process,
            "source": source,
            "operation": operation,
            "part": part,
            "row": row,
            "time": time,
            "latency": latency,
            "bytes": count,
            "latency_time": latency_time,
            "bytes_time": bytes_time,
            "overhead": overhead,
            "tier": tier,
        }
        kept = {name: column[paid] for name, column in columns.items()}
        return CriticalPath(**kept, runtime=runtime / _NS)

    def _shared(self, network: Network, *, moments: bool) -> Moments:
        """When things happen on a network whose links messages share."""
        program, charges, messages = self.program, self._charges(network), self._classes_on(network)
        node = np.searchsorted(distinct(program.nodes), program.nodes).astype(np.int32, copy=False)
        by_bytes = Price(network, CostQuantity.BYTES_TIME).of(
            messages.size, messages.distance == BETWEEN
        )
        return carry(
            program,
            self._core,
            self._messages_of(network),
            charges,
            shared_by(network, program, node, charges),
            self._cpu(network),
            busy=np.where(messages.distance == SELF, 0.0, by_bytes),
            size=messages.size.astype(np.float64),
            node=node,
            moments=moments,
        )

    def _contended(self, network: Network, places: NDArray[np.int32] | None) -> Execution:
        program = self.program
        in_calls: NDArray[np.float64] | None = None
        moments = self._shared(network, moments=places is not None)
        if places is not None:  # time in the calls of each place and name, s
            names, rows = len(program.call_name), int(places.max(initial=0)) + 1
            place = places[program.call] if len(places) else np.int32(0)
            row = place * names + program.call_code[program.call]
            time = np.bincount(row, moments.end - moments.begin, rows * names)
            in_calls = time.reshape(rows, names) / _NS
        return self._execution(network, moments.last, program.offsets[1:], in_calls)

    def _on(self, mapping: RankMapping) -> Replayer:
        """The same program with its processes on other nodes."""
        if mapping not in self._placed:
            self._placed[mapping] = Replayer(self.program.on(mapping))
        return self._placed[mapping]

    def _computing(
        self, process: NDArray[np.int32], operation: NDArray[np.int64], cpu: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Times of bursts, or of what a process computes after its last operation, ns."""
        burst = self.program.tail[process]
        before = operation >= 0
        burst[before] = self.program.burst[operation[before]]
        return burst * cpu[process]

    def _tiers(self, network: Network) -> NDArray[np.int8]:
        """Tier of each row of the tables: 0 inside a node, 1 between nodes, -1 neither."""
        distance = self._classes_on(network).distance
        of_messages = np.where(distance == SELF, -1, distance == BETWEEN).astype(np.int8)
        of_collectives = self._classes.collectives.apart.astype(np.int8)
        row = self._classes.collective[self.program.uneven.collective]
        tiers = np.concatenate([*[of_messages] * 4, *[of_collectives] * 3, of_collectives[row]])
        return tiers if network.tiers is not None else np.where(tiers < 0, tiers, np.int8(1))

    def _charges(self, network: Network, quantity: CostQuantity = CostQuantity.TIME) -> Charges:
        messages = self._classes_on(network)
        return charge(self.program, self._classes, network, messages, quantity)

    def _cpu(self, network: Network) -> NDArray[np.float64]:
        """What multiplies the bursts of each sequence."""
        of_processes = 1 / network.cpu(self.program.processes)
        return of_processes[self.program.owner] if len(self.program.threads) else of_processes

    def _carried_on(self, network: Network) -> tuple[_kernel.Carried, MessageClasses] | None:
        """How collectives are carried out as messages, and all classes of messages, if they are."""
        if network.collectives != "algorithm":
            return None
        key = network.algorithms, network.tiers is not None
        if key not in self._carried:
            own = self._classes.messages
            carried, sent = carry_out(self.program, len(own), network.algorithms, tiers=key[1])
            self._carried[key] = _kernel.Carried(**vars(carried)), own.joined(sent)
        return self._carried[key]

    def _classes_on(self, network: Network) -> MessageClasses:
        """Classes of messages, with those that collectives send."""
        carried = self._carried_on(network)
        return self._classes.messages if carried is None else carried[1]

    def _messages_of(self, network: Network) -> _kernel.Carried | None:
        carried = self._carried_on(network)
        return None if carried is None else carried[0]

    def _at_once(self, network: Network) -> _AtOnce | None:
        """Who replays collectives of which several messages are under way at a time."""
        if network.collectives not in AT_ONCE or not len(self.program.collectives):
            return None
        return self._by_doubling if network.collectives == "smpi-rdb" else self._linear

    @cached_property
    def _linear(self) -> _AtOnce:
        laid = lay_out(self.program)
        return _AtOnce(Replayer(laid.program), laid)

    @cached_property
    def _by_doubling(self) -> _AtOnce:
        laid = lay_out(self.program, recursive_doubling=True)
        return _AtOnce(Replayer(laid.program), laid)

    @cached_property
    def _compute(self) -> NDArray[np.float64]:
        return self.program.compute()

    def _execution(
        self,
        network: Network,
        end: NDArray[np.float64],
        stuck_at: NDArray[np.int64],
        in_calls: NDArray[np.float64] | None = None,
    ) -> Execution:
        if (error := stopped(self.program, stuck_at, end)) is not None:
            raise error
        program = self.program
        compute = (self._compute * self._cpu(network) / _NS)[: program.processes]
        return Execution(network, program.latest(end / _NS), compute, program.operations, in_calls)


# Replaying a program on a network whose links messages share, in order of time.


def shared_by(
    network: Network, program: Program, node: NDArray[np.int32], charges: Charges
) -> Routes | Network:
    """What messages share: links that several have at once, or those that one holds at a time."""
    if not network.flow_level:
        return network
    # Pairs of different nodes between which messages may go, ascending.
    nodes = int(node.max(initial=-1)) + 1
    if (charges.collective_rule == Rule.MESSAGES).any():
        pair = np.arange(nodes * nodes)
    else:
        sender, receiver = node[program.messages.sender], node[program.messages.receiver]
        pair = distinct(sender.astype(np.int64) * nodes + receiver)
    first, second = pair // max(nodes, 1), pair % max(nodes, 1)
    ends = first[first != second].astype(np.int32), second[first != second].astype(np.int32)
    if network.topology is None:
        return over_links(network, *ends)
    return replace(network.topology.routes(*ends), within=within_nodes(network))


def carry(
    program: Program,
    core: _kernel.Replay,
    carried: _kernel.Carried | None,
    charges: Charges,
    shared: Routes | Network,
    cpu: NDArray[np.float64],
    *,
    busy: NDArray[np.float64],
    size: NDArray[np.float64],
    node: NDArray[np.int32],
    moments: bool = False,
) -> Moments:
    """Carry a program out with messages that wait for each other.

    `busy` is how long a message of each row of the charges holds links if nothing is in its way,
    ns; `size` its bytes. Messages that are ready at the same time start in the order of their
    senders' numbers. Memory beyond the program: 48 B for each message, and 32 B for each one that
    is under way at a time.
    """
    fair = isinstance(shared, Routes)
    routes = shared if isinstance(shared, Routes) else NO_ROUTES
    names = ("output_links", "input_links", "links_within", "buses")
    output, into, within, buses = (0 if fair else getattr(shared, name) for name in names)
    nodes = int(node.max(initial=-1)) + 1
    last, stuck_at, begin, end = _kernel.replay_contended(
        core,
        costs([charges], [cpu]),
        carried,
        sender=program.messages.sender,
        receiver=program.messages.receiver,
        busy=busy,
        bytes=size,
        place=node,
        fair=fair,
        output=output,
        input=into,
        within=within,
        buses=buses,
        pair=routes.sender.astype(np.int64) * nodes + routes.receiver,
        route_offsets=routes.offsets,
        route_link=routes.link,
        route_latency=routes.latency * _NS,
        capacity=routes.capacity / _NS,
        capacity_within=routes.within / _NS,
        moments=moments,
    )
    if (error := stopped(program, stuck_at, last)) is not None:
        raise error
    return Moments(begin, end, last)


# Replaying a program on a network.


def replay(
    program: Program, network: Network, *, places: NDArray[np.int32] | None = None
) -> Execution:
    """Replay a program on a network.

    Who replays it on several networks, or asks for more, makes a `Replayer` of it.
    """
    return Replayer(program).run(network, places=places)


def replays_once(replayer: Replayer, networks: Iterable[Network]) -> Callable[[Network], Execution]:
    """Replay a program on each network once: on many in few passes, on others when asked for."""
    given = list(dict.fromkeys(networks))
    try:
        found = dict(zip(given, replayer.scenarios(given), strict=True))
    except ReplayError:
        found = {}

    def once(network: Network) -> Execution:
        if network not in found:
            found[network] = replayer.run(network)
        return found[network]

    return once


def ends(program: Program, charges: Sequence[Charges]) -> NDArray[np.float64]:
    """Replay a program each of whose messages and collectives has its own cost, of several kinds.

    Returns the end of every process with each of the charges, s; float64[charges, P].
    """
    messages = np.arange(len(program.messages), dtype=np.int32)
    collectives = np.arange(len(program.collectives), dtype=np.int32)
    replayed, speed = core(program, messages, collectives), [np.ones(program.sequences)]
    rows = []
    for kind in charges:
        end, stuck_at = replayed.run(costs([kind], speed), None)
        if (error := stopped(program, stuck_at, end)) is not None:
            raise error
        rows.append(end)
    return np.stack(rows) / _NS
