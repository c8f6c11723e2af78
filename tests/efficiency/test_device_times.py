"""Families of devices: a published case, random runs against a plain loop, comparisons."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_files import DATA

import popmodel
from popmodel.efficiency.hierarchy import load_families
from popmodel.traces.codes import MOVING, OTHER, RUNNING, TOGETHER
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

CALL = 63000000
LAUNCH, SYNCHRONISE = 1, 2
LABELS = Labels(
    {},
    {CALL: "CUDA library call"},
    {CALL: {LAUNCH: "cudaLaunchKernel", SYNCHRONISE: "cudaDeviceSynchronize"}},
)
FAMILIES = [name for name, family in load_families().items() if family.requires == "devices"]

Steps = list[tuple[str, int]]
"""What a thread or a stream does one after the other, and for how long."""


def steps(*kinds: str) -> st.SearchStrategy[Steps]:
    step = st.tuples(st.sampled_from(kinds), st.integers(1, 9))
    return st.lists(step, min_size=1, max_size=6)


HOST = steps("compute", "launch", "wait", "mpi")
STREAM = steps("kernel", "copy", "idle")


def trace_of(hosts: list[Steps], streams: list[list[tuple[int, Steps]]], folder: Path) -> Path:
    """Ranks of one thread, each with streams of numbered devices."""
    names, length = [], max(length_of(one) for one in [*hosts, *(s for r in streams for _, s in r)])
    for rank, mine in enumerate(streams):
        numbers = [f"CUDA-D{device}.S{row}-n" for row, (device, _) in enumerate(mine, 1)]
        names += [f"THREAD 1.{rank + 1}.1", *numbers]
    writer = TraceWriter(
        [1 + len(mine) for mine in streams],
        communicators={1: list(range(len(hosts)))},
        names=names,
        labels=LABELS,
        duration=length,
    )
    for rank, (host, mine) in enumerate(zip(hosts, streams, strict=True)):
        time = 0
        for kind, lasts in [*host, ("compute", length - length_of(host))]:
            end = time + lasts
            state = {"compute": RUNNING, "mpi": TOGETHER, "wait": OTHER, "launch": RUNNING}[kind]
            writer.state(rank, 0, time, end, state)
            if kind == "mpi":
                writer.event(rank, 0, time, [(50000002, 8), (50100004, 1)])
                writer.event(rank, 0, end, [(50000002, 0)])
            elif kind != "compute":
                value = LAUNCH if kind == "launch" else SYNCHRONISE
                writer.event(rank, 0, time, [(CALL, value)])
                writer.event(rank, 0, end, [(CALL, 0)])
            time = end
        for row, (_, stream) in enumerate(mine, 1):
            time = 0
            for kind, lasts in stream:
                if kind != "idle":
                    state = RUNNING if kind == "kernel" else MOVING
                    writer.state(rank, row, time, time + lasts, state)
                time += lasts
    writer.write(folder / "x.prv")
    return folder / "x.prv"


def length_of(steps: Steps) -> int:
    return sum(lasts for _, lasts in steps)


def at(steps: Steps, time: int, after: str) -> str:
    for kind, lasts in steps:
        if time < lasts:
            return kind
        time -= lasts
    return after


def expected(hosts: list[Steps], streams: list[list[tuple[int, Steps]]]) -> dict[str, float | None]:
    """The efficiencies, nanosecond by nanosecond."""
    length = max(length_of(one) for one in [*hosts, *(s for mine in streams for _, s in mine)])
    devices: dict[int, list[Steps]] = {}
    for mine in streams:
        for number, stream in mine:
            devices.setdefault(number, []).append(stream)
    kernels, active = dict.fromkeys(devices, 0), dict.fromkeys(devices, 0)
    host = dict.fromkeys(("compute", "launch", "wait", "mpi"), 0)
    for time in range(length):
        for number, own in devices.items():
            kinds = {at(stream, time, "idle") for stream in own}
            kernels[number] += "kernel" in kinds
            active[number] += bool(kinds - {"idle"})
        for one in hosts:
            host[at(one, time, "compute")] += 1
    count, outside = len(devices), length * len(hosts) - host["mpi"]

    def ratio(above: float, below: float) -> float | None:
        return above / below if below else None

    most = max(kernels.values())
    if not most:  # nothing was computed on devices: no family
        return {}
    return {
        "device_parallel_efficiency": sum(kernels.values()) / (count * length),
        "device_load_balance": ratio(sum(kernels.values()) / count, most),
        "device_communication_efficiency": ratio(most, max(active.values())),
        "device_orchestration_efficiency": max(active.values()) / length,
        "mpi_parallel_efficiency": outside / (len(hosts) * length),
        "device_offload_efficiency": ratio(host["compute"], outside),
        "host_parallel_efficiency": host["compute"] / (len(hosts) * length),
    }


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(HOST, st.lists(st.tuples(st.integers(0, 2), STREAM), min_size=1, max_size=4)),
        min_size=1,
        max_size=3,
    )
)
def test_random_runs_are_as_a_plain_loop_finds_them(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[Any]
) -> None:
    hosts, streams = [host for host, _ in ranks], [mine for _, mine in ranks]
    trace = trace_of(hosts, streams, tmp_path_factory.mktemp("devices"))
    run = popmodel.metrics(str(trace), from_start=True)
    wanted = expected(hosts, streams)
    for name in ("gpu-bsc", "gpu-talp"):
        values = run.evaluations[0][name].values
        found = {metric: values.get(metric) for metric in wanted or values}
        assert found == pytest.approx(wanted, nan_ok=True), name
        check_identities(run.evaluations[0][name])
    check_identities(run.evaluations[0]["gpu-classic"])


def check_identities(evaluation: Any) -> None:
    for each in evaluation.family.decompositions:
        if all(part in evaluation.values for part in (each.parent, *each.parts)):
            combined = each.combine(evaluation.values)
            assert evaluation.values[each.parent] == pytest.approx(combined, rel=1e-9)
    assert not evaluation.notes  # no value beyond its bounds


def test_the_reference_trace_has_its_published_efficiencies() -> None:
    run = popmodel.metrics(str(DATA / "cuda.2ranks.prv"))
    for name in ("gpu-bsc", "gpu-talp"):
        percents = {key: round(100 * v, 1) for key, v in run.evaluations[0][name].values.items()}
        assert percents == {
            "device_parallel_efficiency": 70.0,
            "device_load_balance": 87.5,
            "device_communication_efficiency": 88.9,
            "device_orchestration_efficiency": 90.0,
            "device_computation_scaling": 100.0,
            "host_parallel_efficiency": 10.0,
            "mpi_parallel_efficiency": 90.0,
            "device_offload_efficiency": 11.1,
        }, name
    classic = run.evaluations[0]["gpu-classic"].values
    assert classic["parallel_efficiency"] == pytest.approx((0.02 + 0.14) / (4 * 0.1))
    assert classic["cuda_parallel_efficiency"] == pytest.approx(0.4 / 0.9)


def test_sixteen_streams_of_two_devices_on_each_rank(tmp_path: Path) -> None:
    """Stream k of a device runs from k to k + 2, so that a device is busy from 0 to 9."""
    streams = [
        [(2 * rank + row // 8, [("idle", row % 8), ("kernel", 2)]) for row in range(16)]
        for rank in range(2)
    ]
    streams = [[(d, [s for s in steps if s[1]]) for d, steps in mine] for mine in streams]
    path = trace_of([[("compute", 10)]] * 2, streams, tmp_path)
    devices = popmodel.metrics(str(path)).runs[0].observables.devices
    assert devices is not None
    assert devices.names == tuple(f"CUDA-D{number}-n" for number in range(4))
    assert devices.streams.tolist() == [8, 8, 8, 8]
    assert (devices.kernels * 1e9).tolist() == pytest.approx([9, 9, 9, 9])


def test_device_computation_scaling_takes_the_devices_in_weak_scaling(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    kernel, host = [("kernel", 6)], [("compute", 10)]
    one = trace_of([host], [[(0, kernel)]], tmp_path / "a")
    two = trace_of([host] * 2, [[(0, kernel)], [(1, [("kernel", 9)])]], tmp_path / "b")
    for mode, value in (("strong", 6 / 15), ("weak", 2 * 6 / 15)):
        runs = popmodel.metrics([str(one), str(two)], scaling=mode)
        found = runs.evaluations[1]["gpu-bsc"].values["device_computation_scaling"]
        assert found == pytest.approx(value)


def test_a_reference_without_devices_is_a_reason(tmp_path: Path) -> None:
    plain = TraceWriter([1], duration=10)
    plain.state(0, 0, 0, 10, RUNNING)
    plain.write(tmp_path / "plain.prv")
    (tmp_path / "b").mkdir()
    two = trace_of([[("compute", 10)]] * 2, [[(0, [("kernel", 6)])]] * 2, tmp_path / "b")
    runs = popmodel.metrics([str(tmp_path / "plain.prv"), str(two)])
    absent = runs.evaluations[1]["gpu-bsc"].absent
    assert absent == {
        "device_computation_scaling": "the reference run has no devices, or is of another program"
    }
    assert runs.shown == ("gpu-bsc", "mpi")


def test_a_run_without_devices_has_a_reason_and_no_such_family_by_default() -> None:
    run = popmodel.metrics(str(DATA / "comd.4.prv.gz"))
    assert not set(FAMILIES) & set(run.to_dict()["runs"][0]["metrics"])
    asked = popmodel.metrics(str(DATA / "comd.4.prv.gz"), family=FAMILIES).to_dict()["runs"][0]
    for name in FAMILIES:
        assert asked["metrics"][name] == {}
        assert set(asked["absent"][name].values()) == {"no devices (streams of GPUs) in the trace"}
