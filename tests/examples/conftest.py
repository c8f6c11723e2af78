"""The example programs run with a real MPI."""

from real_mpi import mpi

__all__ = ["mpi"]
