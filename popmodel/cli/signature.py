"""``popmodel signature``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from popmodel.cli.options import (
    ForceOption,
    FormatOption,
    OutputOption,
    SetOption,
    choice,
    settings,
)
from popmodel.errors import UsageError

EXAMPLES = (
    "popmodel signature",
    "popmodel signature show stencil3d > my_app.toml",
    "popmodel signature check my_app.toml",
    "popmodel signature check stencil3d --set N=1024",
)

ACTIONS = ("list", "show", "check")


def command(
    ctx: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="[list|show|check]",
            help="list: the bundled signatures. show: print one as it is, to copy and change. "
            "check: explain one in words, formulas and units, and find its mistakes.",
            show_default=False,
        ),
    ] = "list",
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="[APP]",
            help="The application: a signature (.toml) or the name of a bundled one.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """List, show and check descriptions of applications.

    Mistakes are unknown names, clashing units, conditions that never hold, formulas without a
    sensible value. All are listed with their lines; the exit status is 1 if there are any.
    """
    choice("signature", action, ACTIONS)
    if action == "list":
        if app is not None or set_:
            raise UsageError("signature list takes no further arguments", "signature show NAME")
        _list(ctx, format, output, force=force)
        return
    if app is None:
        from popmodel.model.signature.files import bundled

        raise UsageError(
            f"signature {action}: no signature", f"name a file, or one of {', '.join(bundled())}"
        )
    if action == "show":
        if set_ or format is not None:
            raise UsageError(
                "signature show prints the file as it is: no --set and no --format",
                "leave them out",
            )
        _show(app, output, force=force)
    else:
        _check(ctx, app, settings(set_ or []), format, output, force=force)


def _list(ctx: typer.Context, format: str | None, output: str | None, *, force: bool) -> None:
    from popmodel.api.signature import bundled
    from popmodel.cli.output import target
    from popmodel.report.signature import LISTED

    goal = target(ctx.obj, output, format, force=force)
    goal.write(bundled(), LISTED)


def _show(app: str, output: str | None, *, force: bool) -> None:
    """Print a signature without a change, comments included."""
    from popmodel.cli.output import write_file
    from popmodel.cli.streams import write_out
    from popmodel.model.signature.files import read

    _, _, text = read(app)
    if output is None or output == "-":
        write_out(text)
    else:
        write_file(Path(output), text, force=force)


def _check(
    ctx: typer.Context,
    app: str,
    values: dict[str, float],
    format: str | None,
    output: str | None,
    *,
    force: bool,
) -> None:
    from popmodel.cli.output import target
    from popmodel.model.check.check import check
    from popmodel.model.grammar.reading import SignatureError
    from popmodel.report.signature import CHECKED
    from popmodel.units import plural

    goal = target(ctx.obj, output, format, force=force)
    checked = check(app, values)
    goal.write(checked.to_dict(), CHECKED, [checked.path])
    if checked.mistakes:
        first = checked.mistakes[0]
        where = "" if first.line is None else f" in line {first.line}"
        raise SignatureError(
            checked.path,
            plural(len(checked.mistakes), "mistake"),
            hint=f"correct the mistake{where} first: the others may follow from it"
            if len(checked.mistakes) > 1
            else f"correct it{where}",
        )
