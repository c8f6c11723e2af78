"""Whether a machine can be measured."""

from __future__ import annotations

from typing import Any

from popmodel.report.export import Record, markdown_table
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, paragraph
from popmodel.units import plural

Entry = dict[str, Any]


def screen(document: Document, style: Style) -> list[str]:
    """The checks on a terminal: what was found, and below it what to do."""
    names = max(len(check["name"]) for check in document["checks"])
    states = max(len(check["status"]) for check in document["checks"])
    lines = paragraph(describe_machine(document["machine"]), style, first=f"{'machine':{names}}  ")
    lines.append("")
    for check in document["checks"]:
        first = f"{check['name']:{names}}  {check['status']:{states}}  "
        lines += paragraph(check["found"], style, first=first)
        if check["todo"]:
            lines += paragraph(check["todo"], style, first=" " * len(first) + "-> ")
    return [*lines, "", *paragraph(verdict(document), style)]


def records(document: Document) -> list[Record]:
    """One line per check."""
    return [
        {name: check[name] for name in ("name", "status", "found", "todo")}
        for check in document["checks"]
    ]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as a table."""
    rows = [
        (check["name"], check["status"], check["found"], check["todo"] or "")
        for check in document["checks"]
    ]
    lines = [describe_machine(document["machine"]), ""]
    lines += markdown_table(["check", "status", "result", "what to do"], rows)
    return [*lines, "", verdict(document)]


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
            without = "popmodel bench --only core,memory,openmp,noise"
            return f"only a part can be measured without MPI: {without}"
        return f"this machine cannot be measured yet, failed: {', '.join(failed)}"
    return "ready to measure: popmodel bench -o machine.json"


VIEWS = Views(screen, records, markdown)
