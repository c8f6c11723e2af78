"""``popmodel calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import (
    DRAWN,
    BindOption,
    CoresPerNodeOption,
    DrawnFormatOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    MachineOption,
    NodesOption,
    RegionOption,
    SetOption,
    WindowOption,
    binding,
    optional_number,
    settings,
    split_and_settings,
    whole_number,
)

EXAMPLES = (
    "popmodel calibrate app.toml runs.csv --machine m.json -o calibrated.toml",
    "popmodel calibrate stencil3d a.prv:N=96 b.prv:N=160 -o calibrated.toml",
    "popmodel calibrate app.toml runs.csv --for 64x4 --for 32x8",
    "popmodel calibrate app.toml runs.csv -o calibration.svg",
)
_TOML = ".toml"


def command(
    ctx: typer.Context,
    app: Annotated[
        str, typer.Argument(metavar="APP", help="A signature file, or a bundled application.")
    ],
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Traces (run.prv.gz:N=256 says the problem size), or tables of runs (.csv, .json, "
            ".jsonl, .txt): columns processes, threads, runtime, any parameter of the application "
            "and any metric. At least two runs.",
        ),
    ],
    machine: MachineOption = None,
    nodes: NodesOption = None,
    cores_per_node: CoresPerNodeOption = None,
    bind: BindOption = "close",
    set_: SetOption = None,
    for_: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="PxT",
            help="Processes and threads of the run that is asked for: what to measure next narrows "
            "its runtime. May be given several times.",
        ),
    ] = None,
    cores: Annotated[
        str | None,
        typer.Option(metavar="N", help="Ask for all splits of so many cores instead."),
    ] = None,
    format: DrawnFormatOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the calibrated signature (.toml); or what was found (.json, .csv, .md, "
            ".svg).",
        ),
    ] = None,
    force: ForceOption = False,
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Correct a signature by measured runs.

    Fits what predictions are unsure of, constants of the signature, laws and machine, to runtimes
    and efficiencies of measured runs. Says how far off predictions are of runs that were left out,
    what the runs cannot tell, which runs do not fit the others, and what to measure next.
    """
    from popmodel.api.calibrate import calibrate, splits_of
    from popmodel.cli.output import refuse_existing, target, write_file
    from popmodel.model import signatures
    from popmodel.reports.calibrate import VIEWS

    to_file = output is not None and output.endswith(_TOML)
    if to_file and format not in (None, "table"):
        raise UsageError(
            f"-o {output} means a signature, --format says {format}",
            f"leave out one of them, or use -o {str(output).removesuffix(_TOML)}.{format}",
        )
    goal = target(ctx.obj, None if to_file else output, format, force=force, names=DRAWN)
    if to_file:
        refuse_existing(Path(str(output)), force=force)
    if for_ and cores is not None:
        raise UsageError("--for and --cores cannot be combined", "give one of them")
    targets = None
    if for_:
        asked = [(text, *split_and_settings("--for", text)) for text in for_]
        for text, _, _, values in asked:
            if values:
                raise UsageError(
                    f"--for {text}: takes no parameters", "set them for all with --set NAME=VALUE"
                )
        targets = [(processes, threads) for _, processes, threads, _ in asked]
    elif cores is not None:
        count = whole_number("--cores", cores)
        targets = list(splits_of(count, count))
    found = calibrate(
        app,
        runs,
        machine=machine,
        settings=settings(set_ or []),
        targets=targets,
        nodes=optional_number("--nodes", nodes),
        cores_per_node=optional_number("--cores-per-node", cores_per_node),
        bind=binding(bind),
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
    )
    document = found.to_dict()
    if to_file:
        write_file(Path(str(output)), found.text, force=force, read=signatures.load)
        document["path"] = output
    goal.write(document, VIEWS, found.files)
