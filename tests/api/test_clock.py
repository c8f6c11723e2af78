"""A run is the same run wherever its clock begins: no number of any verb depends on it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import popmodel
from popmodel.base.errors import PartError
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

STATE, SEND, RECV, ALLREDUCE = 50000001, 1, 2, 10
COLLECTIVE, OTHER, INIT, FINALIZE = 50000002, 50000003, 31, 32
PARALLEL, FUNCTION, REGION = 60000001, 60000018, 60000019
INSTRUCTIONS = 42000050
_MADE = r"<metadata>.*</metadata>|\d{4}-\d\d-\d\dT[\d:]+Z"
LABELS = Labels(event_types={REGION: "User region"}, event_values={REGION: {0: "End", 1: "step"}})


def written(path: Path, offset: int, lengths: Sequence[int]) -> Path:
    """Two processes of two threads: a message, a parallel region and a reduction in each step."""
    steps = len(lengths)
    end = 200 + sum(lengths) + 130 * steps + 100
    writer = TraceWriter([2, 2], labels=LABELS, communicators={1: [0, 1]}, duration=offset + end)
    for rank in range(2):
        at = offset + 100
        writer.state(rank, 0, offset, at, 1)
        writer.event(rank, 0, at, [(OTHER, INIT)])
        writer.state(rank, 0, at, at + 100, 15)
        at += 100
        writer.event(rank, 0, at, [(OTHER, 0)])
        for length in lengths:
            late = rank * (length // 3)
            writer.event(rank, 0, at, [(REGION, 1)])
            writer.state(rank, 0, at, at + length + 20 + min(late, 15), 1)
            begin, at = at, at + length + 20
            writer.event(rank, 0, begin + length // 4, [(PARALLEL, 1), (FUNCTION, 5)])
            writer.event(rank, 1, begin + length // 4, [(FUNCTION, 5)])
            writer.state(rank, 1, begin + length // 4, begin + length // 2, 1)
            writer.event(rank, 1, begin + length // 2, [(FUNCTION, 0)])
            writer.event(rank, 0, begin + length // 2 + 1, [(FUNCTION, 0), (PARALLEL, 0)])
            late = min(late, 15)
            writer.event(
                rank, 0, at + late, [(STATE, SEND if rank == 0 else RECV), (INSTRUCTIONS, length)]
            )
            writer.event(rank, 0, at + 30, [(STATE, 0)])
            if rank == 0:
                writer.message((0, 0), (1, 0), (at, at + 30), (at + 15, at + 30), 4096, 7)
            writer.event(rank, 0, at + 40 + late, [(COLLECTIVE, ALLREDUCE), (50100001, 8)])
            writer.event(rank, 0, at + 100, [(COLLECTIVE, 0), (REGION, 0)])
            writer.state(rank, 0, at + 30, at + 40 + late, 1)
            at += 110
        writer.event(rank, 0, at, [(OTHER, FINALIZE)])
        writer.event(rank, 0, offset + end, [(OTHER, 0)])
        writer.state(rank, 0, at, offset + end, 15)
    writer.write(path)
    return path


def numbers(value: Any) -> Any:
    """A document without what says where the clock begins, and when it was made."""
    if isinstance(value, dict):
        left_out = ("origin", "provenance", "made", "date")
        return {key: numbers(item) for key, item in value.items() if key not in left_out}
    if isinstance(value, list | tuple):
        return [
            numbers(item)
            for item in value
            if not (isinstance(item, dict) and "times count from" in str(item.get("text")))
        ]
    return value


def results(path: Path, window: str) -> dict[str, Any]:
    """What each verb says of a run, and of a window of it."""
    found: dict[str, Any] = {}
    for part, options in (
        ("program", {}),
        ("all", {"from_start": True}),
        ("window", {"window": window}),
        ("region", {"region": "step"}),
        ("foa", {"foa": "iterations=2:3"}),
    ):
        for verb in (
            popmodel.inspect,
            popmodel.metrics,
            popmodel.whatif,
        ):
            made = verb(str(path), **options)  # type: ignore[operator]
            found[f"{verb.__name__} {part}"] = made.to_dict()
    report = popmodel.report(str(path))
    found["report"] = report.to_dict()
    found["signature"] = popmodel.signature(str(path)).text
    for form in ("ti", "goal", "perfetto.json", "svg"):
        target = path.with_name(f"made.{form}")
        popmodel.convert(str(path), target, force=True)
        found[form] = re.sub(_MADE, "", target.read_text())
    return numbers(json.loads(json.dumps(found, default=float)))


@pytest.mark.long
@settings(max_examples=6)
@given(
    offset=st.integers(0, 2**62),
    lengths=st.lists(st.integers(400, 10**6), min_size=4, max_size=8),
)
@example(offset=10**10, lengths=[10**5] * 6)
@example(offset=2**53 + 1, lengths=[999, 1001, 1000, 1003])
@example(offset=2**62, lengths=[10**5 + 1] * 5)
def test_no_number_depends_on_where_the_clock_begins(
    tmp_path_factory: pytest.TempPathFactory, offset: int, lengths: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("clock")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        window = f"{sum(lengths) // 4}ns:{sum(lengths) // 2}ns"
        expected = results(written(Path("x.prv"), 0, lengths), window)
        found = results(written(Path("x.prv"), offset, lengths), window)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == value, name
    assert popmodel.inspect(folder / "x.prv").to_dict()["info"]["origin"] == offset


def test_the_critical_path_is_written_by_the_clock_of_the_file(tmp_path: Path) -> None:
    times = []
    for offset in (0, 10**10):
        path, target = tmp_path / f"{offset}.prv", tmp_path / f"path{offset}.prv"
        popmodel.whatif(str(written(path, offset, [10**5] * 5)), save_trace=target)
        lines = [line.split(":") for line in target.read_text().splitlines()[1:]]
        times.append([int(line[5]) - offset for line in lines if line[0] == "2"])
    assert times[0] == times[1] == sorted(times[0])


def test_a_window_by_the_clock_of_the_file_is_told_where_times_begin(tmp_path: Path) -> None:
    trace = popmodel.read(written(tmp_path / "x.prv", 10**10, [10**5] * 5))
    with pytest.raises(PartError) as caught:
        popmodel.metrics(trace, window="10.1s:10.2s")
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(", from its first record on (10 s in the file)")
