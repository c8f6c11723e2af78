"""Small archives, written with OTF2's own Python package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _otf2
import otf2
from otf2.enums import (
    GroupType,
    LocationGroupType,
    LocationType,
    MetricMode,
    MetricOccurrence,
    MetricType,
    Paradigm,
    RegionRole,
    Type,
)

import popmodel
from popmodel.traces import Trace


class ArchiveMaker:
    """An archive of some processes with threads, written record by record; times in ticks."""

    def __init__(
        self, folder: Path, threads: list[int], resolution: int = 10**9, nodes: int = 1
    ) -> None:
        self.folder = folder / "archive"
        self.writer = otf2.writer.Writer(str(self.folder), timer_resolution=resolution)
        self.definitions = self.writer.definitions
        define = self.definitions
        machine = define.system_tree_node("machine", class_name="machine")
        self.nodes = [
            define.system_tree_node(f"n{n}", class_name="node", parent=machine)
            for n in range(nodes)
        ]
        self.groups = [
            define.location_group(
                f"MPI Rank {p}",
                location_group_type=LocationGroupType.PROCESS,
                system_tree_parent=self.nodes[p % nodes],
            )
            for p in range(len(threads))
        ]
        self.locations = [
            [
                define.location(f"thread {t}", type=LocationType.CPU_THREAD, group=self.groups[p])
                for t in range(count)
            ]
            for p, count in enumerate(threads)
        ]
        masters = [each[0] for each in self.locations]
        self.masters = define.group(
            "", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=masters
        )
        self.world = self.comm(list(range(len(threads))), "MPI_COMM_WORLD")
        self.regions: dict[str, Any] = {}

    def comm(self, ranks: list[int], name: str = "", self_: bool = False) -> Any:
        """A communicator of some processes; `self_`: each process's own."""
        kind = GroupType.COMM_SELF if self_ else GroupType.COMM_GROUP
        members = [self.locations[rank][0] for rank in ranks]
        group = self.definitions.group("", group_type=kind, paradigm=Paradigm.MPI, members=members)
        return self.definitions.comm(name, group=group)

    def region(
        self,
        name: str,
        role: RegionRole = RegionRole.FUNCTION,
        paradigm: Paradigm = Paradigm.MPI,
        **more: Any,
    ) -> Any:
        """A region, by its name."""
        if name not in self.regions:
            self.regions[name] = self.definitions.region(
                name, region_role=role, paradigm=paradigm, **more
            )
        return self.regions[name]

    def omp(self, role: RegionRole, name: str = "") -> Any:
        """A region of OpenMP."""
        return self.region(
            name or f"!$omp {str(role).rpartition('.')[2].lower()} @a.c:7", role, Paradigm.OPENMP
        )

    def user(self, name: str) -> Any:
        """A function that the compiler instrumented."""
        return self.region(name, RegionRole.FUNCTION, Paradigm.COMPILER)

    def counter(self, name: str, mode: MetricMode = MetricMode.ACCUMULATED_START) -> Any:
        """A metric of one counter."""
        member = self.definitions.metric_member(
            name, "", metric_type=MetricType.PAPI, metric_mode=mode, value_type=Type.UINT64
        )
        return self.definitions.metric_class(
            (member,), occurrence=MetricOccurrence.SYNCHRONOUS_STRICT
        )

    def thread(self, process: int, thread: int = 0) -> Any:
        """What writes the records of a thread."""
        return self.writer.event_writer_from_location(self.locations[process][thread])

    def call(self, process: int, name: str, begin: int, end: int, *records: Any) -> None:
        """A call of MPI with records inside: name of the record, time, and its arguments."""
        to = self.thread(process)
        to.enter(begin, self.region(name))
        for kind, time, *arguments in records:
            getattr(to, kind)(time, *arguments)
        to.leave(end, self.region(name))

    def clock_offset(self, process: int, time: int, offset: int) -> None:
        """Say how the clock of a process differs at a time."""
        location = self.locations[process][0]
        own = _otf2.Archive_GetDefWriter(self.writer._handle, location._ref)
        _otf2.DefWriter_WriteClockOffset(own, time, offset, 0.0)

    def read(self) -> Trace:
        """The trace."""
        self.writer.close()
        return popmodel.read(self.folder)
