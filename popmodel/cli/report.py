"""``popmodel report``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import (
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    SetOption,
    WindowOption,
    format_option,
    output_option,
    settings,
    whole_numbers,
)
from popmodel.reports import formats

FORMATS = (formats.HTML.name, formats.JSON.name)
EXAMPLES = (
    "popmodel report run.prv -o report.html",
    "popmodel report run_*.prv -o scaling.html",
    "popmodel report run.prv sweep.json validate.json -o report.html",
    "popmodel report app.toml --machine machine.json --cores 64 -o splits.html",
    "popmodel report run.prv -o timeline.svg",
    "popmodel report report.html --format json",
)


def command(
    ctx: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Traces; results saved as .json; reports (.html); signatures (.toml, or the name "
            "of a bundled one).",
        ),
    ],
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Machine profile: its network is that of the what-if, and signatures are "
            "predicted on it. May stand among the inputs.",
        ),
    ] = None,
    cores: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]", help="Of signatures: cores to split into processes and threads."
        ),
    ] = None,
    set_: SetOption = None,
    format: Annotated[
        str | None, format_option(FORMATS, "Output format. Default: by the suffix of -o.")
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            f"Write to FILE ({formats.suffixes(FORMATS)}). timeline.svg, matrix.svg and tree.svg "
            "are pictures of traces, without the page."
        ),
    ] = None,
    force: ForceOption = False,
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Write a report as one HTML file, which needs no network.

    Shows the efficiencies of runs and what they cost, each run over time above its replay on an
    ideal network, what another network or CPU would change, regions and messages; and what saved
    results hold: predictions, splits, validations. The results stand in the file as JSON, which
    --format json takes out of it again.
    """
    from popmodel.api.make_report import make_report
    from popmodel.cli.output import target
    from popmodel.cli.report_pictures import draw

    if output in (None, "-") and format is None:
        raise UsageError("-o is missing: the file to write", "try -o report.html")
    asked: dict[str, Any] = {
        "window": window,
        "region": region,
        "from_start": from_start,
        "foa": foa,
    }
    if output is not None and output.lower().endswith(".svg"):
        for name, value in (("--machine", machine), ("--cores", cores), ("--set", set_)):
            if value:
                raise UsageError(f"{name}: a picture is of traces alone", "leave it out")
        draw(ctx.obj, inputs, output, asked, force)
        return
    goal = target(ctx.obj, output, format, force=force, names=FORMATS)
    found = make_report(
        inputs,
        machine=machine,
        cores=None if cores is None else whole_numbers("--cores", cores),
        settings=settings(set_ or []) or None,
        **asked,
    )
    goal.write(found.to_dict(), found.views, found.files)
