"""``popmodel signature``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import (
    ApplicationOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FormatOption,
    FromStartOption,
    RegionOption,
    SetOption,
    WindowOption,
    choice,
    flop_rate_of,
    fraction,
    output_option,
    settings,
    whole_number,
)
from popmodel.cli.signature_from import Called, SignatureSource

NameOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="With from: name of the application. Default: that of the first trace.",
        show_default=False,
    ),
]
AgainstOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="TRACE",
        help="With check: compare the signature with a trace of a run, phase by phase and message "
        "by message, both replayed on the ideal network.",
        show_default=False,
    ),
]
FailAboveOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--fail-above",
        metavar="X",
        help="With --against: exit with status 3 if the runtime or an efficiency is off by more "
        "than this, such as 2%.",
        show_default=False,
    ),
]
CompilerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cflags",
        metavar="OPTIONS",
        help="With from and source files: options of the compiler, such as '-Iinclude -DUSE_MPI'.",
        show_default=False,
    ),
]
ScalingOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="strong|weak",
        help="With from, where the runs do not tell: the work of the whole program stays with P "
        "and T (strong), or that of a process (weak).",
    ),
]
SignatureOutputOption: TypeAlias = Annotated[
    str | None,
    output_option(
        "Write to FILE: with from and show the signature (.toml), else by its suffix (.json, .csv, "
        ".md or .txt). Default: standard output (-)."
    ),
]

EXAMPLES = (
    "popmodel signature",
    "popmodel signature from run.prv.gz -o my_app.toml",
    "popmodel signature from small.prv:N=128 large.prv:N=256 -o my_app.toml",
    "popmodel signature from src/*.c --cflags '-Iinclude' -o my_app.toml",
    "popmodel signature show stencil3d > my_app.toml",
    "popmodel signature check my_app.toml",
    "popmodel signature check stencil3d --set N=1024",
    "popmodel signature check my_app.toml --against run.prv.gz",
)

ACTIONS = ("list", "show", "check", "from")


def command(
    ctx: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="[list|show|check|from]",
            help="list: the bundled signatures. show: print one as it is, to copy and change. "
            "check: explain one in words, formulas and units, and find its mistakes. from: write "
            "the signature of a program that was traced, or whose source is given.",
            show_default=False,
        ),
    ] = "list",
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[APP|TRACE|SOURCE...]",
            help="The application: a signature (.toml) or the name of a bundled one. With from: "
            "traces of its runs, each with its problem parameters if they differ, such as "
            "run.prv.gz:N=128; or its source files in C or C++.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    against: AgainstOption = None,
    fail_above: FailAboveOption = None,
    name: NameOption = None,
    scaling: ScalingOption = "strong",
    format: FormatOption = None,
    output: SignatureOutputOption = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
    cflags: CompilerOption = None,
) -> None:
    """List, show and check descriptions of applications, or find one in traces or source code.

    Mistakes are unknown names, clashing units, conditions that never hold, formulas without a
    sensible value. All are listed with their lines; the exit status is 1 if there are any.
    """
    choice("signature", action, ACTIONS)
    given = names or []
    if against is not None and action != "check":
        raise UsageError(f"signature {action} takes no --against", "signature check FILE --against")
    if fail_above is not None and against is None:
        raise UsageError("--fail-above needs --against TRACE", "add --against, or leave it out")
    source = SignatureSource(
        flop_rate=flop_rate_of(flop_rate),
        application=whole_number("--application", application),
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        compiler_options=cflags or "",
    )
    if action == "from":
        from popmodel.cli.signature_from import signature_from

        called = Called(name, scaling)
        values = settings(set_ or [])
        signature_from(ctx.obj, given, source, called, values, format, output, force=force)
        return
    if action == "list":
        if given or set_:
            raise UsageError("signature list takes no further arguments", "signature show NAME")
        _list(ctx, format, output, force=force)
        return
    if not given:
        from popmodel.model.signatures import bundled

        raise UsageError(
            f"signature {action}: no signature", f"name a file, or one of {', '.join(bundled())}"
        )
    if len(given) > 1:
        raise UsageError(f"signature {action}: one signature at a time", f"try {given[0]} only")
    app = given[0]
    if action == "show":
        if set_ or format is not None:
            raise UsageError(
                "signature show prints the file as it is: no --set and no --format",
                "leave them out",
            )
        _show(app, output, force=force)
    elif against is not None:
        from popmodel.cli.signature_from import check_against

        values = settings(set_ or [])
        most = None if fail_above is None else fraction(fail_above)
        pair = app, against
        check_against(ctx.obj, pair, source, values, most, format, output, force=force)
    else:
        _check(ctx, app, settings(set_ or []), format, output, force=force)


def _list(ctx: typer.Context, format: str | None, output: str | None, *, force: bool) -> None:
    from popmodel.api.signature import bundled
    from popmodel.cli.output import target
    from popmodel.reports.signature import LISTED

    goal = target(ctx.obj, output, format, force=force)
    goal.write(bundled(), LISTED)


def _show(app: str, output: str | None, *, force: bool) -> None:
    """Print a signature without a change, comments included."""
    from popmodel.cli.output import write_file
    from popmodel.cli.streams import write_out
    from popmodel.model.signatures import read

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
    from popmodel.base.units import plural
    from popmodel.cli.output import target
    from popmodel.model.check import check
    from popmodel.model.grammar.reading import SignatureError
    from popmodel.reports.signature import CHECKED

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
