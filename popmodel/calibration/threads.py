"""Small systems of equations on one thread: those of the library would only wait for each other.

A fit solves thousands of systems of some hundred unknowns. OpenBLAS, which comes with NumPy, shares
each among all cores and lets its threads spin until the last one has come: on a loaded machine that
takes ten times as long. How many threads it uses it only takes from the environment when it is
loaded, or from a call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from popmodel.values import dataclass

_FOLDERS = ("../numpy.libs", ".dylibs")  # of wheels, from the folder of the package
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


@dataclass(frozen=True)
class Threads:
    """How many threads a library uses."""

    library: ctypes.CDLL  # The library
    name: str  # Of its calls, with braces for what they do

    @property
    def count(self) -> int:
        """Threads that the next call uses at most."""
        return int(getattr(self.library, self.name.format("get_num_threads"))())

    def limit(self, count: int) -> None:
        """Let calls use no more."""
        getattr(self.library, self.name.format("set_num_threads"))(ctypes.c_int(count))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy solve on one thread for a while, where its library is one that can be told so."""
    found = of_numpy()
    before = found.count if found else 1
    if found is None or before == 1:
        yield
        return
    found.limit(1)
    try:
        yield
    finally:
        found.limit(before)


@cache
def of_numpy() -> Threads | None:
    """Return the library of NumPy; None if it is none of OpenBLAS, or not where wheels have it."""
    package = Path(np.__file__).parent
    files = [one for folder in _FOLDERS for one in (package / folder).glob("*openblas*")]
    for path in files:
        try:
            library = ctypes.CDLL(str(path))  # the one that is loaded already
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("set_num_threads")):
                return Threads(library, name)
    return None
