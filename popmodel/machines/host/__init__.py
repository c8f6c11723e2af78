"""This computer: what it has, and starting programs on it so that nothing of them is left.

`hardware` reads cores, caches and limits from the system's files, `conditions` how quiet it is;
`toolchain` finds the compiler and the MPI, `build` makes programs with them, `launcher` starts
ranks and explains failures, `processes` ends whole trees of processes.
"""
