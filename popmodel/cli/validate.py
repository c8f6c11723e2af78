"""``popmodel validate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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
    SetOption,
    allocation,
    families,
    settings,
)
from popmodel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.model.measured import Measurement
    from popmodel.model.run.placement import Allocation
    from popmodel.model.validate import Predicted

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
    from_start: FromStartOption = False,
) -> None:
    """Compare predictions with measured runs.

    The runtime and every efficiency as predicted and as measured, whether the interval holds the
    measurement, and how far off the predictions are.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.model.prediction import MAIN_FAMILY
    from popmodel.model.validate import SCHEMA, compare, summary
    from popmodel.report.validate import views

    goal = target(output, format, force=force)
    shown = (MAIN_FAMILY,) if family is None else families(family, tuple(load_families()))
    runs = [
        run
        for path in measured
        for run in _measured(path, cache=not no_cache, from_start=from_start)
    ]
    available = allocation(nodes, cores_per_node)
    names, inputs, predictions = _predictions(
        prediction, machine, settings(set_ or []), available, runs
    )
    rows = compare(predictions, runs)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        **names,
        "measured": [run.to_dict() for run in runs if run.window is not None],
        "rows": [row.to_dict() for row in rows],
        "summary": summary(rows),
    }
    stamp = provenance.collect(ctx.obj, [*inputs, *measured]).to_dict()
    goal.write({**document, "provenance": stamp}, views(shown))


def _measured(path: str, *, cache: bool, from_start: bool) -> list[Measurement]:
    from popmodel.efficiency.measure import analyse
    from popmodel.model.measured import from_run, read_table
    from popmodel.trace import read

    if path.lower().endswith(".csv"):
        return read_table(path)
    return [from_run(analyse(read(path, cache=cache), from_start=from_start))]


def _predictions(
    source: str,
    machine: str | None,
    changes: dict[str, float],
    available: Allocation,
    runs: Sequence[Measurement],
) -> tuple[dict[str, str], list[str], list[Predicted]]:
    """Names, input files and predictions, read from a file or made for the sizes of the runs."""
    from popmodel.documents import parse_json, read_text
    from popmodel.machine import profile as profiles
    from popmodel.model.predict import predict
    from popmodel.model.run.placement import WHOLE
    from popmodel.model.signature import files as signatures
    from popmodel.model.validate import PREDICTION, from_document

    if source.lower().endswith(".json"):
        if machine is not None or changes or available != WHOLE:
            raise UsageError(
                "--machine, --set, --nodes and --cores-per-node do not go with a prediction that "
                "was saved",
                "name the application instead, to predict anew",
            )
        document = PREDICTION.read(parse_json(read_text(source), source), source)
        names = {key: document[key]["name"] for key in ("application", "machine")}
        return names, [source], [from_document(document)]
    signature = signatures.load(source)
    profile = profiles.load(machine or profiles.DEFAULT_PRESET)
    sizes = dict.fromkeys((run.processes, run.threads) for run in runs)
    made = [
        predict(signature, profile, *size, changes, allocation=available).to_dict()
        for size in sizes
    ]
    names = {"application": signature.name, "machine": profile.name}
    return names, [signature.path, profile.path], [from_document(one) for one in made]
