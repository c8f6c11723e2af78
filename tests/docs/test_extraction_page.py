"""The signature of the example trace, which the page on extraction predicts."""

from __future__ import annotations

import re

import pytest
from example_signature import FILE, text

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]\d+)?")


def test_the_signature_of_the_example_is_the_one_that_its_trace_gives() -> None:
    now, shown = text(), FILE.read_text()
    hint = "python tests/update_documents.py"
    assert _NUMBER.sub("#", now) == _NUMBER.sub("#", shown), hint
    # Sums of floating-point numbers end a little differently on other processors.
    for ours, theirs in zip(_NUMBER.findall(now), _NUMBER.findall(shown), strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=2e-3, abs=2e-12), hint
