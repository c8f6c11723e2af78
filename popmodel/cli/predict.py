"""``popmodel predict``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import (
    AppArgument,
    ForceOption,
    FormatOption,
    MachineOption,
    OutputOption,
    PredictedFamilyOption,
    SetOption,
    families,
    settings,
    whole_number,
)
from popmodel.errors import UsageError

EXAMPLES = (
    "popmodel predict --procs 16 --threads 4",
    "popmodel predict cannon --procs 16 --threads 4 --set N=8192",
    "popmodel predict app.toml --machine m.json --procs 64",
    "popmodel predict --procs 16 --threads 4 -o prediction.json",
    "popmodel predict --procs 16 --threads 4 --formula runtime",
)


def command(
    ctx: typer.Context,
    app: AppArgument = None,
    procs: Annotated[
        str | None, typer.Option(metavar="P", help="Number of processes. Required.")
    ] = None,
    threads: Annotated[str, typer.Option(metavar="T", help="Threads of each process.")] = "1",
    machine: MachineOption = None,
    set_: SetOption = None,
    family: PredictedFamilyOption = None,
    formula: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Print the formula of the runtime (write runtime) or of a metric instead, and "
            "what a change of each input does to it; LaTeX with --format markdown.",
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Predict a run that has not been made.

    From a description of the application and of the machine: the runtime, the efficiencies, where
    the time goes and what would help, with 90 % intervals, and how to launch the run.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.machine import profile as profiles
    from popmodel.metrics.hierarchy import load_families
    from popmodel.model import signature as signatures
    from popmodel.model.predict import predict
    from popmodel.model.prediction import MAIN_FAMILY
    from popmodel.report.predict import views

    goal = target(output, format, force=force)
    if procs is None:
        raise UsageError("--procs is missing", "say how many processes, e.g. --procs 16")
    processes = whole_number("--procs", procs)
    per_process = whole_number("--threads", threads)
    if formula is not None and family is not None:
        raise UsageError(
            "--formula and --family do not go together", "write --formula FAMILY.METRIC"
        )
    shown = (MAIN_FAMILY,) if family is None else families(family, tuple(load_families()))
    signature = signatures.load(app or signatures.DEFAULT)
    profile = profiles.load(machine or profiles.DEFAULT_PRESET)
    if formula is not None:
        from popmodel.model import formula as formulas
        from popmodel.report.formula import VIEWS

        asked = (processes, per_process, formula, settings(set_ or []))
        written = formulas.formula(signature, profile, *asked).to_dict()
        stamp = provenance.collect(ctx.obj, [signature.path, profile.path]).to_dict()
        goal.write({**written, "provenance": stamp}, VIEWS)
        return
    prediction = predict(signature, profile, processes, per_process, settings(set_ or []))
    stamp = provenance.collect(ctx.obj, [signature.path, profile.path]).to_dict()
    goal.write({**prediction.to_dict(), "provenance": stamp}, views(shown))
