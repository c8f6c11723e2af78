"""The measurements are tried with a real MPI, and those of a node with a real compiler."""

from microbench.node_program import measure, node, run
from real_mpi import mpi

__all__ = ["measure", "mpi", "node", "run"]
