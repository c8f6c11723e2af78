"""``popmodel validate``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import (
    CacheOption,
    CoresPerNodeOption,
    ForceOption,
    FormatOption,
    FromStartOption,
    MachineOption,
    NodesOption,
    OutputOption,
    PredictedFamilyOption,
    RegionOption,
    SetOption,
    WindowOption,
    allocation,
    families,
    settings,
)

EXAMPLES = (
    "popmodel validate stencil3d runs.csv --machine m.json",
    "popmodel validate app.toml run_4x2.prv.gz run_8x1.prv.gz",
    "popmodel validate prediction.json run.prv.gz",
)


def command(
    ctx: typer.Context,
    prediction: Annotated[
        str,
        typer.Argument(
            metavar="PREDICTION_OR_APP",
            help="A prediction that was saved (.json), or an application that is predicted now.",
        ),
    ],
    measured: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE_OR_TABLE",
            help="Traces (.prv, .prv.gz), or tables of run times (.csv) with the columns "
            "processes, threads and runtime in seconds.",
        ),
    ],
    machine: MachineOption = None,
    nodes: NodesOption = None,
    cores_per_node: CoresPerNodeOption = None,
    set_: SetOption = None,
    family: PredictedFamilyOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
) -> None:
    """Compare predictions with measured runs.

    The runtime and every efficiency as predicted and as measured, whether the interval holds the
    measurement, and how far off the predictions are.
    """
    from popmodel import provenance
    from popmodel.api.validate import validate
    from popmodel.cli.output import target
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.model.prediction import MAIN_FAMILY
    from popmodel.report.validate import views

    goal = target(output, format, force=force)
    shown = (MAIN_FAMILY,) if family is None else families(family, tuple(load_families()))
    found = validate(
        prediction,
        measured,
        machine=machine,
        settings=settings(set_ or []),
        allocation=allocation(nodes, cores_per_node),
        window=window,
        region=region,
        from_start=from_start,
        cache=not no_cache,
    )
    stamp = provenance.collect(ctx.obj, found.inputs).to_dict()
    goal.write({**found.to_dict(), "provenance": stamp}, views(shown))
