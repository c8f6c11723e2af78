"""What was traced: where the trace is, what was recorded, what was not, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from popmodel import shell
from popmodel.report.export import Record, markdown_table
from popmodel.report.info import describe_threads
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, pairs, paragraph
from popmodel.units import count, format_size, format_time, plural

_OPENMP = {"ompt": "OMPT (tools interface)", "gomp": "intercepted libgomp calls"}
_BY_SPAWN = " (started by MPI_Comm_spawn)"
_NEXT = ("metrics", "replay")


def screen(document: Document, style: Style) -> list[str]:
    """Each run on a terminal, what was not seen of it, and what to do next."""
    return _each(document, lambda run: _screen(run, style))


def _each(document: Document, view: Callable[[Document], list[str]]) -> list[str]:
    """A view of all runs, one below the other with their numbers where there are several."""
    runs = [document, *document["others"]]
    if len(runs) == 1:
        return view(document)
    lines: list[str] = []
    for number, run in enumerate(runs, start=1):
        lines += ["", ""] if lines else []
        lines += [f"run {number} of {len(runs)}{_BY_SPAWN if run['spawned'] else ''}", ""]
        lines += view(run)
    return lines


def _screen(document: Document, style: Style) -> list[str]:
    lines = pairs(_facts(document), style)
    if document["not_seen"]:
        lines += ["", "not recorded"]
        for text in document["not_seen"]:
            lines += paragraph(text, style, first=" ! ")
    # Commands are there to be pasted: they are never shortened.
    name = shell.quote(document["trace"])
    # Without MPI there is no network that could be another one; a replay follows masters only.
    can_replay = document["library"] and document["only_masters_call"]
    verbs = _NEXT if can_replay else _NEXT[:1]
    return [*lines, "", *(f"popmodel {verb} {name}" for verb in verbs)]


def records(document: Document) -> list[Record]:
    """One line per quantity: group, name, value."""
    single = ("processes", "hosts", "duration", "size", "raw_size", "records", "messages",
              "message_bytes", "clock_residual")  # fmt: skip
    rows: list[tuple[str, str, Any]] = [("trace", name, document[name]) for name in single]
    rows.append(("trace", "threads", sum(document["threads"])))
    rows += [("overhead", name, value) for name, value in document["overhead"].items()]
    rows += [("calls", name, value) for name, value in document["calls"].items()]
    rows += [("not_seen", text, 1) for text in document["not_seen"]]
    mine = [
        {"trace": document["trace"], "group": group, "name": name, "value": value}
        for group, name, value in rows
    ]
    return [*mine, *(row for other in document.get("others", ()) for row in records(other))]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown."""
    return _each(document, _markdown)


def _markdown(document: Document) -> list[str]:
    lines = markdown_table(["traced run", ""], _facts(document))
    lacking = [(text,) for text in document["not_seen"]]
    return [*lines, "", *markdown_table(["not recorded"], lacking)] if lacking else lines


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
        known = (
            "to an unknown degree"
            if residual is None
            else f"within {format_time(residual, digits=2)}"
        )
        facts.append(("clocks", f"of the hosts agree {known}"))
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
    sent = f"{messages}, {size}" if document["messages"] else "no messages"
    make = document["library"].partition(",")[0]
    return f"{make}: {calls}, {sent}"


def _openmp(document: Document) -> str:
    seen = {how: number for how, number in document["openmp"].items() if how in _OPENMP}
    if not seen:
        return "not recorded"
    return " and ".join(_OPENMP[how] for how in sorted(seen))


def _counters(document: Document) -> str:
    return "instructions and cycles" if document["counters"] else "none"


def _overhead(document: Document) -> str:
    given = document["overhead"]
    number = plural(document["records"], "record")
    how = "measured here" if given["measured"] else "typical value"
    each = format_time(given["per_record"], digits=2)
    share = _percent(given["low"], given["high"])
    return f"{share} of the runtime: {number} at about {each} each ({how})"


def _percent(low: float, high: float) -> str:
    if high < 1e-4:
        return "less than 0.01 %"
    least, most = (f"{100 * share:.2g}" for share in (low, high))
    return f"{most} %" if least == most else f"{least} to {most} %"


VIEWS = Views(screen, records, markdown)


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
