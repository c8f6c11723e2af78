"""The first line of a Paraver trace: duration, nodes, applications and their processes."""

from __future__ import annotations

import re

from popmodel.values import dataclass

LARGEST_TIME = 2**63 - 1
UNITS = {"_ns": 1, "_us": 1000, "_ms": 1_000_000, "": 1000}
"""Nanoseconds of the units that a header can state; without one they are microseconds."""
MOST_CPUS = 2**31 - 1
MOST_THREADS = 2**24
"""Of a whole trace: each takes memory, and a damaged header may state any number."""


class HeaderError(ValueError):
    """The line is no header; the text says what was expected and what was found."""


@dataclass(frozen=True)
class Application:
    """One application of the header: threads and node (from 1) of each task."""

    threads: tuple[int, ...]
    nodes: tuple[int, ...]
    communicators: int


@dataclass(frozen=True)
class Header:
    """What a trace's first line says."""

    duration: int  # Nanoseconds
    unit: int  # Nanoseconds per unit of the times in the records (`UNITS`)
    nodes: tuple[int, ...]  # CPUs of each node; empty where the header states 0 nodes
    applications: tuple[Application, ...]

    @property
    def threads(self) -> int:
        """Threads of all applications."""
        return sum(sum(each.threads) for each in self.applications)


class _HeaderReader:
    """Takes a line apart from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, pattern: str, expected: str) -> re.Match[str]:
        found = re.compile(pattern, re.ASCII).match(self.text, self.at)
        if found is None:
            rest = self.text[self.at : self.at + 24]
            where = f"found {rest!r}" if rest else "the line ends"
            raise HeaderError(f"the header lacks {expected} at column {self.at + 1}: {where}")
        self.at = found.end()
        return found

    def number(self, expected: str, least: int = 0) -> int:
        column = self.at + 1
        digits = self.take(r"\s*0*(\d+)", expected)[1]
        where = f"for {expected} at column {column}"
        if len(digits) > 19 or int(digits) > LARGEST_TIME:
            raise HeaderError(f"the header states a number {where} that exceeds 64 bits")
        if int(digits) < least:
            raise HeaderError(f"the header states {digits} {where}, at least {least} is needed")
        return int(digits)


def parse_header(line: str) -> Header:
    """Parse the first line of a trace, in any form that Paraver itself accepts.

    Writers differ: ovni pads the duration with zeros, nsys2prv has a colon behind the number of
    tasks, others leave out the CPUs of nodes (then each has one), give fractions of the duration,
    or separate applications by a comma.
    """
    reader = _HeaderReader(line)
    reader.take(r"#(Paraver|PARAVER) \(", "'#Paraver ('")
    reader.take(r"[^)]*\):", "the date, closed by '):'")
    duration = reader.number("the duration")
    fraction = float(reader.take(r"(\.\d*)?", "")[0] + "0")
    unit = UNITS[reader.take(r"(_[num]s|):", "':' or '_ns:'")[1]]
    duration = duration * unit + round(fraction * unit)
    if duration > LARGEST_TIME:
        raise HeaderError("the header states a duration that exceeds 64 bits in nanoseconds")
    nodes = _nodes(reader)
    reader.take(":", "':'")
    count = reader.number("the number of applications", least=1)
    applications = []
    for number in range(1, count + 1):
        reader.take("[:,]", f"':' before application {number}")
        applications.append(_application(reader, len(nodes)))
    reader.take(r"\s*$", "its end")
    header = Header(duration, unit, nodes, tuple(applications))
    for what, number, most in (
        ("CPUs", sum(nodes), MOST_CPUS),
        ("threads", header.threads, MOST_THREADS),
    ):
        if number > most:
            raise HeaderError(f"the header states {number} {what}, at most {most} can be read")
    return header


def _nodes(reader: _HeaderReader) -> tuple[int, ...]:
    count = reader.number("the number of nodes")
    if count == 0:
        reader.take(r"(\([^)]*\))?", "")
        return ()
    if not reader.take(r"(\()?", "")[1]:
        return (1,) * count
    cpus = [reader.number("the CPUs of node 1")]
    for node in range(2, count + 1):
        reader.take(",", f"',' before node {node}")
        cpus.append(reader.number(f"the CPUs of node {node}"))
    reader.take(r"\)", f"')' after node {count}")
    return tuple(cpus)


def _application(reader: _HeaderReader, nodes: int) -> Application:
    count = reader.number("the number of tasks", least=1)
    reader.take(r":?\(", "'(' and the threads of each task")
    threads, node_of = [], []
    for task in range(1, count + 1):
        if task > 1:
            reader.take(",", f"',' before task {task}")
        threads.append(reader.number(f"the threads of task {task}", least=1))
        reader.take(":", f"':' and the node of task {task}")
        node = reader.number(f"the node of task {task}")
        if nodes and not 1 <= node <= nodes:
            raise HeaderError(f"the header puts task {task} on node {node}, it has {nodes}")
        node_of.append(node)
    reader.take(r"\)", f"')' after task {count}")
    listed = reader.take(r"(,(?!\s*\d+:?\())?", "")[1]
    communicators = reader.number("the number of communicators") if listed else 0
    return Application(tuple(threads), tuple(node_of), communicators)
