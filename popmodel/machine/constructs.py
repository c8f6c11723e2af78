"""The OpenMP constructs that popmodel knows by name."""

from __future__ import annotations

CONSTRUCTS = (
    "parallel",
    "for",
    "parallel_for",
    "barrier",
    "single",
    "master",
    "critical",
    "lock",
    "atomic",
    "ordered",
    "reduction",
    "sections",
    "task",
    "taskwait",
    "private",
    "firstprivate",
    "lastprivate",
    "copyprivate",
    "copyin",
    "threadprivate",
    "static",
)
"""OpenMP constructs that popmodel measures the overhead of. A profile may know others."""
