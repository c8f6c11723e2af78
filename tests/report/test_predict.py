"""The screen of a prediction, on documents that no bundled default gives."""

from __future__ import annotations

import pytest

from popmodel.machine import profile
from popmodel.model import signature
from popmodel.model.predict import predict
from popmodel.report.predict import screen
from popmodel.report.terminal import Style


@pytest.mark.parametrize(
    "name", ["memory.bsat", "core.freq", "net.inter.classes.alpha", "openmp.parallel_for.seconds"]
)
def test_the_origin_of_what_is_doubtful_is_told(name: str) -> None:
    run = predict(signature.load("cannon"), profile.load(profile.DEFAULT_PRESET), 64, 4, draws=0)
    document = {**run.to_dict(), "doubtful": {name: 0.5}}
    lines = screen(document, Style(100), ["hybrid-additive"])
    assert f"doubtful: {name} (preset), 50 % of the variance of the runtime" in lines
