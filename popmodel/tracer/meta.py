"""What a traced process wrote about itself: one JSON object a line, one line an event."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from popmodel.base.documents import (
    Items,
    NamedShape,
    Optional,
    Plain,
    RowShape,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    parse_json,
    shown,
)
from popmodel.base.errors import TraceError
from popmodel.base.values import dataclass
from popmodel.machines.host.hardware import parse_cpu_list
from popmodel.tracer.raw_records import LATEST
from popmodel.traces.tables import TraceWarning

Cpus = frozenset[int]
"""Processors of a host that a thread may use."""

AGAIN = "copy the raw directory again, or trace the run again"
VERSION = 2


class Communicator(NamedTuple):
    """A communicator as one of its processes knows it."""

    hash: str  # Of the world ranks of its members
    ordinal: int  # How many with the same members this process had before it
    # Members, and this process's rank among them.
    size: int
    rank: int
    # World ranks, where this process is the one that says so.
    members: tuple[int, ...] | None = None
    intercommunicator: bool = False  # Whether it joins two groups


class Function(NamedTuple):
    """A function that OpenMP made of a region: what the dynamic linker knows of its address."""

    name: str | None
    module: str
    offset: int


class TracedSite(NamedTuple):
    """Where a call of MPI returns to."""

    module: str
    offset: int


class Load(NamedTuple):
    """How busy the CPUs of a process were up to an instant."""

    time: int  # ns of the host's monotonic clock
    used: int  # CPU time of the process itself, ns
    ticks: int  # Per second, of what follows
    # Ticks that a CPU was busy, and that another virtual machine had it, by its number.
    cpus: Mapping[int, tuple[int, int]]


class Cpu(NamedTuple):
    """A CPU of a node; -1 where the system does not tell."""

    core: int  # The first CPU of the same core
    socket: int
    domain: int  # Memory domain (NUMA node)


class Exchange(NamedTuple):
    """Round trips between a process and the one whose clock counts."""

    when: str  # ``init`` or ``finalize``
    # Sent and received here, and the other's time between; ns of each one's own clock.
    round_trips: tuple[tuple[int, int, int], ...]


@dataclass
class Meta:
    """What a process wrote about itself."""

    path: Path
    # What ran where.
    host: str
    pid: int
    begin: int  # When tracing began, ns of the host's monotonic clock
    realtime: int  # The same instant in ns since 1970
    # What the clock belongs to: the start of the system, or the host where that is not known.
    boot: str
    # In MPI_COMM_WORLD; None in a process without MPI.
    rank: int | None = None
    size: int | None = None
    library: str = ""  # Of MPI, as it calls itself
    job: str = ""  # What its launcher calls the run; empty where it does not say so
    thread_level: int = 0  # That MPI provides, 0 single to 3 multiple
    spawned: bool = False  # Whether MPI_Comm_spawn started it
    end: int | None = None  # When tracing ended; None after a crash
    reason: str | None = None  # Why it ended
    # How many records each thread wrote; empty after a crash.
    records: dict[int, int] = field(default_factory=dict)
    communicators: dict[int, Communicator] = field(default_factory=dict)
    functions: dict[int, Function] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    sites: dict[int, TracedSite] = field(default_factory=dict)
    cpus: dict[int, Cpus] = field(default_factory=dict)  # Processors that a thread may use
    # How long a thread was on a processor and waited for one, ns.
    usage: dict[int, tuple[int, int]] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)  # That place threads, where set
    topology: dict[int, Cpu] = field(default_factory=dict)  # One process of a node tells
    begin_load: Load | None = None  # At the begin of the sums,
    end_load: Load | None = None  # and at their end
    others: list[tuple[int, str]] = field(
        default_factory=list
    )  # CPU time, ns, and names of threads
    counters: tuple[str, ...] = ()
    no_counters: str | None = None
    openmp: str | None = None
    # Threads whose records end early, as the disk was full, and since when, ns.
    lost_from: dict[int, int] = field(default_factory=dict)
    # Those of them that did so because the user wanted no more.
    limited: set[int] = field(default_factory=set)
    notes: Counter[str] = field(default_factory=Counter)


def read_meta(path: Path) -> tuple[Meta | None, list[TraceWarning]]:
    """Read what a process wrote about itself; None where it could not even write its first line."""
    try:
        text = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise TraceError(path, problem, hint=AGAIN) from None
    *lines, rest = text.split(b"\n")
    warnings = []
    if rest:  # each line is one write: a process can be killed in it, on a full disk for instance
        text_ = "processes whose .meta file ends in an incomplete line (line dropped)"
        warnings.append(TraceWarning(text_))
    meta: Meta | None = None
    for number, line in enumerate(lines, start=1):
        event = parse_json(line, path, TraceError, line=number, hint=AGAIN)
        try:
            kind = _EVENT.read(event)["event"]
            if meta is None:
                meta = _start(path, kind, event)
            elif kind in _EVENTS:
                _take(meta, kind, _EVENTS[kind].read(event))
            elif kind != "finalize":  # the end of MPI is the call of MPI_Finalize
                meta.notes[f"events of unknown kind {kind!r}"] += 1
        except ShapeError as error:
            problem = f"damaged line: {error}"
            raise TraceError(path, problem, line=number, hint=AGAIN) from None
    if meta is None:
        text_ = "processes with an empty .meta file (dropped; killed, or disk full?)"
        return None, [TraceWarning(text_)]
    return meta, warnings


class _Address:
    """A number in hexadecimal digits."""

    def read(self, value: Any) -> int:
        """Return the number; see `Shape`."""
        if not isinstance(value, str) or not re.fullmatch(r"(0x)?[0-9a-fA-F]{1,16}", value):
            raise ShapeError(f"must be an address, not {shown(value)}")
        return int(value, 16)


class _Records:
    """How many records each thread wrote, by its number."""

    def read(self, value: Any) -> dict[int, int]:
        """Return the numbers; see `Shape`."""
        counts = NamedShape(WholeShape(0)).read(value)
        for thread in counts:
            if not re.fullmatch(r"\d{1,9}", thread, re.ASCII):
                raise ShapeError(f"must have thread numbers as keys, not {shown(thread)}")
        return {int(thread): count for thread, count in counts.items()}


def _event(keys: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> TableShape:
    """An event that says some things, and perhaps others; a later version may say more."""
    return TableShape({**keys, **(optional or {})}, required=tuple(keys), others=Plain())


_TIME = WholeShape(0, LATEST)
_SMALL = WholeShape(0, 2**31 - 1)

_EVENT = _event({"event": Text()})

_START = _event(
    {
        "version": WholeShape(),
        "host": Text(),
        "pid": _SMALL,
        "monotonic": _TIME,
        "realtime": _TIME,
    },
    {"boot": Optional(Text())},
)


def _start(path: Path, kind: str, event: Mapping[str, Any]) -> Meta:
    if kind != "start":
        raise ShapeError(f"must be 'start' in the first line, not {shown(kind)}", "event")
    version = event.get("version")
    if version != VERSION:
        raise ShapeError(
            f"is {shown(version)}, but this popmodel reads version {VERSION}",
            "version",
        )
    read = _START.read(event)
    return Meta(
        path=path,
        host=read["host"],
        pid=read["pid"],
        begin=read["monotonic"],
        realtime=read["realtime"],
        boot=read.get("boot") or read["host"],
    )


_EVENTS: Mapping[str, Shape] = {
    "mpi": _event(
        {"rank": _SMALL, "size": _SMALL},
        {
            "library": Optional(Text()),
            "job": Optional(Text()),
            "spawned": WholeShape(0, 1),
            "thread_level": WholeShape(0, 9),
        },
    ),
    "communicator": _event(
        {"id": _SMALL, "hash": Text(), "ordinal": _SMALL, "size": _SMALL, "rank": WholeShape()},
        {"members": Optional(Items(_SMALL))},
    ),
    "function": _event(
        {"address": _Address(), "name": Optional(Text())},
        {"module": Optional(Text()), "offset": Optional(_Address())},
    ),
    "site": _event({"number": _SMALL, "offset": _Address()}, {"module": Optional(Text())}),
    "thread": _event({"number": _SMALL}, {"cpus": Optional(Text())}),
    "cpus": _event({"thread": _SMALL, "cpus": Text()}),
    "environment": TableShape({"event": Text()}, required=("event",), others=Text()),
    "topology": _event(
        {"cpus": Items(RowShape(_SMALL, WholeShape(-1), WholeShape(-1), WholeShape(-1)))}
    ),
    "load": _event(
        {
            "when": Text(),
            "time": _TIME,
            "used": _TIME,
            "ticks": WholeShape(1),
            "cpus": Items(RowShape(_SMALL, _TIME, _TIME)),
        }
    ),
    "others": _event({"threads": Items(RowShape(_TIME, Text()))}),
    "usage": _event({"thread": _SMALL, "used": _TIME, "waited": _TIME}),
    "name": _event({"id": _SMALL, "text": Text()}),
    "clock": _event(
        {"when": Text(), "with": Text(), "round_trips": Items(RowShape(_TIME, _TIME, _TIME))}
    ),
    "counters": _event({}, {"names": Items(Text()), "why": Text()}),
    "openmp": _event({"how": Text()}, {"runtime": Optional(Text())}),
    "full": _event({"thread": _SMALL, "lost_from": _TIME}, {"limited": WholeShape(0, 1)}),
    "end": _event({"time": _TIME, "records": _Records()}, {"reason": Text()}),
    "note": _event({"text": Text()}, {"count": WholeShape(0)}),
}


def _take(meta: Meta, kind: str, event: Mapping[str, Any]) -> None:
    """Note what an event says of its process."""
    match kind:
        case "mpi":
            meta.rank, meta.size = event["rank"], event["size"]
            meta.library = event.get("library") or ""
            meta.job = event.get("job") or ""
            meta.spawned = bool(event.get("spawned"))
            meta.thread_level = event.get("thread_level", 0)
            if event["rank"] >= event["size"]:
                raise ShapeError(f"is {event['rank']} of {event['size']}", "rank")
        case "communicator":
            members = event.get("members")
            meta.communicators[event["id"]] = Communicator(
                hash=event["hash"],
                ordinal=event["ordinal"],
                size=event["size"],
                rank=event["rank"],
                members=None if members is None else tuple(members),
                intercommunicator="remote_size" in event or "remote" in event,
            )
        case "function":
            module, offset = event.get("module") or "", event.get("offset") or 0
            meta.functions[event["address"]] = Function(event["name"], module, offset)
        case "site":
            meta.sites[event["number"]] = TracedSite(event.get("module") or "", event["offset"])
        case "thread":
            meta.cpus[event["number"]] = frozenset(parse_cpu_list(event.get("cpus") or ""))
        case "cpus":
            meta.cpus[event["thread"]] = frozenset(parse_cpu_list(event["cpus"]))
        case "environment":
            meta.variables = {name: text for name, text in event.items() if name != "event"}
        case "topology":
            meta.topology = {number: Cpu(*rest) for number, *rest in event["cpus"]}
        case "load":
            cpus = {cpu: (busy, stolen) for cpu, busy, stolen in event["cpus"]}
            load = Load(event["time"], event["used"], event["ticks"], cpus)
            if event["when"] == "begin":
                meta.begin_load = load
            else:
                meta.end_load = load
        case "others":
            meta.others = [(used, name) for used, name in event["threads"]]
        case "usage":
            meta.usage[event["thread"]] = event["used"], event["waited"]
        case "name":
            meta.names[event["id"]] = event["text"]
        case "clock":
            trips = tuple(event["round_trips"])
            meta.exchanges.append(Exchange(event["when"], trips))
        case "counters":
            meta.counters = tuple(event.get("names", ()))
            meta.no_counters = None if meta.counters else event.get("why", "unknown")
        case "openmp":
            meta.openmp = event["how"]
        case "full":
            meta.lost_from[event["thread"]] = event["lost_from"]
            if event.get("limited"):
                meta.limited.add(event["thread"])
        case "end":
            meta.end = event["time"]
            meta.reason = event.get("reason", "")
            meta.records = event["records"]
        case "note":  # it is written when first seen and, with its count, at the end
            text = event["text"]
            meta.notes[text] = max(meta.notes[text], event.get("count", 1))
