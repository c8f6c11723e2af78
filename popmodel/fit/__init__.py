"""Laws of processes, threads and problem size from a few measured points; pure numerics."""
