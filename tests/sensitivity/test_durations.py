"""Histograms of the time of ranks in a region."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.sensitivity.region_gains import Durations, durations


def test_ranks_are_counted_by_their_time() -> None:
    found = durations(np.array([1.0, 1.1, 2.0, 1.55, 0.0]))
    assert found == Durations(1.0, 2.0, (2, 0, 1, 0, 1), 1)


def test_ranks_that_take_equally_long_are_one_bin() -> None:
    assert durations(np.array([0.1 + 0.2, 0.3])) == Durations(0.3, 0.1 + 0.2, (2,), 0)


def test_a_region_in_which_nobody_computes_has_no_bins() -> None:
    assert durations(np.zeros(3)) == Durations(0.0, 0.0, (), 3)


@pytest.mark.parametrize(("ranks", "bins"), [(2, 5), (27, 6), (1000, 20), (100_000, 30)])
def test_more_ranks_have_more_bins_up_to_a_limit(ranks: int, bins: int) -> None:
    found = durations(np.linspace(1.0, 2.0, ranks))
    assert len(found.counts) == bins
    assert sum(found.counts) == ranks
