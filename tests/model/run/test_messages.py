"""Where messages go."""

import numpy as np
from model.demo import machine, point

from popmodel.model.run.operations import ELSEWHERE, NOWHERE, ON_NODE
from popmodel.model.terms.message import Traffic


def test_places() -> None:
    here = point(machine(), 16)
    targets = np.full(16, -1)
    targets[:5] = [1, 8, 2, 16, 3]
    found = here.messages.places([targets])[0]
    assert found[:5].tolist() == [ON_NODE, ELSEWHERE, NOWHERE, NOWHERE, ON_NODE]
    assert not found[5:].any()


def test_exchange_takes_the_slowest_tier() -> None:
    messages = point(machine(), 16).messages
    inside, leaving, both, nothing = (
        messages.exchange(1000.0, Traffic(staying, leaving, chain=2))
        for staying, leaving in ((3, 0), (0, 1), (3, 1), (0, 0))
    )
    assert 0 < inside < leaving
    assert both == leaving
    assert nothing == 0.0
