"""The verdict, as screens, pages and notebooks show it."""

from __future__ import annotations

from popmodel.efficiency.verdict import Verdict
from popmodel.reports.blocks import NoteBlock, Role, Section, notes


def verdict_section(verdict: Verdict) -> Section:
    """Doubts, how the runs did, the causes in the order of their cost, what else would help."""
    first, *others = [*verdict.doubts, *verdict.statements]
    return (
        NoteBlock(first, Role.VERDICT),
        *notes(others, Role.DOUBT),
        *notes(verdict.causes, Role.STEP),
        *notes(verdict.steps, Role.DOUBT),
    )
