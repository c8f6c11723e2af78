"""Reads the machine that a configuration of Dimemas (``.cfg``) describes, and its network.

A configuration has records such as ``"environment information" {"", 0, "", 4, 100, 0, 1};;``. What
they say of one machine is read: nodes, their links, latencies and speed, the bandwidth and the
buses between them, the model of collectives, and which node each task is on. Bandwidths are MB/s
with MB = 2**20; 0 stands for what has no limit. The eager threshold is no part of a configuration,
but an option of Dimemas (``-S``).

Source: the definition of the records at the head of Dimemas' ``cfgs/ideal.cfg``, and
``Simulator/input/new_configuration.c``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from popmodel.base.errors import FileError
from popmodel.base.values import dataclass
from popmodel.network.fan_costs import Fans, read_fans
from popmodel.network.network import COST_FACTORS, PRESETS, Network
from popmodel.network.placement import RankMapping, Speeds
from popmodel.network.point_to_point import SizeClass, Tier, Tiers

MEGABYTE = 2**20
_RECORD = re.compile(r'"([a-z ]+)"\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*;;')
_FIELD = re.compile(r'\s*("[^"]*"|\[\d+\]\s*\{[^{}]*\}|[^,]*)\s*(?:,|$)')
_MOST_NODES = 10**7
_ADVICE = "give a configuration as Dimemas reads it (#DIMEMAS_CONFIGURATION)"
_REFUSED = {
    "dedicated connection information": "dedicated connections",
    "accelerator node information": "accelerators",
    "modules information": "modules",
}


@dataclass(frozen=True)
class CfgNode:
    """A node of a machine."""

    processors: int  # Processors
    speed: float  # CPU speed relative to the traced run
    # Of messages inside the node and to other nodes, s.
    latency_within: float
    bandwidth_within: float  # Of a message inside the node, B/s; infinite where it has no limit
    # What messages inside the node share; 0: as many as needed.
    buses_within: int
    input_links_within: int
    output_links_within: int
    latency: float
    # Links that messages from and to other nodes share; 0: as many as needed.
    input_links: int
    output_links: int


@dataclass(frozen=True)
class Machine:
    """A machine of Dimemas."""

    path: str  # Where it was read from
    nodes: tuple[CfgNode, ...]  # By number
    bandwidth: float  # Of a message between nodes, B/s; infinite where it has no limit
    buses: int  # Messages between nodes that are under way at the same time at most; 0: any number
    collective_cost: str  # One of `popmodel.network.network.COST_FACTORS`
    # ``fill`` (a process for each processor of a node), ``interleaved``, the number of processes on
    # each node, or the node of each process.
    mapping: str | tuple[int, ...]
    collectives: str  # File with the models of collectives; empty where there is none

    def placement(self, processes: int) -> list[int]:
        """Return the node of each process."""
        count = len(self.nodes)
        if isinstance(self.mapping, tuple):
            if len(self.mapping) != processes:
                raise self._wrong(f"maps {len(self.mapping)} tasks, not {processes}")
            placed = list(self.mapping)
        elif self.mapping == "interleaved":
            placed = [process % count for process in range(processes)]
        elif self.mapping == "fill":
            places = [n for n, node in enumerate(self.nodes) for _ in range(node.processors)]
            placed = places[:processes]
        else:
            placed = [process // int(self.mapping) for process in range(processes)]
        if len(placed) < processes or max(placed, default=0) >= count:
            raise self._wrong(f"has no place for {processes} processes on {count} nodes")
        return placed

    def network(self, processes: int, eager_threshold: float) -> Network:
        """Return the network between some processes."""
        placed = self.placement(processes)
        used = [self.nodes[number] for number in sorted(set(placed))]
        node, several = used[0], len(used) > 1
        if any(replace(other, speed=node.speed) != node for other in used):
            raise self._wrong(
                "has nodes that differ in more than their speed", "give all the same values"
            )
        within = _tier(node.latency_within, node.bandwidth_within, eager_threshold)
        between = _tier(node.latency, self.bandwidth, eager_threshold)
        shared = len(used) < len(placed)
        limits: dict[str, int] = {}
        if several:
            limits |= {"input_links": node.input_links, "output_links": node.output_links}
            limits |= {"buses": self.buses}
        if shared:
            limits |= {"links_within": self._links_within(node)}
        far = between if several else within
        return PRESETS["dimemas"].with_(
            name=self.path,
            latency=far.latency,
            bandwidth=far.bandwidth,
            eager_threshold=eager_threshold,
            collective_cost=self._collective_cost(),
            cpu_factor=self.nodes[placed[0]].speed,
            tiers=Tiers(within, between) if several and shared else None,
            speeds=self._speeds(placed),
            mapping=RankMapping(self.path, "listed", nodes=tuple(placed)),
            **limits,
        )

    def _speeds(self, placed: Sequence[int]) -> Speeds | None:
        """Speed of each process relative to the first, where their nodes differ."""
        speeds = [self.nodes[number].speed for number in placed]
        if len(set(speeds)) < 2:
            return None
        parts = tuple((rank, rank, speed / speeds[0]) for rank, speed in enumerate(speeds))
        return Speeds(self.path, parts)

    def _collective_cost(self) -> str | Fans:
        """The model of all collectives, or of each as a file beside the configuration says."""
        if not self.collectives:
            return self.collective_cost
        file = Path(self.path).parent / self.collectives
        fans = read_fans(os.fspath(file), _text(os.fspath(file)))
        return replace(fans, otherwise=self.collective_cost)

    def _links_within(self, node: CfgNode) -> int:
        if node.buses_within:
            raise self._wrong("limits the buses inside a node, which is not modelled")
        if node.input_links_within != node.output_links_within:
            raise self._wrong(
                "has other numbers of input and output links inside a node, which is not modelled"
            )
        return node.input_links_within

    def _wrong(self, problem: str, hint: str = _ADVICE) -> FileError:
        return _wrong(self.path, problem, hint)


def _tier(latency: float, bandwidth: float, eager_threshold: float) -> Tier:
    return Tier((SizeClass(None, latency, 1 / bandwidth),), eager_threshold)


def _text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8", "backslashreplace")
    except OSError as error:
        problem = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem) from None


def is_configuration(name: str | os.PathLike[str]) -> bool:
    """Whether a network is named by the file of a configuration."""
    return isinstance(name, (str, os.PathLike)) and os.fspath(name).endswith(".cfg")


def read(path: str | os.PathLike[str]) -> Machine:
    """Read a configuration of Dimemas."""
    path = os.fspath(path)
    plain = re.sub(r"/\*.*?(?:\*/|\Z)", "", _text(path), flags=re.DOTALL)
    records: dict[str, list[_CfgRecord]] = {}
    for what, text in _RECORD.findall(plain):
        records.setdefault(what, []).append(_CfgRecord(path, what, _fields(text)))
    environments = records.get("environment information", [])
    if len(environments) != 1:
        raise _wrong(
            path, f'has {len(environments) or "no"} records "environment information", not one'
        )
    environment = environments[0]
    environment.expect(7)
    for what, named in _REFUSED.items():
        if what in records:
            raise _wrong(path, f"has {named}, which are not modelled")
    if any(int(wide.number(1)) > 1 for wide in records.get("wide area network information", [])):
        raise _wrong(path, "has several machines in a wide area network, which are not modelled")
    nodes = _nodes(path, records)
    count, model = environment.count(3), environment.count(6)
    if count != len(nodes):
        raise _wrong(path, f"announces {count} nodes, but describes {len(nodes)}")
    if not 1 <= model <= len(COST_FACTORS):
        raise _wrong(path, f"model {model} of collectives is not known (1 to 3 are)")
    files = records["configuration files"][-1].fields if "configuration files" in records else []
    return Machine(
        path,
        nodes,
        environment.bandwidth(4),
        environment.count(5),
        COST_FACTORS[model - 1],
        _mapping(records, len(nodes)),
        files[2].strip('"') if len(files) > 2 else "",
    )


@dataclass(frozen=True)
class _CfgRecord:
    """A record of a file: what it is about, and its fields."""

    path: str
    what: str
    fields: list[str]

    def expect(self, count: int, other: int | None = None) -> None:
        """Refuse another number of fields."""
        if len(self.fields) not in (count, other):
            counts = f"{count}" if other is None else f"{count} or {other}"
            raise _wrong(self.path, f"{self.what} has {len(self.fields)} fields, not {counts}")

    def number(self, place: int) -> float:
        try:
            value = float(self.fields[place])
        except (ValueError, IndexError):
            value = math.nan
        if not math.isfinite(value):
            given = self.fields[place][:40] if place < len(self.fields) else "missing"
            raise self._wrong(place, f"a number, not {given}")
        return value

    def count(self, place: int) -> int:
        """A whole number from 0."""
        value = self.number(place)
        if value < 0 or value != int(value):
            raise self._wrong(place, "a whole number from 0")
        return int(value)

    def seconds(self, place: int) -> float:
        """A latency, or a bandwidth in the file's unit."""
        if (value := self.number(place)) < 0:
            problem = f"{self.what}: field {place + 1} must not be below 0"
            raise _wrong(self.path, problem)
        return value

    def bandwidth(self, place: int) -> float:
        """A bandwidth, B/s."""
        return self.seconds(place) * MEGABYTE or math.inf

    def node(self, at: int) -> CfgNode:
        """A node whose processors are in some place."""
        if not (speed := self.number(at + 1)) > 0:
            raise _wrong(
                self.path,
                f"{self.what}: a speed of {speed:g}, which stands for bursts of no or of fixed "
                "length, is not modelled",
            )
        return CfgNode(
            processors=self.count(at),
            speed=speed,
            latency_within=self.seconds(at + 2),
            bandwidth_within=self.bandwidth(at + 3),
            buses_within=self.count(at + 4),
            input_links_within=self.count(at + 5),
            output_links_within=self.count(at + 6),
            latency=self.seconds(at + 7),
            input_links=self.count(at + 8),
            output_links=self.count(at + 9),
        )

    def _wrong(self, place: int, needed: str) -> FileError:
        return _wrong(self.path, f"{self.what}: field {place + 1} must be {needed}")


