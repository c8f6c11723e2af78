"""Whether a machine can be measured."""

from __future__ import annotations

from typing import Any

from popmodel.base.units import plural
from popmodel.reports.blocks import CheckBlock, Checks, Facts, NoteBlock, Section
from popmodel.reports.views import Document, Record, Views

Entry = dict[str, Any]


def blocks(document: Document) -> list[Section]:
    """The checks: what was found, and below it what to do."""
    checks = tuple(
        CheckBlock(check["name"], check["status"], check["found"], check["todo"] or "")
        for check in document["checks"]
    )
    machine = (("machine", describe_machine(document["machine"])),)
    return [
        (Facts(machine, group="checks"),),
        (Checks(checks, group="checks"),),
        (NoteBlock(verdict(document)),),
    ]


def records(document: Document) -> list[Record]:
    """One line per check."""
    return [
        {name: check[name] for name in ("name", "status", "found", "todo")}
        for check in document["checks"]
    ]


def describe_machine(machine: Entry) -> str:
    """The machine in a line: its processor, what it has of it."""
    shape = [plural(machine["cores_per_node"], "core")]
    if machine["sockets"] > 1:
        shape.append(plural(machine["sockets"], "socket"))
    if machine["domains"] > machine["sockets"]:
        shape.append(plural(machine["domains"], "memory domain"))
    if machine.get("virtual"):
        shape.append("virtual")
    return ", ".join([machine.get("cpu", "unknown CPU"), *shape])


def verdict(document: Document) -> str:
    """The answer in a line."""
    if not document["measurable"]:
        failed = [check["name"] for check in document["checks"] if check["status"] == "fail"]
        if failed == ["MPI"]:
            without = "popmodel bench --only core,memory,loops,openmp,noise"
            return f"only a part can be measured without MPI: {without}"
        return f"this machine cannot be measured yet, failed: {', '.join(failed)}"
    return "ready to measure: popmodel bench -o machine.json"


VIEWS = Views(blocks, records)
