"""What is measured of a run only to explain its losses."""

from pathlib import Path

import pytest

from popmodel.efficiency.evidence import Crowd, SerialCode
from popmodel.efficiency.measure import MeasuredRun, analyse
from popmodel.traces import read
from popmodel.traces.codes import Event
from popmodel.traces.paraver.writer import TraceWriter

US = 1000
DATA = Path(__file__).parent.parent / "data"


def measured(writer: TraceWriter, path: Path) -> MeasuredRun:
    writer.write(path / "x.prv")
    return analyse(read(path / "x.prv"))


def test_serial_code_is_found_between_regions(tmp_path: Path) -> None:
    """Regions 1, 2 and 1 again, with 10, 20, 30 and 40 us of serial code around them."""
    writer = TraceWriter([1])
    writer.state(0, 0, 0, 400 * US, 1)
    for begin, function in ((10, 1), (130, 2), (260, 1)):
        writer.event(0, 0, begin * US, [(60000001, 1), (60000018, function)])
        writer.event(0, 0, (begin + 100) * US, [(60000018, 0), (60000001, 0)])
    run = measured(writer, tmp_path)
    assert run.evidence.serial == (
        SerialCode("function 1", "", 1, pytest.approx(40e-6)),
        SerialCode("function 2", "function 1", 1, pytest.approx(30e-6)),
        SerialCode("function 1", "function 2", 1, pytest.approx(20e-6)),
        SerialCode("", "function 1", 1, pytest.approx(10e-6)),
    )


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "stencil3d.2x2"])
def test_serial_code_adds_up_to_the_serial_useful_time(name: str) -> None:
    folder = DATA if name.startswith("bt") else DATA.parent.parent / "examples" / "traces"
    run = analyse(read(folder / f"{name}.prv.gz"))
    total = sum(one.time for one in run.evidence.serial)
    assert total == pytest.approx(run.observables.serial_useful.sum(), rel=1e-9)


def test_other_networks_are_slower_than_the_ideal_one() -> None:
    run = analyse(read(DATA / "comd.4.prv.gz"))
    networks = run.evidence.networks
    assert networks is not None
    assert run.observables.ideal_runtime is not None
    assert run.observables.ideal_runtime < networks.latency < networks.slow
    assert run.observables.ideal_runtime < networks.bandwidth < networks.slow


def test_a_run_without_mpi_has_no_other_networks(tmp_path: Path) -> None:
    writer = TraceWriter([1])
    writer.state(0, 0, 0, 400 * US, 1)
    evidence = measured(writer, tmp_path).evidence
    assert (evidence.networks, evidence.calls, evidence.serial) == (None, 0, ())


@pytest.mark.parametrize(
    ("cpus", "sharing", "found"),
    [
        ([1, 1, 1, 1], [2, 2, 2, 2], Crowd(2, 2, 1)),
        ([2, 2, 2, 2], [4, 4, 4, 4], Crowd(2, 4, 2)),
        ([4, 4, 1, 1], [4, 4, 2, 2], Crowd(2, 2, 1)),
        ([4, 4, 4, 4], [4, 4, 4, 4], None),
        ([0, 0, 0, 0], [0, 0, 0, 0], None),
    ],
)
def test_threads_that_share_processors_are_told_from_a_narrow_binding(
    cpus: list[int], sharing: list[int], found: Crowd | None, tmp_path: Path
) -> None:
    """Two processes of two threads."""
    writer = TraceWriter([2, 2])
    for number, told in enumerate(zip(cpus, sharing, strict=True)):
        process, thread = divmod(number, 2)
        writer.state(process, thread, 0, 400 * US, 1)
        writer.event(process, thread, 0, list(zip((Event.CPUS, Event.SHARING), told, strict=True)))
    assert measured(writer, tmp_path).evidence.crowd == found
