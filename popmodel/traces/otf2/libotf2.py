"""OTF2's C library: where it is on this machine, and the file that an archive begins with."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from popmodel.base.errors import TraceError, UsageError

VARIABLE = "POPMODEL_OTF2"
"""Names the library, or the directory of an installation."""
ANCHOR = "traces.otf2"
"""Name of the file that an archive begins with, where only its directory is given."""
_NAMES = ("libotf2.so", *(f"libotf2.so.{number}" for number in range(20, 5, -1)))
_NEEDED = "OTF2_EvtReaderCallbacks_SetProgramBeginCallback"
"""A function that is there from version 2.3 on."""
_GET = "pip install 'popmodel-hpc[otf2]'"


def find_library() -> str:
    """Return the path of the library, by which it can be opened.

    It is the one that `VARIABLE` names, else one that the system finds (LD_LIBRARY_PATH), that of
    the Python package ``otf2``, or that of ``otf2-config``.

    Raises
    ------
    UsageError
        If there is none, or if it is too old or cannot be opened.
    """
    if told := os.environ.get(VARIABLE):
        folder = Path(told)
        files = [folder / part / name for part in ("lib", "lib64", ".") for name in _NAMES]
        path = next((str(file) for file in files if file.is_file()), told)
        return _checked(path, f"{VARIABLE}={told}")
    for name in _NAMES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return _checked(name, name)
    package = find_spec("_otf2")
    for folder in map(Path, (package and package.submodule_search_locations) or ()):
        for file in sorted(folder.glob("_otf2*.so")):
            return _checked(str(file), str(file))
    if config := shutil.which("otf2-config"):
        asked = subprocess.run([config, "--prefix"], capture_output=True, text=True, check=False)
        prefix = Path(asked.stdout.strip())
        for part in ("lib", "lib64"):
            if (file := prefix / part / _NAMES[0]).is_file():
                return _checked(str(file), str(file))
    raise UsageError(
        "OTF2's library is not installed, which reads and writes its archives",
        f"{_GET}, or name a libotf2.so of this machine with {VARIABLE}",
    )


def _checked(path: str, shown: str) -> str:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise UsageError(f"{shown}: cannot be opened as a library: {error}", _GET) from None
    if not hasattr(library, "OTF2_Reader_Open"):
        raise UsageError(f"{shown}: is not OTF2's library", f"name a libotf2.so, or {_GET}")
    if not hasattr(library, _NEEDED):
        raise UsageError(f"{shown}: is older than 2.3, which is needed", f"name another, or {_GET}")
    return path


def anchor_of(path: Path) -> Path:
    """Return the file that an archive begins with, given that or its directory."""
    anchor = path / ANCHOR if path.is_dir() else path
    try:
        with anchor.open("rb") as file:
            file.read(1)
    except FileNotFoundError:
        raise TraceError(path, "no such archive", hint=f"give its {ANCHOR}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TraceError(anchor, f"cannot be read: {reason}") from None
    return anchor
