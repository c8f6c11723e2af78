"""Replays share what they have in common."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import ReplayError
from popmodel.network.network import Network
from popmodel.sensitivity import scenarios
from popmodel.simulator import Replayer
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.simulator.replayer import replays_once

TRACE = Path(__file__).parent.parent / "data" / "cg.S.2.prv.gz"


@pytest.mark.parametrize("against", ["first", "ideal"])
def test_scenarios_and_baseline_share_one_ideal_replay(
    against: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Counted(Replayer):
        def run(self, network: Network, **options: Any) -> Any:
            seen.append(network)
            return super().run(network, **options)

        def scenarios(self, networks: Any) -> Any:
            given = list(networks)
            found = super().scenarios(given)
            seen[:] = given
            return found

    monkeypatch.setattr(scenarios, "Replayer", Counted)
    popmodel.whatif(TRACE, latency=["1us", "20us"], metrics=True, against=against)
    assert len(seen) == 4  # two scenarios, the ideal network, and one that is slow


def test_where_one_of_many_replays_stops_the_others_have_results() -> None:
    program = ProgramBuilder(2)
    there, back = program.message(0, 1, 1000), program.message(1, 0, 1000)
    for p, sent, received in ((0, there, back), (1, back, there)):
        program.do(p, Op.SEND, sent)
        program.do(p, Op.RECEIVE, received)
    eager, waits = Network(eager_threshold=math.inf), Network(eager_threshold=0)
    once = replays_once(Replayer(program.build()), [eager, waits])
    assert once(eager).runtime == 0
    with pytest.raises(ReplayError, match="deadlock"):
        once(waits)
