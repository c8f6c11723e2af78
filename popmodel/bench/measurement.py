"""From what a user asks for to a plan, the programs for it, and the place of its samples."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from popmodel import files
from popmodel.bench import plan, run_directory
from popmodel.bench.plan import BenchPlan
from popmodel.bench.run_directory import StoredMeasurement
from popmodel.errors import FileError, UsageError
from popmodel.host.build import build
from popmodel.host.hardware import Hardware
from popmodel.host.toolchain import Compiler, Mpi, ToolchainError, find_compiler, find_mpi
from popmodel.machine.parameter import NODE_PARTS
from popmodel.machine.quantity import Cache, Topology
from popmodel.values import dataclass


@dataclass(frozen=True)
class MeasurementRequest:
    """What a user asks for."""

    mode: str  # ``quick`` or ``full``
    parts: tuple[str, ...]  # Parts of the suite
    ranks: int | None = None  # MPI processes in all; as many as there are cores by default
    nodes: int = 1  # Nodes that they are on; more than one only in a job script
    launcher: str | None = None  # What starts ranks; found out by default

    @property
    def wants_mpi(self) -> bool:
        """Whether a part needs MPI."""
        return not NODE_PARTS.issuperset(self.parts)


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


def tools(request: MeasurementRequest, cores: int) -> Tools:
    """Find the compiler and the MPI, and build what the request needs."""
    mpi = None
    if request.wants_mpi and (request.ranks or cores) > 1:
        try:
            mpi = find_mpi(request.launcher)
        except ToolchainError as error:
            find_compiler(None)  # without one the parts that need no MPI cannot be measured either
            without = "popmodel bench --only core,memory,loops,openmp,noise"
            hint = f"{error.hint}; without MPI: {without}"
            raise ToolchainError(error.message, hint) from error
    compiler = find_compiler(mpi)
    # The node program is needed for every part: it tells what the hardware is.
    programs = {"node": build("node", compiler)}
    if mpi is not None:
        programs["mpi"] = build("mpi", mpi)
    return Tools(compiler, mpi, programs)


def make_plan(request: MeasurementRequest, machine: Hardware, seed: int | None = None) -> BenchPlan:
    """Plan what a request asks for on nodes like this one."""
    topology = _topology(machine, request.nodes)
    ranks = request.ranks or topology.cores_per_node * request.nodes
    if ranks % request.nodes:
        raise UsageError(
            f"--ranks {ranks}: must be a multiple of --nodes {request.nodes}",
            "--ranks counts the ranks on all nodes, for example "
            f"--ranks {topology.cores_per_node * request.nodes}",
        )
    if request.nodes > 1:
        topology = replace(topology, cores_per_node=ranks // request.nodes)
    elif ranks > topology.cores_per_node and request.launcher is None:
        raise UsageError(
            f"--ranks {ranks}: this process may use only {_cores(topology.cores_per_node)}",
            f"use --ranks {topology.cores_per_node}: "
            "ranks that share a core would measure time slicing",
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
    if not any(launch.part(job) in made.parts for launch in made.launches for job in launch.jobs):
        why = "; ".join(dict.fromkeys(made.left_out.values()))
        raise UsageError(
            f"--only {','.join(request.parts)}: cannot be measured here: {why}",
            f"check --ranks and --nodes: this process may use {_cores(topology.cores_per_node)}",
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


def default_folder(parts: Sequence[str] = ()) -> Path:
    """The run directory of a measurement, of some parts only, whose profile goes to no file."""
    return run_directory.beside(
        files.cache_folder() / "bench" / f"{os.uname().nodename}.json", parts
    )


def open_run(
    folder: Path, made: BenchPlan, made_with: Mapping[str, str], *, force: bool, keep: bool
) -> StoredMeasurement:
    """Go on with an interrupted measurement, or begin a new one."""
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
            f"{folder}: contains samples of a different measurement ({other})",
            "finish that one with its own options, choose another file with -o, or discard it "
            "with --force",
        )
    return run_directory.begin(folder, made, made_with)
