"""What a report is made from, and its last lines.

A *document* is the plain data of one result, exactly what ``--format json`` prints (see the schema
names). Each verb has one module here that shows its documents; nothing in this package knows the
command line. A document that was saved as JSON can be shown again later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.base.values import dataclass
from popmodel.reports.blocks import CommandBlock, NoteBlock, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from popmodel.reports.html.contents import Contents

Document: TypeAlias = Mapping[str, Any]
Record: TypeAlias = Mapping[str, object]
"""A row of a table."""


@dataclass(frozen=True)
class Views:
    """How one kind of document is shown."""

    # Document to what is shown, in order; where efficiencies are shown, of which `families`.
    blocks: Callable[..., Sequence[Section]]
    # What CSV and data frames have rows of, and what stands beside these: paths in the document as
    # `popmodel docs json` names them.
    tables: tuple[str, ...]
    beside: tuple[str, ...] = ()
    # Document to a picture, or the name of what draws it in `popmodel.reports.pictures`; None where
    # there is none.
    picture: str | Callable[[Document], Figure] | None = None
    # Document to what the tables are of, where it is not the document itself.
    data: Callable[[Document], Document] | None = None
    # Document to what a page shows; None: the document and nothing else.
    contents: Callable[[Document], Contents] | None = None
    # Whether it is a text in itself, such as a page of the documentation: nothing says below where
    # it comes from, and a pager shows it where it is longer than the terminal.
    is_text: bool = False


def footer(document: Document) -> list[Section]:
    """Version, host and time, and the command as it can be pasted."""
    stamp = document["provenance"]
    by = NoteBlock(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}")
    return [(by, CommandBlock((pasteable(stamp["command"]),)))]


def short_footer(document: Document, *, more: bool) -> Section:
    """Version, host and time, and how to see what a screen leaves out."""
    stamp = document["provenance"]
    rest = "; --all shows the rest" if more else ""
    return (NoteBlock(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}{rest}"),)


def pasteable(command: str) -> str:
    """The command that made a result, to be pasted where the file that it wrote is."""
    traced = re.match(r"popmodel trace (?!merge )", command)
    if traced:  # what stands behind its own options belongs to the program
        own = command.partition(" -- ")[0]
        return command if " --force" in own else f"{traced[0]}--force {command[traced.end() :]}"
    if command.startswith("popmodel study "):  # goes on with its directory
        return command
    writes = re.search(r" (-o|--output|--save-trace)[ =]|^popmodel machine measure", command)
    if writes and not re.search(r" --(force)?( |$)", command):
        return f"{command} --force"
    return command
