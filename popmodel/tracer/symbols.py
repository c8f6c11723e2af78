"""Functions in a program's file, by its symbol table: there without debugging data, too."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from popmodel.trace.regions import readable, without_arguments
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


# Names of C++ functions, by whichever of the tools for it there is.


_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_TOOLS = ("c++filt", "llvm-cxxfilt")
_DEMANGLING_PATIENCE = 20.0


def demangle(names: Sequence[str]) -> list[str]:
    """Names without their mangling, arguments and result: ``Mesh::split`` for ``_ZN4Mesh5splitEv``.

    What cannot be demangled, because it is no such name or nothing here can do it, stays as it is.
    """
    mangled = sorted({name for name in names if name.startswith("_Z")})
    plain = dict(zip(mangled, _by_library(mangled) or _by_tool(mangled), strict=True))
    return [without_arguments(plain[name]) if name in plain else name for name in names]


def _by_library(names: Sequence[str]) -> list[str] | None:
    """By the library that every C++ program is linked with; None if there is none."""
    function = _function()
    if function is None:
        return None
    made = []
    for name in names:
        status = ctypes.c_int(-1)
        text = function(name.encode(), None, None, ctypes.byref(status))
        if status.value == 0 and text:
            made.append(ctypes.string_at(text).decode("utf-8", "replace"))
            ctypes.CDLL(None).free(ctypes.c_void_p(text))
        else:
            made.append(name)
    return made


@cache
def _function() -> Any:
    for name in _LIBRARIES:
        try:
            function = ctypes.CDLL(name)["__cxa_demangle"]
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return function
    return None


def _by_tool(names: Sequence[str]) -> list[str]:
    tool = next(filter(None, map(shutil.which, _TOOLS)), None)
    if tool is None or not names:
        return list(names)
    try:
        done = subprocess.run(
            [tool],
            input="".join(f"{name}\n" for name in names),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEMANGLING_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return list(names)
    made = done.stdout.splitlines()
    return made if len(made) == len(names) else list(names)


# Functions and source lines of addresses, by a program's file.
#
# Names of functions come from its symbol table, which all programs have that were not stripped;
# lines
# from its debugging data (``-g``), by addr2line.


TOOLS = ("addr2line", "eu-addr2line", "llvm-addr2line")

_PATIENCE = 120.0  # seconds: programs with the debugging data of large libraries
_AT_ONCE = 1000  # addresses in a command
_LINE = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?")


@dataclass(frozen=True)
class SymbolPlace:
    """Where in a program an address is."""

    function: str | None = None  # As its author wrote it
    line: str | None = None  # Such as ``solver.c:42``


class SourceLines:
    """Finds functions and source lines, and remembers why it could not.

    Attributes
    ----------
    problem : str or None
        Why lines are missing that might have been found.
    """

    def __init__(self) -> None:
        self.problem: str | None = None

    def __call__(self, module: str, offsets: Sequence[int]) -> list[SymbolPlace]:
        """Find places in a program or library."""
        symbols = read_symbols(module)
        told = self._lines(module, offsets)
        names = [
            # Where a function was inlined into another, the line is in the inner one.
            (name if line else None) or (symbols(offset) if symbols else None)
            for offset, (name, line) in zip(offsets, told, strict=True)
        ]
        plain = iter(demangle([_mangled(name) for name in names if name]))
        return [
            SymbolPlace(readable(next(plain)) if name else None, line)
            for name, (_, line) in zip(names, told, strict=True)
        ]

    def _lines(self, module: str, offsets: Sequence[int]) -> list[tuple[str | None, str | None]]:
        """Function and line of each address, as the debugging data have them."""
        none: list[tuple[str | None, str | None]] = [(None, None)] * len(offsets)
        tool = next(filter(None, map(shutil.which, TOOLS)), None)
        if tool is None:
            self.problem = "no source lines: addr2line (binutils) not found"
            return none
        said: list[str] = []
        for begin in range(0, len(offsets), _AT_ONCE):
            try:
                done = subprocess.run(
                    [tool, "-f", "-e", module, *map(hex, offsets[begin : begin + _AT_ONCE])],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "LC_ALL": "C"},
                    timeout=_PATIENCE,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                self.problem = f"no source lines: {error}"
                return none
            said += done.stdout.decode("utf-8", "replace").splitlines()
            if done.returncode != 0:
                break
        if len(said) != 2 * len(offsets):
            self.problem = f"no source lines: {tool} cannot read {module}"
            return none
        return [
            (None if name.startswith("??") else name.strip(), _short(line))
            for name, line in zip(said[::2], said[1::2], strict=True)
        ]


def _mangled(name: str) -> str:
    """A name without what compilers add to it, which is in the way of demangling."""
    return readable(name) if name.startswith("_Z") else name


def _short(said: str) -> str | None:
    """File and line; None where the program was built without debugging data (``-g``)."""
    found = _LINE.fullmatch(said.strip())
    if found is None or found[1].startswith("??") or found[2] == "0":
        return None
    return f"{Path(found[1]).name}:{found[2]}"
