"""Which processes and threads an archive has, where they ran, and its communicators of MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

Defined = dict[str, list[tuple[Any, ...]]]
"""Definitions of an archive by their kind."""
DAMAGED = "copy the archive again, with all of its files, or trace the run again"

# Numbers of OTF2.
_STREAM, _METRIC = 2, 3
_PROCESS, _ACCELERATOR = 1, 2
_COMM_LOCATIONS, _COMM_GROUP, _COMM_SELF, _COMM_PROCESSES = 4, 5, 6, 7
_GLOBAL_RANKS = 1
_MPI = 4
NO_LOCATION = -1
"""A thread of which the archive has nothing."""
_SHARED_MEMORY = 1


class ArchiveProcess(NamedTuple):
    group: int  # Its location group
    locations: list[int]  # Its threads, the first one first


def processes_of(defined: Defined, anchor: Path) -> tuple[list[ArchiveProcess], list[int]]:
    """Processes in the order of their ranks, and the locations that are streams of devices."""
    groups = {self: type_ for self, _, type_, *_ in defined.get("processes", ())}
    of_group: dict[int, list[int]] = {}
    group_of: dict[int, int] = {}
    streams = []
    for self, _, type_, _, group in defined.get("locations", ()):
        if type_ == _STREAM or (groups.get(group) == _ACCELERATOR and type_ != _METRIC):
            streams.append(self)
        elif type_ != _METRIC and group in groups and self not in group_of:
            of_group.setdefault(group, []).append(self)
            group_of[self] = group
    ranks = _of_mpi(defined, group_of)
    masters = {group: location for location, group in reversed(ranks)}
    order = dict.fromkeys(group for _, group in ranks)
    order.update(dict.fromkeys(group for group in groups if group in of_group))
    found = []
    for group in order:
        first = masters.get(group, of_group[group][0])
        found.append(ArchiveProcess(group, [first, *(o for o in of_group[group] if o != first)]))
    if not found:  # profilers that record nothing but kernels (rocprofv3 --kernel-trace)
        creators = {self: by for self, *_, by in defined.get("processes", ())}
        of_streams = (group for self, *_, group in defined.get("locations", ()) if self in streams)
        hosts = (
            each if groups.get(each) == _PROCESS else creators.get(each, -1) for each in of_streams
        )
        found = [ArchiveProcess(each, [NO_LOCATION]) for each in dict.fromkeys(hosts)]
    if not found:
        raise TraceError(anchor, "it defines no thread and no stream of a device", hint=DAMAGED)
    return found, streams


def _of_mpi(defined: Defined, group_of: Mapping[int, int]) -> list[tuple[int, int]]:
    """Location and location group of each rank of MPI."""
    first = {group: location for location, group in reversed([*group_of.items()])}
    for _, type_, paradigm, _, members in defined.get("groups", ()):
        if paradigm == _MPI and type_ == _COMM_LOCATIONS:
            return [(each, group_of[each]) for each in members if each in group_of]
        if paradigm == _MPI and type_ == _COMM_PROCESSES:
            return [(first[each], each) for each in members if each in first]
    return []


def nodes_of(
    defined: Defined, processes: Sequence[ArchiveProcess]
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Threads of each node, and the node of each process."""
    tree = {self: (kind, parent) for self, _, kind, parent in defined.get("nodes", ())}
    texts: dict[int, bytes] = dict(defined.get("strings", ()))
    shared = {node for node, domain in defined.get("domains", ()) if domain == _SHARED_MEMORY}
    shared |= {node for node, (kind, _) in tree.items() if texts.get(kind) == b"node"}
    place = {self: node for self, _, _, node, _ in defined.get("processes", ())}
    number: dict[int, int] = {}
    threads: list[int] = []
    node_of = []
    for process in processes:
        at = place.get(process.group, -1)
        passed: set[int] = set()
        while at in tree and at not in shared and at not in passed:
            passed.add(at)
            at = tree[at][1]
        where = at if at in shared else place.get(process.group, -1)
        if where not in number:
            number[where] = len(number)
            threads.append(0)
        threads[number[where]] += len(process.locations)
        node_of.append(number[where])
    return tuple(threads), np.array(node_of, np.int64)


class ArchiveCommunicators:
    """Communicators of MPI, as processes; the kernel knows them by their place in the list."""

    def __init__(self, defined: Defined, processes: Sequence[ArchiveProcess]) -> None:
        self.processes = len(processes)
        self.base: list[int] = []  # process of each rank of the whole program
        process_of = {each: p for p, process in enumerate(processes) for each in process.locations}
        of_group = {process.group: p for p, process in enumerate(processes)}
        groups = {}
        for self_, type_, paradigm, flags, members in defined.get("groups", ()):
            if paradigm != _MPI:
                continue
            groups[self_] = type_, flags, members
            if type_ in (_COMM_LOCATIONS, _COMM_PROCESSES):
                known = process_of if type_ == _COMM_LOCATIONS else of_group
                self.base = [known.get(each, -1) for each in members]
        self.references: list[int] = []
        self.members: list[list[int]] = []  # processes
        self.own: list[bool] = []
        self.far: list[list[int]] = []  # what ranks in records mean
        self.near: list[list[int]] = []  # and what to processes that are not in here
        listed = {group for group, (type_, _, _) in groups.items() if type_ >= _COMM_GROUP}
        for self_, _, group in defined.get("communicators", ()):
            if group not in listed:
                continue
            type_, flags, _ = groups[group]
            members = self._processes(groups[group])
            ranks = self.base if flags & _GLOBAL_RANKS else members
            self._add(self_, members, ranks, [], type_ == _COMM_SELF)
        for self_, group, other in defined.get("intercommunicators", ()):
            if group in groups and other in groups:
                far, near = (self._processes(groups[each]) for each in (other, group))
                self._add(self_, [], far, near, False)

    def _add(
        self, reference: int, members: list[int], far: list[int], near: list[int], own: bool
    ) -> None:
        self.references.append(reference)
        self.members.append(members)
        self.far.append(far)
        self.near.append(near)
        self.own.append(own)

    def _processes(self, group: tuple[int, int, list[int]]) -> list[int]:
        type_, _, members = group
        if type_ == _COMM_SELF:
            return []
        found = [self.base[each] for each in members if each < len(self.base)]
        return [each for each in found if each >= 0]

    @property
    def numbers(self) -> list[int]:
        """Number of each; those of which each process has its own count on from there."""
        found, free = [], 1
        for place, own in enumerate(self.own):
            told = own or self.members[place]
            found.append(free if told else 0)
            free += self.processes if own else bool(told)
        return found

    @property
    def columns(self) -> dict[str, Any]:
        """As the kernel takes them."""
        return {
            "communicators": np.array(self.references, np.uint32),
            "number": np.array(self.numbers, np.int64),
            "own": np.array(self.own, np.uint8),
            "members": self.members,
            "far": self.far,
            "near": self.near,
        }

    def ranks(self) -> dict[int, NDArray[np.int32]]:
        """Ranks of each by its number."""
        found = {}
        for number, members, own in zip(self.numbers, self.members, self.own, strict=True):
            if own:
                each = range(self.processes)
                found.update({number + rank: np.array([rank], np.int32) for rank in each})
            elif members:
                found[number] = np.array(members, np.int32)
        return found
