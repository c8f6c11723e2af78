"""Short names of runs: what a column is headed with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

_SUFFIXES = (".gz", ".prv")


def run_names(paths: Sequence[str]) -> list[str]:
    """A name per run: the file without its suffix, with as many folders as tell the runs apart.

    Runs of one and the same path are numbered.

    Examples
    --------
    >>> run_names(["a/run.prv", "b/run.prv.gz"])
    ['a/run', 'b/run']
    """
    parts = [_stem(PurePath(path)) for path in paths]
    names = [""] * len(paths)
    for index, own in enumerate(parts):
        others = [other for other in parts if other != own]
        depth = 1
        while depth < len(own) and any(other[-depth:] == own[-depth:] for other in others):
            depth += 1
        names[index] = "/".join(own[-depth:]).replace("//", "/")
    repeated = {name for name in names if names.count(name) > 1}
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in repeated:
            seen[name] = seen.get(name, 0) + 1
            names[index] = f"{name} #{seen[name]}"
    return names


def _stem(path: PurePath) -> tuple[str, ...]:
    name = path.name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return (*path.parts[:-1], name)
