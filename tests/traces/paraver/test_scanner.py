"""The compiled scanner against the plain one, and every reason for refusing a record."""

import gzip
import random
from pathlib import Path

import pytest
from fuzz.fuzz_scanner import compare
from fuzz.mutate import FIELDS, mutate
from hypothesis import given
from hypothesis import strategies as st
from oracle.compare import compiled, expected, in_ranges
from oracle.scanner import Layout

from popmodel.kernel import _kernel
from popmodel.traces.paraver.reader import parse_header

DATA = Path(__file__).parents[2] / "data"
ONE = Layout([[2, 1]], 4, 1, 1000, 1)
MICRO = Layout([[2, 1]], 4, 1000, 10**6, 1)

number = st.one_of(
    st.integers(0, 20), st.integers(0, 2**63 - 1), st.integers(0, 18).map(lambda n: 10**n - 1)
)
value = st.one_of(number, st.integers(-(2**63), 2**64 - 1))
place = st.sampled_from([b"1:1:1:1", b"2:1:1:2", b"3:1:2:1", b"4:1:2:1", b"1:2:1:1"])


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """One line of any kind, right in form."""
    kind = draw(st.integers(1, 5))
    if kind == 1:
        begin, end = sorted([draw(number), draw(number)])
        return b"1:%s:%d:%d:%d" % (draw(place), begin, end, draw(st.integers(0, 2**31 - 1)))
    if kind == 2:
        pairs = draw(st.lists(st.tuples(st.integers(0, 2**32 - 1), value), min_size=1, max_size=4))
        return b"2:%s:%d" % (draw(place), draw(number)) + b"".join(b":%d:%d" % p for p in pairs)
    if kind == 3:
        sides = [b"%s:%d:%d" % (draw(place), draw(number), draw(number)) for _ in range(2)]
        tag = draw(st.integers(-(2**63), 2**63 - 1))
        return b"3:%s:%s:%d:%d" % (*sides, draw(number), tag)
    if kind == 4:
        ranks = draw(st.lists(st.sampled_from([b":1", b":2"]), max_size=3))
        return b"c:1:%d:%d" % (draw(st.integers(0, 3)), len(ranks)) + b"".join(ranks)
    return draw(st.sampled_from([b"# comment", b"", b"i:1:3:1:1:2:2"]))


