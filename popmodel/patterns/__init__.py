"""What the communication of a run means: its patterns, its grid, and formulas of ranks."""
