"""Any program gets a signature: what no list says, and what is small, is summed up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from popmodel.model.signatures import from_text
from popmodel.signatures import LearntSignature, signature_from
from popmodel.signatures.compare_replay import carried_out
from popmodel.signatures.layout import _LoopBody
from popmodel.signatures.place_calls import communicator_text, partitions
from popmodel.signatures.summary import exchange_rows, is_read
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.traces import read
from popmodel.traces.selection import PROGRAM, focused

Ranks = Callable[[int, Callable[[str], None]], None]


def signature(folder: Path, ranks: int, does: Ranks) -> LearntSignature:
    """The signature of a program of which each rank writes its actions."""
    lines: list[str] = []
    for rank in range(ranks):
        mine = ["init"]
        does(rank, mine.append)
        lines += [f"{rank} {action}" for action in (*mine, "compute 1e6", "finalize")]
    path = folder / "app.ti.txt"
    path.write_text("\n".join(lines) + "\n")
    return signature_from([focused(read(path, flop_rate=1e9), PROGRAM)[0]])


def test_what_some_iterations_do_is_done_every_so_many_turns() -> None:
    """Of three executions of ten iterations each, of which a signature has as many."""
    body = _LoopBody(np.arange(30), turns=30, times=30, length=10)
    assert body.frequency(30) == ("", 30)
    assert body.frequency(7) == ("10/2", 6)
    assert body.frequency(1) == ("10/1", 3)  # never nothing: its time is divided among them


def test_sizes_that_both_sides_see_apart_are_an_exchange_of_their_means(tmp_path: Path) -> None:
    """Numbers and sizes of messages change from step to step, and with who sends."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1000, 2000, (30, 2))

    def does(rank: int, say: Callable[[str], None]) -> None:
        for step, both in enumerate(sizes.tolist()):
            say("compute 1e6")
            for tag in range(1 + step % 3):
                say(f"irecv {1 - rank} {tag} {both[1 - rank]} 0")
                say(f"isend {1 - rank} {tag} {both[rank] * (1 + rank)} 0")
            say(f"waitall {2 + 2 * (step % 3)}")

    found = signature(tmp_path, 2, does)
    made = carried_out(from_text(found.text), 2, 1)
    sent = sum(int(both[r]) * (1 + r) * (1 + s % 3) for s, both in enumerate(sizes) for r in (0, 1))
    assert made.messages.size.sum() == pytest.approx(8 * sent, rel=0.01)  # doubles
    assert found.fidelity.written.off(found.fidelity.traced) < 0.02


def test_a_long_start_is_summed_up(tmp_path: Path) -> None:
    """Three hundred calls that are all different, before iterations that hold the time."""

    def does(rank: int, say: Callable[[str], None]) -> None:
        for number in range(300):
            say(f"compute {1000 + 7 * number}")
            say(f"bcast {8 + number * number % 97} {number % 2} 0")
            if number in (3, 50, 51, 180, 299):
                say("allgather 1 1 0 0")
        for _ in range(50):
            say(f"compute {2e6 + 1e5 * rank}")
            say("allreduce 1 0 0")

    found = signature(tmp_path, 2, does)
    assert len(found.text.splitlines()) < 150
    assert any("of the time, in small parts, is in" in note for note in found.notes)
    assert 'every = "150/5"' in found.text
    assert len(carried_out(from_text(found.text), 2, 1).collectives) == 355
    assert found.fidelity.written.off(found.fidelity.traced) < 0.02


@pytest.mark.parametrize(
    "sizes",
    [{(0, 1): [10, 20, 30], (1, 0): [1000]}, {(0, 3): [7], (3, 1): [9, 9], (2, 2): [4]}],
)
def test_an_exchange_has_both_ends_of_every_message(
    sizes: dict[tuple[int, int], list[int]],
) -> None:
    build = ProgramBuilder(4)
    for (sender, receiver), many in sizes.items():
        for size in many:
            build.message(sender, receiver, size)
    program = build.build()
    rows, _ = exchange_rows(program, np.arange(len(program.messages)), 1)
    assert is_read(rows, 4)


def test_members_without_one_in_common_take_part_side_by_side() -> None:
    """As communicators that a program splits off, and one that it makes again of all."""
    build = ProgramBuilder(4)
    teams = ([0, 1], [2, 3], [0, 1, 2, 3], [1, 2])
    for ranks in teams:
        row = build.collective("allreduce", 8, 8, communicator=build.communicator(ranks))
        for rank in ranks:
            build.do(rank, Op.COLLECTIVE, row)
    parts = partitions(build.build(), np.arange(4))
    found = sorted(communicator_text(teams, 4) for _, teams in parts)
    assert found == ["-1 if rank < 1 else 0 if rank < 3 else -1", "rank // 2", "world"]


@pytest.mark.parametrize("name", ["qe.2x1", pytest.param("lmp.2x1", marks=pytest.mark.long)])
def test_production_programs_have_short_signatures_that_replay(
    name: str, shared_traces: Path
) -> None:
    """Quantum ESPRESSO has groups of ranks, LAMMPS a start of hundreds of calls."""
    path = shared_traces / "programs" / f"{name}.prv.gz"
    found = signature_from([focused(read(path), PROGRAM)[0]])
    off = found.fidelity.written.off(found.fidelity.traced)
    assert off < 0.02
    assert len(found.text.partition("[recorded]")[0].splitlines()) < 450
