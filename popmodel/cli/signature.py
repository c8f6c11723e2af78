"""``popmodel signature``."""

from __future__ import annotations

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
    "popmodel signature check app.toml",
    "popmodel signature check stencil3d --set N=1024",
    "popmodel signature check app.toml --format json",
)

ACTIONS = ("check",)


def command(
    ctx: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="check",
            help="check: explain a signature in words, formulas and units, and find its mistakes.",
        ),
    ],
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="APP",
            help="The application: a signature (.toml) or a bundled one.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Check and explain the signature of an application.

    Mistakes are unknown names, units that clash, conditions that nothing meets, formulas without a
    sensible value. All are listed with their lines, and the exit status is 1 if there is any.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.model.signature.check import check
    from popmodel.model.signature.files import bundled
    from popmodel.model.signature.reader import SignatureError
    from popmodel.report.signature import CHECKED
    from popmodel.units import plural

    goal = target(output, format, force=force)
    choice("signature", action, ACTIONS)
    if app is None:
        raise UsageError(
            "signature check: no signature", f"name a file, or one of {', '.join(bundled())}"
        )
    checked = check(app, settings(set_ or []))
    stamp = provenance.collect(ctx.obj, [checked.path]).to_dict()
    goal.write({**checked.to_dict(), "provenance": stamp}, CHECKED)
    if checked.mistakes:
        first = checked.mistakes[0]
        where = "" if first.line is None else f" in line {first.line}"
        raise SignatureError(
            checked.path,
            plural(len(checked.mistakes), "mistake"),
            hint=f"begin with the one{where}: others may follow from it"
            if len(checked.mistakes) > 1
            else f"correct it{where}",
        )
