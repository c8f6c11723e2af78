"""popmodel: analytical performance model and what-if predictor for MPI + OpenMP programs."""

__version__ = "0.1.0"
