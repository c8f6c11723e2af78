"""The first line of a trace."""

import pytest

from popmodel.traces.paraver.reader import Application, Header, HeaderError, parse_header

START = "#Paraver (20/11/2026 at 23:14):"


def test_a_header_in_nanoseconds() -> None:
    assert parse_header(START + "521_ns:2(4,2):1:2(2:1,1:2),3".replace("_ns", "_ns")) == Header(
        521, 1, (4, 2), (Application((2, 1), (1, 2), 3),)
    )


def test_a_header_in_microseconds_without_nodes_and_communicators() -> None:
    assert parse_header(START + "521:0:1:1(1:1)") == Header(
        521_000, 1000, (), (Application((1,), (1,), 0),)
    )


def test_several_applications() -> None:
    header = parse_header(START + "5_ns:1(8):2:2(1:1,1:1),3:1(4:1),1")
    assert [each.threads for each in header.applications] == [(1, 1), (4,)]
    assert [each.communicators for each in header.applications] == [3, 1]


@pytest.mark.parametrize(
    ("line", "header"),
    [
        # ovni: a padded duration
        ("00000000000000000020_ns:0:1:1(2:1)", Header(20, 1, (), (Application((2,), (1,), 0),))),
        # nsys2prv: a colon behind the number of tasks
        (
            "53664645850_ns:0:1:2:(1:1,6:1)",
            Header(53664645850, 1, (), (Application((1, 6), (1, 1), 0),)),
        ),
        ("5.0_ns:0:1:1:(1:1)", Header(5, 1, (), (Application((1,), (1,), 0),))),
        # tools that read power: fractions of other units
        ("7.250000_us:1(1):1:1:(1:1)", Header(7_250, 1000, (1,), (Application((1,), (1,), 0),))),
        ("5_us:0:1:1(1:1)", Header(5_000, 1000, (), (Application((1,), (1,), 0),))),
        ("5_ms:0:1:1(1:1)", Header(5_000_000, 1_000_000, (), (Application((1,), (1,), 0),))),
        # nodes without CPUs have one each; of no nodes nothing is told
        ("5_ns:2:1:2(1:1,1:2)", Header(5, 1, (1, 1), (Application((1, 1), (1, 2), 0),))),
        ("5_ns:0(0):1:1(1:0)", Header(5, 1, (), (Application((1,), (0,), 0),))),
        # applications apart by a colon or a comma, with communicators or without
        (
            "5_ns:0:3:1(1:1),2(1:1,1:1),4:1(3:1)",
            Header(
                5,
                1,
                (),
                (
                    Application((1,), (1,), 0),
                    Application((1, 1), (1, 1), 4),
                    Application((3,), (1,), 0),
                ),
            ),
        ),
        (" 5_ns: 1( 4): 1: 1( 1: 1), 2", Header(5, 1, (4,), (Application((1,), (1,), 2),))),
    ],
)
def test_headers_of_other_writers(line: str, header: Header) -> None:
    assert parse_header(START + line) == header
    assert parse_header(START.replace("Paraver", "PARAVER") + line) == header


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("#Paraver", "the header lacks '#Paraver (' at column 1: found '#Paraver'"),
        ("#Paraver (x):", "the header lacks the duration at column 14: the line ends"),
        ("#Paraver (x", "the header lacks the date, closed by '):' at column 11: found 'x'"),
        (START + "ab:1", "the header lacks the duration at column 32: found 'ab:1'"),
        (START + "-5:1", "the header lacks the duration at column 32: found '-5:1'"),
        (START + "5_ps:", "the header lacks ':' or '_ns:' at column 33: found '_ps:'"),
        (START + "5:1:", "the header lacks the number of applications at column 36: the line ends"),
        (START + "5:2(4):1", "the header lacks ',' before node 2 at column 37: found '):1'"),
        (START + "5:1(4,4):1", "the header lacks ')' after node 1 at column 37: found ',4):1'"),
        (START + "5:1(4)", "the header lacks ':' at column 38: the line ends"),
        (
            START + "5:1(4):0",
            "the header states 0 for the number of applications at column 39, at least 1 is needed",
        ),
        (
            START + "5:1(4):1",
            "the header lacks ':' before application 1 at column 40: the line ends",
        ),
        (
            START + "5:1(4):1:0()",
            "the header states 0 for the number of tasks at column 41, at least 1 is needed",
        ),
        (
            START + "5:1(4):1:1",
            "the header lacks '(' and the threads of each task at column 42: the line ends",
        ),
        (
            START + "5:1(4):1:1(0:1)",
            "the header states 0 for the threads of task 1 at column 43, at least 1 is needed",
        ),
        (
            START + "5:1(4):1:1(1)",
            "the header lacks ':' and the node of task 1 at column 44: found ')'",
        ),
        (START + "5:1(4):1:1(1:2)", "the header puts task 1 on node 2, it has 1"),
        (START + "5:1(4):1:2(1:1)", "the header lacks ',' before task 2 at column 46: found ')'"),
        (
            START + "5:1(4):1:1(1:1",
            "the header lacks ')' after task 1 at column 46: the line ends",
        ),
        (
            START + "5:1(4):1:1(1:1),",
            "the header lacks the number of communicators at column 48: the line ends",
        ),
        (START + "5:1(4):1:1(1:1),0 x", "the header lacks its end at column 49: found ' x'"),
        (
            START + "99999999999999999999:1",
            "the header states a number for the duration at column 32 that exceeds 64 bits",
        ),
        (
            START + "9999999999999999:1",
            "the header states a duration that exceeds 64 bits in nanoseconds",
        ),
        (
            START + "5:1(4):2:1(16777216:1),0:1(1:1),0",
            "the header states 16777217 threads, at most 16777216 can be read",
        ),
        (
            START + "5:2(2147483647,1):1:1(1:1),0",
            "the header states 2147483648 CPUs, at most 2147483647 can be read",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_column(line: str, reason: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_header(line)
    assert str(caught.value) == reason
