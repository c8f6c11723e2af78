"""What a signature keeps of its runs, and how well those left out are predicted from the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from popmodel.errors import PopmodelError
from popmodel.model.signature.learnt_runs import LearntRun, LearntRuns
from popmodel.signature.compare_replay import carried_out
from popmodel.signature.computing import own_times
from popmodel.signature.recorded_times import figures
from popmodel.trace.caveats import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from popmodel.model.signature.program import Signature
    from popmodel.signature.align_runs import Run

LEAST = 3
"""Configurations, the left out one among them, from which a law can be tested."""


def learnt_from(
    runs: Sequence[Run],
    signature: Signature,
    written: float,
    without: Callable[[Sequence[Run]], Signature],
) -> LearntRuns:
    """Keep what protects predictions: times of the runs, replayed and predicted from the others.

    ``written`` is the replay of the signature as the first run, s; ``without`` learns one from some
    of the runs.
    """
    learnt: list[LearntRun] = []
    structures = [run.structure for run in runs]
    programs = [own_times(each.program, each.events) for each in structures]
    ideal = [figures(program).runtime for program in programs]
    first = runs[0]
    runs = [run for run, seconds in zip(runs, ideal, strict=True) if seconds > 0]
    for run, seconds in zip(runs, filter(None, ideal), strict=True):
        trace = run.trace
        learnt.append(
            LearntRun(
                trace.processes,
                run.threads,
                seconds,
                written if run is first else _replay(signature, run),
                run.parameters,
                trace.duration / 1e9 if trace.timed else None,
                waiting(trace),
            )
        )
    configurations = dict.fromkeys(one.configuration for one in learnt)
    for configuration in configurations if len(configurations) >= LEAST else ():
        left_out = [index for index, one in enumerate(learnt) if one.configuration == configuration]
        try:
            others = without([run for index, run in enumerate(runs) if index not in left_out])
            predicted = _replay(others, runs[left_out[0]])
        except PopmodelError:  # such as a grid that the others do not have: nothing is told
            continue
        for index in left_out:
            learnt[index] = replace(learnt[index], left_out=predicted / learnt[index].ideal)
    openmp = any(run.threads > 1 for run in runs) or any(
        structure.events.is_region.any() for structure in structures
    )
    return LearntRuns(openmp, tuple(learnt))


def _replay(signature: Signature, run: Run) -> float:
    """How long a signature takes on the ideal network with P, T and parameters of a run, s."""
    program = carried_out(signature, run.trace.processes, run.threads, run.parameters)
    return figures(program).runtime
