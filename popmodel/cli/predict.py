"""``popmodel predict``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import (
    DRAWN,
    AppArgument,
    BindOption,
    CoresPerNodeOption,
    DrawnFormatOption,
    DrawnOutputOption,
    ForceOption,
    ImbalanceOption,
    MachineOption,
    NodesOption,
    PredictedFamilyOption,
    SetOption,
    binding,
    families,
    optional_number,
    settings,
    split_and_settings,
    spreads,
    whole_number,
)

EXAMPLES = (
    "popmodel predict --procs 16 --threads 4",
    "popmodel predict cannon --procs 16 --threads 4 --set N=8192",
    "popmodel predict app.toml --machine m.json --procs 64 --nodes 8",
    "popmodel predict --procs 16 --threads 4 --family scaling --reference 1x4",
    "popmodel predict --procs 16 --threads 4 -o prediction.json",
    "popmodel predict --procs 16 --threads 4 --formula runtime",
)


def command(
    ctx: typer.Context,
    app: AppArgument = None,
    procs: Annotated[
        str | None, typer.Option(metavar="P", help="Number of processes (required).")
    ] = None,
    threads: Annotated[str, typer.Option(metavar="T", help="Threads per process.")] = "1",
    machine: MachineOption = None,
    nodes: NodesOption = None,
    cores_per_node: CoresPerNodeOption = None,
    bind: BindOption = "close",
    set_: SetOption = None,
    imbalance: ImbalanceOption = None,
    family: PredictedFamilyOption = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="PxT[,NAME=VALUE]",
            help="Reference run of the family scaling, such as 1x4 or 1x4,N=256 (another problem "
            "size: weak scaling). Default: 1x1, or the smallest possible part of the run.",
        ),
    ] = None,
    formula: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Print the formula of a metric, or of the runtime (METRIC = runtime), and the "
            "effect of each input on it; LaTeX with --format markdown.",
        ),
    ] = None,
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
) -> None:
    """Predict the runtime and the efficiencies of a run.

    From the signature of an application and the profile of a machine: runtime and efficiencies with
    90 % intervals, where the time goes, what would help, and how to launch the run.
    """
    from popmodel.api.predict import predict
    from popmodel.cli.output import target
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.prediction.prediction import MAIN_FAMILY
    from popmodel.reports.predict import views

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    if procs is None:
        raise UsageError("--procs is missing", "try --procs 16")
    processes = whole_number("--procs", procs)
    per_process = whole_number("--threads", threads)
    on_nodes = optional_number("--nodes", nodes)
    on_cores = optional_number("--cores-per-node", cores_per_node)
    bound = binding(bind)
    changed = settings(set_ or [])
    spread = spreads(imbalance)
    if formula is not None:
        for option, given in (("--family", family), ("--reference", reference)):
            if given is not None:
                raise UsageError(f"--formula and {option} cannot be combined", _ALONE[option])
        from popmodel.api.signature import formula as derive
        from popmodel.reports.formula import VIEWS

        derived = derive(
            app,
            machine,
            processes,
            per_process,
            formula,
            changed,
            nodes=on_nodes,
            cores_per_node=on_cores,
            bind=bound,
            imbalance=spread,
        )
        goal.write(derived.to_dict(), VIEWS, (derived.signature.path, derived.profile.path))
        return
    shown = (MAIN_FAMILY,) if family is None else families(family, tuple(load_families()))
    found = predict(
        app,
        machine,
        processes,
        per_process,
        changed,
        nodes=on_nodes,
        cores_per_node=on_cores,
        bind=bound,
        imbalance=spread,
        reference=None if reference is None else split_and_settings("--reference", reference),
    )
    goal.write(found.to_dict(), views(shown, brief=family is None), found.files)


_ALONE = {
    "--family": "write --formula FAMILY.METRIC",
    "--reference": "a formula describes one run: leave one of them out",
}
