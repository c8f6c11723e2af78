"""``popmodel validate``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import (
    DRAWN,
    BindOption,
    CoresPerNodeOption,
    DrawnFormatOption,
    DrawnOutputOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    MachineOption,
    NodesOption,
    PredictedFamilyOption,
    RegionOption,
    SetOption,
    WindowOption,
    binding,
    families,
    optional_number,
    settings,
)

EXAMPLES = (
    "popmodel validate stencil3d runs.csv --machine m.json",
    "popmodel validate stencil3d runs.csv --fail-over error=20%",
    "popmodel validate app.toml large.prv.gz --trained-on small.csv",
    "popmodel validate app.toml run_4x2.prv.gz run_8x1.prv.gz",
    "popmodel validate prediction.json run.prv.gz",
)


def command(
    ctx: typer.Context,
    prediction: Annotated[
        str,
        typer.Argument(
            metavar="PREDICTION_OR_APP",
            help="A saved prediction (.json), or an application to predict now.",
        ),
    ],
    measured: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE_OR_TABLE",
            help="Traces (.prv, .prv.gz), or tables of runs (.csv, .json, .jsonl, .txt; popmodel "
            "docs runs): columns processes, threads, runtime (seconds), and any parameter of the "
            "application, such as N (an empty cell: as set, or its default), also behind a file: "
            "run.prv:N=256.",
        ),
    ],
    machine: MachineOption = None,
    nodes: NodesOption = None,
    cores_per_node: CoresPerNodeOption = None,
    bind: BindOption = "close",
    set_: SetOption = None,
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE_OR_TABLE",
            help="Runs that the application was fitted to: they are no tests, and plain "
            "extrapolations see them only. A calibrated signature knows its own. May be given "
            "several times.",
        ),
    ] = None,
    family: PredictedFamilyOption = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Exit with status 3 if an error exceeds VALUE: error=20% for the runtime of a "
            "split, METRIC=5% for an efficiency (points). May be given several times.",
        ),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="coverage=VALUE",
            help="Exit with status 3 if a smaller share of the runs is inside the 90 % interval "
            "of the predicted runtime.",
        ),
    ] = None,
    all_runs: Annotated[
        bool,
        typer.Option(
            "--all-runs",
            help="Compare also runs that look as if their threads had no cores of their own.",
            show_default=False,
        ),
    ] = False,
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Compare predictions with measured runs.

    Shows predicted and measured runtime of each split (repeats are averaged): how far off the
    predictions are, whether their intervals hold, whether the right split would have been chosen,
    and what plain extrapolations make of it; for traces also useful time, losses and efficiencies.
    """
    from popmodel.api.validate import validate
    from popmodel.cli.accuracy import check, limits
    from popmodel.cli.output import target
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.prediction.prediction import MAIN_FAMILY
    from popmodel.reports.validate import views
    from popmodel.validation.comparison import varied

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    known = load_families()
    shown = (MAIN_FAMILY,) if family is None else families(family, tuple(known))
    allowed = limits(fail_over or [], fail_under or [], known)
    found = validate(
        prediction,
        measured,
        machine=machine,
        settings=settings(set_ or []),
        trained_on=trained_on or (),
        nodes=optional_number("--nodes", nodes),
        cores_per_node=optional_number("--cores-per-node", cores_per_node),
        bind=binding(bind),
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        all_runs=all_runs,
    )
    tests = found.tests
    goal.write(
        found.to_dict(),
        views(shown, () if family is not None else tuple(known)),
        found.files,
        lambda: check(allowed, tests, shown, varied(found.splits)),
    )
