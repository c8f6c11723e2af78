"""Reading whole files: real traces, several applications, long ones, and what is written."""

import gzip
import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_files import DATA, HEADER, STATE, same, write

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.traces import read
from popmodel.traces.paraver import columns, text_scan
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter


def rows(table: object, *names: str) -> list[tuple]:
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


def test_a_record_of_each_kind_lands_in_its_columns(tmp_path: Path) -> None:
    text = (
        HEADER
        + "c:1:7:2:2:1\n"
        + "1:3:1:2:1:0:10:1\n"
        + "2:1:1:1:2:5:50000001:2:42000050:99\n"
        + "3:1:1:1:1:1:2:3:1:2:1:3:4:8:-1\n"
    )
    trace = read(write(tmp_path / "x.prv", text))
    assert trace.communicators[7].tolist() == [1, 0]
    assert rows(trace.states, "begin", "end", "state") == [(0, 10, 1)]
    assert trace.states.offsets.tolist() == [0, 0, 0, 1]
    assert rows(trace.records.events, "time", "type", "value") == [
        (5, 50000001, 2),
        (5, 42000050, 99),
    ]
    assert trace.records.events.offsets.tolist() == [0, 0, 2, 2]
    assert rows(trace.messages, *columns.SCHEMA["messages"]) == [(0, 2, 1, 2, 3, 4, 8, -1)]
    assert trace.messages.offsets.tolist() == [0, 1, 1, 1]
    assert trace.process_offsets.tolist() == [0, 2, 3]
    assert trace.process_of_location().tolist() == [0, 0, 1]
    assert (trace.begin, trace.end, trace.nodes) == (0, 1000, (4,))


def test_plain_compressed_crlf_and_several_members_are_the_same(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "is.S.4.prv.gz").read_bytes())
    cut = len(text) // 2
    forms = {
        "plain.prv": text,
        "crlf.prv": text.replace(b"\n", b"\r\n"),
        "blank.prv": text.replace(b"\n2:", b"\n\n2:"),
        "members.prv.gz": gzip.compress(text[:cut]) + gzip.compress(text[cut:]),
        "padded.prv.gz": gzip.compress(text) + b"\0" * 100,
        "no-suffix": gzip.compress(text),
    }
    first = read(write(tmp_path / "first.prv", text))
    for name, content in forms.items():
        assert same(read(write(tmp_path / name, content)), first), name


def test_microseconds_become_nanoseconds(tmp_path: Path) -> None:
    text = "#Paraver (x):1000:1(4):1:1(1:1),0\n1:1:1:1:1:1:20:1\n2:1:1:1:1:3:1:4\n"
    trace = read(write(tmp_path / "x.prv", text))
    assert (trace.origin, trace.end) == (1000, 999_000)
    assert rows(trace.states, "begin", "end") == [(0, 19_000)]
    assert rows(trace.records.events, "time", "value") == [(2000, 4)]


def test_one_application_of_several(tmp_path: Path) -> None:
    text = (
        "#Paraver (x):1000_ns:1(4):2:2(1:1,1:1),1:1(2:1),1\n"
        "c:1:1:2:1:2\nc:2:1:1:1\n"
        "1:1:1:1:1:0:5:1\n1:3:2:1:2:0:6:1\n"
        "3:1:1:1:1:1:2:3:2:1:1:3:4:8:0\n3:1:1:1:1:1:2:2:1:2:1:3:4:8:0\n"
    )
    path = write(tmp_path / "x.prv", text)
    first, second = read(path, application=1), read(path, application=2)
    assert first.communicators[1].tolist() == [0, 1]
    assert second.communicators[1].tolist() == [0]
    assert first.states.end.tolist() == [5]
    assert second.states.end.tolist() == [6]
    assert second.states.offsets.tolist() == [0, 0, 1]
    assert first.applications == second.applications == 2
    assert len(first.messages.size) == 1
    dropped = "messages to or from another application (ignored)"
    for trace in (first, second):
        # nothing else on the screens of most verbs says that this is not the whole run
        others = "other applications in the trace, which are left out"
        assert (others, 1, 1) in [(w.text, w.count, w.first_line) for w in trace.warnings]
        assert (dropped, 1, 6) in [(w.text, w.count, w.first_line) for w in trace.warnings]
    for wrong in (0, 3, -1):
        with pytest.raises(UsageError) as caught:
            read(path, application=wrong)
        assert caught.value.message == f"{path}: no application {wrong}"
        assert caught.value.hint == "the trace has application 1 to 2"


