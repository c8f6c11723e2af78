"""Readers of text take time in proportion to it, also where it is one long word or line.

CPU times of a text and of one four times as long are compared: in proportion gives 4, the square
16, and 8 is refused. Only times that can be measured count: what takes less than `MEASURABLE` for a
hundred thousand letters does nothing for each pair of them. Sizes grow, so that a reader that fails
does so before it takes minutes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from popmodel import predict
from popmodel.base.documents import parse_json, parse_toml, read_text
from popmodel.base.errors import PopmodelError
from popmodel.base.expressions import parse
from popmodel.base.units import parse_size, parse_time
from popmodel.machines.host.launcher import explain
from popmodel.network import dimemas_cfg
from popmodel.network.fan_costs import read_fans
from popmodel.traces import read
from popmodel.traces.regions import full_name, function_of, readable

LONG = 1 << 20
MOST = 8
MEASURABLE = 0.02  # s
TRIES = 3  # for a machine that is busy with something else
PARAVER = "#Paraver (01/01/2020 at 00:00):1000_ns:1(2):1:2(1:1,1:1)\n"
EVENT = PARAVER + "2:1:1:1:1:0:60000018:1\n2:1:1:1:1:0:70000001:1:80000001:1\n"

WORDS = ("a", "1", " ", '"', "a.", '"a".', "1:", "a,", "1 ", "(", "[", "{", "/*", "/**/", "\\")
LINES = (
    "a\n",
    "a=1\n",
    "1:1\n",
    "rank 1 ",
    "EXIT STRING: ",
    " [clone ",
    ") [",
    ".isra.1",
    "_MOD_",
    "\t",
)


def seconds(reader: Callable[[str], Any], text: str) -> float:
    gc.collect(0)
    gc.disable()  # what it takes is a matter of everything else that lives
    begin = time.process_time()
    try:
        with suppress(PopmodelError, RecursionError):
            reader(text)
    finally:
        gc.enable()
    return time.process_time() - begin


def expect_proportion(reader: Callable[[str], Any], piece: str, longest: int = LONG) -> None:
    """Compare a text of `longest` letters with a quarter of it, that with a sixteenth."""
    texts = [piece * (longest // part // len(piece)) for part in (64, 16, 4, 1)]
    before = seconds(reader, texts[0])
    for shorter, text in pairwise(texts):
        took = seconds(reader, text)
        for _ in range(TRIES):
            if took <= max(MOST * before, MEASURABLE):
                break
            before, took = seconds(reader, shorter), min(took, seconds(reader, text))
        else:
            pytest.fail(f"{piece!r}: {before} s for {len(shorter)}, {took} s for {len(text)}")
        before = took


def of_trace(path: Path, begin: str, end: str = "") -> Callable[[str], Any]:
    def reader(text: str) -> Any:
        path.write_text(begin + text + end)
        return read(path)

    return reader


@pytest.mark.long(after=38)
@pytest.mark.parametrize("piece", [*WORDS, *LINES])
@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("x.ti", "0 init\n0 send ", ""),
        ("x.ti", "", ""),
        ("x.goal", "num_ranks 1\nrank 0 {\n", "\n}\n"),
        ("x.goal", "num_ranks 1\nrank 0 {\na: calc ", "\n}\n"),
        ("x.dim", "#DIMEMAS:", ""),
        ("x.dim", '#DIMEMAS:"a":1:1(1),1\nd:1:1:1:0\n1:0:0:', ""),
        ("x.prv", "#Paraver ", ""),
        ("x.prv", PARAVER, ""),
        ("x.prv", PARAVER + "2:1:1:1:1:", ""),
        ("x.unknown", "", ""),
    ],
)
def test_traces(tmp_path: Path, name: str, begin: str, end: str, piece: str) -> None:
    expect_proportion(of_trace(tmp_path / name, begin, end), piece)


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["pcf", "row"])
def test_names_beside_a_trace(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "x.prv").write_text(EVENT)
    begins = {
        "pcf": (
            "",
            "STATES\n0 ",
            "EVENT_TYPE\n0 60000018 x\nVALUES\n1 ",
            "EVENT_TYPE\n0 70000001 x\n0 80000001 x\nVALUES\n1 1 (",
        ),
        "row": ("", "LEVEL ", "LEVEL THREAD SIZE 2\n"),
    }[suffix]

    def reader(text: str) -> None:
        (tmp_path / f"x.{suffix}").write_text(text)
        trace = read(tmp_path / "x.prv")
        trace.records.openmp()
        trace.to_dataframe("events")

    for begin in begins:
        for piece in (*WORDS, *LINES):
            expect_proportion(lambda text, begin=begin: reader(begin + text), piece)


@pytest.mark.long
def test_documents_and_tables(tmp_path: Path) -> None:
    def through(name: str, use: Callable[[Path], Any]) -> Callable[[str], Any]:
        def reader(text: str) -> Any:
            (tmp_path / name).write_text(text)
            return use(tmp_path / name)

        return reader

    def projected(path: Path) -> Any:
        return predict([path], procs=8)

    readers = [
        (through("x.json", lambda path: parse_json(read_text(path), path)), ("", '"', "[1,")),
        (through("r.json", projected), ("", '{"schema": "popmodel/runs/1", "runs": "')),
        (through("x.jsonl", projected), ("", '{"params": {"p": 4}, "value": 1, "metric": "')),
        (through("x.txt", projected), ("", "PARAMETER p\nPOINTS ", "PARAMETER p\nPOINTS 1 2\n")),
        (
            through("x.csv", projected),
            ("", "processes,threads,", "processes,threads,runtime\n1,1,"),
        ),
        (through("x.cfg", dimemas_cfg.read), ("", '"environment information" {')),
        (lambda text: read_fans("x", text), ("",)),
        (lambda text: parse_toml(text, "x.toml"), ("", "a = ", '[app]\nname = "')),
        (through("x.toml", lambda path: predict(path, procs=4, threads=1)), ("", "[app]\nname = ")),
    ]
    for reader, begins in readers:
        for begin in begins:
            for piece in (*WORDS, *LINES):
                expect_proportion(lambda text, r=reader, b=begin: r(b + text), piece, 1 << 17)


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    "reader",
    [
        parse,
        parse_size,
        parse_time,
        readable,
        full_name,
        lambda text: readable(f"a.isra.{text}!"),
        lambda text: readable(f"__{text}!"),
        lambda text: full_name(f"{text}]"),
        function_of,
        lambda text: function_of(f"a ({text}!"),
        lambda text: function_of(f"{text})"),
        lambda text: explain(1, f"rank 1 {text}", ["mpirun"], 4),
    ],
)
def test_words_of_users_and_programs(reader: Callable[[str], Any]) -> None:
    for piece in (*WORDS, *LINES):
        expect_proportion(reader, piece)


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ti").write_text("0 init\n0 send " + "1" * (65 << 20))
    with pytest.raises(PopmodelError, match=r"x\.ti:2: a line is longer than 64 MiB"):
        read(tmp_path / "x.ti")


def test_pieces_that_compilers_make_are_cut_from_the_end_only() -> None:
    assert readable("solve.part.0.isra.1") == "solve"
    assert readable("solve.cold.keep.isra.0.1") == "solve.cold.keep"
    assert readable("f(int) [clone ._omp_fn.0] [clone .cold]") == "f(int)"
    assert readable("a.isra.5x") == "a.isra.5x"
    assert readable("a.isra1.2.omp_outlined_debug__") == "a"
    assert readable("a.1.2") == "a.1.2"
