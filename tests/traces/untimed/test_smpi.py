"""Time-independent traces of SimGrid SMPI."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.base.errors import TraceError, UsageError
from popmodel.efficiency.measure import analyse
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op
from popmodel.traces import Trace, read
from popmodel.traces.info import info
from popmodel.traces.selection import focused
from popmodel.traces.untimed.smpi import read as read_smpi

DATA = Path(__file__).parents[2] / "data" / "smpi"
HINT = (
    "give one file with the actions of all processes, or the file that lists one for each, as "
    "smpirun -trace-ti writes them"
)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "x.ti.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def calls_of(trace: Trace, process: int) -> list[tuple]:
    """Name, time, partner, tag, bytes and request of the calls of a process."""
    calls = trace.calls()
    mine = slice(*calls.offsets[process : process + 2])
    columns = (calls.entry, calls.partner, calls.tag, calls.bytes, calls.request)
    names = [calls.names[code] for code in calls.name[mine].tolist()]
    return list(zip(names, *(column[mine].tolist() for column in columns), strict=True))


def test_actions_are_calls_and_bursts(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "0 init", "0 compute 1000", "0 compute 500.4", "0 irecv 1 7 10 1", "0 isend 1 8 3 0",
        "0 wait 1 0 7", "# a remark", "", "0 sleep 1e-6", "0 waitall 2", "0 finalize",
        "1 init", "1 send 0 7 10 1", "1 recv 0 8 3 0", "1 compute 12", "1 finalize",
    )  # fmt: skip
    trace = read(path)
    assert calls_of(trace, 0) == [
        ("MPI_Irecv", 1500, 1, 7, 40, 1),
        ("MPI_Isend", 1500, 1, 8, 24, 2),
        ("MPI_Wait", 1500, -1, 0, 0, 1),
        ("MPI_Waitall", 2500, -1, 0, 0, -1),
        ("MPI_Finalize", 2500, -1, 0, 0, -1),
    ]
    assert calls_of(trace, 1)[:2] == [
        ("MPI_Send", 0, 0, 7, 40, -1),
        ("MPI_Recv", 0, 0, 8, 24, -1),
    ]
    assert (trace.processes, trace.end, trace.timed) == (2, 2500, False)
    assert trace.ends().tolist() == [2500, 12]
    assert (trace.states.begin.tolist(), trace.states.end.tolist()) == (
        [0, 1000, 1500, 0],
        [1000, 1500, 2500, 12],
    )
    assert [warning.text for warning in trace.warnings] == [
        "no measured times: computation is taken from its amount at 1e+09 flop/s, MPI calls take "
        "none"
    ]
    assert read_smpi(path, flop_rate=5e8).ends().tolist() == [4001, 24]


def test_amounts_of_collectives(tmp_path: Path) -> None:
    """As the tracer tells them: some have the parts of all."""
    actions = {
        "barrier": ([(0, 0), (0, 0), (0, 0)], False),
        "bcast 10 1 1": ([(0, 40), (40, 0), (0, 40)], True),
        "reduce 10 5 1 1": ([(40, 0), (0, 40), (40, 0)], True),
        "allreduce 10 0 1": ([(40, 40)] * 3, False),
        "scan 10 0 0": ([(80, 80)] * 3, False),
        "gather 10 20 1 1 2": ([(40, 0), (40, 60), (40, 0)], True),
        "scatter 10 20 1 1 2": ([(0, 20), (120, 20), (0, 20)], True),
        "allgather 10 20 1 2": ([(40, 60)] * 3, False),
        "alltoall 10 20 1 2": ([(120, 60)] * 3, False),
    }
    lines = [f"{rank} {action}" for rank in range(3) for action in actions]
    calls = read(written(tmp_path, *lines)).calls()
    told = calls.collectives
    assert told.call.tolist() == list(range(3 * len(actions)))
    for place, (action, (amounts, rooted)) in enumerate(actions.items()):
        mine = slice(place, None, len(actions))
        assert list(zip(told.sent[mine], told.received[mine], strict=True)) == amounts, action
        assert told.is_root[mine].tolist() == [False, rooted, False]
    # Reducing is computing, too.
    assert calls.entry.tolist() == [0, 0, 0, 5, 5, 5, 5, 5, 5] * 3


def test_amounts_of_collectives_with_parts_that_differ(tmp_path: Path) -> None:
    actions = {
        "gatherv 10 1 2 3 1 1 2": [(40, 0), (40, 6), (40, 0)],
        "scatterv 1 2 3 10 1 1 2": [(0, 10), (24, 10), (0, 10)],
        "allgatherv 10 1 2 3": [(10, 6)] * 3,
        "alltoallv 9 1 2 3 9 4 5 6 1 2": [(24, 15)] * 3,
        "reducescatter 1 2 3 7 1": [(24, 4), (24, 8), (24, 12)],
        "exscan 10 5 1": [(40, 40)] * 3,
    }
    lines = [f"{rank} {action}" for rank in range(3) for action in actions]
    calls = read(written(tmp_path, *lines)).calls()
    told = calls.collectives
    for place, (action, amounts) in enumerate(actions.items()):
        mine = slice(place, None, len(actions))
        assert list(zip(told.sent[mine], told.received[mine], strict=True)) == amounts, action
    assert calls.entry.tolist() == [0, 0, 0, 0, 0, 7] * 3
    names = [calls.names[code] for code in calls.name[:6].tolist()]
    assert names[-2:] == ["MPI_Reduce_scatter", "MPI_Exscan"]
    assert from_trace(read(written(tmp_path, *lines))).notes == ()


def test_a_file_that_lists_one_for_each_process(tmp_path: Path) -> None:
    """As SimGrid writes them."""
    folder = tmp_path / "x.txt_files"
    folder.mkdir()
    (folder / "0_rank-0.txt").write_text("0 init\n0 send 1 5 10 1\n0 gatherv 1 2 3 0 1 1\n")
    gathers = gzip.compress(b"1 init\n1 recv 0 5 10 1\n1 gatherv 1 2 3 0 1 1\n")
    (folder / "1_rank-1.txt").write_bytes(gathers)
    for name in ("x.ti.txt", "x.txt"):
        path = tmp_path / name
        path.write_text("x.txt_files/0_rank-0.txt\nx.txt_files/1_rank-1.txt\n")
        trace = read(path)
        assert calls_of(trace, 1)[0] == ("MPI_Recv", 0, 0, 5, 40, -1)
        assert trace.path == str(path)
    (folder / "0_rank-0.txt").write_text("0 init\n0 fly\n")
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{folder / '0_rank-0.txt'}:2: unknown action 'fly'"
    path.write_text("x.txt_files/0_rank-0.txt\nx.txt_files/9_rank-9.txt\n")
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}:2: no such file: {folder / '9_rank-9.txt'}"


def test_requests_that_nobody_waits_for_are_complete_at_the_end(tmp_path: Path) -> None:
    """As in SimGrid's replay: a test that found the message is not told from one that did not."""
    lines = ["0 init", "0 irecv 0 1 1 1", "0 send 0 1 1 1", "0 test 0 0 1", "0 finalize"]
    program = from_trace(read(written(tmp_path, *lines)))
    assert Op(program.kind[-1]) is Op.WAIT_RECEIVE


