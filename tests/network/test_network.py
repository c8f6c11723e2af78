"""Networks: what they refuse."""

from __future__ import annotations

import math

import pytest

from popmodel.base.errors import UsageError
from popmodel.network.network import Network


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"latency": -1e-6}, "latency must be at least 0 and finite, not -1e-06 s"),
        ({"latency": math.inf}, "latency must be at least 0 and finite, not inf s"),
        ({"bandwidth": 0.0}, "bandwidth must be above 0, not 0 B/s"),
        ({"bandwidth": math.nan}, "bandwidth must be above 0, not nan B/s"),
        ({"eager_threshold": -1.0}, "eager threshold must be at least 0, not -1 B"),
        ({"cpu_factor": 0.0}, "CPU factor must be above 0 and finite, not 0"),
        ({"rules": "loggp"}, "unknown rules 'loggp'"),
        ({"collectives": "tree"}, "unknown rule for collectives 'tree'"),
        ({"collective_cost": "square"}, "unknown cost factor for collectives 'square'"),
    ],
)
def test_values_that_no_network_has_are_refused(values: dict, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Network(**values)
    assert caught.value.message == message
