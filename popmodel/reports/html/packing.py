"""What stands deflated in a page: arrays as text, and what is folded up.

The content of every ``<details class="detail">`` is most of the text, and seldom opened. It is
taken out and put into one text, in order; page.js puts it back before anything is drawn. Without
scripts only the summaries are there, with a line that says so.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


LARGEST = 256 << 20
_TYPES = {"uint8", "int32", "float64"}


@dataclass(frozen=True)
class Packed:
    """An array as text."""

    type: str  # Of its numbers, as NumPy calls it, little-endian
    # Into how many planes the bytes of the numbers are divided: all first bytes, all second ones.
    planes: int
    text: str  # The bytes, compressed (zlib) and in base64


def pack(values: NDArray[Any]) -> Packed:
    """Return an array as text; of neighbours the high bytes hardly vary, so they stand together."""
    if values.dtype.name not in _TYPES:
        raise ValueError(f"a page has no arrays of {values.dtype.name}")
    flat = np.ascontiguousarray(values).reshape(-1)
    little = flat.astype(flat.dtype.newbyteorder("<"), copy=False)
    planes = little.view(np.uint8).reshape(-1, little.itemsize).T
    return Packed(
        values.dtype.name, little.itemsize, _deflated(np.ascontiguousarray(planes).tobytes())
    )


def pack_text(text: str) -> str:
    """Return a text, compressed (zlib) and in base64."""
    return _deflated(text.encode())


def unpack_text(text: str) -> str:
    """Return the text of `pack_text`."""
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(b64decode(text, validate=True), LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacking.eof:
        raise ValueError("incomplete, or too large")
    return found.decode()


def _deflated(data: bytes) -> str:
    return b64encode(zlib.compress(data, 9)).decode("ascii")


_DETAILS = re.compile(
    r'<details class="detail"([^>]*)>\s*(<summary>.*?</summary>)((?:(?!</?details).)*)</details>',
    re.DOTALL,
)
_PLACE = "</main>\n"


def folded(text: str) -> str:
    """Return a page without the contents of its details, which stand in one text after them."""
    contents: list[str] = []

    def take(found: re.Match[str]) -> str:
        attributes, summary, content = found.groups()
        contents.append(content)
        return (
            f'<details class="detail" data-folded="{len(contents) - 1}"{attributes}>'
            f"{summary}</details>"
        )

    left = _DETAILS.sub(take, text)
    if not contents:
        return text
    packed = pack_text(json.dumps(contents, allow_nan=False))
    element = f'<script type="text/plain" id="folded">{packed}</script>\n'
    return left.replace(_PLACE, f"{_PLACE}{element}", 1)
