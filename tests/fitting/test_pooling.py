"""Parts of a program that grow alike share a law."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from popmodel.fitting.pooling import pooled
from popmodel.fitting.samples import Sample

RUNS = (1, 4, 16)


def part(truth: Callable[[int], float], error: float | None = 0.01) -> list[Sample]:
    return [Sample(p, 1, truth(p), {}, error) for p in RUNS]


def test_parts_that_grow_alike_have_one_law_and_a_size_each() -> None:
    found = pooled([part(lambda p: 3 / p), part(lambda p: 1.5 / p)], hints=["1/P"])
    assert found.law is not None and found.law.form == "1/P"
    assert found.law.at(64, 1).value == pytest.approx(4.5 / 64)
    assert [round(one.value, 9) for one in found.sizes if one] == [3 / 4, 1.5 / 4]
    assert found.own == (None, None)


def test_a_part_that_contradicts_the_sum_has_a_law_of_its_own() -> None:
    found = pooled([part(lambda p: 3 / p), part(lambda _: 0.2)], hints=["1/P"])
    assert found.law is not None and found.law.form == "1/P"
    assert found.sizes[1] is None
    assert found.own[1] is not None and found.own[1].form == "1"
    assert found.law.at(64, 1).value == pytest.approx(3 / 64, rel=0.01)


def test_small_parts_follow_the_sum_whatever_they_do() -> None:
    found = pooled([part(lambda p: 3 / p), part(lambda p: 0.0004 * p**0.5)], hints=["1/P"])
    assert found.own == (None, None)


def test_many_noisy_parts_do_not_add_up_to_too_much() -> None:
    rng = np.random.default_rng(5)
    parts = [
        [Sample(p, 1, 0.1 / p * math.exp(0.05 * rng.normal()), {}, 0.01) for p in RUNS]
        for _ in range(50)
    ]
    found = pooled(parts, hints=["1/P"])
    assert found.law is not None
    sizes = sum(one.value for one in found.sizes if one)
    foretold = found.law.at(256, 1).value / found.law.constants["a"].value * sizes
    own = sum(one.at(256, 1).value for one in found.own if one)
    assert foretold + own == pytest.approx(50 * 0.1 / 256, rel=0.05)


def test_parts_that_some_runs_lack_take_their_size_from_the_others() -> None:
    absent = [Sample(1, 1, 0.0), *part(lambda p: 0.4 / p)[1:]]
    found = pooled([part(lambda p: 3 / p), absent], hints=["1/P"])
    assert found.sizes[1] is not None
    assert found.sizes[1].value == pytest.approx(0.1)


def test_parts_that_are_never_there_have_neither_size_nor_law() -> None:
    found = pooled([part(lambda _: 0.0), part(lambda _: 0.0)], hints=["1/P"])
    assert (found.law, found.sizes, found.own) == (None, (None, None), (None, None))


def test_one_run_gives_the_hinted_law_and_all_sizes() -> None:
    found = pooled([[Sample(4, 1, 2.0)], [Sample(4, 1, 1.0)]], hints=["1/P"])
    assert found.law is not None and found.law.origin == "assumed"
    assert [one.origin for one in found.sizes if one] == ["trace", "trace"]


def test_parts_must_be_of_the_same_runs() -> None:
    with pytest.raises(ValueError, match="parts must have values of the same runs"):
        pooled([[Sample(4, 1, 2.0)], [Sample(8, 1, 1.0)]])
    with pytest.raises(ValueError, match="a pool needs at least one part"):
        pooled([])
