"""A signature as the whole program of a run, every step carried out, to be replayed anywhere.

Predictions carry out a part of long loops and charge messages as the machine profile says. Here
nothing is left out, and what messages cost is up to the network of a replay; computation is that of
the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.values import NamedTuple
from popmodel.efficiency.observables import Observables
from popmodel.machines.profile import Profile
from popmodel.model.kinds.halo import Halo
from popmodel.model.predictor import Study
from popmodel.model.run.delays import computation
from popmodel.model.run.operations import NotUnrolled, OperationsBuilder
from popmodel.model.run.process_placement import WHOLE, Allocation, Placement
from popmodel.model.script import Compute, Script, ScriptPart
from popmodel.model.signature.application import Signature
from popmodel.model.tree import ItemTree
from popmodel.model.uncertainty import nominal
from popmodel.model.unroll import carry_out, outline
from popmodel.simulator.program import Program

MOST_OPERATIONS = 20_000_000
"""Operations of all processes: some gigabytes."""
_NS = 1e9
_LAST = (-1,)  # place of what ends a program


class Whole(NamedTuple):
    """A run of a signature; made by `whole`."""

    program: Program  # What every process does
    placement: Placement  # Where
    observed: Observables  # Its computation by thread, in a run whose MPI takes no time


def whole(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    settings: Mapping[str, float] | None = None,
    seed: int = 0,
    *,
    allocation: Allocation = WHOLE,
) -> Whole:
    """Carry out a signature as a whole."""
    study = Study(signature, profile, settings or {}, 0, seed, allocation=allocation)
    placement = study.admit_or_advise(processes, threads)
    drawn = study.sources()
    tree, spread = study.run(placement, drawn).tree, study.spread(placement, drawn)
    try:
        script = Script.of(tree, spread)
        total = script.operations({})
        if total > MOST_OPERATIONS:
            raise NotUnrolled(
                f"{total:,.0f} operations of all processes, more than the {MOST_OPERATIONS:,} that "
                "are carried out as a whole"
            )
        carried = carry_out(outline(_with_end(script), {}), spread, seed)
    except NotUnrolled as error:
        raise UsageError(
            f"{signature.name} at P={processes} T={threads} cannot be replayed as a whole: {error}",
            "popmodel predict replays a part of it; or set fewer steps",
        ) from None
    made = replace(carried.program, notes=tuple(_notes(tree)), unmodelled=signature.not_modelled)
    return Whole(made, placement, _observed(made, carried.computed, tree, placement))


def _with_end(script: Script) -> Script:
    """Return the script with a last communication of nobody: there may be no other."""
    nothing = OperationsBuilder(script.point.messages).build()
    end = ScriptPart(_LAST, 1.0, Compute(), nothing)
    return replace(script, parts=(*script.parts, end))


def _notes(tree: ItemTree) -> list[str]:
    """Say what of a prediction a replay on another network does not have."""
    names = dict.fromkeys(
        item.name for item, _ in tree.leaves() if isinstance(item, Halo) and nominal(item.overlap)
    )
    return [
        f"the transfers of {name!r} that predictions hide behind computation are not hidden here"
        for name in names
    ]


def _observed(
    program: Program, working: NDArray[np.float64], tree: ItemTree, placement: Placement
) -> Observables:
    """Divide the computation of each process among its threads, as the average process does."""
    work, threads = tree.total, placement.threads
    computed = program.compute() / _NS
    grows, overhead = nominal(computation(work)), np.maximum(computed - working, 0.0)
    factor = working / grows if grows else np.zeros(computed.size)
    serial, share, busiest, awaiting = (
        nominal(one) * factor for one in (work.serial, work.share, work.stretched, work.awaiting)
    )
    others = (threads * share - busiest) / (threads - 1) if threads > 1 else share
    # the busiest thread is the master, as under a static schedule
    in_regions = np.concatenate(
        [busiest[:, None], np.repeat(np.maximum(others, 0.0)[:, None], threads - 1, axis=1)], axis=1
    )
    useful = in_regions.copy()
    useful[:, 0] += serial
    uneven = float((busiest - share).mean())
    synchronising = nominal(work.synchronising) + float(awaiting.mean())
    has_openmp = bool(nominal(work.parallel))
    processes = computed.size
    return Observables(
        runtime=float(computed.max()) or 1.0 / _NS,
        threads=np.full(processes, threads),
        node=program.nodes,
        useful=useful.ravel(),
        omp_useful=in_regions.ravel(),
        in_mpi=np.zeros(processes * threads),
        serial_useful=serial,
        in_openmp=_regions(busiest, overhead, has_openmp=has_openmp),
        serial_mpi=np.zeros(processes),
        has_mpi=bool(program.operations),
        has_openmp=has_openmp,
        openmp_imbalance=uneven,
        openmp_synchronisation=synchronising,
        openmp_scheduling=float(overhead.mean()) + uneven - synchronising,
        openmp_mpi=0.0,
    )


def _regions(
    busiest: NDArray[np.float64], overhead: NDArray[np.float64], *, has_openmp: bool
) -> NDArray[np.float64]:
    """Wall time of the master in parallel regions, s."""
    return busiest + overhead if has_openmp else np.zeros(busiest.size)
