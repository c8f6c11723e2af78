"""Small systems of equations on one thread: those of the library would only wait for each other.

A fit solves thousands of systems of some hundred unknowns. OpenBLAS, which comes with NumPy, shares
each among all cores and lets its threads spin until the last one has come: with 30 runs on a loaded
machine of two cores that takes 25 times as long. How many threads it uses it only takes from the
environment when it is loaded, or from a call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

_FOLDERS = ("../numpy.libs", ".dylibs")  # of wheels, from the folder of the package
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy solve on one thread for a while, where its library is one that can be told so."""
    calls = of_numpy()
    before = calls.threads() if calls else 1
    if calls is None or before == 1:
        yield
        return
    calls.limit(1)
    try:
        yield
    finally:
        calls.limit(before)


class Calls(NamedTuple):
    """Of a library: how many threads its next call uses at most, and no more from now on."""

    threads: Callable[[], int]
    limit: Callable[[int], None]


@cache
def of_numpy() -> Calls | None:
    """Return the calls of the library of NumPy; None if it is not the OpenBLAS of a wheel."""
    package = Path(np.__file__).parent
    for path in (one for folder in _FOLDERS for one in (package / folder).glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(path))  # the one that is loaded already
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("set_num_threads")):
                get, put = (
                    getattr(library, name.format(f"{do}_num_threads")) for do in ("get", "set")
                )
                return Calls(get, put)
    return None
