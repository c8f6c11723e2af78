"""``popmodel sweep``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from popmodel.base.errors import PopmodelError, UsageError
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
    SetOption,
    binding,
    fraction,
    number_of,
    optional_number,
    settings,
    size,
    spreads,
    whole_numbers,
)

if TYPE_CHECKING:
    from popmodel.prediction.split_choice import Impossible

EXAMPLES = (
    "popmodel sweep --cores 64",
    "popmodel sweep cannon --cores 16,64 --set N=4096",
    "popmodel sweep --cores 64 --what-if latency=0.5x,bandwidth=2x",
    "popmodel sweep app.toml --machine m.json --cores 128 --max-memory 2GiB",
    "popmodel sweep --efficiency 0.8",
    "popmodel sweep --cores 32,64,128 -o sweep.svg",
)


def command(
    ctx: typer.Context,
    app: AppArgument = None,
    cores: Annotated[
        str | None,
        typer.Option(metavar="N[,N...]", help="Cores to split into processes and threads."),
    ] = None,
    machine: MachineOption = None,
    nodes: NodesOption = None,
    cores_per_node: CoresPerNodeOption = None,
    bind: BindOption = "close",
    set_: SetOption = None,
    imbalance: ImbalanceOption = None,
    what_if: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=FACTORx,...",
            help="Scale latency, bandwidth, memory (bandwidth), clock, openmp (overhead) or "
            "imbalance.",
        ),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory limit per process.")
    ] = None,
    efficiency: Annotated[
        str | None,
        typer.Option(
            metavar="E",
            help="Instead of --cores: find the largest number of cores with at least this "
            "parallel efficiency, such as 0.8.",
        ),
    ] = None,
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
) -> None:
    """Find the best split of cores into processes and threads.

    Shows every possible split with its runtime, efficiency, memory and probability of being the
    best, recommends one, and says what the usual defaults would cost and how to launch it. Numbers
    of cores that have no split are named; the exit status is then 1.
    """
    from popmodel.api.sweep import sweep
    from popmodel.cli.output import target
    from popmodel.cli.progress import counted
    from popmodel.reports.sweep import VIEWS

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    if (cores is None) == (efficiency is None):
        if cores is None:
            raise UsageError("--cores is missing", "try --cores 64")
        raise UsageError("--cores and --efficiency cannot be combined", "leave one of them out")
    counts = None if cores is None else whole_numbers("--cores", cores)
    goal_efficiency = None if efficiency is None else _fraction("--efficiency", efficiency)
    with counted("splits") as step:
        found = sweep(
            app,
            machine,
            counts,
            settings(set_ or []),
            imbalance=spreads(imbalance),
            what_if=_changes(what_if),
            nodes=optional_number("--nodes", nodes),
            cores_per_node=optional_number("--cores-per-node", cores_per_node),
            bind=binding(bind),
            max_memory=None if max_memory is None else size("--max-memory", max_memory),
            efficiency=goal_efficiency,
            step=step,
        )
    goal.write(found.to_dict(), VIEWS, found.files, lambda: _report(found.impossible))


def _report(impossible: Sequence[Impossible]) -> None:
    """Say after the result which numbers of cores have none."""
    if not impossible:
        return
    first, *others = impossible
    more = f"; {', '.join(str(one.cores) for one in others)} cores are not possible either"
    raise PopmodelError(first.why + (more if others else ""), first.hint)


def _fraction(option: str, text: str) -> float:
    """A fraction above 0 and at most 1, or a percentage."""
    value = fraction(text)
    if not 0 < value <= 1:
        raise UsageError(
            f"{option}: must be above 0 and at most 1, not '{text}'",
            f"try {option} 0.8 or {option} 80%",
        )
    return value


def _changes(text: str | None) -> dict[str, float]:
    """The factors that ``--what-if`` gives."""
    from popmodel.api.sweep import check_change

    changes: dict[str, float] = {}
    for part in [] if text is None else text.split(","):
        name, _, factor = (word.strip() for word in part.partition("="))
        if name in changes:
            raise UsageError(f"--what-if {part}: {name} is given twice", "leave one of them out")
        changes[name] = number_of(factor.removesuffix("x"))
        check_change(name, changes[name], f"--what-if {part}")
    return changes
