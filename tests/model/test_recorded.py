"""Recorded times come back within half a step of their scale, and damage is named."""

import zlib
from base64 import b85encode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from popmodel.model.kinds.spread import STEPS, decode, encode

shapes = st.tuples(st.integers(1, 5), st.integers(1, 20))


@given(arrays(np.float64, shapes, elements=st.just(0.0) | st.floats(1e-9, 1e6)))
def test_values_come_back_within_half_a_step(relative):
    found = decode(encode(relative))
    assert found.shape == relative.shape
    assert ((found == 0) == (relative == 0)).all()
    some = relative > 0
    assert np.abs(np.log2(found[some] / relative[some])).max(initial=0) <= 0.5 / STEPS + 1e-9


def test_the_text_needs_no_escapes_and_is_short():
    rng = np.random.default_rng(1)
    text = encode(rng.lognormal(0, 0.1, (16, 200)))
    assert not set(text) & set('"\\\n')
    assert len(text) < 2 * 16 * 200


@pytest.mark.parametrize("bad", [[[-1.0]], [[np.nan]], [[np.inf]]])
def test_what_is_no_time_is_refused(bad):
    with pytest.raises(ValueError, match="must be numbers, at least 0"):
        encode(np.array(bad))


@pytest.mark.parametrize("text", ["1x2:!!\x00", "1x2:abcde", encode(np.ones((1, 2)))[:-3]])
def test_a_damaged_text_is_refused(text):
    with pytest.raises(ValueError, match="damaged"):
        decode(text)


@pytest.mark.parametrize("size", [3, 5, 1_000_000])
def test_another_number_of_values_is_refused(size):
    packed = b85encode(zlib.compress(bytes(size))).decode()
    with pytest.raises(ValueError, match="not 1 x 2 values"):
        decode("1x2:" + packed)
