"""Replays share what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from popmodel.api import replay as functions
from popmodel.network.network import Network
from popmodel.simulator import Replayer

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

    monkeypatch.setattr(functions, "Replayer", Counted)
    functions.replay(TRACE, latency=["1us", "20us"], metrics=True, against=against)
    assert len(seen) == 3  # two scenarios and the ideal network
