"""Functions in a program's file, by its symbol table: there without debugging data, too."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from popmodel.values import dataclass

_SYMBOLS, _DYNAMIC = 2, 11  # types of sections
_FUNCTION, _INDIRECT = 2, 10  # types of symbols
_MOST = 1 << 30  # bytes of a table; those of the largest programs have some 100 MB


@dataclass(frozen=True)
class Symbols:
    """Functions of a file in order of their addresses."""

    # uint64[n]: Addresses as they are in the file.
    begin: NDArray[np.uint64]
    end: NDArray[np.uint64]
    place: NDArray[np.int64]  # int64[n]: Of the name in `names`
    names: bytes  # Names that end with a zero

    def __call__(self, address: int) -> str | None:
        """Name of the function that an address lies in."""
        row = int(np.searchsorted(self.begin, np.uint64(address), side="right")) - 1
        if row < 0 or address >= int(self.end[row]):
            return None
        at = int(self.place[row])
        return self.names[at : self.names.index(b"\0", at)].decode("utf-8", "replace") or None


def read_symbols(module: str) -> Symbols | None:
    """Functions of a program or library; None where its file has none that can be read."""
    try:
        with Path(module).open("rb") as file:
            return _read(file)
    except (OSError, struct.error, ValueError, IndexError, OverflowError):
        pass  # no file of the kind, or a damaged one: its functions have no names
    return None


_RUNTIMES = {"GOMP_parallel": "OpenMP", "__kmpc_fork_call": "OpenMP", "PMPI_Init": "MPI"}


def built_in(program: str) -> list[str]:
    """What a program brings along that the tracer would have to be in front of: OpenMP, MPI.

    Nothing where that is not known: for scripts, and for programs without symbols.
    """
    symbols = read_symbols(program)
    if symbols is None:
        return []
    names = {
        symbols.names[at : symbols.names.index(b"\0", at)].decode("utf-8", "replace")
        for at in symbols.place.tolist()
    }
    return sorted({what for name, what in _RUNTIMES.items() if name in names})


def _read(file: BinaryIO) -> Symbols | None:
    head = file.read(64)
    if head[:4] != b"\x7fELF" or len(head) < 64:
        return None
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    word = f"{order}{'Q' if wide else 'I'}"
    (begin,) = struct.unpack_from(word, head, 40 if wide else 32)
    size, count = struct.unpack_from(f"{order}HH", head, 58 if wide else 46)

    def part(begin: int, length: int) -> bytes:
        if not 0 <= length <= _MOST:
            raise ValueError("a table of impossible size")
        file.seek(begin)
        return file.read(length)

    form = f"{order}II4Q2I" if wide else f"{order}8I"
    sections = [
        struct.unpack_from(form, part(begin + number * size, size)) for number in range(count)
    ]
    for wanted in (_SYMBOLS, _DYNAMIC):
        for section in sections:
            if section[1] == wanted:
                names = sections[section[6]]
                table = part(section[4], section[5])
                found = _functions(table, part(names[4], names[5]) + b"\0", wide, order)
                if len(found.begin):
                    return found
    return None


def _functions(table: bytes, names: bytes, wide: bool, order: str) -> Symbols:
    fields = (
        [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"),
         ("size", "u8")]
        if wide
        else [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"),
              ("section", "u2")]
    )  # fmt: skip
    kind = np.dtype(fields).newbyteorder("<" if order == "<" else ">")
    rows = np.frombuffer(table[: len(table) // kind.itemsize * kind.itemsize], kind)
    type_ = rows["info"] & 15
    chosen = ((type_ == _FUNCTION) | (type_ == _INDIRECT)) & (rows["section"] != 0)
    rows = rows[chosen & (rows["name"] < len(names) - 1)]
    # Of several names of one function the one that others see: bindings are local 0, global 1.
    rows = rows[np.lexsort((-rows["info"].astype(np.int64) // 16, rows["value"]))]
    value = rows["value"].astype(np.uint64)
    first = np.append(True, value[1:] != value[:-1]) if len(value) else np.empty(0, bool)
    rows, begin = rows[first], value[first]
    size = rows["size"].astype(np.uint64)
    following = np.append(begin[1:], begin[-1:] + np.uint64(1 << 20))
    return Symbols(
        begin,
        np.where(size > 0, begin + size, following),
        rows["name"].astype(np.int64),
        names,
    )
