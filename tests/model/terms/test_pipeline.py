"""Pipelines against a replay of their messages."""

from __future__ import annotations

import itertools
from math import prod

import pytest

from popmodel.model.terms import pipeline
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.program import Op

IDEAL = PRESETS["ideal"]


def network(message: float, size: int) -> Network:
    """Senders are busy for the whole message."""
    return PRESETS["alpha-beta"].with_(
        latency=message / 2, bandwidth=2 * size / message, eager_threshold=0
    )


def sweep_time(extent: tuple[int, ...], blocks: int, sweep: float, on: Network, size: int) -> float:
    """Every process waits for the block before it along each dimension, computes, sends on."""
    builder = ProgramBuilder(prod(extent))
    ranks = {c: i for i, c in enumerate(itertools.product(*map(range, extent)))}
    sent: dict[tuple[int, int, int], int] = {}
    for here, rank in ranks.items():
        for d in range(len(extent)):
            there = tuple(x + (i == d) for i, x in enumerate(here))
            for k in range(blocks if there in ranks else 0):
                sent[rank, ranks[there], k] = builder.message(rank, ranks[there], size, tag=k)
    for here, rank in ranks.items():
        before, after = (
            [
                ranks[c]
                for d in range(len(extent))
                if (c := tuple(x + by * (i == d) for i, x in enumerate(here))) in ranks
            ]
            for by in (-1, 1)
        )
        for k in range(blocks):
            for source in before:
                builder.do(rank, Op.POST, sent[source, rank, k])
        for k in range(blocks):
            for source in before:
                builder.do(rank, Op.WAIT_RECEIVE, sent[source, rank, k])
            builder.compute(rank, sweep / blocks)
            for target in after:
                builder.do(rank, Op.SEND, sent[rank, target, k])
    return replay(builder.build(), on).runtime


@pytest.mark.parametrize("extent", [(1,), (2,), (7,), (3, 4), (1, 5), (2, 3, 2)])
@pytest.mark.parametrize("blocks", [1, 3, 10])
def test_an_ideal_network_shows_the_fill(extent: tuple[int, ...], blocks: int) -> None:
    replayed = sweep_time(extent, blocks, 1.0, IDEAL, 8)
    assert pipeline.ideal_time(extent, blocks, 1.0) == pytest.approx(replayed, rel=1e-9)


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("blocks", [1, 4, 16])
def test_messages_of_a_chain_add_up(processes: int, blocks: int) -> None:
    message = 0.01
    replayed = sweep_time((processes,), blocks, 1.0, network(message, 1000), 1000)
    modelled = pipeline.ideal_time((processes,), blocks, 1.0) + pipeline.transfer_time(
        (processes,), blocks, message
    )
    assert modelled == pytest.approx(replayed, rel=1e-9)


def test_serialisation_of_a_chain_is_that_of_the_textbook() -> None:
    assert 1.0 / pipeline.ideal_time((8,), 16, 1.0) == pytest.approx(16 / 23)
