"""Tests that need an extra of popmodel."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="pictures need the extra popmodel-hpc[plots]"
)
