"""``popmodel project``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import (
    DRAWN,
    SCALING_MODES,
    DrawnFormatOption,
    DrawnOutputOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    ScalingOption,
    WindowOption,
    choice,
    families,
    optional_number,
    whole_numbers,
)

EXAMPLES = (
    "popmodel project run_4.prv run_8.prv run_16.prv --procs 32,64",
    "popmodel project run_*.prv --procs 64 --threads 4 -o projected.svg",
    "popmodel project runs.csv --procs 128 --law amdahl",
    "popmodel project run_*.prv --procs 64 --format json",
)

LAWS = ("auto", "structural", "amdahl", "pipe", "linear")


def command(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Traces, one per run, or tables of runs (.csv, .json, .jsonl, .txt).",
        ),
    ],
    procs: Annotated[
        str | None,
        typer.Option(metavar="P[,P...]", help="Numbers of processes to project to."),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="T[,T...]",
            help="Threads per process to project to. Default: those of most runs.",
        ),
    ] = None,
    law: Annotated[
        str,
        typer.Option(
            metavar="LAW",
            help="Law of all factors: structural, amdahl, pipe or linear. auto: for each factor "
            "the one that best foretells runs left out, if there are three sizes or more; else "
            "structural.",
            autocompletion=lambda: LAWS,
        ),
    ] = "auto",
    family: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Families of metrics in the table, separated by commas, or all. Default: the one "
            "that fits the runs; other formats contain all.",
        ),
    ] = None,
    scaling: ScalingOption = "auto",
    reference: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Reference run for scaling, by its number (from 1)."),
    ] = None,
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Project measured efficiencies to more processes.

    Each factor of the efficiency gets a law from a few measured runs: structural (how imbalance,
    waiting, messages and computation grow), Amdahl's, that of pipelines, or a straight line. Shows
    runtime, speed-up and efficiencies at the wanted sizes with 90 % intervals, as far as the runs
    allow any, which laws were taken, and what others are off.
    """
    from popmodel.api.project import project
    from popmodel.cli.output import target
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.reports.project import views

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    if procs is None:
        raise UsageError("--procs is missing", "try --procs 64,256")
    known = load_families()
    found = project(
        runs,
        whole_numbers("--procs", procs),
        None if threads is None else whole_numbers("--threads", threads),
        law=choice("--law", law, LAWS),
        family=family if family in (None, "all") else families(family, tuple(known)),
        scaling=SCALING_MODES[choice("--scaling", scaling, tuple(SCALING_MODES))],
        reference=optional_number("--reference", reference),
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
    )
    goal.write(found.to_dict(), views(found.families), found.files)