@given(
    st.lists(records(), max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.lists(st.floats(0, 1), max_size=5),
)
def test_right_text_gives_the_same_records_however_it_is_cut(
    lines: list[bytes], ending: bytes, ended: bool, cuts: list[float]
) -> None:
    layout = Layout([[2, 1], [1]], 4, 1, 2**62, 1)
    text = ending.join(lines) + (ending if ended else b"")
    wanted = expected(text, layout)
    assert wanted[0] == "records"
    places = sorted(int(cut * len(text)) for cut in cuts)
    assert compiled(text, layout, places) == wanted
    assert in_ranges(text, layout, places) == wanted


@given(st.lists(records(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_damaged_text_gives_the_same_result_or_error(
    lines: list[bytes], dice: random.Random
) -> None:
    layout = Layout([[2, 1], [1]], 4, dice.choice([1, 1000]), 2**62, 1)
    text = mutate(b"\n".join(lines) + b"\n", dice)
    cuts = sorted(dice.randrange(len(text) + 1) for _ in range(3))
    wanted = expected(text, layout)
    assert compiled(text, layout, cuts) == wanted
    assert in_ranges(text, layout, cuts) == wanted


@pytest.mark.long
def test_fuzzing_in_short_finds_no_difference() -> None:
    assert compare(seconds=20, iterations=3000) == 3000


@pytest.mark.parametrize("name", ["ft.S.4", "bt-mz.S.2x2", "mixrma.4"])
def test_real_traces_byte_by_byte(name: str) -> None:
    header, _, text = gzip.decompress((DATA / f"{name}.prv.gz").read_bytes()).partition(b"\n")
    text = text[: text.index(b"\n", 40_000 if len(text) > 40_000 else len(text) - 2) + 1]
    parsed = parse_header(header.decode())
    layout = Layout(
        [list(parsed.applications[0].threads)], sum(parsed.nodes), 1, parsed.duration, 1
    )
    wanted = expected(text, layout)
    assert wanted[0] == "records"
    assert compiled(text, layout, range(len(text))) == wanted


REASONS = [
    ("5:1:1:1:1", "unknown record type '5'"),
    ("", None),
    (" 1:1:1:1:1:0:1:1", "unknown record type ' 1'"),
    (
        "\x00\x01garbage\xff that goes on and on and on",
        "unknown record type '\\x00\\x01garbage\\xc3\\xbf that goes on...'",
    ),
    (":1", "unknown record type ''"),
    ("1", "a state record has 8 fields, this line has 1 field"),
    ("1:1:1:1:1:0:5", "a state record has 8 fields, this line has 7 fields"),
    ("1:1:1:1:1:0:5:1:1", "a state record has 8 fields, this line has 9 fields"),
    ("1:1:1:1:1:0::1", "field 7 (end) is empty"),
    ("1:1:1:1:1:0:5:", "field 8 (state) is empty"),
    ("1:1:1:1:1:0x1:5:1", "field 6 (begin) is not a number: '0x1'"),
    ("1:1:1:1:1:0:5:1 ", "field 8 (state) is not a number: '1 '"),
    ("1:1:1:1:1:-4:5:1", "field 6 (begin) is negative: '-4'"),
    ("1:1:1:1:1:-:5:1", "field 6 (begin) is not a number: '-'"),
    (
        "1:1:1:1:1:0:9223372036854775808:1",
        "field 7 (end) does not fit 64 bits: '9223372036854775808'",
    ),
    ("1:1:1:1:1:0:5:2147483648", "field 8 (state) does not fit 32 bits: '2147483648'"),
    ("1:1:1:1:1:7:5:1", "the state ends before it begins (begin 7 ns, end 5 ns)"),
    ("1:5:1:1:1:0:5:1", "cpu 5 is outside the header, which has 4"),
    ("1:1:2:1:1:0:5:1", "application 2 is outside the header, which has 1"),
    ("1:1:0:1:1:0:5:1", "application 0 is outside the header, which has 1"),
    ("1:1:1:3:1:0:5:1", "task 3 is outside application 1, which has 2"),
    ("1:1:1:2:2:0:5:1", "thread 2 is outside task 2 of application 1, which has 1"),
    ("1:1:1:2:0:0:5:1", "thread 0 is outside task 2 of application 1, which has 1"),
    (
        "2:1:1:1:1:5",
        "an event record has a time and pairs of type and value, this line has 6 fields",
    ),
    (
        "2:1:1:1:1:5:1:2:3",
        "an event record has a time and pairs of type and value, this line has 9 fields",
    ),
    ("2:1:1:1:1:5:1:", "field 8 (value) is empty"),
    ("2:1:1:1:1:5:4294967296:1", "field 7 (type) does not fit 32 bits: '4294967296'"),
    ("2:1:1:1:1:5:-1:1", "field 7 (type) is negative: '-1'"),
    (
        "2:1:1:1:1:5:1:1:2:18446744073709551616",
        "field 10 (value) does not fit 64 bits: '18446744073709551616'",
    ),
    (
        "3:1:1:1:1:1:2:2:1:1:2:3:4:8",
        "a communication record has 15 fields, this line has 14 fields",
    ),
    ("3:1:1:1:1:1:2:2:1:9:2:3:4:8:0", "task 9 is outside application 1, which has 2"),
    ("3:1:1:1:1:1:2:2:1:1:2:3:4:-8:0", "field 14 (size) is negative: '-8'"),
    ("3:1:1:1:1:1:2:2:1:1:2:x:4:8:0", "field 12 (logical receive) is not a number: 'x'"),
    (
        "c:1:1",
        "a communicator has an application, an identifier and its number of ranks, "
        "this line has 3 fields",
    ),
    ("c:1:1:2:1", "communicator 1 lists 1 rank, not 2"),
    ("c:1:1:1:3", "task 3 is outside application 1, which has 2"),
    ("c:3:1:1:1", "application 3 is outside the header, which has 1"),
    ("c:1:1:1:a", "field 5 (rank) is not a number: 'a'"),
]


def test_every_error_names_its_line_and_reason() -> None:
    for line, reason in REASONS:
        text = b"1:1:1:1:1:0:1:1\n" + line.encode() + b"\n1:1:1:1:1:1:2:1\n"
        found = compiled(text, ONE)
        assert found == expected(text, ONE), line
        if reason is None:
            assert found[0] == "records", line
        else:
            assert found == ("error", 3, reason), line


def test_a_file_that_ends_inside_a_record_is_called_truncated() -> None:
    text = b"1:1:1:1:1:0:1:1\n3:1:1:1:1:1:2:2:1:1:2:3:4:8:0"
    for kept in range(1, 24):
        found = compiled(text[: 16 + kept], ONE)
        assert found == ("error", 3, "the file ends in the middle of a record"), kept


def test_records_of_other_applications_are_checked_and_left_out() -> None:
    layout = Layout([[2, 1], [1]], 4, 1, 1000, 2)
    text = b"1:1:1:1:1:0:5:1\n1:1:2:1:1:0:6:1\n3:1:2:1:1:1:2:2:1:1:2:3:4:8:0\n"
    found = compiled(text, layout)
    assert found == expected(text, layout)
    assert found[1] == [[(0, 6, 1)]]
    assert found[5][6] == [1, 4]
    bad = b"1:1:1:1:1:9:5:1\n"
    assert compiled(bad, layout)[0] == "error"


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    scanner = _kernel.Scanner([[1]], 1, 1, 10, 1, 1)
    with pytest.raises(_kernel.ScanError) as caught:
        for _ in range(100):
            scanner.feed(b"1" * (1 << 20))
    assert caught.value.args == (2, "the line is longer than 64 MiB")


def test_fields_of_many_forms() -> None:
    for field in FIELDS:
        for text in (
            b"1:1:1:1:1:0:%s:1\n" % field,
            b"2:1:1:1:1:%s:1:1\n" % field,
            b"2:1:1:1:1:1:%s:1\n" % field,
            b"2:1:1:1:1:1:1:%s\n" % field,
            b"3:1:1:1:1:1:2:2:1:1:2:3:4:8:%s\n" % field,
            b"1:%s:1:1:1:0:1:1\n" % field,
        ):
            for layout in (ONE, MICRO):
                assert compiled(text, layout) == expected(text, layout), text


def test_the_scanner_and_the_decoder_refuse_arguments_that_do_not_fit() -> None:
    import numpy as np

    with pytest.raises(ValueError, match="no such application"):
        _kernel.Scanner([[1]], 1, 1, 10, 2, 1)
    with pytest.raises(ValueError, match="unit must be at least 1 ns"):
        _kernel.Scanner([[1]], 1, 0, 10, 1, 1)
    scanner = _kernel.Scanner([[1]], 1, 1, 10, 1, 1)
    scanner.feed(b"1:1:1:1:1:0:1:1\n" * 10)
    with pytest.raises(RuntimeError, match="streams are still held"):
        scanner.release()
    decoder = _kernel.Decoder()
    with pytest.raises(ValueError, match="one row per blob"):
        decoder.restart([], np.zeros(1, np.int64), 0, [])
    with pytest.raises(ValueError, match="shorter than its lengths"):
        decoder.restart([bytearray(64)], np.ones(1, np.int64), 0, [True])
    with pytest.raises(ValueError, match="one value per blob"):
        decoder.restart([bytearray(64)], np.zeros(1, np.int64), 0, [])
