"""Numbers as text in a file that people read: bytes of the same place together, compressed."""

from __future__ import annotations

import zlib
from base64 import b85decode, b85encode
from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed(values: NDArray[Any]) -> str:
    """Return numbers as text; of neighbours the high bytes hardly vary, so they stand together."""
    planes = values.reshape(-1).view(np.uint8).reshape(-1, values.itemsize).T
    return b85encode(zlib.compress(np.ascontiguousarray(planes).tobytes(), 9)).decode("ascii")


def unpacked(text: str, type_: str, count: int) -> NDArray[Any] | None:
    """Return numbers from their text; None if they are not so many."""
    width = np.dtype(type_).itemsize
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(b85decode(text), width * count + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(found) != width * count or not unpacking.eof:
        return None
    planes = np.frombuffer(found, dtype=np.uint8).reshape(width, -1)
    return np.ascontiguousarray(planes.T).view(type_).reshape(-1)
