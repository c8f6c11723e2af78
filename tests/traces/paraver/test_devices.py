"""Rows of devices (streams of GPUs) are no threads."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_files import DATA

import popmodel
from popmodel.traces import Trace, read
from popmodel.traces.paraver.writer import TraceWriter

CALL, TRANSFER, KERNEL = 63000000, 63000001, 63000006
HIP_CALL, HIP_KERNEL, OPENCL_CALL, OPENCL_KERNEL = 63500000, 63500006, 64000015, 64100015
ALLREDUCE = [(50000002, 10), (50100001, 8), (50100004, 1)]
STREAMS = ["CUDA-D1.S1-node7", "HIP-D2.S11-n", "GPU-D1.S2uuid", "OpenCL-GPU-CQ1-n", "CUDA-D0.S7"]


def run(threads: list[int], streams: list[int], names: list[str] | None = None) -> TraceWriter:
    """Processes with threads that compute and call MPI, and streams behind them that are busy."""
    writer = TraceWriter(
        [one + more for one, more in zip(threads, streams, strict=True)],
        communicators={1: list(range(len(threads)))},
        names=names,
        duration=1000,
    )
    for rank, (count, more) in enumerate(zip(threads, streams, strict=True)):
        for thread in range(count):
            writer.state(rank, thread, 0, 400 + 10 * rank, 1)
            writer.event(rank, thread, 10, [(CALL, 5)])
            writer.event(rank, thread, 20, [(CALL, 0)])
        writer.event(rank, 0, 400 + 10 * rank, ALLREDUCE)
        writer.event(rank, 0, 1000, [(50000002, 0)])
        writer.state(rank, 0, 400 + 10 * rank, 1000, 13)
        for stream in range(count, count + more):
            writer.state(rank, stream, 100, 900, 1)
            writer.event(rank, stream, 100, [(KERNEL, 3), (63000011, 64)])
            writer.event(rank, stream, 900, [(KERNEL, 0)])
            writer.message((rank, 0), (rank, stream), (15, 15), (100, 100), 0)
            writer.message((rank, stream), (rank, 0), (900, 900), (950, 950), 0)
    return writer


def of(folder: Path, writer: TraceWriter) -> Trace:
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


@settings(max_examples=8)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_run_with_streams_is_the_run_without(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], named: bool
) -> None:
    threads, streams = map(list, zip(*rows, strict=True))
    names = None
    if named:
        names = [
            f"THREAD 1.{rank + 1}.{row + 1}" if row < count else STREAMS[row % len(STREAMS)]
            for rank, (count, more) in enumerate(rows)
            for row in range(count + more)
        ]
    folder = tmp_path_factory.mktemp("streams")
    found = of(folder, run(threads, streams, names))
    expected = of(folder, run(threads, [0] * len(threads)))
    assert found.threads.tolist() == threads
    assert len(found.devices.names) == sum(streams)
    for table in ("states", "events", "messages", "calls"):
        assert found.to_dataframe(table).equals(expected.to_dataframe(table)), table
    if names is not None:
        assert found.names == tuple(name for name in names if name.startswith("THREAD"))
        assert found.devices.names == tuple(name for name in names if not name.startswith("THREAD"))
    (told,), (wanted,) = popmodel.metrics(found).runs, popmodel.metrics(expected).runs
    in_calls = 10e-9 if sum(streams) else 0.0  # of the device, on each thread
    assert (told.observables.useful + in_calls).tolist() == pytest.approx(
        wanted.observables.useful.tolist()
    )


@pytest.mark.parametrize(
    ("pairs", "is_device"),
    [
        ([(KERNEL, 1), (TRANSFER, 2)], True),
        ([(HIP_KERNEL, 1)], True),
        ([(OPENCL_KERNEL, 1)], True),
        ([(KERNEL, 1), (CALL, 2)], False),
        ([(HIP_CALL, 1)], False),
        ([(OPENCL_CALL, 1)], False),
        ([(KERNEL, 1), (60000018, 4)], False),
        ([], False),
    ],
)
def test_rows_without_names_are_known_by_their_events(
    tmp_path: Path, pairs: list[tuple[int, int]], is_device: bool
) -> None:
    writer = TraceWriter([2], duration=1000)
    writer.state(0, 0, 0, 1000, 1)
    writer.event(0, 0, 0, [(CALL, 1)])
    writer.state(0, 1, 0, 900, 1)
    for pair in pairs:
        writer.event(0, 1, 100, [pair])
    found = of(tmp_path, writer)
    assert found.devices.names == (("THREAD 1.1.2",) if is_device else ())
    assert found.locations == 2 - is_device


def test_replays_signatures_and_converted_files_name_the_devices(tmp_path: Path) -> None:
    trace = of(tmp_path, run([1, 1], [2, 2]))
    sentence = "4 rows are streams of 2 devices (device of process 1, device of process 2)"
    assert sentence in json.dumps(popmodel.whatif(trace).to_dict())
    assert popmodel.signature(trace).to_dict()["notes"][0].startswith(sentence)
    assert popmodel.convert(trace, tmp_path / "x.ti").caveats[0].startswith(sentence)


def test_a_process_of_devices_only_has_a_thread_of_which_nothing_is_known(tmp_path: Path) -> None:
    names = ["THREAD 1.1.1", "CUDA-D1.S1-n", "CUDA-D1.S2-n"]
    writer = TraceWriter([1, 2], names=names, duration=10)
    writer.state(0, 0, 0, 10, 1)
    writer.state(1, 0, 2, 9, 1)
    trace = of(tmp_path, writer)
    assert trace.threads.tolist() == [1, 1]
    run = popmodel.metrics(trace).to_dict()["runs"][0]
    assert run["metrics"]["gpu-bsc"]["device_parallel_efficiency"] == pytest.approx(0.7)
    assert "nothing is recorded of the threads of 1 process" in " ".join(run["caveats"])


@pytest.mark.parametrize("has_states", [True, False])
def test_a_run_of_which_only_devices_are_recorded(tmp_path: Path, has_states: bool) -> None:
    """As Extrae's streams, which have states, and those of nsys2prv."""
    writer = TraceWriter([1, 1], names=["CUDA-D0.S7", "CUDA-D1.S7"], duration=10)
    for process, end in ((0, 8), (1, 4)):
        if has_states:
            writer.state(process, 0, 0, end, 1)
        writer.event(process, 0, 0, [(KERNEL, 5)])
        writer.event(process, 0, end, [(KERNEL, 0)])
    trace = of(tmp_path, writer)
    metrics = popmodel.metrics(trace).to_dict()["runs"][0]["metrics"]["gpu-bsc"]
    assert metrics["device_parallel_efficiency"] == pytest.approx((8 + 4) / 20)
    assert metrics["device_load_balance"] == pytest.approx(6 / 8)


def test_devices_without_a_kernel_have_no_efficiencies(tmp_path: Path) -> None:
    path = tmp_path / "nsys2prv.prv"
    path.write_text(
        "#Paraver (11/08/2026 at 23:07):53664645850_ns:0:1:2:(1:1,6:1)\n"
        "2:0:1:2:1:100:63000001:1\n2:0:1:2:1:200:63000001:0\n"
    )
    run = popmodel.metrics(path, family="gpu-bsc").to_dict()["runs"][0]
    assert {*run["absent"]["gpu-bsc"].values()} == {"no kernels of devices are recorded"}
    assert run["caveats"][0].endswith("not threads; no kernels are recorded")
    assert run["caveats"][1].startswith("nothing is recorded of the threads:")


def test_the_reference_trace() -> None:
    run = popmodel.metrics(str(DATA / "cuda.2ranks.prv")).to_dict()["runs"][0]
    assert (run["processes"], run["threads"]) == (2, 1)
    assert run["metrics"]["mpi"]["parallel_efficiency"] == pytest.approx(0.1)
