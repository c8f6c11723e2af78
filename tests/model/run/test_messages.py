"""Where messages go."""

from __future__ import annotations

import numpy as np
from model.demo import machine, point

from popmodel.model.run.messages import ELSEWHERE, NOWHERE, ON_NODE


def test_places() -> None:
    here = point(machine(), 16)
    targets = np.full(16, -1)
    targets[:5] = [1, 8, 2, 16, 3]
    found = here.messages.places([targets])[0]
    assert found[:5].tolist() == [ON_NODE, ELSEWHERE, NOWHERE, NOWHERE, ON_NODE]
    assert not found[5:].any()
