"""Documents of ``popmodel trace``: traced runs, and the library that traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from popmodel.base.plain import document
from popmodel.tracer.conversion import RECORD_COST, not_seen, overhead

if TYPE_CHECKING:
    from popmodel.tracer.conversion import Merged
    from popmodel.tracer.library import Library

_NS = 1e-9


def traced(runs: Sequence[Merged], *, raw: str | None, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return all runs of a command, ``popmodel/trace/1``: the first, with the others in it."""
    first, *others = (_traced(run, raw, notes) for run in runs)
    return {**first, "others": others}


def _traced(run: Merged, raw: str | None, notes: Sequence[str]) -> dict[str, Any]:
    share = overhead(run)
    return document(
        "popmodel/trace/1",
        trace=run.path,
        size=run.size,
        raw=raw,
        raw_size=run.raw_size,
        processes=run.processes,
        threads=run.threads,
        hosts=run.hosts,
        duration=run.duration * _NS,
        records=run.records,
        calls=run.calls,
        only_masters_call=run.only_masters_call,
        messages=run.messages,
        message_bytes=run.message_bytes,
        library=run.library,
        openmp=run.openmp,
        counters=run.counters.get("", 0),
        clock_residual=None if run.clock_residual is None else run.clock_residual * _NS,
        overhead={
            "share": share.middle,
            "low": share.low,
            "high": share.high,
            "per_record": RECORD_COST.middle,
        },
        spawned=run.spawned,
        caveats=run.crowding,
        not_seen=[*notes, *not_seen(run)],
    )


def built(library: Library) -> dict[str, Any]:
    """Return a built library, ``popmodel/trace-library/1``."""
    return document(
        "popmodel/trace-library/1",
        library=library.path,
        compiler=library.compiler.version,
        mpi=None if library.mpi is None else library.mpi.name,
        without_mpi=library.without_mpi,
    )
