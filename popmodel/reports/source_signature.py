"""A signature that was read from source code: what it has, and what it does not know."""

from __future__ import annotations

from popmodel.base import shell
from popmodel.base.units import plural
from popmodel.reports.blocks import Code, Facts, Role, Section, titled
from popmodel.reports.views import Document, Record, Views

_NAMES = {
    "loop": "loop",
    "serial": "serial part",
    "parallel": "parallel loop",
    "halo": "halo exchange",
    "shift": "shift",
    "messages": "message list",
    "collective": "collective operation",
}
_FILES = 3
"""Source files that are named on the screen."""
_SHOWN = 10
"""Unknown values, and notes, on the screen."""


def blocks(document: Document) -> list[Section]:
    """What the signature has, what is not known and how to say it, what was assumed."""
    files = document["files"]
    items = [plural(number, _NAMES[kind]) for kind, number in document["items"].items()]
    facts = (
        ("signature", document["path"] or document["application"]),
        ("from", ", ".join(files) if len(files) <= _FILES else plural(len(files), "source file")),
        ("program", ", ".join(items) or "nothing that takes time"),
    )
    unknown = [
        f"{one['name']}: {one['source']} ({one['place']})" for one in document["unknown"][:_SHOWN]
    ]
    notes = document["notes"][:_SHOWN]
    return [
        (Facts(facts),),
        titled(f"not known from the source{_more(document['unknown'])}", unknown),
        titled(f"notes{_more(document['notes'])}", notes, Role.WARNING),
        _next(document),
    ]


def records(document: Document) -> list[Record]:
    """One line per value that is not known."""
    return [{"application": document["application"], **one} for one in document["unknown"]]


def _more(found: list[object]) -> str:
    return f" ({len(found) - _SHOWN} more: --format json)" if len(found) > _SHOWN else ""


def _next(document: Document) -> Section:
    if document["path"] is None:
        return ()
    name = shell.quote(document["path"])
    unknown = [one["name"] for one in document["unknown"]]
    given = "".join(f" --set {one}=VALUE" for one in unknown) if len(unknown) <= _FILES else ""
    return (
        Code(
            (
                f"popmodel signature check {name}",
                f"popmodel predict {name} --procs 16 --threads 4{given}",
            )
        ),
    )


VIEWS = Views(blocks, records)