def test_messages_without_their_other_end(tmp_path: Path) -> None:
    path = written(tmp_path, "0 send 1 5 9 1", "0 send 1 6 9 1", "1 recv 0 7 9 1")
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == (
        f"{path}: 1 send of process 0 to process 1 with tag 5, but 0 receives (and 2 more such "
        "cases)"
    )


def test_without_datatypes_amounts_are_bytes_or_doubles(tmp_path: Path) -> None:
    """As the tracers TAU and MPE wrote them."""
    for init, unit in (("init", 1), ("init 0", 8)):
        path = written(tmp_path, f"0 {init}", "0 send 1 0 10", "1 init", "1 recv 0 0 10")
        assert calls_of(read(path), 0)[0][4] == 10 * unit


def test_the_whole_run_is_taken_and_nothing_is_measured() -> None:
    trace = read(DATA / "jac2048.4.ti.txt.gz")
    part, focus = focused(trace)
    assert part is trace
    assert focus.caveats == ("no measured times: a replay tells what MPI takes",)
    assert info(trace)["calls"]["MPI_Allreduce"] == 160
    told = info(trace)
    assert (told["timed"], told["runtime"]) == (False, None)
    assert told["duration"] == pytest.approx(0.178758188)
    assert told["records"]["messages"] == 320
    assert told["message_sizes"]["max"] == 8192
    with pytest.raises(TraceError) as caught:
        analyse(trace)
    assert caught.value.message.endswith(
        "has no measured times, only what processes compute and call"
    )
    assert caught.value.hint == "popmodel whatif simulates the run on a network"


