"""From the samples of one or several run directories to a machine profile."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel.errors import FileError
from popmodel.machine import hardware, run_directory, samples
from popmodel.machine.calibration import calibrate
from popmodel.machine.compare import merge
from popmodel.machine.jobs import PATHS
from popmodel.machine.plan import Plan
from popmodel.machine.samples import Launch
from popmodel.machine.suite import Failure

Document = dict[str, Any]


def collect(
    folders: Sequence[Path], failures: Iterable[Failure] = ()
) -> tuple[Document, list[Path]]:
    """Make a profile of all samples in some directories.

    Parameters
    ----------
    folders : sequence of Path
        Run directories, or other directories with samples files.
    failures : iterable of Failure
        Launches that were given up, to be told in the profile.

    Returns
    -------
    document : dict
        The profile as JSON types, without the provenance of the command.
    paths : list of Path
        The samples files that it is made of.

    Raises
    ------
    FileError
        If there are no samples, or they are damaged.
    """
    paths: list[Path] = []
    for folder in folders:
        here = run_directory.all_samples(folder)
        if not here:
            what = "holds no samples (*.jsonl)" if folder.is_dir() else "is no directory"
            raise FileError(folder, what, hint="name a run directory, such as machine.samples")
        # A launch that was given up before its first sample leaves an empty file.
        paths += [path for path in here if path.stat().st_size]
    launches = samples.read(paths)
    _check_same_machine(launches)
    document = calibrate(launches)
    measurements = [_measurement(folder) for folder in folders]
    told = [f"{failure.where}: {failure.error.message}" for failure in failures]
    if measurements and told:
        measurements[-1]["failures"] = told
    document["provenance"] = {"measurements": measurements}
    for folder in folders:
        run = run_directory.find(folder)
        if run is not None:
            _add_absent(document, run.plan, told)
    return document, paths


def _check_same_machine(launches: Sequence[Launch]) -> None:
    """Refuse samples whose processor, MPI or OpenMP runtime differ."""
    seen: dict[str, tuple[str, str]] = {}
    for launch in launches:
        header = launch.header
        files = header.get("files")
        facts = {
            "processor": hardware.read(files).model if files else None,
            "MPI": header.get("mpi", {}).get("library"),
            "OpenMP runtime": header.get("openmp", {}).get("runtime"),
        }
        for what, value in facts.items():
            if value is None:
                continue
            before, path = seen.setdefault(what, (str(value), launch.path))
            if before != str(value):
                raise FileError(
                    launch.path,
                    f"{what} is {value}, but {before} in {path}",
                    hint="collect the samples of each machine into a profile of its own",
                )


def _measurement(folder: Path) -> dict[str, Any]:
    run = run_directory.find(folder)
    about: dict[str, Any] = {"samples": str(folder)}
    if run is not None:
        made = run.plan
        about |= {"mode": made.mode, "parts": list(made.parts), "ranks": made.ranks}
        about |= {"nodes": made.nodes, "seed": made.seed, "launches": len(made.launches)}
        about |= {"completed": run.is_completed, "with": dict(run.made_with)}
    return about


def _add_absent(document: Document, made: Plan, told: Sequence[str]) -> None:
    """Say why what was asked for is not there, where the samples alone do not tell."""
    absent: dict[str, str] = document.setdefault("absent", {})
    absent |= {path: why for path, why in made.left_out.items() if not _has(document, path)}
    for part in made.parts:
        if not any(_has(document, path) or path in absent for path in PATHS[part]):
            failed = told[0] if told else "no sample of it was taken"
            absent[PATHS[part][0]] = failed


def _has(document: Mapping[str, Any], path: str) -> bool:
    table: Any = document
    for key in path.split("."):
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True


def replace_parts(kept: Mapping[str, Any], fresh: Document, parts: Sequence[str]) -> Document:
    """Put newly measured parts into a profile in the place of its own; the rest is kept.

    Parameters
    ----------
    kept : mapping
        A profile as JSON types.
    fresh : dict
        The profile of the new measurement.
    parts : sequence of str
        What was measured; what the new profile lacks of it is gone.

    Raises
    ------
    DifferentMachines
        If the profiles are of different machines.
    """
    inside = [path for part in parts for path in PATHS[part]]
    sections = {path.split(".")[0] for path in inside}
    outside = [path for paths in PATHS.values() for path in paths if path not in inside]
    rest, picked = copy.deepcopy(dict(kept)), copy.deepcopy(fresh)
    for table, paths in ((rest, inside), (picked, outside)):
        for path in paths:
            _drop(table, path.split("."))
        table["absent"] = {
            path: why for path, why in table.get("absent", {}).items() if not _is_below(path, paths)
        }
    picked["quality"] = {
        name: one for name, one in fresh.get("quality", {}).items() if name in sections
    }
    merged = merge([rest, picked])
    before, after = (table.get("provenance", {}) for table in (kept, fresh))
    measurements = [*before.get("measurements", []), *after.get("measurements", [])]
    return merged | {"provenance": {**after, "measurements": measurements}}


def _drop(table: Document, keys: Sequence[str]) -> None:
    """Remove an entry of a tree, and the tables that are empty then."""
    first, *rest = keys
    if first not in table:
        return
    if rest:
        _drop(table[first], rest)
    if not rest or not table[first]:
        del table[first]


def _is_below(path: str, above: Iterable[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in above)
