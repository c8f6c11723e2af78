"""What was traced: where the trace is, what was recorded, what was not, and what it cost."""

from __future__ import annotations

from typing import Any

from popmodel.base import shell
from popmodel.base.units import count, format_size, format_time, plural
from popmodel.reports.blocks import Code, Facts, Heading, Role, Section, notes, titled
from popmodel.reports.run_tables import describe_threads
from popmodel.reports.views import Document, Record, Views

_OPENMP = {"ompt": "OMPT (tools interface)", "gomp": "intercepted libgomp calls"}
_BY_SPAWN = " (started by MPI_Comm_spawn)"
_NEXT = ("metrics", "whatif")


def blocks(document: Document) -> list[Section]:
    """Each run, what was not seen of it, and what to do next."""
    runs = [document, *document["others"]]
    if len(runs) == 1:
        return _of_run(document)
    sections: list[Section] = []
    for number, run in enumerate(runs, start=1):
        head = f"run {number} of {len(runs)}{_BY_SPAWN if run['spawned'] else ''}"
        sections += [(Heading(head, is_part=True),), *_of_run(run)]
    return sections


def _of_run(run: Document) -> list[Section]:
    # Without MPI there is no network that could be another one.
    verbs = _NEXT if run["library"] else _NEXT[:1]
    name = shell.quote(run["trace"])
    return [
        notes(run["caveats"]),
        (Facts(tuple(_facts(run))),),
        titled("not recorded", run["not_seen"], Role.WARNING),
        (Code(tuple(f"popmodel {verb} {name}" for verb in verbs)),),
    ]


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
    each = format_time(given["per_record"], digits=2)
    share = _percent(given["low"], given["high"])
    return f"{share} of the runtime: {number} at about {each} each"


def _percent(low: float, high: float) -> str:
    if high < 1e-4:
        return "less than 0.01 %"
    least, most = (f"{100 * share:.2g}" for share in (low, high))
    return f"{most} %" if least == most else f"{least} to {most} %"


VIEWS = Views(blocks, records)
