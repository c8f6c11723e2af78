"""Gains, derivatives and tables of replays, against programs that are changed independently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from sensitivity.programs import networks, programs

from popmodel.base.errors import UsageError
from popmodel.network.network import Network
from popmodel.sensitivity.critical_path import critical_times, write_path
from popmodel.sensitivity.region_gains import dependence
from popmodel.sensitivity.region_speeds import regions_of
from popmodel.simulator import replay as carry_out
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import ProgramBuilder
from popmodel.simulator.replayer import Replayer
from popmodel.traces import read
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.selection import focused

LATENT = Network(latency=2e-6, bandwidth=1e9)


def phase(program, operation) -> str:
    """Region of an operation's burst in a program without a trace, told independently."""
    return f"before {program.call_name[program.call_code[program.call[operation]]]}"


def without(program, name, share, ranks=None):
    """The program with less time in a phase, burst by burst."""
    burst = program.burst.astype(float).tolist()
    for rank in range(program.processes):
        if ranks is None or rank in ranks:
            for i in range(program.offsets[rank], program.offsets[rank + 1]):
                if phase(program, i) == name:
                    burst[i] *= 1 - share
    return replace(program, burst=np.array(burst))


def found_of(program, network, **options):
    return dependence(program, network, Replayer(program).path(network), **options)


@pytest.mark.long
@given(programs(), networks())
def test_gains_are_replays_of_a_changed_program(program, network) -> None:
    for one in found_of(program, network).regions:
        if not one.name.startswith("before"):
            continue
        for gain in one.gain:
            other = carry_out(without(program, one.name, gain.faster), network)
            assert gain.runtime == pytest.approx(other.runtime, rel=1e-9, abs=1e-18)
        for gain in one.slowest.gain:
            other = without(program, one.name, gain.faster, [one.slowest.rank])
            expected = carry_out(other, network).runtime
            assert gain.runtime == pytest.approx(expected, rel=1e-9, abs=1e-18)


@given(programs(), networks())
def test_gains_are_bounded_by_the_critical_path_and_convex(program, network) -> None:
    runtime = carry_out(program, network).runtime
    slack = 1e-9 * runtime
    for one in found_of(program, network).regions:
        saved = [runtime - gain.runtime for gain in one.gain]
        shares = [gain.faster for gain in one.gain]
        for share, saving in zip(shares, saved, strict=True):
            assert -slack <= saving <= share * one.critical + slack
        slopes = np.diff([0, *saved]) / np.diff([0, *shares])
        assert np.all(np.diff(slopes) <= slack + 1e-18)
        assert one.slowest.gain[-1].runtime >= one.gain[-1].runtime - slack


@given(programs(), networks())
def test_the_derivative_lies_between_the_differences_of_both_sides(program, network) -> None:
    replayer = Replayer(program)
    path = replayer.path(network)
    regions = regions_of(program)
    critical = critical_times(path, program, regions).sum(axis=1)
    runtime, step = replayer.run(network).runtime, 1e-4
    for name, time in zip(regions.names, critical, strict=True):
        if name.startswith("before"):
            less, more = (
                carry_out(without(program, name, share), network).runtime for share in (step, -step)
            )
            assert (runtime - less) / step <= time + 1e-8 * runtime
            assert time <= (more - runtime) / step + 1e-8 * runtime


@given(programs(), networks())
def test_every_table_of_the_path_adds_up(program, network) -> None:
    path = Replayer(program).path(network)
    tables = found_of(program, network).critical_path
    runtime = carry_out(program, network).runtime
    assert tables.spent.time == pytest.approx(runtime, rel=1e-9, abs=1e-18)
    ranks = sum(one.spent.time for one in tables.ranks.entries)
    assert ranks == pytest.approx(runtime, rel=1e-9, abs=1e-18)
    computing = sum(one.spent.time for one in tables.regions.entries)
    assert computing == pytest.approx(tables.spent.computing, rel=1e-9, abs=1e-18)
    calls = sum(one.spent.time for one in tables.calls.entries)
    assert calls + computing == pytest.approx(runtime, rel=1e-9, abs=1e-18)
    assert sum(one.steps for one in tables.ranks.entries) <= tables.steps == len(path)


@pytest.mark.parametrize("name", ["cg.S.2", "mix.4", "mixnbc.4", "comd.4", "bt-mz.S.2x2"])
@pytest.mark.parametrize("network", [Network(), LATENT])
def test_on_real_traces_shares_and_gains_fit_together(name, network) -> None:
    trace = focused(read(f"tests/data/{name}.prv.gz"))[0]
    program = from_trace(trace)
    found = found_of(program, network, trace=trace)
    runtime = carry_out(program, network).runtime
    tables = found.critical_path
    assert tables.spent.time == pytest.approx(runtime, rel=1e-9)
    on_path = sum(one.critical for one in found.regions) + found.other_regions.critical
    assert on_path == pytest.approx(tables.spent.computing, rel=1e-9)
    shares = sum(one.share for one in found.regions) + found.other_regions.share
    assert shares * runtime == pytest.approx(program.compute().mean() / 1e9, rel=1e-9)
    gains = [one.gain[0].runtime for one in found.regions]
    assert gains == sorted(gains)
    assert all(
        one.gain[-1].runtime >= runtime - one.critical - 1e-9 * runtime for one in found.regions
    )


def test_all_of_the_computing_in_one_region_is_as_a_faster_cpu() -> None:
    builder = ProgramBuilder(1)
    builder.compute(0, 5e-3)
    found = found_of(builder.build(), LATENT)
    (one,) = found.regions
    assert [gain.runtime for gain in one.gain] == pytest.approx(
        [5e-3 * (1 - gain.faster) for gain in one.gain]
    )
    assert found.other_regions.regions == 0


def test_threads_that_call_mpi_are_of_their_ranks(tmp_path) -> None:
    """Two ranks of two threads; the second threads exchange a message inside a region."""
    writer = TraceWriter([2, 2], communicators={1: [0, 1]})
    for rank, work in enumerate((400, 100)):
        writer.state(rank, 0, 0, 1000, 1)
        writer.event(rank, 0, 100, [(60000001, 1)])
        writer.event(rank, 0, 900, [(60000001, 0)])
        for thread in range(2):
            writer.event(rank, thread, 100, [(60000018, 1)])
            writer.event(rank, thread, 800, [(60000018, 0)])
        call = (50000001, 2 if rank else 1)
        writer.event(rank, 1, 100 + work, [call])
        writer.event(rank, 1, 700, [(50000001, 0)])
        writer.event(rank, 0, 1000, [(40000001, 0)])
    writer.message((0, 1), (1, 1), (500, 510), (200, 700), 8)
    writer.write(tmp_path / "team.prv")
    trace = read(tmp_path / "team.prv")
    program = from_trace(trace)
    assert len(program.threads)
    found = found_of(program, LATENT, trace=trace)
    runtime = carry_out(program, LATENT).runtime
    assert found.critical_path.spent.time == pytest.approx(runtime, rel=1e-9)
    assert {one.name for one in found.critical_path.ranks.entries} <= {"rank 0", "rank 1"}
    assert {one.slowest.rank for one in found.regions} <= {0, 1}
    assert all(one.gain[0].runtime <= runtime * (1 + 1e-12) for one in found.regions)
    with pytest.raises(UsageError, match="threads call MPI on their own"):
        write_path(Replayer(program).path(LATENT), program, trace, tmp_path / "x.prv", "ideal")