def test_names_of_threads_belong_to_their_application(tmp_path: Path) -> None:
    path = write(tmp_path / "x.prv", "#Paraver (x):1000_ns:1(4):2:2(1:1,1:1),0:1(2:1),0\n")
    rows_ = "LEVEL THREAD SIZE 4\nTHREAD 1.1.1\nTHREAD 1.2.1\nTHREAD 2.1.1\nTHREAD 2.1.2\n"
    write(tmp_path / "x.row", rows_)
    for _ in range(2):
        assert read(path, 1).names == ("THREAD 1.1.1", "THREAD 1.2.1")
        assert read(path, 2).names == ("THREAD 2.1.1", "THREAD 2.1.2")
    write(tmp_path / "x.row", rows_.replace("SIZE 4", "SIZE 3"))
    trace = read(path, 1)
    assert trace.names is None
    assert (
        trace.warnings[-1].text == "x.row names a different number of threads (3, not 4): not used"
    )


def test_more_than_65535_objects(tmp_path: Path) -> None:
    count = 66_000
    tasks = ",".join(["1:1"] * count)
    lines = [f"#Paraver (x):1000_ns:1({count}):1:{count}({tasks}),0"]
    lines += [f"1:{task}:1:{task}:1:0:{task % 7}:1" for task in range(1, count + 1)]
    lines += [f"3:{count}:1:{count}:1:1:2:1:1:1:1:3:4:8:0"]
    trace = read(write(tmp_path / "x.prv", "\n".join(lines) + "\n"))
    assert trace.processes == count
    assert trace.states.end.tolist() == [task % 7 for task in range(1, count + 1)]
    assert trace.messages.sender.tolist() == [count - 1]


def test_records_out_of_order_are_sorted_and_counted(tmp_path: Path) -> None:
    text = HEADER + (
        "1:1:1:1:1:10:20:1\n1:1:1:1:1:0:10:2\n"
        "2:1:1:1:1:9:1:1\n2:1:1:1:1:4:1:2\n2:1:1:1:1:9:1:3\n2:1:1:1:1:4:1:4\n"
        "3:1:1:1:1:7:7:3:1:2:1:8:8:1:0\n3:1:1:1:1:6:6:3:1:2:1:8:8:2:0\n"
        "1:1:1:2:1:10:20:1\n"
    )
    trace = read(write(tmp_path / "x.prv", text))
    assert rows(trace.states, "begin", "state") == [(0, 2), (10, 1), (10, 1)]
    assert rows(trace.records.events, "time", "value") == [(4, 2), (4, 4), (9, 1), (9, 3)]
    assert rows(trace.messages, "physical_send", "size") == [(6, 2), (7, 1)]
    assert [(w.text, w.count, w.first_line) for w in trace.warnings] == [
        ("states out of time order (sorted)", 1, 3),
        ("events out of time order (sorted)", 2, 5),
        ("messages out of time order (sorted)", 1, 9),
        ("communicators counted in the header but not listed", 1, None),
        (
            "the records end at 20.00 ns, the header states 1.000 us: the file may be truncated",
            1,
            None,
        ),
        ("no .pcf file next to the trace: using built-in names", 1, None),
    ]


