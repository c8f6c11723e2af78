"""A transfer that ends inside a wait that is there anyway costs nothing.

Against a simulation in which every process has a clock and nothing else is shared with the model:
a step is computation, an exchange with the neighbours on a ring, and perhaps a meeting of all.
"""

import math

import numpy as np
import pytest
from model.demo import ALPHA, BETA, flat, program
from numpy.typing import NDArray

from popmodel.model.predictor import Study
from popmodel.model.replayed_run import ReplayAgreement

PROCESSES, STEPS, WORK = 16, 40, 64e-6
EXCHANGES = {
    "halo": '{ halo = { width = 1, bytes_per_cell = "m", pack = "none" } }',
    "shifts": '{ shift = { dim = 0, by = 1, bytes = "m" } }, '
    '{ shift = { dim = 0, by = -1, bytes = "m" } }',
}
MEETING = '{ collective = { op = "barrier" } }'
SPREADS = [(0.1, 0.0), (0.0, 0.1), (0.05, 0.1)]  # persistent, transient
SIZES = [0, 4000, 16000, 60000]
"""A message takes 1 to 61 us, the slowest process 11 us longer than the average one."""


def replays(
    exchange: str, size: float, spread: tuple[float, float], *, meet: bool
) -> list[ReplayAgreement]:
    body = [
        "{ parallel = { trip = 64, inner = 1000, flops = 2 } }",
        EXCHANGES[exchange],
        *([MEETING] if meet else []),
    ]
    signature = program(
        f"[[program]]\nloop = {{ count = {STEPS}, body = [{', '.join(body)}] }}\n",
        decomp='global = [16]\ngrid = ["P"]\nperiodic = true',
        params=f"m = {size}",
        imbalance=f"persistent_cv = {spread[0]}\ntransient_cv = {spread[1]}",
    )
    studies = [Study(signature, flat(PROCESSES), {}, 0, seed) for seed in range(6)]
    return [study.replay(study.admit(PROCESSES, 1)) for study in studies]


def clocks(
    exchange: str, size: float, spread: tuple[float, float], *, meet: bool, free: bool
) -> float:
    """Mean runtime of many random programs."""
    rng = np.random.default_rng(1)
    runs = 400
    lasting = spread[0] * rng.standard_normal((runs, PROCESSES))
    now = np.zeros((runs, PROCESSES))
    latency, gap = (0.0, 0.0) if free else (ALPHA, BETA * size)

    def of(neighbour: int, time: float) -> NDArray[np.float64]:
        return np.roll(now, neighbour, axis=1) + time

    for _ in range(STEPS):
        turn = spread[1] * rng.standard_normal((runs, PROCESSES))
        now = now + WORK * (1 + lasting + turn)
        if exchange == "halo":  # the message up leaves after the one down
            now = np.maximum(now, np.maximum(of(-1, latency + gap), of(1, latency + 2 * gap)))
        else:
            now = np.maximum(now, of(1, latency + gap))
            now = np.maximum(now, of(-1, latency + gap))
        if meet:
            all_of_them = now.max(axis=1, keepdims=True) + math.log2(PROCESSES) * latency
            now = np.broadcast_to(all_of_them, now.shape).copy()
    return float(now.max(axis=1).mean())


@pytest.mark.long(after=4)
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("meet", [True, False])
def test_a_replay_takes_as_long_as_clocks_of_all_processes(
    exchange: str, spread: tuple[float, float], size: float, meet: bool
) -> None:
    ideal, runtime = (
        clocks(exchange, size, spread, meet=meet, free=free) for free in (True, False)
    )
    found = replays(exchange, size, spread, meet=meet)
    assert np.mean([one.replay.ideal for one in found]) == pytest.approx(ideal, rel=0.006)
    assert np.mean([one.replay.runtime for one in found]) == pytest.approx(runtime, rel=0.006)
    closed = found[0].closed_form
    if meet:  # nobody's transfer ends before the slowest one is there
        assert closed.runtime == pytest.approx(runtime, rel=0.003)
    else:  # an upper bound: all wait for the slowest, and every message counts
        assert runtime * 0.997 < closed.runtime < 1.12 * runtime
        assert closed.runtime - closed.ideal > 0.98 * (runtime - ideal)


def test_where_the_slowest_is_slow_in_every_step_short_messages_cost_nothing() -> None:
    """The neighbours' messages have arrived when it is done; the closed form charges them."""
    found = replays("halo", 0, (0.1, 0.0), meet=False)[0]
    transfer, charged = (
        course.runtime - course.ideal for course in (found.replay, found.closed_form)
    )
    assert charged == pytest.approx(STEPS * ALPHA)
    assert transfer < 0.1 * charged
