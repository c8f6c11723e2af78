"""Parts of a program that grow alike share a law."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from popmodel.fit.common_law import pooled
from popmodel.fit.samples import Sample

RUNS = (1, 4, 16)


def part(truth: Callable[[int], float], error: float | None = 0.01) -> list[Sample]:
    return [Sample(p, 1, truth(p), {}, error) for p in RUNS]


def test_parts_that_grow_alike_have_one_law_and_a_size_each() -> None:
    (pool,) = pooled([part(lambda p: 3 / p), part(lambda p: 1.5 / p)], hints=["1/P"])
    assert pool.law.form == "1/P"
    assert pool.law.at(64, 1).value == pytest.approx(4.5 / 64)
    assert {i: round(one.value, 9) for i, one in pool.sizes.items()} == {0: 3 / 4, 1: 1.5 / 4}


def test_parts_that_grow_otherwise_have_another_law() -> None:
    parts = [part(lambda p: 3 / p), part(lambda _: 0.2), part(lambda _: 0.7), part(lambda p: 1 / p)]
    first, second = pooled(parts, hints=["1/P"])
    assert (first.law.form, set(first.sizes)) == ("1/P", {0, 3})
    assert (second.law.form, set(second.sizes)) == ("1", {1, 2})
    assert first.law.at(64, 1).value == pytest.approx(4 / 64, rel=0.01)


def test_parts_that_all_contradict_the_hint_share_another_law() -> None:
    parts = [part(lambda p: 1 / p + 0.4), part(lambda p: 2 / p + 0.8)]
    (pool,) = pooled(parts, hints=["1/P"])
    assert pool.law.form == "1/P + 1"


def test_small_parts_follow_the_law_they_agree_with_or_one_of_their_own() -> None:
    parts = [
        part(lambda p: 3 / p),
        part(lambda _: 0.2),
        part(lambda _: 0.0004),
        part(lambda p: 0.0001 * p**0.5),
    ]
    first, second, third = pooled(parts, hints=["1/P"])
    assert set(first.sizes) == {0}
    assert set(second.sizes) == {1, 2}
    assert set(third.sizes) == {3}


def test_parts_that_runs_divide_otherwise_have_the_law_of_their_sum() -> None:
    whole = [4 / p for p in RUNS]
    divided = (0.5, 0.2, 0.8)
    parts = [
        [Sample(p, 1, w * d, {}, 0.01) for p, w, d in zip(RUNS, whole, divided, strict=True)],
        [Sample(p, 1, w * (1 - d), {}, 0.01) for p, w, d in zip(RUNS, whole, divided, strict=True)],
        part(lambda _: 0.3),
    ]
    *_, pool = pooled(parts, hints=["1/P"])
    assert pool.law.form == "1/P"
    assert {i: round(one.value, 9) for i, one in pool.sizes.items()} == {0: 0.5, 1: 0.5}


def test_a_part_that_follows_no_law_says_so_and_has_a_wide_interval() -> None:
    wild = [Sample(p, 1, value, {}, 0.01) for p, value in zip(RUNS, (0.1, 2.0, 0.2), strict=True)]
    *_, pool = pooled([part(lambda p: 9 / p), wild], hints=["1/P"])
    assert pool.law.notes[0].startswith("runs contradict each other by ")
    for p, value in zip(RUNS, (0.1, 2.0, 0.2), strict=True):
        assert pool.law.at(p, 1).low < value < pool.law.at(p, 1).high
    assert pool.sizes[1].high > 4 * pool.sizes[1].low


def test_a_rough_law_of_what_grows_is_kept_where_the_hint_would_be_far_worse() -> None:
    def grown(size: float) -> float:
        return (size / 48) ** 3 * (1 if size < 80 else 2)  # out of a cache

    runs = [(p, n) for n in (48, 80) for p in (1, 2, 4)]
    steep = [Sample(p, 1, grown(n) / p, {"n": n}, 0.01) for p, n in runs]
    (pool,) = pooled([steep], hints=["1/P"])
    assert "n**3/P" in pool.law.form
    assert pool.law.error is not None
    assert pool.law.error > 0.15
    small, large = (pool.law.at(2, 1, {"n": n}) for n in (48, 80))
    assert large.value / small.value == pytest.approx((80 / 48) ** 3, rel=0.1)
    assert large.high / small.value > grown(80)  # the interval knows of the rest


def test_many_noisy_parts_do_not_add_up_to_too_much() -> None:
    rng = np.random.default_rng(5)
    parts = [
        [Sample(p, 1, 0.1 / p * math.exp(0.05 * rng.normal()), {}, 0.01) for p in RUNS]
        for _ in range(50)
    ]
    pools = pooled(parts, hints=["1/P"])
    foretold = sum(
        pool.law.at(256, 1).value
        / pool.law.constants["a"].value
        * sum(one.value for one in pool.sizes.values())
        for pool in pools
    )
    assert foretold == pytest.approx(50 * 0.1 / 256, rel=0.05)


def test_parts_that_some_runs_lack_take_their_size_from_the_others() -> None:
    absent = [Sample(1, 1, 0.0), *part(lambda p: 0.4 / p)[1:]]
    (pool,) = pooled([part(lambda p: 3 / p), absent], hints=["1/P"])
    assert pool.sizes[1].value == pytest.approx(0.4 / pool.law.reference["P"])


def test_parts_that_are_never_there_have_no_law() -> None:
    assert pooled([part(lambda _: 0.0), part(lambda _: 0.0)], hints=["1/P"]) == ()


def test_one_run_gives_the_hinted_law_and_all_sizes() -> None:
    (pool,) = pooled([[Sample(4, 1, 2.0)], [Sample(4, 1, 1.0)]], hints=["1/P"])
    assert pool.law.origin == "assumed"
    assert [one.origin for one in pool.sizes.values()] == ["trace", "trace"]


def test_parts_must_be_of_the_same_runs() -> None:
    with pytest.raises(ValueError, match="parts must have values of the same runs"):
        pooled([[Sample(4, 1, 2.0)], [Sample(8, 1, 1.0)]])
    with pytest.raises(ValueError, match="a pool needs at least one part"):
        pooled([])
