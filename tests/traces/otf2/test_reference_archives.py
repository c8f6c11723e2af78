"""Two archives that Score-P wrote, with numbers that others computed of them."""

import itertools
from pathlib import Path

import pytest

import popmodel
from popmodel.traces.codes import Event

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")


@pytest.fixture
def archives(shared_traces: Path) -> Path:
    return shared_traces / "otf2"


@pytest.mark.parametrize("name", ["ping-pong-otf2", "ping-pong-otf2/traces.otf2"])
def test_efficiencies_of_a_ping_pong(archives: Path, name: str) -> None:
    """A message ends where its call is left, not at its record."""
    run = popmodel.metrics(archives / name).runs[0]
    mpi = popmodel.load_families()["mpi"].evaluate(run.observables.aggregates()).values
    found = [
        mpi[metric]
        for metric in (
            "parallel_efficiency",
            "load_balance",
            "serialisation_efficiency",
            "transfer_efficiency",
        )
    ]
    assert found == pytest.approx([0.454, 0.902, 0.991, 0.508], abs=5e-4)
    assert run.observables.aggregates()["runtime"] == pytest.approx(5.871e-3, abs=5e-7)
    assert run.observables.aggregates()["ideal_runtime"] == pytest.approx(2.980e-3, abs=5e-7)


def test_messages_calls_and_functions_of_a_ping_pong(archives: Path) -> None:
    trace = popmodel.read(archives / "ping-pong-otf2")
    calls, messages = trace.calls(), trace.messages
    assert [calls.names[name] for name in calls.name[:4].tolist()] == [
        *("MPI_Init", "MPI_Comm_size", "MPI_Comm_rank", "MPI_Send")
    ]
    assert messages.tag.tolist() == [10] * 8 + [20] * 8
    assert messages.size[:8].tolist() == [16384 << k for k in range(0, 8)]
    entries = set(zip(calls.entry.tolist(), calls.exit.tolist(), strict=True))
    sends = zip(messages.logical_send.tolist(), messages.physical_send.tolist(), strict=True)
    assert set(sends) <= entries
    functions = trace.records.functions(trace.process_offsets)
    assert functions is not None
    assert functions.names == ("int main(int, char**)",)
    assert functions.visits.tolist() == [1, 1]
    in_mpi = int((calls.exit - calls.entry).sum())
    assert int((functions.inclusive - functions.own).sum()) == in_mpi


def test_counters_count_since_the_reading_before(archives: Path) -> None:
    """The two processes read cycles at 122765, 87997941 and 88017448, among others."""
    trace = popmodel.read(archives / "ping-pong-otf2-papi")
    assert trace.records.counter_names() == ["PAPI_TOT_CYC", "PAPI_L2_TCM", "PAPI_BR_MSP"]
    (cycles,) = trace.records.counters((Event.CYCLES,), slice(0, 2))
    read = [98850, 122765, 87997941, 88017448]
    assert cycles.value[:3].tolist() == [b - a for a, b in itertools.pairwise(read)]
