"""``popmodel machine``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from popmodel.cli.options import ForceOption, FormatOption, OutputOption, choice
from popmodel.errors import UsageError

if TYPE_CHECKING:
    from popmodel.cli.output import Target

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
    from popmodel.cli.output import target

    goal = target(output, format, force=force)
    which = choice("machine", action, ACTIONS)
    sources = profiles or []
    if which == "diff":
        if len(sources) != 2:
            raise UsageError(
                f"machine diff: takes two profiles, not {len(sources)}",
                "popmodel machine diff before.json after.json",
            )
        _diff(ctx.obj, sources, goal)
        return
    if len(sources) > 1:
        raise UsageError(
            f"machine {which}: takes one profile, not {len(sources)}",
            f"popmodel machine {which} {sources[0]}",
        )
    _look_at(ctx.obj, which, sources, goal)


def _look_at(arguments: Sequence[str], which: str, sources: Sequence[str], goal: Target) -> None:
    from popmodel import provenance
    from popmodel.machine import findings, profile
    from popmodel.machine.checks import ProfileError
    from popmodel.report import machine, machine_check

    one = profile.load(sources[0] if sources else profile.DEFAULT_PRESET)
    stamp = provenance.collect(arguments, [one.path]).to_dict()
    if which == "show":
        goal.write({**machine.shown(one), "provenance": stamp}, machine.SHOWN)
    else:
        document = machine_check.checked(one, findings.inspect(one))
        goal.write({**document, "provenance": stamp}, machine_check.CHECKED)
        if not document["usable"]:
            raise ProfileError(
                one.path, "contains no parameters", hint="measure them: popmodel bench"
            )


def _diff(arguments: Sequence[str], sources: Sequence[str], goal: Target) -> None:
    from popmodel import provenance
    from popmodel.machine import profile
    from popmodel.machine.compare import diff
    from popmodel.report import machine_diff

    one, other = (profile.load(source) for source in sources)
    stamp = provenance.collect(arguments, [one.path, other.path]).to_dict()
    document = machine_diff.compared(one, other, diff(one, other))
    goal.write({**document, "provenance": stamp}, machine_diff.COMPARED)
