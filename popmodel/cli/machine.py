"""``popmodel machine``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import ForceOption, FormatOption, OutputOption, choice

EXAMPLES = (
    "popmodel machine show machine.json",
    "popmodel machine show sandybridge-fdr --format markdown",
    "popmodel machine diff before.json after.json",
    "popmodel machine check machine.json",
)

ACTIONS = ("show", "diff", "check")


def command(
    ctx: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="show|diff|check",
            help="show: print a profile. diff: compare two profiles, taking their intervals into "
            "account. check: list what is missing, uncertain or unused.",
        ),
    ],
    profiles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PROFILE...]",
            help="A profile (.json) or the name of a preset; two for diff. Default of show and "
            "check: the preset sandybridge-fdr.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Show, compare or check machine profiles."""
    from popmodel.api.machine import check, show
    from popmodel.cli.output import target
    from popmodel.machines.profile_schema import ProfileError

    goal = target(ctx.obj, output, format, force=force)
    which = choice("machine", action, ACTIONS)
    sources = profiles or []
    if which == "diff":
        if len(sources) != 2:
            raise UsageError(
                f"machine diff: takes two profiles, not {len(sources)}",
                "popmodel machine diff before.json after.json",
            )
        from popmodel.api.machine_diff import compare
        from popmodel.reports.machine_diff import COMPARED

        compared = compare(*sources)
        goal.write(compared, COMPARED, [one["path"] for one in compared["machines"]])
        return
    if len(sources) > 1:
        raise UsageError(
            f"machine {which}: takes one profile, not {len(sources)}",
            f"popmodel machine {which} {sources[0]}",
        )
    if which == "show":
        from popmodel.reports.machine import SHOWN

        shown = show(*sources)
        goal.write(shown, SHOWN, [shown["path"]])
        return
    from popmodel.reports.machine_check import CHECKED

    checked = check(*sources)
    goal.write(checked, CHECKED, [checked["path"]])
    if not checked["usable"]:
        raise ProfileError(
            checked["path"], "contains no parameters", hint="measure them: popmodel bench"
        )
