"""Programs in some of whose regions processors are faster or slower."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import popmodel
from popmodel.base.errors import UsageError
from popmodel.sensitivity.region_speeds import at_speeds, parse_region_speeds, regions_of
from popmodel.simulator.from_trace import from_trace

TRACE = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"


def test_only_the_region_takes_another_time() -> None:
    trace = popmodel.read(TRACE)
    program = from_trace(trace)
    before = regions_of(program, trace)
    region = int(before.by_process(program).sum(axis=1).argmax())
    name = before.names[region]
    alike = [number for number, other in enumerate(before.names) if other == name]
    saved = before.by_process(program)[alike].sum(axis=0) * 0.75
    after = at_speeds(program, trace, {name: 4.0})
    assert after.compute() == pytest.approx(program.compute() - saved)
    assert np.array_equal(after.kind, program.kind)


def test_sensitivity_tells_the_runtime_of_such_a_program() -> None:
    network = popmodel.Network(latency=2e-6, bandwidth=1e9)
    found = popmodel.whatif(TRACE, network, sensitivity=True)
    region = found.sensitivity.dependence.regions[0]
    half = next(gain.runtime for gain in region.gain if gain.faster == 0.5)
    run = popmodel.whatif(TRACE, network, region_speed={region.name: 2.0})
    assert run.runs[0].execution.runtime == pytest.approx(half, rel=1e-12)
    assert f"computing in {region.name} is taken as 2 times as fast" in run.notes[0]


def test_speeds_are_read_from_texts() -> None:
    assert parse_region_speeds(["solve=2", "before MPI_Wait in a=b=0.5"]) == {
        "solve": 2.0,
        "before MPI_Wait in a=b": 0.5,
    }


@pytest.mark.parametrize("text", ["solve", "=2", "solve=", "solve=0", "solve=-1", "solve=inf"])
def test_a_text_without_speed_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no speed of a region"):
        parse_region_speeds([text])


def test_a_region_with_two_speeds_is_refused() -> None:
    with pytest.raises(UsageError, match="region speed: solve has two speeds"):
        parse_region_speeds(["solve=2", "solve=3"])


def test_a_region_that_is_not_there_is_named() -> None:
    trace = popmodel.read(TRACE)
    with pytest.raises(UsageError, match="nothing is computed in a region 'nowhere'"):
        at_speeds(from_trace(trace), trace, {"nowhere": 2.0})


def test_its_records_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the records of a region cannot be stretched"):
        popmodel.whatif(TRACE, region_speed={"x": 2.0}, save_trace=tmp_path / "replayed.prv")