def test_other_warnings(tmp_path: Path) -> None:
    text = (
        "#Paraver (x):1000_ns:0:1:1(1:0),0\n# comment\n1:1:1:1:1:0:20:1\n1:9:1:1:1:10:2000:1\n"
        "c:1:1:1:1\nc:1:1:0\ni:1:2:1:1:1:1\n"
    )
    trace = read(write(tmp_path / "x.prv", text))
    assert [(w.text, w.count, w.first_line) for w in trace.warnings] == [
        ("comment lines (ignored)", 1, 2),
        (
            "overlapping states: the overlap counts twice",
            1,
            4,
        ),
        ("records after the end time in the header", 1, 4),
        ("communicators defined again with other ranks (the last definition counts)", 1, 6),
        ("intercommunicators (ignored)", 1, 7),
        ("the header lists no nodes: all processes are assumed to share one", 1, 1),
        ("no .pcf file next to the trace: using built-in names", 1, None),
    ]
    assert trace.nodes == ()
    assert trace.node_of_location.tolist() == [0]


def test_without_nodes_in_the_header_all_processes_are_on_one(tmp_path: Path) -> None:
    text = f"#Paraver (x):1000_ns:0:1:2(1:1,2:{2**62}),0\n"
    assert read(write(tmp_path / "x.prv", text)).node_of_location.tolist() == [0, 0, 0]


def test_a_name_that_is_no_text_is_kept_for_opening_the_file_again(tmp_path: Path) -> None:
    path = write(tmp_path / "x\udcff.prv", HEADER + STATE)
    assert read(path).path == str(path)


def test_files_of_names_that_give_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.prv", "#Paraver (x):1000_ns:1(4):1:1(1:1),0\n" + STATE)
    write(tmp_path / "x.pcf", b"\xff\0nothing")
    write(tmp_path / "x.row", b"\xff\0nothing")

    def warnings() -> list[str]:
        return [warning.text for warning in read(path).warnings]

    assert warnings() == [
        "x.pcf defines no event types: using built-in names",
        "x.row names no threads: they are numbered",
    ]

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", refuse)  # the tests may run as root, who may read all
        assert warnings() == [
            "x.pcf cannot be read (permission denied): using built-in names",
            "x.row cannot be read (permission denied): threads are numbered",
        ]
    (tmp_path / "x.pcf").unlink()
    (tmp_path / "x.pcf").mkdir()
    (tmp_path / "x.row").unlink()
    os.mkfifo(tmp_path / "x.row")
    assert warnings() == [
        "x.pcf cannot be read (not a file): using built-in names",
        "x.row cannot be read (not a file): threads are numbered",
    ]


def test_the_pieces_of_a_long_trace_make_the_same_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bt-mz.S.2x2", "comd.4"):
        wanted = read(DATA / f"{name}.prv.gz")
        for held, rows_, block in ((1 << 13, 100, 1 << 12), (1 << 15, 1 << 16, 1 << 23)):
            monkeypatch.setattr(text_scan, "HELD", held)
            monkeypatch.setattr(text_scan, "CHUNK", 1 << 12)
            monkeypatch.setattr(columns, "ROWS", rows_)
            monkeypatch.setattr(columns, "BLOCK", block)
            assert same(read(DATA / f"{name}.prv.gz"), wanted)


@st.composite
def written(draw: st.DrawFn) -> tuple[TraceWriter, dict]:
    """A trace of all kinds of records, and what must come out of it."""
    threads = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    times = st.integers(0, 10**12)
    places = st.sampled_from([(p, t) for p, count in enumerate(threads) for t in range(count)])
    communicators = draw(
        st.dictionaries(
            st.integers(1, 5), st.lists(st.integers(0, len(threads) - 1), max_size=4), max_size=2
        )
    )
    writer = TraceWriter(threads, communicators=communicators)
    wanted: dict = {"states": {}, "events": {}, "messages": {}, "communicators": communicators}
    first = [sum(threads[:process]) for process in range(len(threads))]

    def add(table: str, place: tuple[int, int], row: tuple) -> None:
        wanted[table].setdefault(first[place[0]] + place[1], []).append(row)

    for place, begin, length, state in draw(
        st.lists(st.tuples(places, times, times, st.integers(0, 16)), max_size=8)
    ):
        writer.state(*place, begin, begin + length, state)
        add("states", place, (begin, begin + length, state))
    pairs = st.tuples(st.integers(0, 2**32 - 1), st.integers(-(2**63), 2**63 - 1))
    for place, time, values in draw(
        st.lists(st.tuples(places, times, st.lists(pairs, min_size=1, max_size=3)), max_size=8)
    ):
        writer.event(*place, time, values)
        for type_, value in values:
            add("events", place, (time, type_, value))
    for sender, receiver, send, receive, size in draw(
        st.lists(
            st.tuples(
                places,
                places,
                st.tuples(times, times),
                st.tuples(times, times),
                st.integers(0, 2**40),
            ),
            max_size=8,
        )
    ):
        writer.message(sender, receiver, send, receive, size, tag=size % 7)
        ends = [first[process] + thread for process, thread in (sender, receiver)]
        add("messages", sender, (*ends, *send, *receive, size, size % 7))
    return writer, wanted


