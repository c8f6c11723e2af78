"""The words for a signature: every kind and every key has some, and all fit the screen."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from popmodel.model.kinds import KEYS, KINDS, sentence
from popmodel.model.kinds.spread import encode
from popmodel.model.signature_check import check
from popmodel.model.signatures import bundled
from popmodel.reports.renderers.markdown import markdown_lines
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style
from popmodel.reports.signature_words import blocks


def screen(document: dict[str, Any], style: Style) -> list[str]:
    return block_lines(blocks(document), style)


def markdown(document: dict[str, Any]) -> list[str]:
    return markdown_lines(blocks(document))


HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n[decomp]\nglobal = ["n", "n"]\n'
TIMES = f'[recorded]\nr = "{encode(np.ones((4, 2)))}"\n'
CALLS = '[{ do = "send", to = "rank + 1", bytes = 8 }, { do = "recv", from = "rank - 1" }]'
PARAMS = "[params]\nx = { value = 0.5, low = 0.4, high = 0.6 }\ny = 3\nn = 64\n"


REQUIRED: dict[str, dict[str, str]] = {
    "loop": {"count": "1", "body": "[{ serial = { trip = 1 } }]"},
    "serial": {"trip": "1"},
    "parallel": {"trip": "1"},
    "task": {"count": "1", "seconds": "1"},
    "halo": {"width": "1", "bytes_per_cell": "1"},
    "shift": {"dim": "0", "by": "1", "bytes": "1"},
    "p2p": {"to": "1", "bytes": "1"},
    "collective": {"op": '"bcast"', "bytes": "1"},
    "pipeline": {"dims": "[0]", "blocks": "1", "seconds": "1", "bytes": "1"},
    "messages": {"calls": CALLS},
}
OTHERS: dict[tuple[str, str], tuple[str, str]] = {
    ("*", "name"): ('"a name"', "a name: "),
    ("loop", "body"): ("[{ serial = { trip = 1 } }]", "once:"),
    ("*", "bytes"): ('{ MEM = "1*x*y" }', "1*x*y = 1.5 B of memory traffic"),
    ("*", "by_rank"): ("[1, 3]", "its work is known for each of 2 processes, 0.5 to 1.5 of"),
    ("*", "quantiles"): ("[1, 3]", "in each step it is 0.5 to 1.5 of its mean, one of 2 values"),
    ("*", "recorded"): ('"r"', "its recorded times are kept (r)"),
    ("messages", "calls"): (CALLS, "a list of 2 calls: 1 send and 1 recv"),
    ("messages", "processes"): ("4", "1 send and 1 recv, of 4 processes"),
    ("messages", "scaled"): (
        '{ messages = "1*y/x", bytes = 8, offsets = [1, -1] }, processes = 4',
        "others exchange 1*y/x = 6 messages of 8 B in all with the ranks +1 and -1 away",
    ),
    ("*", "written"): (
        '{ MEM = "1*x*y" }, bytes.MEM = 9',
        "9 B of memory traffic (1*x*y = 1.5 B of it written back)",
    ),
    ("parallel", "constructs"): ('{ for = "x*y" }', "x*y = 1.5 times for"),
    ("parallel", "schedule"): ('"guided"', "guided"),
    ("parallel", "critical"): (
        '{ entries = "x*y", seconds = "1*x/y" }',
        "enters a critical section x*y = 1.5 times, 1*x/y = 166.7 ms each",
    ),
    ("parallel", "shared_writes"): (
        '{ count = "x*y", bytes = "1*y/x", chunk = "y" }',
        "x*y = 1.5 writes to elements of 1*y/x = 6 B in cache lines shared by threads, y = 3 "
        "adjacent elements by the same thread",
    ),
    ("*", "latency"): ('"1*x*y", instructions = 2', "a latency of 1*x*y = 1.5 cycles"),
    ("serial", "taken_over"): ('"x*y"', "x*y = 1.5 cache lines of other threads"),
    ("parallel", "taken_over"): ('"x*y"', "x*y = 1.5 cache lines of other threads"),
    ("serial", "seconds"): ('"1*x*y"', "each takes 1*x*y = 1.5 s, as measured"),
    ("parallel", "seconds"): ('"1*x*y"', "each takes 1*x*y = 1.5 s, as measured"),
    ("serial", "first_touch"): ('"interleaved"', "data interleaved over memory domains"),
    ("parallel", "first_touch"): ('"master"', "data where the master touched it first"),
    ("serial", "mode"): ('"roofline"', "arithmetic and transfers overlap (roofline)"),
    ("parallel", "mode"): ('"sum"', "no overlap (sum)"),
    ("halo", "mode"): ('"blocking"', "one message after the other (blocking)"),
    ("halo", "pack"): ('"none"', "nothing is packed"),
    ("parallel", "synchronisation"): (
        '"x/y"',
        "a share of x/y = 0.166667 of what threads idle is in barriers and locks",
    ),
    ("halo", "overlap"): ('"x/y"', "a share of x/y = 0.166667 is hidden"),
    ("p2p", "mode"): ('"sendrecv"', "while receiving (sendrecv)"),
    ("shift", "dim"): ("1", "grid dimension 1"),
    ("collective", "op"): (
        '"scatter"',
        "scatter of 1 B per process from rank 0, among all processes",
    ),
    ("collective", "comm"): ('["dim0", "dim1"]', "the processes along grid dimension 0 and 1"),
    ("pipeline", "dims"): ("[0, 1]", "through grid dimensions 0 and 1"),
    ("pipeline", "direction"): ('["backward"]', "through grid dimension 0, backward: 1 block"),
}
"""Values of keys that are no formula, or not of any value, and the words that they get."""


def items(path: Path, kind: str, entries: dict[str, str]) -> list[dict[str, Any]]:
    inside = ", ".join(f"{key} = {value}" for key, value in entries.items())
    path.write_text(
        f"{HEAD}{PARAMS}{TIMES}[[program]]\n"
        f"loop = {{ count = 'x + y', body = [{{ {kind} = {{ {inside} }} }}] }}\n"
    )
    found = check(path)
    assert found.mistakes == ()
    assert found.explained is not None
    return list(found.explained["program"][0]["body"])


@pytest.mark.long(after=21)
@pytest.mark.parametrize(
    ("kind", "key"), [(kind, key.name) for kind in KINDS for key in KEYS[kind]]
)
def test_every_key_has_its_words(kind: str, key: str, tmp_path: Path) -> None:
    value, words = OTHERS.get((kind, key), ("", ""))
    of_levels = key in ("bytes", "written") and kind in ("serial", "parallel")
    if not words and (key in ("name", "by_rank", "quantiles", "recorded", "latency") or of_levels):
        value, words = OTHERS["*", key]
    if not words:
        value, words = '"1*y/x"', "1*y/x = 6"  # the 1 takes any unit
    path = tmp_path / "demo.toml"
    (item,) = items(path, kind, REQUIRED[kind] | {key: value})
    assert words in sentence(item)


def test_every_kind_and_every_key_that_has_to_be_there_is_in_the_table() -> None:
    assert set(REQUIRED) == set(KINDS)
    for kind, entries in REQUIRED.items():
        assert entries.keys() >= {key.name for key in KEYS[kind] if key.default is None}


@pytest.mark.parametrize("name", bundled())
def test_the_screen_fits(name: str) -> None:
    document = check(name).to_dict()
    for width in (40, 60, 80):
        for style in (Style(width), Style(width, whole=True)):
            lines = [line for line in screen(document, style) if document["path"] not in line]
            assert max(map(len, lines)) <= width


def test_what_stands_before_the_program(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text(
        HEAD
        + "periodic = [true, false]\n"
        + PARAMS
        + "z = { value = 2, origin = 'trace', unit = 'rows' }\n"
        + "o = { value = 3, origin = 'assumed' }\nm = 1e6\nt = { value = 2e-6, "
        "unit = 's' }\n[let]\na = '2*n*z'\n[limits]\nrequire = ['P != 2']\nmemory_per_rank = 'm'\n"
        "[imbalance]\npersistent_cv = 0.02\nreference_processes = 16\ngrowth_exponent = 0.5\n"
        "[[program]]\nserial = { trip = 'a*o*x*y*t/t' }\n"
    )
    lines = screen(check(path).to_dict(), Style(80, whole=True))
    for words in (
        " x = 0.5, 90 %: 0.4 .. 0.6",
        " z = 2 rows (from trace)",
        " o = 3 (assumed)",
        " m = 1,000,000",
        " t = 2 us",
        " a = 2*n*z = 256",
        " cells: n x n = 64 x 64",
        " grid: P processes, with the smallest surface",
        " periodic boundaries: in dimension 0",
        " cells per process: n0, n1",
        " requires P != 2",
        " possible P: 1, 3, 4, 5, 6, 7, 8, 9, ...",
        " memory per process: m = 976.6 KiB",
        " work per process varies by 0.02 (cv), the same in every step",
        " given for 16 processes",
        " grows as P to the power of 0.5",
        " P: nothing; every process does the same work",
    ):
        assert words in lines


def _with_findings(path: str) -> dict[str, Any]:
    finding = {"message": "trip: a clash", "line": 5, "column": None, "hint": "w is bytes"}
    return {
        "application": None,
        "path": path,
        "mistakes": [finding, finding | {"line": None, "hint": None}],
        "remarks": [finding | {"column": 7, "message": "N is never used"}],
        "explained": None,
        "caveats": [],
    }


def test_a_long_path_stands_alone_and_whole() -> None:
    path = "/a/very/long/path/to/a/directory/with/the/signature/in/it/app.toml"
    lines = screen(_with_findings(path), Style(60))
    assert lines[lines.index(f"{path}:5:") + 1] == "    trip: a clash"


def test_names_cannot_move_the_cursor(tmp_path: Path) -> None:
    document = _with_findings("a\x1b[2J.toml")
    document["mistakes"][0]["message"] = "unknown key '\x1b[2J\u202e'"
    for lines in (screen(document, Style(60)), markdown(document)):
        assert all(line.isprintable() for line in lines)
    path = tmp_path / "demo.toml"
    path.write_text(
        HEAD + PARAMS + '[[program]]\nserial = { trip = "n*x*y", name = "a\\u001b[2J" }\n'
    )
    for lines in (
        screen(check(path).to_dict(), Style(60, whole=True)),
        markdown(check(path).to_dict()),
    ):
        assert all(line.isprintable() for line in lines)


def test_markdown_says_the_same() -> None:
    text = "\n".join(markdown(_with_findings("a.toml")))
    assert "- **check**: 2 mistakes, 1 remark" in text
    assert "a.toml:5: trip: a clash\n" in text
    document = check("cannon").to_dict()
    lines = markdown(document)
    assert "### program" in lines
    assert "- step: repeat s times:" in lines
    shown = {re.sub(r"^ *(- |### )", "", line).replace("\\", "") for line in lines}
    on_screen = {line.strip() for line in screen(document, Style(1000, whole=True))}
    facts = {line for line in on_screen if re.match(r"signature|about|file|check", line)}
    assert on_screen - facts - {""} <= shown