def test_a_window_cuts_bursts_and_calls() -> None:
    trace = read(DATA / "jac2048.4.ti.txt.gz")
    part = trace.window(10**7, 2 * 10**7)
    calls = part.calls()
    assert 0 < len(calls) < len(trace.calls())
    assert calls.entry.min() >= 10**7
    assert calls.entry.max() <= 2 * 10**7
    assert len(calls.partner) == len(calls.tag) == len(calls.bytes) == len(calls.request)
    assert from_trace(part).compute().max() <= 10**7
    assert np.all(part.ends() >= 10**7)


def test_tests_are_counted_and_left_out(tmp_path: Path) -> None:
    lines = ["0 init", "0 irecv 0 1 1 1", "0 test 0 0 1", "0 send 0 1 1 1", "0 waitall 1"]
    trace = read(written(tmp_path, *lines))
    (warning,) = trace.warnings[1:]
    assert warning.text.startswith("tests (whether they found anything is not recorded: as in SMPI")
    assert warning.count == 1
    assert [name for name, *_ in calls_of(trace, 0)] == [
        "MPI_Irecv",
        "MPI_Send",
        "MPI_Waitall",
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x init", "not an action of a process: 'x init'"),
        ("0", "not an action of a process: '0'"),
        (f"{'9' * 5000} init", f"not an action of a process: '{'9' * 40}'"),
        ("0 fly", "unknown action 'fly'"),
        ("0 compute", "argument 1 of compute must be a number, there is none"),
        ("0 compute much", "argument 1 of compute must be a number, not 'much'"),
        ("0 compute -1", "argument 1 of compute must be a number, not '-1'"),
        ("0 compute 1e300", "process 0 computes longer than can be represented"),
        ("0 send 1.5 0 1", "argument 1 of send must be a whole number, not '1.5'"),
        ("0 send 0 0", "argument 3 of send must be a number, there is none"),
        ("0 send 0 0 1 99", "unknown datatype 99"),
        ("0 send 0 0 1e17 0", "send of 8e+17 bytes"),
        ("0 wait 0 0 3", "no open request from 0 to 0 with tag 3"),
        ("0 alltoallv 1 2", "argument 4 of alltoallv must be a number, there is none"),
    ],
)
def test_actions_that_cannot_be_used(tmp_path: Path, line: str, problem: str) -> None:
    path = written(tmp_path, "0 init", line)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}:2: {problem}"
    assert caught.value.hint == HINT


def test_what_all_processes_send_can_be_too_much(tmp_path: Path) -> None:
    path = written(tmp_path, "0 alltoall 1 9e15 6 6", "1 init")
    with pytest.raises(TraceError, match=r":1: alltoall of 1.8e\+16 bytes"):
        read(path)


def test_processes_that_lack(tmp_path: Path) -> None:
    for lines, problem in (
        ([], "the file has no actions"),
        (["1 init"], "no actions of process 0"),
        (
            ["0 send 2 0 1", "1 init"],
            "a message to or from process 2, of which there are no actions",
        ),
    ):
        path = written(tmp_path, *lines)
        with pytest.raises(TraceError) as caught:
            read(path)
        assert caught.value.message == f"{path}: {problem}"