def _nodes(path: str, records: Mapping[str, list[_CfgRecord]]) -> tuple[CfgNode, ...]:
    """Nodes, those of several at once repeated."""
    nodes = []
    for record in records.get("node information", []):
        record.expect(13, 14)
        # an older form has the number of the node in the second place
        nodes.append(record.node(len(record.fields) - 11))
    for record in records.get("multi node information", []):
        record.expect(14)
        if (several := record.count(1)) > _MOST_NODES:
            raise _wrong(path, f"describes {several:.3g} nodes, more than {_MOST_NODES:,}")
        nodes += [record.node(3)] * several
    if not nodes:
        raise _wrong(path, "describes no nodes")
    return tuple(nodes)


def _mapping(records: Mapping[str, list[_CfgRecord]], nodes: int) -> str | tuple[int, ...]:
    """Which node each task is on; filled where nobody says."""
    if listed := records.get("mapping information", []):
        numbers = listed[-1].fields[-1].partition("{")[2].rstrip("} ").split(",")
        places = replace(listed[-1], fields=numbers)
        found = tuple(map(places.count, range(len(numbers))))
        if max(found) >= nodes:
            raise _wrong(places.path, f"maps a task to node {max(found)} of {nodes}")
        return found
    for record in records.get("predefined mapping information", []):
        words = record.fields[-1].strip('"').split()
        if words in (["FILL_NODES"], ["INTERLEAVED"]):
            return "fill" if words == ["FILL_NODES"] else "interleaved"
        number = words[0] if words[1:] == ["TASKS_PER_NODE"] else ""
        if number.isdecimal() and len(number) < 10 and int(number):
            return number
        raise _wrong(record.path, f"unknown mapping {record.fields[-1][:40]}")
    return "fill"


def _wrong(path: str, problem: str, hint: str = _ADVICE) -> FileError:
    return FileError(path, problem, hint=hint)


def _fields(text: str) -> list[str]:
    """Fields of a record, which commas separate; a list and a text in quotes is one field."""
    return [field.strip() for field in _FIELD.findall(text.strip() + ",")][:-1]
