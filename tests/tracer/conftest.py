"""The tracer is tried with a real MPI."""

from real_mpi import mpi

__all__ = ["mpi"]
