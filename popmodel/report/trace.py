"""What was traced: where the trace is, what was recorded, what was not, and what it cost."""

from __future__ import annotations

import shlex
from typing import Any

from popmodel.report.export import Record, markdown_table
from popmodel.report.info import describe_threads
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, pairs
from popmodel.report.warnings import warning_lines, warning_text
from popmodel.tracer.merge import Merged
from popmodel.units import count, format_size, format_time, plural

_OPENMP = {"ompt": "by its tools interface", "gomp": "by the calls of libgomp"}
_NEXT = ("metrics", "replay")


def document(
    merged: Merged, *, raw: str | None, cost: float | None, notes: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The plain data of a traced run, ``popmodel/trace/1``.

    Parameters
    ----------
    merged : Merged
        The trace.
    raw : str or None
        The raw directory, where it is kept.
    cost : float or None
        Seconds that recording a record costs, where that was measured.
    notes : tuple of str
        What was not observed, and why, beyond what the trace tells.
    """
    # Every record was written by one thread, so this is the part of the time of all of them.
    time = sum(merged.threads) * merged.duration * 1e-9
    share = None if cost is None or not time else merged.records * cost / time
    return {
        "schema": "popmodel/trace/1",
        "trace": str(merged.path),
        "size": merged.size,
        "raw": raw,
        "raw_size": merged.raw_size,
        "processes": merged.processes,
        "threads": list(merged.threads),
        "hosts": merged.hosts,
        "duration": merged.duration * 1e-9,
        "records": merged.records,
        "calls": dict(merged.calls),
        "messages": merged.messages,
        "message_bytes": merged.message_bytes,
        "library": merged.library,
        "openmp": dict(merged.openmp),
        "counters": dict(merged.counters),
        "clock_residual": None if merged.clock_residual is None else merged.clock_residual * 1e-9,
        "overhead": {"per_record": cost, "share": share},
        "warnings": [
            *({"text": text, "count": 1} for text in notes),
            *({"text": each.text, "count": each.count} for each in merged.warnings),
        ],
    }


def screen(document: Document, style: Style) -> list[str]:
    """The run on a terminal, its warnings, and what to do next."""
    lines = [*pairs(_facts(document), style), *warning_lines(document["warnings"], style)]
    # Commands are there to be pasted: they are never shortened.
    name = shlex.quote(document["trace"])
    return [*lines, "", *(f"popmodel {verb} {name}" for verb in _NEXT)]


def records(document: Document) -> list[Record]:
    """One line per quantity: group, name, value."""
    single = ("processes", "hosts", "duration", "size", "raw_size", "records", "messages",
              "message_bytes", "clock_residual")  # fmt: skip
    rows: list[tuple[str, str, Any]] = [("trace", name, document[name]) for name in single]
    rows.append(("trace", "threads", sum(document["threads"])))
    rows += [("overhead", name, value) for name, value in document["overhead"].items()]
    rows += [("calls", name, value) for name, value in document["calls"].items()]
    rows += [("warnings", entry["text"], entry["count"]) for entry in document["warnings"]]
    return [
        {"trace": document["trace"], "group": group, "name": name, "value": value}
        for group, name, value in rows
    ]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown."""
    lines = markdown_table(["traced run", ""], _facts(document))
    warned = [(warning_text(entry),) for entry in document["warnings"]]
    return [*lines, "", *markdown_table(["warning"], warned)] if warned else lines


def _facts(document: Document) -> list[tuple[str, str]]:
    processes, hosts = document["processes"], document["hosts"]
    size = format_size(document["size"], digits=3)
    facts = [
        ("trace", f"{document['trace']}, {size}"),
        ("processes", f"{count(processes)} on {plural(hosts, 'host')}"),
        ("threads", describe_threads(document["threads"])),
        ("duration", format_time(document["duration"])),
        ("MPI", _mpi(document)),
        ("OpenMP", _openmp(document)),
        ("counters", _counters(document)),
        ("overhead", _overhead(document)),
    ]
    if hosts > 1:
        residual = document["clock_residual"]
        known = "unknown" if residual is None else f"within {format_time(residual, digits=2)}"
        facts.append(("clocks", f"of different hosts agree: {known}"))
    if document["raw"] is not None:
        raw_size = format_size(document["raw_size"], digits=3)
        facts.append(("raw files", f"{document['raw']}, {raw_size}"))
    return facts


def _mpi(document: Document) -> str:
    if not document["library"]:
        return "not used"
    calls = plural(sum(document["calls"].values()), "call")
    size = format_size(document["message_bytes"], digits=3)
    messages = plural(document["messages"], "message")
    sent = f"{messages} of {size} in all" if document["messages"] else "no messages"
    make = document["library"].partition(",")[0]
    return f"{make}: {calls}, {sent}"


def _openmp(document: Document) -> str:
    seen = {how: number for how, number in document["openmp"].items() if how in _OPENMP}
    if not seen:
        return "not observed"
    return " and ".join(_OPENMP[how] for how in sorted(seen))


def _counters(document: Document) -> str:
    reasons = dict(document["counters"])
    read = reasons.pop("", 0)
    if reasons:
        why = "; ".join(sorted(reasons))
        return f"not read: {why}" if not read else f"read in {count(read)} processes only: {why}"
    return "instructions and cycles" if read else "not asked for"


def _overhead(document: Document) -> str:
    number = plural(document["records"], "record")
    cost, share = document["overhead"]["per_record"], document["overhead"]["share"]
    if cost is None or share is None:
        return f"{number}; what one costs was not measured"
    each = format_time(cost, digits=2)
    percent = "less than 0.01" if share < 1e-4 else f"about {100 * share:.2g}"
    return f"{percent} % of the time: {number} of {each}"


VIEWS = Views(screen, records, markdown)


def built(library: str, compiler: str, mpi: str | None, without: str | None) -> dict[str, Any]:
    """The plain data of a built library, ``popmodel/trace-library/1``."""
    return {
        "schema": "popmodel/trace-library/1",
        "library": library,
        "compiler": compiler,
        "mpi": mpi,
        "without_mpi": without,
    }


def _built_facts(document: Document) -> list[tuple[str, str]]:
    without = f"none: {document['without_mpi']}" if document["without_mpi"] else "none"
    return [
        ("library", document["library"]),
        ("compiler", document["compiler"]),
        ("MPI", document["mpi"] or without),
    ]


BUILT = Views(
    # A path is there to be pasted: it is never broken.
    lambda document, style: [document["library"], "", *pairs(_built_facts(document)[1:], style)],
    lambda document: [{"name": name, "value": value} for name, value in _built_facts(document)],
    lambda document: markdown_table(["tracer", ""], _built_facts(document)),
)
