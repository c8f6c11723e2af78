"""What waves pay, and what of it is not paid again, against sweeps that run event by event."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.wavefronts import Sweep, runtime

from popmodel.model.terms import pipeline
from popmodel.model.terms.pipeline import Front, Fronts


def fronts(extent: tuple[int, ...], sweep: Sweep) -> Fronts:
    """One message per dimension and block, all of the same time, whose sender is busy with it."""
    found, earlier = {}, 0.0
    for dim, way in enumerate(sweep.ways):
        if way and extent[dim] > 1:
            hops = (extent[dim] - 1) * (sweep.message + earlier)
            found[dim, way] = pipeline.front(
                extent[dim], sweep.blocks, sweep.seconds, hops, sweep.overhead
            )
            earlier += sweep.overhead
    return found


def modelled(extent: tuple[int, ...], sweeps: list[Sweep]) -> float:
    total: float = 0.0
    before: Fronts = {}
    for sweep in sweeps:
        mine = fronts(extent, sweep)
        waits, sends = pipeline.waiting(mine, before), pipeline.transfer(mine, before)
        total += sweep.seconds + float(waits) + float(sends)
        before = pipeline.after(mine, before)
    return total


@pytest.mark.parametrize("extent", [(1,), (2,), (7,), (3, 4), (1, 5), (2, 3, 2)])
@pytest.mark.parametrize("blocks", [1, 3, 10])
@pytest.mark.parametrize("overhead", [0.0, 0.01, 0.1])
def test_one_sweep(extent: tuple[int, ...], blocks: int, overhead: float) -> None:
    sweep = Sweep((1,) * len(extent), blocks, 1.0, latency=0.1, overhead=overhead)
    assert modelled(extent, [sweep]) == pytest.approx(runtime(extent, [sweep]), rel=1e-9)


def test_serialisation_of_a_chain_is_that_of_the_textbook() -> None:
    (one,) = fronts((8,), Sweep((1,), 16, 1.0, latency=0.0)).values()
    assert 1.0 / (1.0 + one.filling) == pytest.approx(16 / 23)


WAYS = [
    tuple(ways) for ways in itertools.product((-1, 0, 1), repeat=3) if any(ways)
]  # all corners, and sweeps that do not cross all dimensions


ORDERS = st.lists(st.tuples(st.sampled_from(WAYS), st.integers(1, 5)), min_size=1, max_size=6)
EXTENTS = st.sampled_from([(2, 3, 2), (4, 1, 3), (1, 5, 1)])


@given(ORDERS, EXTENTS, st.sampled_from([0.0, 0.2]))
def test_successive_sweeps_in_any_order(
    order: list[tuple[tuple[int, ...], int]], extent: tuple[int, ...], latency: float
) -> None:
    """Blocks that take as long: nothing is waited for that the law does not know."""
    sweeps = [Sweep(ways, n, float(n), latency) for ways, n in order]
    assert modelled(extent, sweeps) == pytest.approx(runtime(extent, sweeps), rel=1e-9)


@given(ORDERS, EXTENTS)
def test_senders_that_are_busy_take_at_most_as_long(
    order: list[tuple[tuple[int, ...], int]], extent: tuple[int, ...]
) -> None:
    """The longest path need not meet the most messages in all dimensions."""
    sweeps = [Sweep(ways, n, float(n), 0.1, overhead=0.1) for ways, n in order]
    found, truth = modelled(extent, sweeps), runtime(extent, sweeps)
    assert truth * (1 - 1e-9) <= found <= truth * 1.05


@given(
    st.lists(
        st.tuples(st.sampled_from([1, -1]), st.integers(1, 5), st.floats(0.1, 10.0)),
        min_size=1,
        max_size=6,
    )
)
def test_of_blocks_that_differ_the_longest_fill(order: list[tuple[int, int, float]]) -> None:
    sweeps = [Sweep((way,), blocks, seconds, 0.0) for way, blocks, seconds in order]
    assert modelled((5,), sweeps) == pytest.approx(runtime((5,), sweeps), rel=1e-9)


@pytest.mark.parametrize("ways", [(1,), (-1,)])
def test_sweeps_the_same_way_fill_once_and_back_anew(ways: tuple[int, ...]) -> None:
    sweep = Sweep(ways, 4, 1.0, 0.0)
    back = Sweep((-ways[0],), 4, 1.0, 0.0)
    assert modelled((5,), [sweep] * 10) == pytest.approx(10 + 4 / 4)
    assert modelled((5,), [sweep, back] * 5) == pytest.approx(10 + 10 * 4 / 4)


def test_what_is_executed_sometimes_is_paid_on_average() -> None:
    one, other = (
        {(0, 1): Front(filling=4.0, hops=2.0)},
        {(0, 1): Front(filling=2.0), (1, 1): Front()},
    )
    mixed = pipeline.sometimes(0.25, one, other)
    assert mixed == {(0, 1): Front(filling=2.5, hops=0.5), (1, 1): Front()}


@pytest.mark.parametrize(
    ("gap", "meanwhile", "expected"), [(0.5, 1.0, 0.2), (3.0, 1.0, 2.0), (9.0, 1.0, 5.0)]
)
def test_a_port_that_needs_longer_than_the_computation(
    gap: float, meanwhile: float, expected: float
) -> None:
    assert pipeline.sending_time(5.0, gap, meanwhile, 0.2) == pytest.approx(expected)
