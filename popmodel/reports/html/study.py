"""Studies: what was run, how good the prediction of the run left out is, how to repeat a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.reports.heading import doubted
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.section import Section
from popmodel.reports.renderers.html import html
from popmodel.reports.study import check, commands, further_doubts, narrowing, runs
from popmodel.reports.views import Document


def section(contents: Contents) -> Section | None:
    """What the studies among the sweeps have beside their splits."""
    found = [one for one in contents.of("splits") if "study" in one]
    if not found:
        return None
    return Section("study", "Study", {"studies": [_study(one) for one in found]})


def _study(document: Document) -> Mapping[str, Any]:
    told = document["study"]
    return {
        "runs": html([(*doubted(document), *further_doubts(document)), *runs(told)]),
        "check": html([check(told)], 4),
        "recommended": html([narrowing(one, document) for one in told["recommended"]], 4),
        "commands": html([commands(told)], 4),
    }
