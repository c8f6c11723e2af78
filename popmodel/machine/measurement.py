"""From what a user asks for to a plan with its programs, and from samples to a profile."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from popmodel import cache as caches
from popmodel.errors import FileError, PopmodelError, UsageError
from popmodel.machine import plan, run_directory
from popmodel.machine.build import build
from popmodel.machine.hardware import Hardware
from popmodel.machine.jobs import NODE_PARTS, PATHS
from popmodel.machine.plan import Plan
from popmodel.machine.run_directory import Run
from popmodel.machine.suite import Failure
from popmodel.machine.toolchain import Compiler, Mpi, ToolchainError, find_compiler, find_mpi
from popmodel.machine.topology import Cache, Topology

Document = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What a user asks for.

    Attributes
    ----------
    mode : str
        ``quick`` or ``full``.
    parts : tuple of str
        Parts of the suite.
    ranks : int or None
        MPI processes in all; as many as there are cores by default.
    nodes : int
        Nodes that they are on; more than one only in a job script.
    launcher : str or None
        What starts ranks; found out by default.
    """

    mode: str
    parts: tuple[str, ...]
    ranks: int | None = None
    nodes: int = 1
    launcher: str | None = None

    @property
    def wants_mpi(self) -> bool:
        """Whether a part needs MPI."""
        return not NODE_PARTS.issuperset(self.parts)

    @property
    def wants_node(self) -> bool:
        """Whether a part needs the program without MPI."""
        return not NODE_PARTS.isdisjoint(self.parts)


@dataclass(frozen=True)
class Tools:
    """What measures: the compiler of the node program, the MPI, and the programs once built."""

    compiler: Compiler
    mpi: Mpi | None
    programs: Mapping[str, Path]

    @property
    def identity(self) -> dict[str, str]:
        """What samples are made with: those made with something else are of another measurement."""
        made_with = {"host": os.uname().nodename, "compiler": self.compiler.version}
        if self.mpi is not None:
            made_with["mpi"] = f"{self.mpi.name} ({self.mpi.identity})"
        return made_with


def tools(request: Request, cores: int) -> Tools:
    """Find the compiler and the MPI, and build what the request needs.

    Parameters
    ----------
    request : Request
        What is asked for.
    cores : int
        Cores of the machine: on one there is nobody to send messages to.

    Raises
    ------
    ToolchainError
        If there is no compiler, or no MPI although a part needs one.
    BuildError
        If a program cannot be built.
    """
    mpi = None
    if request.wants_mpi and (request.ranks or cores) > 1:
        try:
            mpi = find_mpi(request.launcher)
        except ToolchainError as error:
            without = "popmodel bench --only core,memory,openmp,noise"
            hint = f"{error.hint}; what needs no MPI is measured by {without}"
            raise ToolchainError(error.message, hint) from error
    compiler = find_compiler(mpi)
    programs = {}
    if request.wants_node:
        programs["node"] = build("node", compiler)
    if mpi is not None:
        programs["mpi"] = build("mpi", mpi)
    return Tools(compiler, mpi, programs)


