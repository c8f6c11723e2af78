"""How long something took each time on each process, as a compressed text in a signature.

Where the runtime depends on who was slow when, no law of chance gives it back, and the file keeps
what was traced: relative times on a logarithmic scale of 128 steps to the octave, 0.27 % at most
beside the value, packed by zlib and written in the letters of base 85 (RFC 1924), which need no
escapes in TOML. `"4x150:..."` is of 4 processes and 150 executions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

from popmodel import arrays

STEPS = 128
"""Steps to an octave."""
_MIDDLE = 1 << 15  # the code of 1; 0 stands for nothing
_SHAPE = re.compile(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,8}):")


def encode(relative: NDArray[np.float64]) -> str:
    """Return the text of relative times."""
    if relative.ndim != 2 or not relative.size:
        raise ValueError("relative times need a process and an execution")
    if not (np.isfinite(relative).all() and (relative >= 0).all()):
        raise ValueError("relative times must be numbers, at least 0")
    codes = np.zeros(relative.shape, dtype=np.uint16)
    some = relative > 0
    scaled = np.round(np.log2(relative[some]) * STEPS) + _MIDDLE
    codes[some] = np.clip(scaled, 1, 2 * _MIDDLE - 1).astype(np.uint16)
    return f"{len(relative)}x{relative.shape[1]}:{arrays.packed(codes.astype('<u2'))}"


def decode(text: str) -> NDArray[np.float64]:
    """Return relative times from their text, float64[P, n]."""
    shape = _SHAPE.match(text)
    if shape is None:
        raise ValueError('recorded times begin with processes and executions, such as "4x150:"')
    processes, executions = int(shape[1]), int(shape[2])
    try:
        found = arrays.unpacked(text[shape.end() :], "<u2", processes * executions)
    except ValueError:
        raise ValueError("recorded times are damaged: they cannot be unpacked") from None
    if found is None:
        raise ValueError(f"recorded times are damaged: not {processes} x {executions} values")
    codes = found.reshape(processes, executions)
    relative = np.exp2((codes.astype(np.float64) - _MIDDLE) / STEPS)
    return np.where(codes > 0, relative, 0.0)