def test_there_is_one_application(tmp_path: Path) -> None:
    path = written(tmp_path, "0 init")
    with pytest.raises(UsageError) as caught:
        read(path, application=2)
    assert caught.value.message == f"{path}: no application 2"
    assert caught.value.hint == "the trace has application 1 only"


def test_a_run_that_only_communicates_is_replayed(tmp_path: Path) -> None:
    lines = ("0 init", "1 init", "0 send 1 0 10 0", "1 recv 0 0 10 0", "0 finalize", "1 finalize")
    path = written(tmp_path, *lines)
    found = popmodel.whatif(path, latency="2us", bandwidth="1GB/s", flop_rate=1e9)
    assert found.measured is None
    assert found.against[0] == "ideal"
    assert found.runs[0].execution.runtime == pytest.approx(2e-6 + 80 / 1e9)


def test_a_replay_is_not_compared_with_times_that_were_not_measured() -> None:
    trace = DATA / "jac2048.4.ti.txt.gz"
    found = popmodel.whatif(trace, "ideal", flop_rate=1e9)
    assert (found.measured, found.against[0]) == (None, "ideal")
    with pytest.raises(UsageError, match="no measured times to compare with"):
        popmodel.whatif(trace, "ideal", against="measured", flop_rate=1e9)


def test_a_replay_needs_a_flop_rate(tmp_path: Path) -> None:
    for trace in (DATA / "jac2048.4.ti.txt.gz", written(tmp_path, "0 init", "0 compute 5")):
        with pytest.raises(UsageError) as caught:
            popmodel.whatif(trace, "ideal")
        assert caught.value.message == (
            f"{trace}: computation is given in flop, and no flop rate is set"
        )
        assert caught.value.hint.startswith("add --flop-rate 1Gflop/s (flop_rate=1e9 in Python)")
    found = popmodel.whatif(trace, "ideal", flop_rate=5e8)
    assert found.runs[0].execution.runtime == pytest.approx(1e-8)


def test_replays_have_efficiencies_though_the_trace_has_none() -> None:
    """By their definition, from what the replay says of each process."""
    found = popmodel.whatif(
        DATA / "jac2048.4.ti.txt.gz", "smpi", flop_rate=1e9, latency=["1us", "1ms"], metrics=True
    )
    ideal = popmodel.whatif(
        DATA / "jac2048.4.ti.txt.gz", "smpi", flop_rate=1e9, latency="0us", bandwidth="inf"
    )
    for outcome in found.runs:
        metrics = outcome.metrics["mpi"]
        execution = outcome.execution
        useful, runtime = execution.compute, execution.runtime
        assert metrics["load_balance"] == pytest.approx(useful.mean() / useful.max(), abs=1e-6)
        assert metrics["transfer_efficiency"] == pytest.approx(
            ideal.runs[0].execution.runtime / runtime, abs=1e-6
        )
        assert metrics["parallel_efficiency"] == pytest.approx(useful.mean() / runtime, abs=1e-6)
    assert "measured_metrics" not in found.to_dict()
    screen = str(found)
    assert "run 1" in screen
    assert "Transfer efficiency" in screen
    assert "measured  " not in screen


@pytest.mark.parametrize("where", ["list", "command", "moved"])
def test_files_of_a_list_are_named_as_the_command_saw_them(where: str, tmp_path: Path) -> None:
    """``smpirun -trace-file runs/app.txt`` writes names relative to where it ran."""
    folder = tmp_path / "runs"
    (folder / "app.txt_files").mkdir(parents=True)
    for rank in range(2):
        (folder / "app.txt_files" / f"1_rank-{rank + 1}.txt").write_text(
            f"{rank} init\n{rank} barrier\n{rank} finalize\n"
        )
    before = {"list": "", "command": "runs/", "moved": "elsewhere/"}[where]
    path = folder / "app.txt"
    path.write_text("".join(f"{before}app.txt_files/1_rank-{rank + 1}.txt\n" for rank in range(2)))
    assert popmodel.read(path).processes == 2
    path.write_text(path.read_text() + "app.txt_files/1_rank-3.txt\n")
    with pytest.raises(TraceError, match=r"no such file: .*rank-3\.txt") as caught:
        popmodel.read(path)
    assert caught.value.line == 3
    assert caught.value.hint.startswith("put the files where the list says")
    for name in ("away.txt", "away.ti"):
        (tmp_path / name).write_text("away.txt_files/1_rank-1.txt\n")
        with pytest.raises(TraceError, match=r"no such file: .*rank-1\.txt"):
            popmodel.read(tmp_path / name)


