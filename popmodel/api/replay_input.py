"""What is replayed: a run that was traced, or one that a signature describes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.api.inputs import (
    SignatureLike,
    TraceLike,
    numbers,
    path_of,
    profile_of,
    signature_of,
    trace_of,
    whole_number,
)
from popmodel.api.outcomes import Evaluations, evaluate
from popmodel.api.written import write_replay
from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass
from popmodel.efficiency.measure import analyse, before_replay, runtime
from popmodel.efficiency.observables import unknown_families
from popmodel.sensitivity.regions import at_speeds
from popmodel.simulator import from_trace
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces.caveats import caveats
from popmodel.traces.formats import FORMATS
from popmodel.traces.selection import TraceFocus, TracePart, focused

if TYPE_CHECKING:
    from popmodel.efficiency.observables import Observables
    from popmodel.machines.profile import Profile
    from popmodel.network.network import Network
    from popmodel.simulator import Program

RunLike: TypeAlias = "TraceLike | SignatureLike"
Observed: TypeAlias = "tuple[Observables, dict[str, str], Evaluations]"
"""What is known of a run without its MPI, families that it does not give, and efficiencies."""
_NS = 1e9


@dataclass(frozen=True)
class ReplayInput:
    """A run that is replayed."""

    kind: str  # ``trace`` or ``signature``
    path: str  # Where it comes from
    files: tuple[str, ...]  # What was read
    program: Program  # What every process does
    focus: TraceFocus  # The part of it that is replayed
    measured: float | None  # Its measured runtime, s; None where it has no measured times
    caveats: tuple[str, ...]  # What limits its numbers
    observe: Callable[[], Observed]  # Gives what its efficiencies need
    # Writes a replay on a network as a trace; None where there is nothing to write it from.
    write: Callable[[Network, str | os.PathLike[str]], None] | None


def either(
    run: RunLike, procs: int | None, threads: int, settings: Mapping[str, float] | None
) -> tuple[SignatureLike, None] | tuple[None, TraceLike]:
    """Return a signature or a trace: TOML is the first, and what has a number of processes."""
    from popmodel.traces import Trace

    if isinstance(run, str | os.PathLike):  # a trace needs nothing of the model, which takes long
        path = os.fspath(run)
        traced = any(form.is_named(Path(path)) for form in FORMATS)
        if path.endswith(".toml") or (procs is not None and not traced):
            return run, None
    elif not isinstance(run, Trace):
        return run, None
    else:
        path = run.path
    for option, name, given in (
        ("--procs", "procs", procs is not None),
        ("--threads", "threads", threads != 1),
        ("--set", "settings", bool(settings)),
    ):
        if given:
            raise UsageError(
                f"{path}: {option} is for signatures; this is a trace, which is replayed as it is",
                f"leave out {option} ({name} in Python), or name a signature (.toml)",
            )
    return None, run


def of_trace(
    trace: TraceLike,
    part: TracePart,
    speeds: Mapping[str, float] | None = None,
    *,
    application: int = 1,
    flop_rate: float | None = None,
) -> ReplayInput:
    """Return a traced run; parameters as of `popmodel.replay`, with speeds of regions."""
    path = path_of(trace)
    whole = trace_of(trace, application=application, flop_rate=flop_rate, rated=True)
    chosen = part_of_run(part, whole)
    source, focus = focused(whole, chosen)
    program = from_trace(source)
    if speeds:
        program = at_speeds(program, source, speeds)

    def observe() -> Observed:
        found = analyse(whole, part=chosen).observables if whole.timed else before_replay(source)
        unknown = unknown_families(found)
        return found, unknown, evaluate(found, unknown) if whole.timed else {}

    return ReplayInput(
        "trace",
        path,
        (path,),
        program,
        focus,
        runtime(source) if source.timed else None,
        caveats(source, focus),
        observe,
        lambda network, output: write_replay(source, program, network, output),
    )


def of_signature(
    application: SignatureLike,
    machine: Profile | None,
    procs: int | None,
    threads: int,
    settings: Mapping[str, float] | None,
    seed: int,
    refused: Mapping[str, Any],
) -> ReplayInput:
    """Return a run that a signature describes, with every step."""
    from popmodel.model.full_program import whole

    signature, profile = signature_of(application), profile_of(machine)
    if procs is None:
        raise UsageError(f"{signature.path}: how many processes?", "--procs 4 (procs=4 in Python)")
    for name, value in refused.items():
        if value:
            raise UsageError(
                f"{signature.path}: {name}: a signature has no trace to take it from",
                "leave it out",
            )
    made = whole(
        signature,
        profile,
        whole_number("procs", procs),
        whole_number("threads", threads),
        numbers("settings", settings),
        seed,
    )
    end = round(float(made.program.compute().max(initial=0.0)))
    why = "every step of the signature"
    computed = f"computation is that of {made.placement.processes} x {made.placement.threads} on "
    unknown = unknown_families(made.observed)
    return ReplayInput(
        "signature",
        signature.path,
        (signature.path, profile.path),
        made.program,
        TraceFocus(0, end, 0, 0, why),
        None,
        (f"{computed}{profile.name}, as predicted, not measured",),
        lambda: (made.observed, unknown, {}),
        None,
    )
