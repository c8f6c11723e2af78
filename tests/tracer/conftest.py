"""The tracer is tried with a real MPI."""

import pytest

pytest.register_assert_rewrite("tracer.openmp_runs", "tracer.raw_files", "tracer.traced")

from real_mpi import mpi  # noqa: E402
from tracer.openmp_runs import build  # noqa: E402
from tracer.traced import library, program, run  # noqa: E402

__all__ = ["build", "library", "mpi", "program", "run"]
