"""What was traced: where the trace is, what was recorded, what was not, and what it cost."""

from __future__ import annotations

from popmodel.base import shell
from popmodel.base.units import count, format_size, format_time, plural
from popmodel.reports.blocks import (
    Brief,
    Code,
    Facts,
    Heading,
    Role,
    Section,
    TableBlock,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.run_tables import describe_threads
from popmodel.reports.views import Document, Views

_OPENMP = {"ompt": "OMPT (tools interface)", "gomp": "intercepted libgomp calls"}
_BY_SPAWN = " (started by MPI_Comm_spawn)"


def blocks(document: Document) -> list[Section]:
    """Each run, what was not seen of it, and what to do next; on a screen the first of several."""
    runs = [document, *document["others"]]
    if len(runs) == 1:
        return [*_of_run(document), _next(document)]
    whole: list[Section] = []
    for number, run in enumerate(runs, start=1):
        head = f"run {number} of {len(runs)}{_BY_SPAWN if run['spawned'] else ''}"
        whole += [(Heading(head, is_part=True),), *_of_run(run), _next(run)]
    rows = []
    for one in runs[:_RUNS]:
        numbers = count(one["processes"]), count(sum(one["threads"]))
        rows.append(TableRow(one["trace"], texts([*numbers, format_time(one["duration"])])))
    table = TableBlock(
        heads(["processes", "threads", "duration"]), tuple(rows), first=plural(len(runs), "run")
    )
    more = len(runs) - _RUNS
    brief: tuple[Section, ...] = (
        notes(document["caveats"]),
        (table, *notes([f"{more} more: --all"] if more > 0 else [])),
        _next(document),
    )
    return [(Brief(tuple(whole), brief),)]


_RUNS = 12  # on a screen
_LACKS = 3
_PLACED = 4


def _of_run(run: Document) -> list[Section]:
    lacks = run["not_seen"]
    more = [f"{len(lacks) - _LACKS} more: --all"] if len(lacks) > _LACKS else []
    whole = titled("not recorded", lacks, Role.WARNING)
    brief = titled("not recorded", [*lacks[:_LACKS], *more], Role.WARNING)
    return [
        notes(run["caveats"]),
        (Facts(tuple(_facts(run))),),
        (Brief((whole,), (brief,)),) if lacks else (),
    ]


def _next(run: Document) -> Section:
    """What to do with the trace; without MPI there is no network that could be another one."""
    verbs = ("metrics", "whatif") if run["library"] else ("metrics",)
    name = shell.quote(run["trace"])
    return (Code(tuple(f"popmodel {verb} {name}" for verb in verbs)),)


def _facts(document: Document) -> list[tuple[str, str]]:
    hosts, raw, residual = (document[name] for name in ("hosts", "raw", "clock_residual"))
    size, raw_size = (format_size(document[name], digits=3) for name in ("size", "raw_size"))
    seen = sorted(how for how in document["openmp"] if how in _OPENMP)
    given = document["overhead"]
    each = format_time(given["per_record"], digits=2)
    cost = f"{plural(document['records'], 'record')} at about {each} each"
    facts = [
        ("trace", f"{document['trace']}, {size}"),
        ("processes", f"{count(document['processes'])} on {plural(hosts, 'host')}"),
        ("threads", describe_threads(document["threads"])),
        ("duration", format_time(document["duration"])),
        ("MPI", _mpi(document)),
        ("OpenMP", " and ".join(_OPENMP[how] for how in seen) or "not recorded"),
        ("counters", "instructions and cycles" if document["counters"] else "none"),
        ("overhead", f"{_percent(given['low'], given['high'])} of the runtime: {cost}"),
    ]
    if hosts > 1:
        unknown = "to an unknown degree"
        known = unknown if residual is None else f"within {format_time(residual, digits=2)}"
        facts.append(("clocks", f"of the hosts agree {known}"))
    placed = [f"{who}: {where}" for who, where in document["placed"]]
    if len(placed) > _PLACED:
        placed = [*placed[: _PLACED - 1], f"{len(placed) - _PLACED + 1} more: --format json"]
    facts += [("placement" if not at else "", line) for at, line in enumerate(placed)]
    return [*facts, *([("raw files", f"{raw}, {raw_size}")] if raw is not None else [])]


def _mpi(document: Document) -> str:
    if not document["library"]:
        return "not used"
    calls = plural(sum(document["calls"].values()), "call")
    size = format_size(document["message_bytes"], digits=3)
    messages = plural(document["messages"], "message")
    sent = f"{messages}, {size}" if document["messages"] else "no messages"
    make = document["library"].partition(",")[0]
    return f"{make}: {calls}, {sent}"


def _percent(low: float, high: float) -> str:
    if high < 1e-4:
        return "less than 0.01 %"
    least, most = (f"{100 * share:.2g}" for share in (low, high))
    return f"{most} %" if least == most else f"{least} to {most} %"


VIEWS = Views(blocks, ("", "others[]"))
