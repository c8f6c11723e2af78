"""Numbers packed as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.arrays import packed, unpacked


@given(st.lists(st.floats(width=32, allow_nan=False)), st.sampled_from(["<f4", "<f8"]))
def test_numbers_are_what_they_were(numbers: list[float], type_: str) -> None:
    values = np.array(numbers, dtype=type_)
    found = unpacked(packed(values), type_, len(values))
    assert found is not None
    assert found.tolist() == values.tolist()


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_them_is_told(count: int) -> None:
    assert unpacked(packed(np.arange(3, dtype="<u2")), "<u2", count) is None


@pytest.mark.parametrize("text", ["no text of base 85 \x7f", "00000", "é"])
def test_what_cannot_be_unpacked_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        unpacked(text, "<u2", 3)
