"""Replays share what they have in common."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from popmodel.base.errors import ReplayError
from popmodel.network.network import Network
from popmodel.simulator import Replayer
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.simulator.replayer import replays_once

TRACE = Path(__file__).parent.parent / "data" / "cg.S.2.prv.gz"


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
