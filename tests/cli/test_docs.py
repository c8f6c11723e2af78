"""``popmodel docs``: pages without a network."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

import pytest

import popmodel as package
from popmodel.cli import glossary
from popmodel.cli.docs import pages
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.renderers.terminal import render
from popmodel.reports.renderers.text import Style

from .conftest import Call

PAGES = {page.name: page for page in pages()}
NAMES = list(PAGES)


@pytest.mark.long(after=8)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [40, 80])
def test_text_fits_the_terminal_and_code_is_never_cut(
    name: str, width: int, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, err = popmodel("docs", name)
    assert (status, err) == (0, "")
    assert out.isascii()
    code = [
        line.strip()
        for block in re.findall(r"^```\w*\n(.*?)^```$", PAGES[name].text(), re.M | re.S)
        for line in block.splitlines()
    ]
    shown = [line.strip() for line in out.splitlines()]
    assert set(code) <= set(shown)
    assert [
        line for line in out.splitlines() if len(line) > width and line.strip() not in code
    ] == []


def test_markdown_is_the_page_as_it_is(popmodel: Call) -> None:
    for name, page in PAGES.items():
        status, out, err = popmodel("docs", name, "--format", "markdown")
        assert (status, err) == (0, "")
        # Names that are also words of screens are explained above their page.
        assert out == page.text() or (out.endswith(page.text()) and out.startswith("### ")), name


def test_links_to_pages_are_commands(popmodel: Call) -> None:
    assert "`popmodel docs traces`" in " ".join(popmodel("docs", "definitions")[1].split())


def test_the_document_of_a_name_is_a_table_as_well() -> None:
    table = package.docs("load_balance").to_dataframe()
    assert list(table["family"]) == ["mpi", "mpi-additive"]
    listed = package.docs().to_dataframe()
    assert {"tutorial", "Load balance", "memory.bsat"} <= {*listed["name"], *listed["page"]}


NAMES_OF_ALL = sorted(
    {word.name for word in glossary.words()}
    | {id for family in load_families().values() for id in (family.id, *family.metrics)}
    | {*glossary.names().values()}
)


def test_screens_of_names_fit() -> None:
    for name in ["", *NAMES_OF_ALL]:
        found = package.docs(name)
        if "page" in found.found:
            continue
        document = found._stamped()
        for width in (50, 80):
            lines = render(document, found.views, Style(width)).splitlines()
            longest_word = max(map(len, " ".join(lines).split()))
            assert max(map(len, lines)) <= max(width, longest_word + 12), name
            assert len(lines) <= 25 or width < 80, name


def test_a_pipe_gets_plain_text(popmodel: Call) -> None:
    assert "\x1b" not in popmodel("docs", "traces")[1]


def on_a_terminal(**variables: str) -> str:
    """What a terminal of 80 columns and 10 lines shows of a page."""
    child, terminal = pty.fork()
    if child == 0:
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "10", **variables}
        os.execve(sys.executable, [sys.executable, "-m", "popmodel", "docs", "traces"], environment)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(terminal)
        assert os.waitpid(child, 0)[1] == 0
    return shown.decode()


def test_a_long_page_goes_through_the_pager_of_the_user(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    shown = on_a_terminal(PAGER=f"tee {seen} | wc -l")
    assert "Record a trace" in seen.read_text()
    assert int(shown) == len(seen.read_text().splitlines())


@pytest.mark.long
def test_without_a_pager_the_page_is_printed() -> None:
    for pager in ("", "no-such-pager"):
        assert "POPMODEL_CACHE_DIR" in on_a_terminal(PAGER=pager)


def test_colours_are_left_out_where_nobody_wants_them() -> None:
    assert "\x1b[1mRecord a trace" in on_a_terminal(PAGER="")
    assert "\x1b" not in on_a_terminal(PAGER="", NO_COLOR="1")


def test_a_picture_is_told_by_its_name(popmodel: Call) -> None:
    out = popmodel("docs", "report")[1]
    assert "Picture: A report of a run on two processes with two threads." in out
