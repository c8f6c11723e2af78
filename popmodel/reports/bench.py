"""What a measurement says while it runs, and where its programs are."""

from __future__ import annotations

from popmodel.reports.blocks import Code, Facts, Section
from popmodel.reports.renderers.text import shorten
from popmodel.reports.views import Document, Record, Views

_BAR = 20


def progress_line(part: str, done: int, total: int, left: float, width: int) -> str:
    """One line: part of the suite, a bar, jobs, and the time that is left."""
    filled = _BAR * done // total if total else _BAR
    minutes, seconds = divmod(round(left), 60)
    figures = f"{done}/{total} jobs, {minutes}:{seconds:02d} left"
    bar = "#" * filled + "." * (_BAR - filled)
    whole = f"{part:<11} [{bar}] {figures}"
    return whole if len(whole) <= width else shorten(f"{part} {figures}", width)


def _blocks(document: Document) -> list[Section]:
    paths = (f"popmodel-{name}  {path}" for name, path in document["programs"].items())
    facts = (("compiler", document["compiler"]), ("MPI", document["mpi"] or "not needed"))
    return [(Code(tuple(paths)),), (Facts(facts),)]


def _records(document: Document) -> list[Record]:
    return [
        {"program": f"popmodel-{name}", "path": path} for name, path in document["programs"].items()
    ]


BUILT = Views(_blocks, _records)