# Runtimes of ``smpirun -replay``, as in `oracle.smpi_cells`.
_RING = (
    "{0} init\n{0} compute {1}00000\n{0} sendRecv 1000 {2} 1000 {3} 6 6\n"
    "{0} sendRecv 100000 {2} 100000 {3} 6 6\n{0} finalize\n"
)
_ANY = {
    "sendRecv": (
        "".join(_RING.format(r, r, (r + 1) % 4, (r - 1) % 4) for r in range(4)),
        [0.000421032] * 4,
    ),
    "any source": (
        "0 init\n"
        + "0 recv -555 0 100000 6\n" * 6
        + "".join(
            f"{r} init\n{r} compute {r * 3e4}\n{r} send 0 0 {1000 * r} 6\n"
            f"{r} compute {1e5 / r}\n{r} send 0 0 1000 6\n"
            for r in range(1, 4)
        ),
        [0.0001453653333333, 0.00013, 0.00011, 0.00012333333333333],
    ),
    "any tag": (
        "0 init\n0 recv 1 -444 1000 6\n0 irecv -333 -444 1000 6\n0 compute 1000\n"
        "0 wait -333 0 -444\n1 init\n1 send 0 5 1000 6\n1 compute 100000\n1 send 0 6 1000 6\n",
        [0.000111016, 0.0001],
    ),
}


@pytest.mark.parametrize("name", _ANY)
def test_exchanges_and_receives_from_any_take_what_smpi_says(name: str, tmp_path: Path) -> None:
    text, ends = _ANY[name]
    (tmp_path / "x.ti").write_text(text)
    trace = popmodel.read(tmp_path / "x.ti", flop_rate=1e9)
    network = PRESETS["smpi"].with_(latency=1e-5, bandwidth=1e9)
    assert replay(from_trace(trace), network).end == pytest.approx(ends, rel=1e-9)
    said = [warning.text for warning in trace.warnings if "from any process" in warning.text]
    assert len(said) == (name != "sendRecv")


def test_an_exchange_with_nobody_or_with_itself(tmp_path: Path) -> None:
    (tmp_path / "x.ti").write_text(
        "0 init\n0 sendRecv 8 -666 8 -666 6 6\n0 sendRecv 8 0 8 0 6 6\n0 sendRecv 8 1 8 -666 6 6\n"
        "1 init\n1 sendRecv 8 -666 8 0 6 6\n1 send -666 0 8\n"
    )
    assert len(from_trace(popmodel.read(tmp_path / "x.ti")).messages) == 1


def test_a_wildcard_leaves_messages_to_receives_that_name_them(tmp_path: Path) -> None:
    (tmp_path / "x.ti").write_text(
        "0 recv -333 -444 8\n0 recv -333 5 8\n0 recv 1 6 8\n"
        "1 send 0 5 8\n1 send 0 6 8\n1 send 0 7 8\n"
    )
    trace = popmodel.read(tmp_path / "x.ti")
    assert trace.calls().tag.tolist()[:3] == [7, 5, 6]
    (tmp_path / "x.ti").write_text("0 recv -333 5 8\n1 send 0 6 8\n")
    with pytest.raises(TraceError, match="gets no message") as caught:
        popmodel.read(tmp_path / "x.ti")
    assert caught.value.hint.startswith("write into these lines who sent")


