"""Traces written as archives: read again they have the same numbers; other readers take them."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")

import otf2

import popmodel
from popmodel.base.errors import FileError, UsageError
from popmodel.traces import Trace
from popmodel.traces.otf2.archive_writer import write_archive

DATA = Path(__file__).parents[2] / "data"
OWN = (
    *("bt-mz.S.2x2", "mixnbc.4", "mixpers.4", "offload.2", "mix.4", "mixrma.4", "is.S.4", "cg.S.2"),
    "comd.4",
    *("ft.S.4", "mg.S.4", "lu.S.4"),
)
"""Traces of the repository; the first ones have all that can be in an archive."""
SHARED = ("programs/*.prv.gz", "paraver/*.prv.gz", "gpu/*.prv")


def numbers(trace: Trace, *, from_start: bool) -> dict[str, float]:
    try:
        run = popmodel.metrics(trace, from_start=from_start).runs[0]
    except popmodel.PopmodelError as error:
        return {error.message.removeprefix(trace.path): math.nan}
    return dict(run.observables.aggregates())


def expect_equal(trace: Trace, folder: Path) -> None:
    write_archive(folder / "x.otf2", trace)
    again = popmodel.read(folder / "x.otf2")
    assert len(again.messages.size) == len(trace.messages.size)
    assert len(again.calls()) == len(trace.calls())
    assert again.warnings == ()
    for from_start in (False, True):
        wanted, found = (numbers(each, from_start=from_start) for each in (trace, again))
        assert wanted.keys() == found.keys()
        for name, value in wanted.items():
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-15, nan_ok=True), name


@pytest.mark.parametrize(
    "name", [*OWN[:4], *(pytest.param(name, marks=pytest.mark.long) for name in OWN[4:])]
)
def test_an_archive_has_the_metrics_of_its_trace(
    tmp_path: Path, real_trace: Callable[[str], Path], name: str
) -> None:
    expect_equal(popmodel.read(real_trace(name)), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("pattern", SHARED)
def test_archives_of_reference_traces_have_their_metrics(
    tmp_path: Path, shared_traces: Path, pattern: str
) -> None:
    paths = sorted(shared_traces.glob(pattern))
    assert paths
    for number, path in enumerate(paths):
        folder = tmp_path / str(number)
        folder.mkdir()
        expect_equal(popmodel.read(path), folder)


def test_another_reader_finds_the_same_calls_and_messages(
    tmp_path: Path, real_trace: Callable[[str], Path]
) -> None:
    trace = popmodel.read(real_trace("mix.4"))
    write_archive(tmp_path / "x.otf2", trace)
    entered: Counter[str] = Counter()
    sent: Counter[tuple[int, int, int]] = Counter()
    with otf2.reader.open(str(tmp_path / "x.otf2")) as archive:
        rank = {location: r for r, location in enumerate(archive.definitions.locations)}
        for location, event in archive.events:
            if isinstance(event, otf2.events.Enter):
                entered[event.region.name] += 1
            elif isinstance(event, otf2.events.MpiSend | otf2.events.MpiIsend):
                sent[rank[location], event.receiver, event.msg_length] += 1
    calls, messages = trace.calls(), trace.messages
    made = Counter(calls.names[name] for name in calls.name.tolist())
    assert {name: entered[name] for name in made} == made
    columns = (messages.sender, messages.receiver, messages.size)
    assert sent == Counter(zip(*(column.tolist() for column in columns), strict=True))


def test_convert_writes_archives(tmp_path: Path, real_trace: Callable[[str], Path]) -> None:
    made = popmodel.convert(real_trace("bt-mz.S.2x2"), tmp_path / "x.otf2", from_start=True)
    assert made.format == "OTF2"
    assert made.counts == {"processes": 2, "threads": 4, "messages": 122}
    with pytest.raises(UsageError, match="the file exists"):
        popmodel.convert(real_trace("is.S.4"), tmp_path / "x.otf2")
    popmodel.convert(real_trace("is.S.4"), tmp_path / "x.otf2", force=True)
    assert popmodel.read(tmp_path / "x.otf2").processes == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.def", "x.otf2"]


@pytest.mark.parametrize("written", [False, True])
def test_what_is_no_archive_is_never_replaced(
    tmp_path: Path, real_trace: Callable[[str], Path], *, written: bool
) -> None:
    trace = popmodel.read(real_trace("is.S.4"))
    if written:
        write_archive(tmp_path / "x.otf2", trace)
    (tmp_path / "x").mkdir(exist_ok=True)
    (tmp_path / "x" / "results.txt").write_text("years of work")
    with pytest.raises(FileError, match="exists, and is no part of this archive"):
        popmodel.convert(trace, tmp_path / "x.otf2", force=True)
    assert (tmp_path / "x" / "results.txt").read_text() == "years of work"
    (tmp_path / "y.def").write_text("EXPORTS")
    with pytest.raises(FileError, match=r"y\.def exists, and is no part of this archive"):
        write_archive(tmp_path / "y.otf2", trace)


def test_what_cannot_be_written_is_said(tmp_path: Path, real_trace: Callable[[str], Path]) -> None:
    with pytest.raises(FileError) as caught:
        write_archive(tmp_path / "no" / "x.otf2", popmodel.read(real_trace("is.S.4")))
    assert caught.value.message.endswith("x.otf2: cannot be written: no such file or directory")
    untimed = popmodel.read(next((DATA / "smpi").glob("*.ti.txt.gz")))
    with pytest.raises(UsageError) as refused:
        write_archive(tmp_path / "x.otf2", untimed)
    assert refused.value.message.endswith("has no measured times, which an archive holds")
