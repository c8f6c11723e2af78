"""OpenMP constructs whose overhead is measured, by the names that profiles and signatures use."""

from __future__ import annotations

PLAIN = (
    *("parallel", "for", "parallel_for", "barrier", "single", "master", "critical", "lock"),
    *("atomic", "ordered", "reduction", "sections", "task", "taskwait"),
)
"""Those that copy no array."""

COPYING = ("private", "firstprivate", "lastprivate", "copyprivate", "copyin", "threadprivate")
"""Those that copy an array into every thread or out of it: their cost is per byte as well."""

CONSTRUCTS = (*PLAIN, *COPYING, "static")
"""All that a signature may count; a profile may know others. ``static`` is a schedule."""
