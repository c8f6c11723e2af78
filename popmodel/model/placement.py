"""Where processes and threads go: how many processes on a node, how many nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from popmodel.errors import UsageError
from popmodel.machine.topology import Topology
from popmodel.units import plural


@dataclass(frozen=True)
class Placement:
    """P processes of T threads on equal nodes, consecutive ranks together.

    Attributes
    ----------
    processes, threads : int
        P and T.
    per_node : int
        Processes of a full node.
    nodes : int
        Nodes used; the last one may have fewer processes.
    """

    processes: int
    threads: int
    per_node: int
    nodes: int

    @property
    def cores(self) -> int:
        """Cores in use."""
        return self.processes * self.threads


def place(processes: int, threads: int, topology: Topology) -> Placement:
    """Put as many processes on a node as its cores allow, one thread per core.

    Raises
    ------
    UsageError
        If a process does not fit a node, or the machine has too few nodes; the hint names the
        nearest possible choice.
    """
    for name, value in (("processes", processes), ("threads", threads)):
        if value < 1:
            raise UsageError(f"{value} {name} are not possible", f"ask for at least 1 of {name}")
    cores = topology.cores_per_node
    if threads > cores:
        raise UsageError(
            f"{processes} x {threads} is not possible: a node has {cores} cores, "
            f"fewer than {threads} threads",
            f"at most {cores} threads per process",
        )
    per_node = min(processes, cores // threads)
    nodes = math.ceil(processes / per_node)
    if nodes > topology.nodes:
        most = topology.nodes * per_node
        raise UsageError(
            f"{processes} x {threads} is not possible: it needs {nodes} nodes, "
            f"the machine has {topology.nodes}",
            f"at most {plural(most, 'process', 'processes')} of {plural(threads, 'thread')}",
        )
    return Placement(processes, threads, per_node, nodes)


def launch_line(placement: Placement, program: str) -> str:
    """Give the commands that start a program in this placement, for Slurm.

    Parameters
    ----------
    placement : Placement
        Where to run.
    program : str
        What to run.

    Returns
    -------
    str
        Settings of OpenMP and the command, on two lines joined by a backslash.
    """
    return f"{_environment(placement)} \\\n" + (
        f"srun -N {placement.nodes} -n {placement.processes} -c {placement.threads} "
        f"--ntasks-per-node={placement.per_node} --cpu-bind=cores {program}"
    )


def mpirun_line(placement: Placement, program: str) -> str:
    """Give the same as `launch_line` for Open MPI without a batch system."""
    return f"{_environment(placement)} \\\n" + (
        f"mpirun -np {placement.processes} "
        f"--map-by ppr:{placement.per_node}:node:PE={placement.threads} --bind-to core {program}"
    )


def _environment(placement: Placement) -> str:
    return f"OMP_NUM_THREADS={placement.threads} OMP_PLACES=cores OMP_PROC_BIND=close"
