"""What a page shows: documents of commands, what is drawn of traces, and sections of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from popmodel.base.values import dataclass
from popmodel.reports.sensitivity_tables import flat
from popmodel.reports.views import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.timeline.timeline import Timeline


SCHEMA = "popmodel/report/1"


@dataclass(frozen=True)
class Contents:
    """What a page shows."""

    # A report: its ``title``, the ``documents`` of commands in order, and its provenance.
    document: Document
    timelines: tuple[Timeline, ...] = ()  # What is drawn of traces over time
    # The reports that were read from files, by their paths.
    saved: Mapping[str, Document] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the report is about."""
        title: str = self.document["title"]
        return title

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents of commands, in order."""
        return tuple(self.document["documents"])

    def with_(self, document: Document) -> Contents:
        """Return the same with another document."""
        return Contents(document, self.timelines, self.saved)

    def of(self, verb: str) -> tuple[Document, ...]:
        """The documents of one command, such as ``"metrics"``."""
        return tuple(one for one in self.documents if verb_of(one) == verb)

    @property
    def sensitivities(self) -> tuple[Document, ...]:
        """What the runtimes of runs depend on."""
        return tuple(flat(one) for one in self.of("whatif") if "sensitivity" in one)

    @property
    def scenarios(self) -> tuple[Document, ...]:
        """Runs on other networks."""
        return tuple(one for one in self.of("whatif") if "runs" in one)

    def inspected(self, part: str) -> tuple[Document, ...]:
        """A part of what runs do, with the path of the trace, of each document that has it."""
        documents = (one for one in self.of("inspect") if one.get(part))
        return tuple({"trace": one["trace"], **one[part]} for one in documents)


def verb_of(document: Document) -> str:
    """The kind of a document: ``metrics`` of ``popmodel/metrics/1``."""
    return str(document["schema"]).split("/")[1]


def command_of(document: Document) -> str:
    """The command whose document this is, where its kind has another name."""
    kind = verb_of(document)
    return {"splits": "predict", "formula": "predict"}.get(kind, kind)


def alone(document: Document) -> Contents:
    """The page of a single document."""
    if verb_of(document) == verb_of({"schema": SCHEMA}):
        return Contents(document)
    stamp = document["provenance"]
    title = f"popmodel {command_of(document)}"
    inputs = [one["path"].rpartition("/")[2] for one in stamp["inputs"]]
    if inputs:
        title = f"{title}: {inputs[0]}" + (f" and {len(inputs) - 1} more" if inputs[1:] else "")
    return Contents(
        {
            "schema": SCHEMA,
            "title": title,
            "documents": [document],
            "left_out": [],
            "provenance": stamp,
        }
    )


@dataclass(frozen=True)
class Section:
    """One section of a page."""

    # Names its template ``ID.html`` and, where they exist, ``ID.js`` and ``ID.css``; its anchor on
    # the page.
    id: str
    title: str  # Its heading
    context: Mapping[str, Any]  # What the template is given, by name. All text is escaped there
    data: Mapping[str, Any] = field(default_factory=dict)  # Plain data for the script
    # Arrays for the script, of integers of at most 32 bits or of floats. Names begin with `id`.
    packed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    template: str = ""  # The name of its template, where that is not `id`