@given(written(), st.sampled_from([".prv", ".prv.gz"]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[TraceWriter, dict], suffix: str
) -> None:
    writer, wanted = case
    path = tmp_path_factory.mktemp("written") / f"x{suffix}"
    writer.write(path)
    trace = read(path)
    keys = {"states": 0, "events": 0, "messages": 3}
    times = {"states": slice(0, 2), "events": slice(0, 1), "messages": slice(2, 6)}
    for table, by_location in wanted.items():
        for location, table_rows in by_location.items() if table in times else ():
            by_location[location] = [
                tuple(
                    value - trace.origin if at in range(*times[table].indices(len(row))) else value
                    for at, value in enumerate(row)
                )
                for row in table_rows
            ]
    for table, names in columns.SCHEMA.items():
        found = rows(getattr(trace.records, table), *names)
        offsets = getattr(trace.records, table).offsets.tolist()
        for location in range(trace.locations):
            expected = sorted(wanted[table].get(location, []), key=lambda row: row[keys[table]])
            assert found[offsets[location] : offsets[location + 1]] == expected
    assert {n: r.tolist() for n, r in trace.communicators.items()} == wanted["communicators"]


def test_written_labels_and_names_are_read(tmp_path: Path) -> None:
    labels = Labels({1: "Running"}, {60000018: "function"}, {60000018: {1: "loop, a", 2: "loop b"}})
    writer = TraceWriter([2], labels=labels, names=["THREAD 1.1.1", "THREAD 1.1.2"])
    writer.event(0, 0, 0, [(60000018, 1)])
    writer.write(tmp_path / "x.prv.gz")
    trace = read(tmp_path / "x.prv.gz")
    assert trace.records.labels == labels
    assert trace.names == ("THREAD 1.1.1", "THREAD 1.1.2")
    assert trace.warnings == ()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.pcf", "x.prv.gz", "x.row"]


def test_the_writer_refuses_what_it_cannot_write() -> None:
    with pytest.raises(PopmodelError, match="at least one pair of type and value"):
        TraceWriter([1]).event(0, 0, 1, [])


@pytest.mark.parametrize(
    ("group", "run", "name"),
    [
        ("epoch", "1", "epoch_1proc"),
        ("epoch", "16", "epoch_16proc"),
        ("imagemagick", "8", "imagemagick_omp8"),
        ("bt-mz.S.2x2", "2", "bt-mz.S.2x2"),
    ],
)
def test_total_time_per_thread_is_what_pypop_finds(
    real_trace: Callable[[str], Path], group: str, run: str, name: str
) -> None:
    reference = json.loads((DATA / "pypop.json").read_text())
    wanted = reference[group]["per_thread_statistics"][run]["Total Runtime"]
    trace = read(real_trace(name))
    length = np.where(trace.states.state == 14, 0, trace.states.end - trace.states.begin)
    found = {}
    for process, (begin, end) in enumerate(pairwise(trace.process_offsets.tolist()), 1):
        for thread, location in enumerate(range(begin, end), 1):
            rows_ = slice(*trace.states.offsets[location : location + 2])
            found[f"{process}.{thread}"] = int(length[rows_].sum())
    assert found == wanted
