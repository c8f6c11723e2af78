"""The verdict, as screens, pages and notebooks show it."""

from __future__ import annotations

import re

from popmodel.efficiency.verdict import Verdict
from popmodel.reports.blocks import NoteBlock, Role, Section, notes

_LONG = 250  # characters of a cause in brief


def verdict_section(verdict: Verdict, *, brief: int = 0) -> Section:
    """Doubts, how the runs did, the causes in the order of their cost, what else would help.

    In brief the first doubt, or else so many causes, of which the first says why it is one.
    """
    causes = list(verdict.causes)
    doubts, statements = verdict.doubts, verdict.statements
    if brief:
        costs = [re.split(r"(?<=core time\.) |(?<=x runtime\)\.) ", one)[0] for one in causes]
        while brief == 1 and causes and len(causes[0]) > _LONG and ". " in causes[0][3:]:
            causes[0] = causes[0].rpartition(". ")[0] + "."
        causes = costs[:1] if doubts else [*causes[:1], *costs[1:brief]]
        doubts, statements = doubts[:1], statements[:1]
    first, *others = [*doubts, *statements]
    return (
        NoteBlock(first, Role.VERDICT),
        *notes(others, Role.DOUBT),
        *notes(causes, Role.STEP),
        *notes(() if brief else verdict.steps, Role.DOUBT),
    )