@given(data=st.data())
def test_receives_from_any_get_every_message_once(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Workers that send results and wait for an answer, which the trace sends to one of them."""
    workers = data.draw(st.integers(1, 4))
    count = {w: data.draw(st.integers(1, 3)) for w in range(1, workers + 1)}
    turns = data.draw(st.permutations([w for w, many in count.items() for _ in range(many)]))
    lines = []
    for _ in turns:
        lines += ["0 recv -333 0 8 6", f"0 compute {data.draw(st.integers(0, 99))}"]
    lines += [f"0 send {w} 1 8 6" for w in turns] + ["0 barrier"]
    for w, many in count.items():
        for _ in range(many):
            lines += [f"{w} compute {data.draw(st.integers(0, 99))}", f"{w} isend 0 0 8 6"]
        lines += [f"{w} recv 0 1 8 6"] * many + [f"{w} waitall", f"{w} barrier"]
    path = tmp_path_factory.mktemp("any") / "x.ti"
    path.write_text("\n".join(lines) + "\n")
    assert replay(from_trace(popmodel.read(path)), PRESETS["smpi"]).runtime > 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0 Win_fence", "action 'Win_fence' cannot be replayed: one-sided operations"),
        ("0 Put 1 0 8 6", "action 'Put' cannot be replayed: one-sided operations"),
        ("0 IO - write 10", "action 'IO' cannot be replayed: files are not modelled"),
        ("0 Startall", "action 'Startall' cannot be replayed: which request"),
        ("0 waitAny 2", "action 'waitAny' cannot be replayed: which request"),
        ("0 bcast 3 0 -1", "bcast of a derived datatype, whose size is not recorded"),
        ("0 send -333 0 8", "send to any process or with any tag"),
    ],
)
def test_actions_that_cannot_be_replayed_are_named(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "x.ti").write_text(f"0 init\n{line}\n")
    with pytest.raises(TraceError, match=problem) as caught:
        popmodel.read(tmp_path / "x.ti")
    assert caught.value.line == 2
    assert caught.value.hint


def test_other_sends_and_nonblocking_collectives(tmp_path: Path) -> None:
    (tmp_path / "x.ti").write_text(
        "0 Ssend 1 0 8 6\n0 bsend 1 0 8 6\n0 ISsend 1 0 8 6\n0 wait 0 1 0\n0 ibarrier\n"
        "0 wait -333 -333 -779\n0 iallreduce 8 0 6\n0 wait -333 -333 -4446\n"
        "1 recv 0 0 8 6\n1 recv 0 0 -1\n1 recv 0 0 8 6\n1 ibarrier\n1 iallreduce 8 0 6\n"
        "1 wait 0 0 -779\n1 wait 0 0 -4446\n0 testall\n"
    )
    trace = popmodel.read(tmp_path / "x.ti")
    assert {"MPI_Ssend", "MPI_Bsend", "MPI_Issend", "MPI_Ibarrier", "MPI_Iallreduce"} < set(
        trace.calls().names
    )
    assert replay(from_trace(trace), PRESETS["smpi"]).runtime > 0


def test_tests_take_what_smpi_lets_them_take(tmp_path: Path) -> None:
    """The second finds nothing either and takes 200 us, the third, of another process, 300 us."""
    (tmp_path / "x.ti").write_text(
        "0 init\n0 compute 1e6\n0 send 1 0 1000\n0 compute 1e6\n0 send 2 0 1000\n"
        "1 init\n1 irecv 0 0 1000\n1 compute 1e5\n1 test 0 1 0\n1 test 0 1 0\n1 compute 1e5\n"
        "1 wait 0 1 0\n1 barrier\n"
        "2 init\n2 irecv 0 0 1000\n2 compute 4e6\n2 test 0 2 0\n2 compute 1e5\n"
        "2 wait 0 2 0\n2 barrier\n0 barrier\n"
    )
    trace = popmodel.read(tmp_path / "x.ti", flop_rate=1e9)
    network = PRESETS["smpi"].with_(latency=1e-5, bandwidth=1e9)
    ends = [0.004410016, 0.004420032, 0.004420032]  # by smpirun -replay
    assert replay(from_trace(trace), network).end == pytest.approx(ends, rel=1e-9)
    assert trace.ends().tolist() == [2_000_000, 500_000, 4_400_000]
