"""From what a user asks for to a plan: launches of the programs, each with its jobs and its time.

The jobs follow from the hardware, the time from the mode. Every job is done in several launches,
since what a launch decides once (placement of memory, of threads, of connections) stays the same in
all its batches; the programs take turns, so that a machine whose speed drifts shows it as a spread
between launches. Within a launch the order is random, so that neighbours do not always disturb each
other in the same way.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from popmodel.base.documents import (
    Items,
    NamedShape,
    Optional,
    Real,
    Shape,
    ShapeError,
    Text,
    WholeShape,
    record,
    shown,
)
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.units import plural
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.bench import jobs as suite_jobs
from popmodel.machines.bench.jobs import BenchJob
from popmodel.machines.bench.sample_files import PROGRAMS
from popmodel.machines.host.build import build
from popmodel.machines.host.hardware import Hardware
from popmodel.machines.host.toolchain import Compiler, Mpi, ToolchainError, find_compiler, find_mpi
from popmodel.machines.profile import topology_of
from popmodel.machines.quantity import Topology
from popmodel.machines.register import NODE_PARTS, PARTS


@dataclass(frozen=True)
class PlanLimits:
    """When a program stops measuring."""

    budget: float  # Seconds of one job at most
    # Batches of a job.
    least: int
    most: int
    precision: float  # Half of the 95 % interval of the median, relative to it, that is good enough


@dataclass(frozen=True)
class PlannedLaunch:
    """One start of a program."""

    number: int  # From 1, in the order in which they are started
    program: str  # ``node`` or ``mpi``
    # Processes, and nodes over which they are spread.
    ranks: int
    nodes: int
    threads: int  # Cores that each process has
    thread_level: str | None  # Of MPI; None for the node program
    limits: PlanLimits  # When to stop
    jobs: tuple[BenchJob, ...]  # In the order in which they are done

    def seconds(self, jobs: int | None = None) -> float:
        """Time of a number of its jobs, all by default, if each needs all its budget."""
        count = len(self.jobs) if jobs is None else jobs
        return _START[self.program] + count * self.limits.budget

    def limit(self, jobs: int | None = None) -> float:
        """Seconds after which the jobs that are left are not done any more."""
        return round(_SLACK * self.seconds(jobs) + 1.0, 1)

    def part(self, job: BenchJob) -> str:
        """Part of the suite that asks for a job of this launch."""
        if self.thread_level == "multiple":
            return "threads"
        return suite_jobs.PART_OF[job.name]


@dataclass(frozen=True)
class BenchPlan:
    """All launches of a measurement."""

    mode: str  # ``quick`` or ``full``
    parts: tuple[str, ...]  # Parts of the suite that are measured
    # Processes of the MPI launches in all, nodes.
    ranks: int
    nodes: int
    seed: int  # Of the random orders
    launches: tuple[PlannedLaunch, ...]  # In the order in which they are started
    left_out: Mapping[str, str]  # Path in the profile -> why nothing here can measure it

    @property
    def seconds(self) -> float:
        """Time of all launches if each job needs all its budget."""
        return sum(launch.seconds() for launch in self.launches)

    @property
    def is_longer_than_meant(self) -> bool:
        """Whether so many jobs are needed that even the least budgets exceed the mode's time."""
        return self.seconds > _LONGER * MODES[self.mode].seconds

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON types; jobs as lines."""
        launches = [
            {**asdict(launch), "jobs": [job.line for job in launch.jobs]}
            for launch in self.launches
        ]
        return {**asdict(self), "parts": list(self.parts), "launches": launches}


class Mode(NamedTuple):
    """How long and how densely a mode measures."""

    rounds: int  # Launches of each program
    seconds: float  # Of all launches together
    # Batches of a job.
    least: int
    most: int
    # Least and largest budget of a short job, s.
    shortest: float
    longest: float


MODES: Mapping[str, Mode] = {
    "quick": Mode(rounds=5, seconds=48.0, least=50, most=200, shortest=0.02, longest=0.2),
    "full": Mode(rounds=10, seconds=780.0, least=50, most=500, shortest=0.1, longest=1.0),
}

PRECISION = 0.03
_LONGER = 1.2  # of the time of a mode: less is not worth a word
_LONG = 10.0  # budget of a long job, in budgets of a short one
_SEVERAL = 4.0  # the same of a job that measures three things
_LONGEST_QUANTUM = 1000  # batches of the quantum, about 1 ms each: a distribution, not a median
_START = {"node": 0.1, "mpi": 1.0}  # s until the first job
_SLACK = 1.5  # what a launch may take longer than its budgets: arrays are touched, jobs start


class _JobLine:
    """A job as the programs read it, of a kind that is known."""

    def read(self, value: Any) -> BenchJob:
        """Return the job; see `Shape`."""
        line = Text().read(value)
        try:
            found = suite_jobs.parse(line)
        except UsageError as error:
            raise ShapeError(f"is not a job: {error.message}") from None
        if found.name not in suite_jobs.PART_OF:
            raise ShapeError(f"is not a known job: {shown(line)}")
        return found


_LIMITS: Mapping[str, Shape] = {
    "budget": Real(above=0),
    "least": WholeShape(1),
    "most": WholeShape(1),
    "precision": Real(above=0),
}

_LAUNCH: Mapping[str, Shape] = {
    "number": WholeShape(1, 10**6),
    "program": Text(PROGRAMS),
    "ranks": WholeShape(1, 10**9),
    "nodes": WholeShape(1, 10**9),
    "threads": WholeShape(1, 10**9),
    "thread_level": Optional(Text(("single", "funneled", "serialized", "multiple"))),
    "limits": record(_LIMITS),
    "jobs": Items(_JobLine()),
}

KEYS: Mapping[str, Shape] = {
    "mode": Text(tuple(MODES)),
    "parts": Items(Text(PARTS)),
    "ranks": WholeShape(1, 10**9),
    "nodes": WholeShape(1, 10**9),
    "seed": WholeShape(0),
    "launches": Items(record(_LAUNCH)),
    "left_out": NamedShape(Text()),
}
"""What `BenchPlan.to_dict` gives, all of it; jobs are read from their lines."""


def from_dict(table: Mapping[str, Any]) -> BenchPlan:
    """Make a plan of what `KEYS` read."""
    launches = tuple(
        PlannedLaunch(
            **{**launch, "limits": PlanLimits(**launch["limits"]), "jobs": tuple(launch["jobs"])}
        )
        for launch in table["launches"]
    )
    return BenchPlan(
        **{key: table[key] for key in KEYS if key not in ("parts", "launches")},
        parts=tuple(table["parts"]),
        launches=launches,
    )


def parts(text: str) -> tuple[str, ...]:
    """The parts that ``--only`` names, separated by commas."""
    names = {name.strip() for name in text.split(",") if name.strip()}
    for name in sorted(names):
        if name not in PARTS:
            hint = did_you_mean(name, PARTS, f"the parts are {', '.join(PARTS)}")
            raise UsageError(f"--only {text}: unknown part '{name}'", hint)
    if not names:
        raise UsageError("--only: no part given", f"the parts are {', '.join(PARTS)}")
    return tuple(name for name in PARTS if name in names)


def make(
    wanted: Sequence[str],
    mode: str,
    topology: Topology,
    *,
    ranks: int,
    nodes: int = 1,
    smt: int = 1,
    seed: int,
) -> BenchPlan:
    """Plan a measurement."""
    how = MODES[mode]
    full = mode == "full"
    cores = topology.cores_per_node
    short, loops, long = suite_jobs.node_jobs(wanted, topology, smt, full=full)
    node = ("node", 1, 1, cores, None)
    blocks = [
        _Block(*node, tuple(short)),
        _Block(*node, tuple(loops), _SEVERAL),
        _Block(*node, tuple(long), _LONG, _LONGEST_QUANTUM),
    ]
    # Jobs that are launched in the same way are in one launch, each of them once.
    together: dict[tuple[int, int, int, str], dict[BenchJob, None]] = {}
    for launch, some in suite_jobs.mpi_jobs(wanted, topology, ranks, nodes, full=full):
        together.setdefault(launch, {}).update(dict.fromkeys(some))
    blocks += [_Block("mpi", *launch, tuple(some)) for launch, some in together.items()]
    left_out = dict(suite_jobs.left_out(wanted, topology, ranks, nodes))
    turns = [block for block in blocks if block.jobs] * how.rounds
    weight = sum(block.weight * len(block.jobs) for block in turns)
    starts = sum(_START[block.program] for block in turns)
    unit = max(how.seconds - starts, 0.0) / weight if weight else 0.0
    budget = min(max(unit, how.shortest), how.longest)
    random_order = random.Random(seed)
    launches: list[PlannedLaunch] = []
    for block in turns:
        limits = PlanLimits(
            round(budget * block.weight, 4), how.least, block.most or how.most, PRECISION
        )
        launches.append(
            PlannedLaunch(
                number=len(launches) + 1,
                program=block.program,
                ranks=block.ranks,
                nodes=block.nodes,
                threads=block.threads,
                thread_level=block.thread_level,
                limits=limits,
                jobs=tuple(random_order.sample(block.jobs, len(block.jobs))),
            )
        )
    return BenchPlan(mode, tuple(wanted), ranks, nodes, seed, tuple(launches), left_out)


class _Block(NamedTuple):
    """Jobs that are launched together; `most` batches of each, if not those of the mode."""

    program: str
    ranks: int
    nodes: int
    threads: int
    thread_level: str | None
    jobs: tuple[BenchJob, ...]
    weight: float = 1.0
    most: int | None = None


# What a user asks for, and the programs for it.


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
            without = "popmodel machine measure --only core,memory,loops,openmp,noise"
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
    topology = topology_of(machine.topology(request.nodes))
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
            f"--ranks {ranks}: this process may use only {plural(topology.cores_per_node, 'core')}",
            f"use --ranks {topology.cores_per_node}: "
            "ranks that share a core would measure time slicing",
        )
    made = make(
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
            "check --ranks and --nodes: this process may use "
            f"{plural(topology.cores_per_node, 'core')}",
        )
    return made
