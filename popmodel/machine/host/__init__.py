"""The machine that popmodel runs on: hardware, compilers, MPI, and processes started on it."""
