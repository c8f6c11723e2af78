"""What NumPy does with arrays, at less cost."""

from __future__ import annotations

import zlib
from base64 import b85decode, b85encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FOLDERS = ("../numpy.libs", ".dylibs")  # of wheels, from the folder of the package
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_SMALL = 1 << 16  # values up to which a table is quicker than to sort


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Sorted values, each once.

    As `numpy.unique`, which for nothing but values imports ``numpy.ma`` (9 ms) and makes a table of
    hashes, which takes longer than to sort.
    """
    return np.unique(values, return_counts=True)[0]


def among(values: NDArray[Any], few: Iterable[float]) -> NDArray[np.bool_]:
    """Whether each value is one of a few: as `numpy.isin`, which sorts and imports ``numpy.ma``."""
    found = np.zeros(values.shape, np.bool_)
    for one in few:
        found |= values == one
    return found


def numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted values, each once, and the one that each value is; small ones without sorting."""
    if values.min(initial=0) < 0 or values.max(initial=0) >= max(len(values), _SMALL):
        return np.unique(values, return_inverse=True)
    seen = np.bincount(values, minlength=1) > 0
    if not len(values):
        seen[:] = False
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[values]


def alike(*columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows of some columns of equal length, in order, and the one that each row is.

    As `numpy.unique` of rows, which compares them byte by byte: here columns are numbered one after
    the other, in a third of its time, or much less where values are small.
    """
    which = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, index = numbered(column)
        which = numbered(which * len(values) + index)[1]
    first = np.empty(which.max(initial=-1) + 1, np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return np.stack([column[first] for column in columns], axis=1), which


def spread(
    first: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row the numbers ``first .. first + count``: the row of each, and the number."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - (np.cumsum(count) - count - first)[row]


def quantiles(values: NDArray[np.float64], shares: Iterable[float]) -> list[float]:
    """Quantiles, linear between values, as `numpy.quantile` but in a tenth of its time."""
    ordered = np.sort(values)
    found = []
    for share in shares:
        position = share * (ordered.size - 1)
        below = int(position)
        above = min(below + 1, ordered.size - 1)
        step = ordered[above] - ordered[below]
        found.append(float(ordered[below] + (position - below) * step))
    return found


class ArrayRows:
    """Rows of numbers in the making, of which many may be alike but for a step."""

    def __init__(self, columns: int) -> None:
        self._whole: list[NDArray[np.float64]] = [np.empty((columns, 0))]
        self._last: list[Sequence[float]] = []
        self._before = 0

    def __len__(self) -> int:
        return self._before + len(self._last)

    def append(self, row: Sequence[float]) -> int:
        """Add a row; returns its number."""
        self._last.append(row)
        return len(self) - 1

    def again(self, count: int, times: int, step: Sequence[float] | None = None) -> None:
        """Add the last rows so many more times, each time a step further."""
        rows = self.array()
        last = rows[:, rows.shape[1] - count :]
        more = np.tile(last, times)
        if step is not None:
            more += np.outer(step, np.repeat(np.arange(1, times + 1), count))
        self._whole = [rows, more]
        self._before = rows.shape[1] + more.shape[1]

    def array(self) -> NDArray[np.float64]:
        """All rows, as columns: float64[columns, rows]."""
        columns = len(self._whole[0])
        last = np.array(self._last, np.float64).reshape(-1, columns).T
        self._whole = [np.concatenate([*self._whole, last], axis=1)]
        self._before, self._last = self._whole[0].shape[1], []
        return self._whole[0]


# Numbers as text in a file that people read: bytes of the same place together, compressed.


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


# Small systems of equations are solved on one thread. OpenBLAS, which comes with NumPy, shares each
# among all cores and lets its threads spin until the last one has come: a fit of thousands of
# systems of some hundred unknowns takes 25 times as long on a loaded machine of two cores. How many
# threads it uses it only takes from the environment when it is loaded, or from a call.


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


class BlasCalls(NamedTuple):
    """Of a library: how many threads its next call uses at most, and no more from now on."""

    threads: Callable[[], int]
    limit: Callable[[int], None]


@cache
def of_numpy() -> BlasCalls | None:
    """Return the calls of the library of NumPy; None if it is not the OpenBLAS of a wheel."""
    import ctypes

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
                return BlasCalls(get, put)
    return None
