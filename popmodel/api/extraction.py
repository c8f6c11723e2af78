"""From traces to the signature of a program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    TraceLike,
    path_of,
    profile_of,
    several,
    signature_of,
    trace_of,
)
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.model import signatures
from popmodel.reports.agreement import VIEWS as AGREEMENT
from popmodel.reports.extraction import VIEWS
from popmodel.reports.result import Result, save_text
from popmodel.signatures import Run
from popmodel.signatures.amounts import SCALES
from popmodel.signatures.compare_replay import ProgramAgreement, against
from popmodel.signatures.from_runs import LearntSignature
from popmodel.signatures.from_runs import signature_from as extracted
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces.selection import PROGRAM, Foa, TracePart, Window, focused

if TYPE_CHECKING:
    from popmodel.reports.views import Views


@dataclass(frozen=True)
class Found(Result):
    """A signature that was found in traces, as returned by `signature_from`."""

    extracted: LearntSignature  # The signature, and what it rests on
    path: str | None = None  # Where it was written

    def __repr__(self) -> str:
        one = self.extracted
        phases = plural(len(one.outline.points), "phase")
        return f"<Signature of {one.name} from {plural(len(one.runs), 'trace')}: {phases}>"

    @property
    def text(self) -> str:
        """The signature as TOML."""
        return self.extracted.text

    @property
    def files(self) -> tuple[str, ...]:
        """The traces."""
        return tuple(run.trace.path for run in self.extracted.runs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature to a file, replacing an existing one."""
        save_text(path, self.text, signatures.load)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/extraction/1``, without provenance."""
        return document("popmodel/extraction/1", path=self.path, **self.extracted.to_dict())

    @property
    def views(self) -> Views:
        return VIEWS


def signature_from(
    traces: TraceLike | Iterable[TraceLike],
    *,
    name: str | None = None,
    parameters: Sequence[Mapping[str, float]] | None = None,
    scaling: str = "strong",
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
) -> Found:
    """Find the signature of a program in traces of its runs.

    Parameters
    ----------
    traces : path or Trace, or several of them
        One gives the signature at its numbers of processes and threads, with stated assumptions
        about others; several the laws by which work, bytes and counts grow.
    name : str, optional
        Of the application; default: that of the first trace.
    parameters : sequence of mapping of str to float, optional
        Problem parameters of each run, such as ``[{"N": 128}, {"N": 256}]``.
    scaling : {"strong", "weak"}
        What is assumed where runs say nothing: the work of the whole program stays, or that of a
        process.
    window, region, from_start, foa, application
        As for `popmodel.metrics`, of every trace.
    flop_rate : float, optional
        As for `popmodel.read`.

    Raises
    ------
    FileError
        If a trace cannot be read, or has no iterations where these are asked for.
    PartError
        If a run has not that many.
    PopmodelError
        If a signature cannot say what the program does, or the traces are of different programs.
    UsageError
        If parameters do not fit the traces, or options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.signature_from("examples/traces/stencil3d.2x2.prv.gz")
    >>> found
    <Signature of stencil3d.2x2 from 1 trace: ... phases>
    """
    asked = TracePart.of(window, region, from_start, foa)
    given = several(traces)
    if not given:
        raise UsageError("no trace given", "name at least one")
    if scaling not in SCALES:
        hint = did_you_mean(scaling, SCALES, f"choose one of {', '.join(SCALES)}")
        raise UsageError(f"scaling: unknown value {scaling!r}", hint)
    of_runs = list(parameters) if parameters is not None else [{} for _ in given]
    if len(of_runs) != len(given):
        raise UsageError(
            f"parameters of {plural(len(of_runs), 'run')} for {plural(len(given), 'trace')}",
            "give one mapping for each trace",
        )
    for path, values in zip(given, of_runs, strict=True):
        if values.keys() != of_runs[0].keys():
            names = ", ".join(sorted(of_runs[0])) or "none"
            raise UsageError(
                f"{path_of(path)}: other parameters than the first trace ({names})",
                "give the same parameters to every trace, such as run.prv.gz:N=128",
            )
    runs = []
    for each, values in zip(given, of_runs, strict=True):
        read = trace_of(each, application=application, flop_rate=flop_rate, rated=True)
        part, focus = focused(read, part_of_run(asked, read))
        runs.append(Run(part, dict(values), focus.why if asked != PROGRAM else None))
    return Found(extracted(runs, name=name, scaling=scaling))


@dataclass(frozen=True)
class SignatureComparison(Result):
    """A signature beside a trace, as returned by `check_against`."""

    # Where they are.
    signature: str
    trace: str
    # Of the trace.
    processes: int
    threads: int
    agreement: ProgramAgreement  # What they have in common

    def __repr__(self) -> str:
        off = f"off by {100 * self.agreement.worst:.2g} % at most"
        return f"<Signature {self.signature} against {self.trace}: {off}>"

    @property
    def files(self) -> tuple[str, ...]:
        """The signature and the trace."""
        return self.signature, self.trace

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/agreement/1``, without provenance."""
        own = {name: getattr(self, name) for name in ("signature", "trace", "processes", "threads")}
        return document("popmodel/agreement/1", **own, **self.agreement.to_dict())

    @property
    def views(self) -> Views:
        return AGREEMENT


def check_against(
    application: SignatureLike,
    trace: TraceLike,
    *,
    settings: Mapping[str, float] | None = None,
    machine: ProfileLike | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    trace_application: int = 1,
    flop_rate: float | None = None,
) -> SignatureComparison:
    """Compare a signature with a trace, phase by phase and message by message.

    The signature is carried out as a whole with the processes and threads of the trace, and both
    are replayed on the ideal network.
    """
    asked = TracePart.of(window, region, from_start, foa)
    signature = signature_of(application)
    read = trace_of(trace, application=trace_application, flop_rate=flop_rate, rated=True)
    source = focused(read, part_of_run(asked, read))[0]
    found = against(signature, source, settings, None if machine is None else profile_of(machine))
    return SignatureComparison(
        signature.path, path_of(trace), source.processes, int(max(source.threads)), found
    )
