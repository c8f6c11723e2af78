"""Pictures without the page: ``popmodel report -o timeline.svg``, ``matrix.svg``, ``tree.svg``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from popmodel.base.errors import UsageError

PICTURES = ("timeline", "matrix", "tree")
"""What can be drawn of traces: the name of the file says which."""


def draw(
    arguments: Sequence[str], traces: Sequence[str], output: str, asked: dict[str, Any], force: bool
) -> None:
    """Draw what a file is named after."""
    from popmodel.cli.output import target

    name = Path(output).stem.lower()
    if name not in PICTURES:
        known = ", ".join(f"{one}.svg" for one in PICTURES)
        raise UsageError(f"-o {output}: no picture of that name", f"known: {known}")
    if name != "tree" and len(traces) > 1:
        raise UsageError(f"-o {output}: of one trace, not {len(traces)}", "name one trace")
    goal = target(arguments, output, None, force=force, names=("svg",))
    if name == "tree":
        from popmodel.cli.metrics import metrics
        from popmodel.reports.tree_plot import picture

        found = metrics(traces, **asked)
        goal.write(found.to_dict(found.shown), replace(found.views, picture=picture), found.files)
    elif name == "matrix":
        from popmodel.api.communication import communication
        from popmodel.reports.communication import VIEWS

        if asked.pop("from_start"):
            raise UsageError("--from-start: a matrix is of the whole run", "leave it out")
        who = communication(traces[0], **asked)
        goal.write(who.to_dict(), VIEWS, who.files)
    else:
        from popmodel.api.convert import convert

        convert(traces, output, force=force, arguments=arguments, **asked)
