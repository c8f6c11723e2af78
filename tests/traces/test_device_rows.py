"""Streams of devices: which device they are of, what they do, what is left of it in a window."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_files import DATA
from traces import made_offload

import popmodel
from popmodel.timeline.lanes import DEVICE_CALL as CALL_LANE
from popmodel.timeline.lanes import KERNEL as KERNEL_LANE
from popmodel.timeline.lanes import TRANSFER as TRANSFER_LANE
from popmodel.timeline.timeline import timeline
from popmodel.traces import read
from popmodel.traces.codes import OTHER, RUNNING
from popmodel.traces.device_rows import COLLECTIVE, COPY, KERNEL, DeviceRows
from popmodel.traces.intervals import Spans
from popmodel.traces.paraver.device_streams import devices_of, is_device_row
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.tables import offsets_of

Stream = list[tuple[int, int, int]]
"""Begin, end and kind of what a stream does, one after the other."""


@st.composite
def busy_streams(draw: st.DrawFn) -> Stream:
    times = sorted(draw(st.lists(st.integers(0, 60), max_size=12)))
    pairs = list(pairwise(times))[::2]
    kinds = st.sampled_from((KERNEL, COPY, COLLECTIVE))
    return [(begin, end, draw(kinds)) for begin, end in pairs]


def rows_of(streams: list[Stream], device: list[int], devices: int) -> DeviceRows:
    begin, end, what = np.array([each for s in streams for each in s], np.int64).reshape(-1, 3).T
    offsets = offsets_of(np.array([len(stream) for stream in streams], np.int64))
    return DeviceRows(
        tuple(f"GPU-D{number}.S{row}" for row, number in enumerate(device)),
        np.array(device, np.int32),
        np.zeros(len(device), np.int32),
        tuple(f"GPU-D{number}" for number in range(devices)),
        Spans(offsets, begin, end, what),
        Spans.none(1),
    )


def by_hand(streams: list[Stream], device: list[int], number: int) -> tuple[int, int]:
    """Nanoseconds in which a device runs a kernel, and copies without one, one by one."""
    kernels = transfers = 0
    mine = [stream for stream, own in zip(streams, device, strict=True) if own == number]
    for time in range(60):
        kinds = {kind for s in mine for begin, end, kind in s if begin <= time < end}
        kernels += KERNEL in kinds
        transfers += bool(kinds) and KERNEL not in kinds
    return kernels, transfers


@given(st.lists(st.tuples(busy_streams(), st.integers(0, 2)), max_size=6))
def test_streams_of_a_device_are_one(drawn: list[tuple[Stream, int]]) -> None:
    streams, device = [s for s, _ in drawn], [number for _, number in drawn]
    rows = rows_of(streams, device, 3)
    expected = [by_hand(streams, device, number) for number in range(3)]
    kernels, transfers = rows.kernels(), rows.transfers()
    assert list(zip(kernels.total(), transfers.total(), strict=True)) == expected
    assert (kernels.begin < kernels.end).all()


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("CUDA-D1.S1-n1", "CUDA-D1-n1"),
        ("HIP-D2.S11-nid006767", "HIP-D2-nid006767"),
        ("GPU-D1.S1", "GPU-D1-node3"),
        ("CUDA-D0.S7", "CUDA-D0-node3"),
        ("GPU_a2f80454-b3.1", "GPU_a2f80454-b3"),
        ("OpenCL-GPU-CQ1-n1", "OpenCL-GPU-n1"),
        ("THREAD 1.4.2", "device of process 4"),
    ],
)
def test_names_tell_the_device(name: str, device: str) -> None:
    number, devices = devices_of([name, "CUDA-D9.S1-x", name], ["node3"] * 3, [3, 0, 3])
    assert (number.tolist(), devices[0]) == ([0, 1, 0], device)
    assert is_device_row(name) == (not name.startswith("THREAD"))


def test_sampled_counters_are_no_stream(tmp_path: Path) -> None:
    writer = TraceWriter([3], names=["main", "CUDA-D0.S7", "Metrics GPU0"], duration=100)
    writer.state(0, 0, 0, 100, 1)
    writer.event(0, 2, 50, [(9400, 17)])
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    assert trace.names == ("main",)
    assert (trace.devices.names, trace.devices.left_out) == (("CUDA-D0.S7",), ("Metrics GPU0",))


def test_states_tell_what_a_stream_does() -> None:
    devices = read(DATA / "cuda.2ranks.prv").devices
    assert devices.devices == ("CUDA-D1-n1", "CUDA-D2-n1")
    assert devices.process.tolist() == [0, 1]
    assert (devices.kernels().total() / 1e6).tolist() == [60, 80]
    assert (devices.transfers().total() / 1e6).tolist() == [10, 10]


def nsys2prv(folder: Path) -> Path:
    """A process with calls, a stream with a kernel, a copy and a collective; no states."""
    writer = TraceWriter(
        [2],
        nodes=[],
        names=["THREAD 1.1.1", "CUDA-D0.S7"],
        duration=1000,
        labels=Labels(
            {},
            {63000000: "CUDA library call"},
            {63000000: {1: "cudaLaunchKernel_v7000", 2: "cudaStreamSynchronize_v3020"}},
        ),
    )
    for thread, type_, value, begin, end in (
        (0, 63000000, 1, 0, 50),
        (0, 63000000, 2, 100, 700),
        (1, 63000006, 9, 100, 300),
        (1, 63000001, 5, 300, 400),
        (1, 63000001, 1, 400, 450),
        (1, 63000007, 1, 500, 700),
    ):
        writer.event(0, thread, begin, [(type_, value)])
        writer.event(0, thread, end, [(type_, 0)])
    path = folder / "nsys.prv"
    writer.write(path)
    return path


def test_events_tell_what_a_stream_does_without_states(tmp_path: Path) -> None:
    devices = read(nsys2prv(tmp_path)).devices
    assert devices.activity.what.tolist() == [KERNEL, COPY, COLLECTIVE]
    assert devices.kernels().total().tolist() == [200]
    assert devices.transfers().total().tolist() == [300]
    assert devices.calls.total().tolist() == [650]
    assert devices.waits().total().tolist() == [600]


def test_a_window_cuts_devices_and_calls(tmp_path: Path) -> None:
    devices = read(nsys2prv(tmp_path)).window(250, 350).devices
    assert devices.kernels().total().tolist() == [50]
    assert devices.transfers().total().tolist() == [50]
    assert devices.waits().total().tolist() == [100]


def test_threads_of_a_trace_without_states_compute_outside_their_calls(tmp_path: Path) -> None:
    trace = read(nsys2prv(tmp_path))
    rows = list(zip(trace.states.begin, trace.states.end, trace.states.state, strict=True))
    assert rows == [(0, 50, OTHER), (50, 100, RUNNING), (100, 700, OTHER), (700, 1000, RUNNING)]
    run = popmodel.metrics(trace)
    assert "no states of threads: those with events" in run.runs[0].caveats[1]
    values = run.evaluations[0]["gpu-bsc"].values
    assert values["device_parallel_efficiency"] == pytest.approx(0.2)
    assert values["device_communication_efficiency"] == pytest.approx(200 / 500)
    assert values["host_parallel_efficiency"] == pytest.approx(0.35)


def test_a_header_of_nsys2prv_without_row_file(tmp_path: Path) -> None:
    path = tmp_path / "x.prv"
    path.write_text(
        "#Paraver (11/08/2026 at 23:07):1000_ns:0:1:2:(1:1,3:1)\n"
        "2:0:1:1:1:0:63000000:1\n2:0:1:2:3:0:63000006:1\n"
        "2:0:1:2:3:400:63000006:0\n2:0:1:1:1:500:63000000:0\n"
    )
    trace = read(path)
    assert trace.threads.tolist() == [1, 2]
    assert trace.devices.names == ("THREAD 1.2.3",)
    run = popmodel.metrics(trace)
    assert run["gpu-bsc.device_parallel_efficiency"] == pytest.approx(0.4)


def test_node_lists_tell_devices_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.prv"
    path.write_text(
        "#Paraver (11/08/2026 at 23:07):1000_ns:0:1:2:(2:1,2:2)\n"
        "2:0:1:1:1:0:63000000:1\n2:0:1:2:1:0:63000000:1\n"
        "2:0:1:1:2:0:63000006:1\n2:0:1:2:2:0:63000006:1\n"
        "2:0:1:1:2:400:63000006:0\n2:0:1:2:2:600:63000006:0\n"
        "2:0:1:1:1:900:63000000:0\n2:0:1:2:1:1000:63000000:0\n"
    )
    rows = "LEVEL THREAD SIZE 4\nTHREAD 1.1.1\nCUDA-D0.S7\nTHREAD 1.2.1\nCUDA-D0.S7\n"
    path.with_suffix(".row").write_text(rows)
    devices = read(path).devices
    assert devices.devices == ("CUDA-D0-node1", "CUDA-D0-node2")
    assert devices.kernels().total().tolist() == [400, 600]


def test_a_timeline_for_perfetto_has_slices_of_devices(tmp_path: Path) -> None:
    popmodel.convert(DATA / "offload.2.prv.gz", tmp_path / "x.perfetto.json")
    events = json.loads((tmp_path / "x.perfetto.json").read_text())["traceEvents"]
    slices = [event for event in events if event.get("cat") == "device"]
    assert len(slices) == 2 * (24 + 12)
    assert sum(event["dur"] for event in slices if event["name"] == "kernel") == pytest.approx(
        1000 * (64.8 + 76.8)
    )


def test_timelines_have_lanes_of_devices() -> None:
    shown = timeline(read(DATA / "offload.2.prv.gz"))
    assert shown.labels == ("rank 0", "rank 1", "CUDA-D1-n1", "CUDA-D2-n1")
    spent = shown.measured.spent / 1e6
    assert spent[2:, KERNEL_LANE].tolist() == [64.8, 76.8]
    assert spent[2:, TRANSFER_LANE].tolist() == pytest.approx([9.6, 9.6])
    run = popmodel.metrics(DATA / "offload.2.prv.gz", from_start=True).runs[0].observables
    in_calls = run.to_dict()["in_device_calls"]
    assert (spent[:2, CALL_LANE] / 1e3).tolist() == pytest.approx(in_calls)
    assert shown.ideal is not None
    assert not shown.ideal.kind[2:].any()
    plain = timeline(read(DATA / "comd.4.prv.gz"))
    assert plain.labels == plain.rows.labels


def test_the_sample_trace_is_as_its_script_makes_it(tmp_path: Path) -> None:
    made_offload.write(tmp_path / "offload.2.prv.gz")
    for suffix in (".prv.gz", ".pcf", ".row"):
        made, kept = (folder / f"offload.2{suffix}" for folder in (tmp_path, DATA))
        assert made.read_bytes() == kept.read_bytes(), suffix
