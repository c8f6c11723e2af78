"""What verbs take grows with the size of a run, not with its square.

CPU time of one process of a run and of one four times as large: in proportion gives 4, the square
16, and 9 is refused. Memory is counted by what is allocated.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from patience import measuring

import popmodel
from popmodel.structure.focus import structure_of
from popmodel.structure.iterations import _cut_the_first
from popmodel.structure.pattern_kinds import as_messages, readings
from popmodel.structure.phases import phases
from popmodel.structure.program_events import _mix
from popmodel.structure.rank_formulas import who
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.paraver.writer import TraceWriter

MOST = 9


def loops(path: Path, count: int, ranks: int = 2) -> Path:
    """A program of so many loops, one after the other, each of messages of its own size."""
    with path.open("w") as file:
        for rank in range(ranks):
            lines = [f"{rank} init"]
            for number in range(count):
                for _ in range(3):
                    lines += [
                        f"{rank} compute {1000 + number}",
                        f"{rank} irecv {(rank - 1) % ranks} {number} {8 + number} 6",
                        f"{rank} send {(rank + 1) % ranks} {number} {8 + number} 6",
                        f"{rank} waitall 1",
                    ]
                lines.append(f"{rank} bcast {number + 1} 0 6")
            file.write("\n".join([*lines, f"{rank} finalize", ""]))
    return path


def seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("verb", ["inspect", "whatif"])
@measuring()
def test_many_loops_and_phases(tmp_path: Path, verb: str) -> None:
    few = loops(tmp_path / "few.ti", 150)
    many = loops(tmp_path / "many.ti", 600)
    work = {
        "inspect": popmodel.inspect,
        "whatif": popmodel.whatif,
    }[verb]

    def run(path: Path) -> Callable[[], Any]:
        return lambda: work(path, flop_rate=1e9).to_dict()

    run(few)()  # what is imported and made once
    small = min(seconds(run(few)) for _ in range(2))
    assert seconds(run(many)) < MOST * small


def test_structure_of_many_ranks(tmp_path: Path) -> None:
    """What is drawn of a few ranks is made of these only, not of ranks times steps."""
    ranks = 4096
    writer = TraceWriter([1] * ranks, communicators={1: range(ranks)})
    for rank in range(ranks):
        writer.state(rank, 0, 0, 1000 + rank, 1)
        writer.event(rank, 0, 1000 + rank, [(50000002, 10), (50100004, 1)])
        writer.event(rank, 0, 6000, [(50000002, 0)])
    writer.write(tmp_path / "x.prv")
    trace = popmodel.read(tmp_path / "x.prv")
    found: list[Any] = []
    assert peak(lambda: found.append(popmodel.inspect(trace, show="structure"))) < ranks * 480 * 8
    (run,) = found[0].to_dict()["structure"]["timelines"]
    assert (len(run["bursts"]), len(run["in_mpi"])) == (480, 480)


def test_first_iterations_are_compared_with_those_of_the_same_rank() -> None:
    ranks, count = 200, 5
    passed = 0

    class Places:
        def __getitem__(self, rows: Any) -> Any:
            nonlocal passed
            passed += np.size(rows)
            return np.zeros(ranks * count, np.int64)[rows]

    sequence, iteration = np.divmod(np.arange(ranks * count), count)
    usual = 1000.0 * (1 + sequence)
    before = np.where(iteration == 0, usual + 90_000_000, usual)
    events = SimpleNamespace(before=before, begin=np.full(ranks * count, 10**9))
    since, compute = np.zeros((count, ranks), np.int64), before.reshape(ranks, count).T.copy()
    inside = np.arange(ranks * count)
    common: Any = SimpleNamespace(place=Places())
    _cut_the_first(cast(Any, events), common, since, compute, inside, sequence, iteration)
    assert np.array_equal(compute, usual.reshape(ranks, count).T)
    assert np.array_equal(since[0], 10**9 - 1000 * (1 + np.arange(ranks)))
    assert passed <= 2 * ranks * count


def test_sets_of_intervals_are_combined_block_by_block() -> None:
    locations, each = 1 << 12, 1 << 8
    begin = np.tile(10 * np.arange(each), locations)
    offsets = each * np.arange(locations + 1)
    first, second = (Intervals.of(offsets, begin + at, begin + at + 4) for at in (0, 2))
    found: list[Intervals] = []
    used = peak(lambda: found.append(alone([first], [second])))
    assert len(found[0]) == locations * each
    assert used < 3 * (found[0].begin.nbytes + found[0].end.nbytes)


def test_tokens_are_hashed_block_by_block() -> None:
    columns = [np.arange(1 << 21) % number for number in (5, 7, 11)]
    assert peak(lambda: _mix(*columns)) < 1.5 * columns[0].nbytes


def ring(processes: int) -> NDArray[np.void]:
    rank = np.arange(processes)
    return as_messages(rank, (rank + 1) % processes, np.full(processes, 100))


def test_patterns_of_many_ranks() -> None:
    small, large = (peak(lambda n=n: readings(ring(n), n, ())) for n in (1 << 12, 1 << 14))
    assert large < 6 * small


def test_all_pairs_are_known_by_their_number() -> None:
    rank = np.arange(5)
    sender, receiver = np.repeat(rank, 5), np.tile(rank, 5)
    size = np.full(25, 8)
    kinds = [each.kind for each in readings(as_messages(sender, receiver, size), 5, ())]
    assert "pairwise" in kinds
    other = sender != receiver
    without = as_messages(sender[other], receiver[other], size[other])
    assert "pairwise" in [each.kind for each in readings(without, 5, ())]
    # as many pairs, but one of a rank with itself
    swapped = receiver[other].copy()
    swapped[0] = sender[other][0]
    wrong = as_messages(sender[other], swapped, size[other])
    assert "pairwise" not in [each.kind for each in readings(wrong, 5, ())]


@pytest.mark.parametrize("processes", [12, 63, 999])
def test_conditions_hold_on_the_ranks_that_they_are_of(processes: int) -> None:
    rank = np.arange(processes)
    for mask in (rank > 0, rank % 3 == 2, (rank > 0) & (rank % 3 == 2), rank // 3 % 2 == 1):
        text = who(mask)
        assert isinstance(text, str)
        held = eval(text, {"rank": rank, "P": processes}) if " and " not in text else None
        if held is None:
            one, other = (eval(part, {"rank": rank, "P": processes}) for part in text.split("and"))
            held = one & other
        assert np.array_equal(held, mask), text


def test_phases_are_summed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = popmodel.read(loops(tmp_path / "x.ti", 30), flop_rate=1e9)
    found = phases(*structure_of(trace), trace)
    total = found.seconds
    monkeypatch.setattr(
        type(found.phases[0]), "wall", property(lambda _: pytest.fail("again")), raising=False
    )
    assert found.seconds == total
