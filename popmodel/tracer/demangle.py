"""Names of C++ functions, by whichever of the tools for it there is."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

from popmodel.trace.function_names import without_arguments

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_TOOLS = ("c++filt", "llvm-cxxfilt")
_PATIENCE = 20.0


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
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return list(names)
    made = done.stdout.splitlines()
    return made if len(made) == len(names) else list(names)
