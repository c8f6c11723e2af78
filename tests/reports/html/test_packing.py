"""Arrays as text."""

import zlib
from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from popmodel.reports.html.packing import pack, pack_text, unpack_text

TYPES = ("uint8", "int32", "float64")


@given(st.sampled_from(TYPES).flatmap(lambda name: arrays(name, st.integers(0, 50))))
def test_arrays_are_read_back_as_the_page_reads_them(values: np.ndarray) -> None:
    packed = pack(values)
    data = zlib.decompress(b64decode(packed.text))
    planes = np.frombuffer(data, np.uint8).reshape(packed.planes, -1)
    read = np.ascontiguousarray(planes.T).view(np.dtype(packed.type).newbyteorder("<"))
    assert packed.type == values.dtype.name
    assert read.reshape(-1).tobytes() == values.tobytes()


def test_numbers_that_no_browser_has_arrays_of_are_refused() -> None:
    with pytest.raises(ValueError, match="a page has no arrays of int64"):
        pack(np.zeros(3, np.int64))


@given(st.text())
def test_texts_are_read_back(text: str) -> None:
    assert unpack_text(pack_text(text)) == text


@pytest.mark.parametrize("text", ["", "eJw", "!", "aGVsbG8=", pack_text("x" * 99)[:-8]])
def test_texts_that_are_damaged_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        unpack_text(text)