def make_plan(request: Request, machine: Hardware, seed: int | None = None) -> Plan:
    """Plan what a request asks for on nodes like this one.

    Parameters
    ----------
    request : Request
        What is asked for; its ranks on several nodes tell the cores of those.
    machine : Hardware
        This node.
    seed : int, optional
        Of the random orders; drawn by default.

    Raises
    ------
    UsageError
        If the ranks do not fit the nodes, or nothing is left to be measured.
    """
    topology = _topology(machine, request.nodes)
    ranks = request.ranks or topology.cores_per_node * request.nodes
    if ranks % request.nodes:
        raise UsageError(
            f"--ranks {ranks}: cannot be shared evenly by {request.nodes} nodes",
            "give the ranks of all nodes together, for example "
            f"--ranks {topology.cores_per_node * request.nodes}",
        )
    if request.nodes > 1:
        topology = replace(topology, cores_per_node=ranks // request.nodes)
    elif ranks > topology.cores_per_node and request.launcher is None:
        raise UsageError(
            f"--ranks {ranks}: this process may use {_cores(topology.cores_per_node)}",
            "ranks that share a core measure how they take turns; "
            f"use --ranks {topology.cores_per_node}",
        )
    made = plan.make(
        request.parts,
        request.mode,
        topology,
        ranks=ranks,
        nodes=request.nodes,
        smt=machine.smt,
        seed=random.SystemRandom().randrange(1 << 32) if seed is None else seed,
    )
    if not made.launches:
        why = "; ".join(dict.fromkeys(made.left_out.values()))
        raise UsageError(
            f"--only {','.join(request.parts)}: nothing of it can be measured here: {why}",
            f"this process may use {_cores(topology.cores_per_node)}; more are needed",
        )
    return made


def _topology(machine: Hardware, nodes: int) -> Topology:
    cores = machine.usable_cores
    return Topology(
        nodes=nodes,
        cores_per_node=cores,
        sockets=machine.sockets,
        domains=machine.domains,
        caches=tuple(
            Cache(cache.level, cache.bytes, min(cache.shared_by, cores)) for cache in machine.caches
        ),
        memory_per_node=machine.usable_memory,
    )


def _cores(number: int) -> str:
    return f"{number} core{'s' if number != 1 else ''}"


def default_folder() -> Path:
    """The run directory of a measurement whose profile is not written to a file."""
    return caches.folder() / "bench" / f"{os.uname().nodename}{run_directory.SUFFIX}"


def open_run(
    folder: Path, made: Plan, made_with: Mapping[str, str], *, force: bool, keep: bool
) -> Run:
    """Go on with an interrupted measurement, or begin a new one.

    Parameters
    ----------
    folder : Path
        The run directory.
    made, made_with
        What is to be measured, and with what.
    force : bool
        Whether another measurement that lies there may be thrown away.
    keep : bool
        Whether a completed one is given back as it is, instead of beginning anew: its profile may
        have been lost.

    Raises
    ------
    UsageError
        If another measurement lies there that may not be thrown away.
    FileError
        If the directory cannot be used.
    """
    try:
        found = run_directory.find(folder)
    except FileError:
        if not force:
            raise
        found = None
    if found is None or (found.is_completed and not keep):
        return run_directory.begin(folder, made, made_with)
    other = run_directory.difference(found, made, made_with)
    if other is None:
        return found
    if not force:
        raise UsageError(
            f"{folder}: holds samples of another measurement ({other})",
            "finish it with its own options, name another file with -o, or drop it with --force",
        )
    return run_directory.begin(folder, made, made_with)


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
    from popmodel.machine import samples
    from popmodel.machine.calibration import calibrate

    paths: list[Path] = []
    for folder in folders:
        here = run_directory.all_samples(folder)
        if not here:
            what = "holds no samples (*.jsonl)" if folder.is_dir() else "is no directory"
            raise FileError(folder, what, hint="name a run directory, such as machine.samples")
        paths += here
    document = calibrate(samples.read(paths))
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
    UsageError
        If the profiles are of different machines.
    """
    if kept["topology"] != fresh["topology"]:
        raise UsageError(
            "--only: the profile to be completed is of a machine with other cores or caches",
            "write the new measurement to a file of its own with -o",
        )
    merged: Document = copy.deepcopy(dict(kept))
    for path in (path for part in parts for path in PATHS[part]):
        _move(path.split("."), fresh, merged)
    inside = [path for part in parts for path in PATHS[part]]
    absent = {
        path: why for path, why in kept.get("absent", {}).items() if not _is_below(path, inside)
    }
    absent |= {
        path: why for path, why in fresh.get("absent", {}).items() if _is_below(path, inside)
    }
    sections = {path.split(".")[0] for path in inside}
    quality = {**kept.get("quality", {})}
    quality |= {name: one for name, one in fresh.get("quality", {}).items() if name in sections}
    before, after = (table.get("provenance", {}) for table in (kept, fresh))
    measurements = [*before.get("measurements", []), *after.get("measurements", [])]
    merged |= {"provenance": {**after, "measurements": measurements}}
    merged |= {name: table for name, table in (("absent", absent), ("quality", quality)) if table}
    return merged


def _move(keys: Sequence[str], source: Mapping[str, Any], target: Document) -> None:
    """Make an entry of a tree equal to that of another, absent if it is absent there."""
    first, *rest = keys
    if not rest:
        target.pop(first, None)
        if first in source:
            target[first] = copy.deepcopy(source[first])
    elif first in source or first in target:
        inner = dict(target.get(first, {}))
        _move(rest, source.get(first, {}), inner)
        if inner:
            target[first] = inner
        else:
            target.pop(first, None)


def _is_below(path: str, above: Iterable[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in above)


def nothing_measured(failures: Sequence[Failure]) -> PopmodelError:
    """The error for a measurement of which every launch failed."""
    first = failures[0]
    return PopmodelError(
        f"nothing could be measured: {first.where}: {first.error.message}", first.error.hint
    )
