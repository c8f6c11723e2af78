"""``popmodel docs``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Annotated

import typer

from popmodel.cli.options import choice

FORMATS = ("table", "markdown")
NOT_STARTED = (126, 127)
"""What a shell returns for a command that cannot be run or is not there."""

EXAMPLES = (
    "popmodel docs",
    "popmodel docs tutorial",
    "popmodel docs metrics --format markdown",
)


def command(
    page: Annotated[
        str | None, typer.Argument(metavar="[PAGE]", help="The page to show. Default: list all.")
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="Draw the page for the terminal, or print its Markdown.",
        ),
    ] = "table",
) -> None:
    """Show the documentation.

    The pages come with popmodel: no network is needed. On a terminal, a page longer than the
    screen is shown by $PAGER, or by less.
    """
    from popmodel.api.docs import find, pages, terminal_markdown
    from popmodel.cli.output import terminal_style
    from popmodel.cli.streams import write_out
    from popmodel.reports.blocks import Facts, NoteBlock
    from popmodel.reports.manual import page_lines
    from popmodel.reports.renderers.terminal import block_lines

    raw = choice("--format", format, FORMATS) == "markdown"
    style = terminal_style(sys.stdout)
    if page is None:
        known = pages()
        listed = [f"- `{each.name}`: {each.title}" for each in known]
        if not raw:
            facts = Facts(tuple((each.name, each.title) for each in known))
            listed = block_lines([(facts,), (NoteBlock("popmodel docs PAGE shows a page"),)], style)
        write_out("\n".join(listed) + "\n")
        return
    found = find(page)
    if raw:
        write_out(found.text())
        return
    lines = page_lines(terminal_markdown(found), style)
    text = "\n".join(lines) + "\n"
    if sys.stdout.isatty() and len(lines) >= shutil.get_terminal_size().lines and _paged(text):
        return
    write_out(text)


def _paged(text: str) -> bool:
    """Show a text by the user's pager; false if there is none."""
    pager = os.environ.get("PAGER", "less")
    # -R shows colours, -F and -X leave the text on the screen; as git calls less.
    environment = {"LESS": "FRX", **os.environ}
    ended = subprocess.run(["sh", "-c", pager], input=text, text=True, env=environment, check=False)
    return bool(pager.strip()) and ended.returncode not in NOT_STARTED
