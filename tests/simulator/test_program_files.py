"""Programs written for other simulators, and read again."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import FileError, UsageError
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import program_files, replay
from popmodel.simulator.expand_collectives import lay_out
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, Program, ProgramBuilder
from popmodel.simulator.program_files import FORMATS, clear_tags, goal_text, smpi_text, write
from popmodel.traces import read

DATA = Path(__file__).parents[1] / "data"
TRACES = (
    *("smpi/jac2048.4.ti.txt.gz", "cg.S.2.prv.gz", "comd.4.prv.gz", "is.S.4.prv.gz"),
    *("mix.4.prv.gz", "mixnbc.4.prv.gz", "mixpers.4.prv.gz", "bt-mz.S.2x2.prv.gz"),
)
SMPI = PRESETS["smpi"]
SLOW = SMPI.with_(latency=2e-5, bandwidth=1e8, eager_threshold=1000)
NETWORKS = (SMPI, SLOW, Network(latency=1e-5, bandwidth=1e9, collectives="smpi"))


def ends(program: Program, network: Network) -> list[float]:
    return replay(program, network).end.tolist()


@pytest.mark.long(after=3)
@pytest.mark.parametrize("suffix", [".ti.gz", ".goal.gz"])
@pytest.mark.parametrize("name", TRACES)
def test_what_is_written_and_read_replays_alike(name: str, suffix: str, tmp_path: Path) -> None:
    program = from_trace(read(DATA / name))
    path = tmp_path / f"written{suffix}"
    notes = write(program, path)
    again = read(path)
    assert [each.text for each in again.warnings[1:]] == []  # nothing was put in another order
    assert bool(notes) == bool(len(program.collectives)) or suffix == ".ti.gz"
    for network in NETWORKS:
        assert ends(from_trace(again), network) == pytest.approx(ends(program, network), rel=1e-9)


@pytest.mark.parametrize("name", ["smpi/jac2048.4.ti.txt.gz", "smpi/mgA.4.ti.txt.gz"])
def test_a_time_independent_trace_is_the_same_on_any_network(name: str, tmp_path: Path) -> None:
    program = from_trace(read(DATA / name))
    path = tmp_path / "x.ti"
    assert write(program, path) == ()
    again = from_trace(read(path))
    for reading in ("dimemas", "synchronising", "rooted", "algorithm", "smpi-rdb"):
        network = Network(latency=1e-5, bandwidth=1e9, collectives=reading)
        assert ends(again, network) == pytest.approx(ends(program, network), rel=1e-12)


@given(data=st.data())
def test_random_programs(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Messages with few tags, so that several are under way that only their order tells apart."""
    processes = data.draw(st.integers(2, 4))
    builder = ProgramBuilder(processes)
    opened: list[tuple[int, Op, int]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        for p in range(processes):
            builder.compute(p, data.draw(st.integers(0, 5)) * 1e-6)
        if data.draw(st.integers(0, 4)) == 0:
            kind = data.draw(st.sampled_from(["barrier", "allreduce", "alltoall", "scan"]))
            made = builder.collective(kind, 100, 100 * processes)
            for p in range(processes):
                builder.do(p, Op.COLLECTIVE, made)
            continue
        sender = data.draw(st.integers(0, processes - 1))
        receiver = (sender + data.draw(st.integers(1, processes - 1))) % processes
        size = data.draw(st.sampled_from([0, 8, 100_000]))
        sent = builder.message(sender, receiver, size, tag=data.draw(st.integers(0, 1)))
        if data.draw(st.booleans()):
            builder.do(receiver, Op.POST, sent)
            builder.do(sender, Op.ISEND, sent)
            opened += [(receiver, Op.WAIT_RECEIVE, sent), (sender, Op.WAIT_SEND, sent)]
        else:
            builder.do(sender, Op.SEND, sent)
            builder.do(receiver, Op.RECEIVE, sent)
        if opened and data.draw(st.booleans()):
            builder.do(*opened.pop(data.draw(st.integers(0, len(opened) - 1))))
    for one in opened:
        builder.do(*one)
    program = builder.build()
    folder = tmp_path_factory.mktemp("programs")
    for suffix in ("ti", "goal"):
        path = folder / f"x.{suffix}"
        write(program, path)
        again = from_trace(read(path))
        for network in (SMPI, SLOW):
            assert ends(again, network) == pytest.approx(ends(program, network), rel=1e-9)


def test_tags_stay_where_they_are_clear() -> None:
    program = ProgramBuilder(3)
    first, second = program.message(0, 1, 8, tag=7), program.message(0, 1, 8, tag=7)
    other, unclear = program.message(1, 2, 8, tag=5), program.message(1, 2, 8, tag=5)
    for sent in (first, second):  # one after the other
        program.do(0, Op.SEND, sent)
        program.do(1, Op.RECEIVE, sent)
    for sent in (unclear, other):
        program.do(1, Op.ISEND, sent)
        program.do(2, Op.POST, sent)
    assert clear_tags(program.build()).tolist() == [7, 7, 1, 0]


def test_tags_that_no_program_gives_are_written_as_others() -> None:
    """Those of collectives between neighbours are above what an int of MPI can be."""
    program = ProgramBuilder(2)
    messages = [program.message(p, 1 - p, 8, tag=2**32 - 2) for p in range(2)]
    for p in range(2):
        program.do(p, Op.POST, messages[1 - p])
        program.do(p, Op.ISEND, messages[p])
        program.do(p, Op.WAIT_RECEIVE, messages[1 - p])
    assert clear_tags(program.build()).tolist() == [0, 0]


def test_a_schedule() -> None:
    program = ProgramBuilder(2)
    sent, back = program.message(0, 1, 8, tag=3), program.message(1, 0, 16, tag=4)
    program.compute(0, 1.6e-9)
    program.do(0, Op.POST, back)
    program.do(0, Op.SEND, sent)
    program.compute(0, 0.6e-9)
    program.do(0, Op.WAIT_RECEIVE, back)
    program.do(1, Op.RECEIVE, sent)
    program.do(1, Op.SEND, back)
    # Bursts are rounded so that none of their errors adds to another.
    assert "".join(goal_text(program.build())) == (
        "num_ranks 2\n\nrank 0 {\n"
        "l1: calc 2\n"
        "l2: recv 16b from 1 tag 4\nl2 requires l1\n"
        "l3: send 8b to 1 tag 3\nl3 requires l1\n"
        "l4: calc 0\nl4 requires l3\nl4 requires l2\n}\n"
        "\nrank 1 {\n"
        "l1: recv 8b from 0 tag 3\n"
        "l2: send 16b to 0 tag 4\nl2 requires l1\n}\n"
    )


def test_actions() -> None:
    program = ProgramBuilder(2)
    for kind, sent, received, root, by_peer in (
        ("init", 0, 0, -1, 0), ("barrier", 0, 0, -1, 0), ("bcast", 8, 8, 1, 0),
        ("reduce", 8, 8, 1, 0), ("allreduce", 8, 8, -1, 0), ("scan", 8, 8, -1, 0),
        ("gather", 8, 16, 1, 0), ("scatter", 16, 8, 1, 0), ("allgather", 8, 16, -1, 0),
        ("alltoall", 16, 16, -1, 0), ("alltoall", 15, 15, -1, 0), ("alltoall", 16, 16, -1, 1),
        ("reduce_scatter", 15, 8, -1, 0),
    ):  # fmt: skip
        made = program.collective(kind, sent, received, root, by_peer=bool(by_peer))
        for p in range(2):
            program.do(p, Op.COLLECTIVE, made)
    program.compute(0, 2.5e-9)
    lines = "".join(smpi_text(program.build())).splitlines()
    assert [line.removeprefix("0 ") for line in lines if line[0] == "0"] == [
        *(
            "init",
            "barrier",
            "barrier",
            "bcast 8 1 6",
            "reduce 8 0 1 6",
            "allreduce 8 0 6",
            "scan 8 0 6",
        ),
        *("gather 8 8 1 6 6", "scatter 8 8 1 6 6", "allgather 8 8 6 6", "alltoall 8 8 6 6"),
        *("alltoall 8 8 6 6", "alltoallv 16 8 8 16 8 8 6 6", "reducescatter 8 8 0 6"),
        *("compute 2.5", "finalize"),
    ]


def test_collectives_that_smpi_does_not_know_are_messages(tmp_path: Path) -> None:
    program = ProgramBuilder(3)
    some = program.collective("allreduce", 8, 8, communicator=program.communicator([0, 2]))
    started = program.collective("barrier")
    for p in (0, 2):
        program.do(p, Op.COLLECTIVE, some)
    for p in range(3):
        program.do(p, Op.ARRIVE, started)
        program.do(p, Op.WAIT_COLLECTIVE, started)
    built = program.build()
    assert write(built, tmp_path / "x.ti") == (
        "collectives of some processes only, or nonblocking, written as the messages of SimGrid "
        "SMPI: 2",
    )
    assert write(built, tmp_path / "x.goal") == (
        "collectives written as the messages of SimGrid SMPI: 2",
    )
    again = from_trace(read(tmp_path / "x.ti"))
    assert len(again.collectives) == 0
    assert len(again.messages) == len(lay_out(built).program.messages)


@given(data=st.data())
def test_collectives_of_any_part_of_the_processes(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As a window leaves them, which cuts calls of some members."""
    processes = data.draw(st.integers(2, 6))
    program = ProgramBuilder(processes)
    for _ in range(data.draw(st.integers(1, 3))):
        some = data.draw(st.sets(st.integers(0, processes - 1), min_size=1))
        kind = data.draw(st.sampled_from(["barrier", "allreduce", "alltoall", "bcast", "gather"]))
        made = program.collective(
            kind,
            *(60, 60),
            min(some) if kind in ("bcast", "gather") else -1,
            program.communicator(sorted(some)),
        )
        for p in some:
            program.do(p, Op.COLLECTIVE, made)
    built = program.build()
    folder = tmp_path_factory.mktemp("part")
    for name in ("x.ti", "x.goal"):
        write(built, folder / name)
        again = from_trace(read(folder / name))
        assert replay(again, SMPI).runtime == pytest.approx(replay(built, SMPI).runtime)


def test_equal_programs_are_equal_files(tmp_path: Path) -> None:
    program = from_trace(read(DATA / "is.S.4.prv.gz"))
    for name in ("a.ti.gz", "b.ti.gz", "c.ti"):
        write(program, tmp_path / name)
    assert (tmp_path / "a.ti.gz").read_bytes() == (tmp_path / "b.ti.gz").read_bytes()
    packed = gzip.decompress((tmp_path / "a.ti.gz").read_bytes())
    assert packed == (tmp_path / "c.ti").read_bytes()
    assert np.all([line.split()[0].isdigit() for line in packed.decode().splitlines()])


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    program = ProgramBuilder(1).build()
    with pytest.raises(UsageError) as caught:
        write(program, tmp_path / "x.txt")
    assert caught.value.message.endswith("x.txt: cannot tell the format from the suffix")
    assert caught.value.hint == "use .ti or .ti.txt for SimGrid SMPI, .goal for GOAL, or with .gz"
    with pytest.raises(FileError) as failed:
        write(program, tmp_path / "none" / "x.ti")
    assert failed.value.message.endswith("cannot be written: no such file or directory")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("suffix", [".ti", ".goal.gz"])
def test_a_program_that_would_not_be_read_is_not_written(
    suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / f"x{suffix}"
    program = from_trace(read(DATA / "cg.S.2.prv.gz"))
    write(program, path)
    before = path.read_bytes()
    spoilt = [
        form._replace(text=lambda given, text=form.text: iter((*text(given), "nonsense here\n")))
        for form in FORMATS
    ]
    monkeypatch.setattr(program_files, "FORMATS", spoilt)
    with pytest.raises(FileError, match="is not written, for popmodel could not read it: "):
        write(program, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
