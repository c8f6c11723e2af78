"""The planes of real runs over latency, 1/bandwidth and computing, against replays."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from popmodel.cli.inputs import trace_of
from popmodel.network.network import PRESETS, Network
from popmodel.sensitivity.runtime_planes import Runtimes, network_at, runtime_planes
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import NONE_UNEVEN
from popmodel.simulator.replayer import Replayer
from popmodel.traces.selection import focused

DATA = Path(__file__).parent.parent / "data"
OWN = sorted(path.name for path in DATA.glob("*.prv.gz"))
UNTIMED = sorted(f"nas/{path.name}" for path in (DATA / "nas").glob("*.ti.txt.gz"))

RANGES = ((0.0, 1e-4), (0.0, 1e-8), (0.25, 4.0))
NETWORK = PRESETS["alpha-beta"].with_(latency=3.2137e-6, bandwidth=1.2347e9)
BUSY = NETWORK.with_(send_overhead=1.1e-6, receive_overhead=0.7e-6, cpu_factor=1.3)
NETWORKS = {"no overheads": NETWORK, "overheads": BUSY}


@pytest.fixture(scope="module")
def replayer_of() -> Callable[[Path], Replayer]:
    """The program of a trace from MPI_Init to MPI_Finalize, of convex runtime."""

    @cache
    def find(path: Path) -> Replayer:
        trace = trace_of(path, flop_rate=1e9 if ".ti." in path.name else None, rated=True)
        return Replayer(replace(from_trace(focused(trace)[0]), uneven=NONE_UNEVEN))

    return find


@pytest.mark.long(after=10)
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", [*OWN, *UNTIMED])
def test_planes_are_as_near_as_they_say_at_fresh_points(
    name: str, network: Network, replayer_of: Callable[[Path], Replayer]
) -> None:
    replayer = replayer_of(DATA / name)
    found = runtime_planes(Runtimes(replayer, network), *RANGES, error=1e-3)
    assert found.error <= 1e-3
    assert len(found.planes) < 70
    generator = random.Random(name)
    points = [
        tuple(low + (high - low) * generator.random() for low, high in RANGES) for _ in range(80)
    ]
    runs = replayer.scenarios([network_at(network, *point) for point in points])
    for point, run in zip(points, runs, strict=True):
        assert -1e-11 <= 1 - found(*point) / run.runtime <= found.error + 1e-11


@pytest.mark.parametrize("name", ["comd.4.prv.gz", "mix.4.prv.gz"])
def test_computing_as_fast_as_traced_leaves_the_planes_over_latency_and_bandwidth(
    name: str, replayer_of: Callable[[Path], Replayer]
) -> None:
    runtimes = Runtimes(replayer_of(DATA / name), BUSY)
    found = runtime_planes(runtimes, *RANGES, error=1e-3)
    alone = runtime_planes(runtimes, *RANGES[:2], (1.0, 1.0000001), error=1e-3)
    generator = random.Random(name)
    for _ in range(100):
        point = generator.random() * 1e-4, generator.random() * 1e-8
        assert found(*point) == pytest.approx(alone(*point), rel=1e-3)


@pytest.mark.parametrize("name", ["comd.4.prv.gz", "cg.S.2.prv.gz"])
def test_planes_are_the_runtime_where_they_are_to_be(
    name: str, replayer_of: Callable[[Path], Replayer]
) -> None:
    runtimes = Runtimes(replayer_of(DATA / name), NETWORK)
    here, outside = (3e-6, 1e-9), (1.0, 1e-9)
    found = runtime_planes(runtimes, *RANGES, error=0.1, exact=[here, outside])
    assert found(*here) == pytest.approx(runtimes.heights([here])[0], rel=1e-12)
    assert found == runtime_planes(runtimes, *RANGES, error=0.1, exact=[here])


def test_where_nothing_but_computing_has_a_price_all_scales_with_it(
    replayer_of: Callable[[Path], Replayer],
) -> None:
    runtimes = Runtimes(replayer_of(DATA / "comd.4.prv.gz"), NETWORK)
    found = runtime_planes(runtimes, *RANGES, error=1e-3)
    for plane in found.planes:
        assert plane.constant == plane.computing
    half = found(0.5 * 1e-5, 0.5 * 1e-9, 0.5)
    assert half == pytest.approx(0.5 * found(1e-5, 1e-9), rel=2e-3)
