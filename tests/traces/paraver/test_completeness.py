"""Warnings of traces that seem to be cut at the end of a line or inside the last number."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel.traces import read

DATA = Path(__file__).parents[2] / "data"
HEADER = "#Paraver (x):1000_ns:1(4):1:3(1:1,1:1,1:1),0\n"
UNENDED = "no newline at the end of the file: the last record may be truncated"
EARLY = "processes whose records end long before those of others: the file may be truncated"


def warnings(path: Path, text: str | bytes, application: int = 1) -> list[tuple]:
    """What is said of a trace, besides the lack of names and other applications."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found = read(path, application).warnings
    other = (".pcf", "times count from", "other applications")
    return [
        (w.text, w.count, w.first_line) for w in found if not any(text in w.text for text in other)
    ]


def states(*ends: int, application: int = 1) -> str:
    return "".join(
        f"1:1:{application}:{task}:1:0:{end}:1\n" for task, end in enumerate(ends, 1) if end
    )


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "comd.4", "epoch_4proc"])
def test_real_traces_that_are_cut(
    tmp_path: Path, real_trace: Callable[[str], Path], name: str
) -> None:
    lines = gzip.decompress(real_trace(name).read_bytes()).splitlines(keepends=True)
    for part in (0.1, 0.5, 0.9):
        text = b"".join(lines[: int(part * len(lines))])
        ((found, _, line),) = warnings(tmp_path / "x.prv", text)
        assert found.endswith("the file may be truncated")
        assert line is None


def test_real_traces_that_are_whole() -> None:
    for path in DATA.glob("*.prv.gz"):
        assert read(path).warnings == ()


@pytest.mark.parametrize("name", ["epoch_1proc", "epoch_16proc", "imagemagick_omp2"])
def test_larger_traces_that_are_whole(name: str, real_trace: Callable[[str], Path]) -> None:
    assert read(real_trace(name)).warnings == ()


def test_a_last_line_without_its_end(tmp_path: Path) -> None:
    text = HEADER + states(1000, 1000, 1000)
    assert warnings(tmp_path / "x.prv", text) == []
    assert warnings(tmp_path / "x.prv", text[:-1]) == [(UNENDED, 1, 4)]
    assert warnings(tmp_path / "x.prv", text + "\n\n2:1:1:1:1:5:1:1") == [(UNENDED, 1, 7)]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((1000, 999, 901), []),
        ((991, 990, 980), []),
        (
            (989, 600, 0),
            ["the records end at 989.0 ns, the header states 1.000 us: the file may be truncated"],
        ),
        (
            (0, 0, 0),
            ["there are no records, the header states 1.000 us: the file may be truncated"],
        ),
        ((1000, 899, 0), [EARLY]),
        ((1000, 0, 0), []),
    ],
)
def test_how_early_records_may_end(
    tmp_path: Path, ends: tuple[int, ...], expected: list[str]
) -> None:
    assert [w[0] for w in warnings(tmp_path / "x.prv", HEADER + states(*ends))] == expected


@pytest.mark.parametrize(
    ("ends", "count"),
    [
        ("2:1:1:3:1:300:50000003:32\n", 1),  # MPI_Finalize
        ("2:1:1:1:1:400:40000001:0\n2:1:1:3:1:300:40000001:0\n", 0),  # the application
        ("2:1:1:1:1:400:50000003:32\n2:1:1:3:1:300:50000003:32\n", 0),
        ("2:1:1:1:1:400:50000003:33\n2:1:1:3:1:300:40000001:1\n", 2),  # no ends
    ],
)
def test_what_ends_by_itself_is_whole(tmp_path: Path, ends: str, count: int) -> None:
    """A run whose processes end far apart has lost nothing if each of them says that it ends."""
    found = warnings(tmp_path / "x.prv", HEADER + states(500, 1000, 300) + ends)
    assert found == ([(EARLY, count, None)] if count else [])


def test_processes_that_end_early_are_counted(tmp_path: Path) -> None:
    text = HEADER + states(500, 1000, 300) + "2:1:1:1:1:510:1:1\n"
    assert warnings(tmp_path / "x.prv", text) == [(EARLY, 2, None)]
    assert warnings(tmp_path / "x.prv", text + "2:1:1:1:1:950:1:1\n") == [(EARLY, 1, None)]


def test_workers_may_end_with_their_last_region(tmp_path: Path) -> None:
    header = "#Paraver (x):1000_ns:1(4):1:2(2:1,1:1),0\n"
    text = header + states(1000, 1000) + "1:1:1:1:2:0:300:1\n"
    assert warnings(tmp_path / "x.prv", text) == []


def test_one_application_may_end_before_another(tmp_path: Path) -> None:
    header = "#Paraver (x):1000_ns:1(4):2:1(1:1),0:1(1:1),0\n"
    for last in (states(1000, application=2), "2:1:2:1:1:1000:1:1\n"):
        text = header + states(400) + last
        assert warnings(tmp_path / "x.prv", text) == []
        assert warnings(tmp_path / "x.prv", text, 2) == []
    text = header + states(400) + states(500, application=2)
    for application in (1, 2):
        assert [w[0] for w in warnings(tmp_path / "x.prv", text, application)] == [
            "the records end at 500.0 ns, the header states 1.000 us: the file may be truncated"
        ]


def test_records_out_of_order_are_not_taken_for_a_cut(tmp_path: Path) -> None:
    text = HEADER + "1:1:1:1:1:500:1000:1\n" + states(500, 1000, 1000)
    assert warnings(tmp_path / "x.prv", text) == [("states out of time order (sorted)", 1, 3)]


def test_an_empty_run_lacks_nothing(tmp_path: Path) -> None:
    assert warnings(tmp_path / "x.prv", HEADER.replace("1000_ns", "0_ns")) == []
