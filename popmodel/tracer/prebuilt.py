"""Libraries that were built before, for machines without a compiler.

Compute nodes often have none: what `popmodel trace --build-only` has built on a login node is found
there in the cache, by a file beside each library that says what it is for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from popmodel import files
from popmodel.host.build import PROGRAMS, TRACER, is_as_built, tracer_sources
from popmodel.host.toolchain import Compiler, Mpi

_NAME = "made-for.json"


@dataclass(frozen=True)
class Kept:
    """A library that is there."""

    path: Path  # The library
    compiler: Compiler  # What linked it
    mpi: Mpi | None  # The MPI that it is for
    cost: Path | None  # The program that measures what recording costs


def keep(kept: Kept) -> None:
    """Say beside a library what it is for, where that can be written."""
    said = {
        "sources": tracer_sources(),
        "compiler": kept.compiler.version,
        "mpi": None if kept.mpi is None else [kept.mpi.library, kept.mpi.version],
        "cost": None if kept.cost is None else str(kept.cost),
    }
    path = kept.path.with_name(_NAME)
    text = json.dumps(said, allow_nan=False)
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            files.write_text(path, text)
    except OSError:
        pass  # a cache that can be read only: it serves those who have a compiler


def find(
    open_mpi: bool | None, environment: Mapping[str, str], *, for_mpi: bool = False
) -> Kept | None:
    """Find the library of this popmodel that was built last."""
    if environment.get("MPICC") or environment.get("CC"):
        return None
    fitting = [
        (path.stat().st_mtime, kept) for path, kept in _all() if _fits(kept.mpi, open_mpi, for_mpi)
    ]
    # One for an MPI serves a program without; the other way round it does not.
    return max(fitting, key=lambda each: (each[1].mpi is not None, each[0]), default=(0, None))[1]


def _fits(mpi: Mpi | None, open_mpi: bool | None, for_mpi: bool) -> bool:
    if mpi is None:
        return not for_mpi and open_mpi is None
    return open_mpi is None or (mpi.library == "Open MPI") == open_mpi


def _all() -> Iterator[tuple[Path, Kept]]:
    sources = tracer_sources()
    for path in sorted(files.cache_folder(PROGRAMS).glob(f"*/{_NAME}")):
        library = path.with_name(TRACER)
        if files.doubt_of_cache(PROGRAMS, path.parent.name) or not is_as_built(library):
            continue
        try:
            if files.doubt_of_file(path.stat()):
                continue
            said = json.loads(path.read_text(encoding="utf-8"))
            if said["sources"] != sources:
                continue
            compiler = Compiler((), str(said["compiler"]), "")
            mpi = None if said["mpi"] is None else _mpi(compiler, *map(str, said["mpi"]))
            cost = None if said["cost"] is None else Path(said["cost"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it is as if there were none
        yield library, Kept(library, compiler, mpi, cost if cost and is_as_built(cost) else None)


def _mpi(compiler: Compiler, library: str, version: str) -> Mpi:
    return Mpi(compiler, (), library, version, identity="", origin="user")
