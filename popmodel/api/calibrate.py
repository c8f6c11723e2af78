"""Signatures that measured runs calibrate."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from popmodel.api import calibrate_document as told
from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    TraceLike,
    allocation_of,
    numbers,
    profile_of,
    signature_of,
    whole_number,
)
from popmodel.api.measured import read_runs
from popmodel.base.errors import FileError, UsageError
from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.base.values import cut, dataclass
from popmodel.fit.calibrate import Calibrated, Learnt, learnt_values, text_of
from popmodel.fit.calibrate import calibrate as calibrated
from popmodel.fit.cross_validation import NextRun, next_runs
from popmodel.fit.initial_values import initial_values
from popmodel.machines.profile import Profile
from popmodel.model import signatures
from popmodel.model.run.placement import Allocation
from popmodel.model.signature.program import Signature
from popmodel.prediction.prediction import subject
from popmodel.reports.calibrate import VIEWS
from popmodel.reports.result import Result, save_text
from popmodel.runs.measurement import MeasuredRow
from popmodel.traces.selection import Foa, TracePart, Window
from popmodel.validation.comparison import oversubscribed

if TYPE_CHECKING:
    from popmodel.reports.views import Views

SCHEMA = "popmodel/calibrate/1"
_FEW = 4
_FARTHER = 4
"""Times the cores of the largest run: what is asked for where nothing is said."""


@dataclass(frozen=True)
class CalibratedSignature(Result):
    """A signature that measured runs have calibrated, as returned by `calibrate`."""

    calibrated: Calibrated  # The signature, and what it rests on
    settings: Mapping[str, float]  # Parameters of the application where runs did not say otherwise
    targets: tuple[tuple[int, int], ...]  # P and T of the runs that are asked for
    measure_next: tuple[NextRun, ...]  # Runs that narrow the answer for these, the best first
    warnings: tuple[str, ...]  # What is doubtful about the runs
    files: tuple[str, ...]  # The files that were read
    path: str | None = None  # Where it was written

    @property
    def signature(self) -> Signature:
        """The signature, which `predict`, `sweep` and `validate` take."""
        return self.calibrated.signature

    @property
    def values(self) -> tuple[Learnt, ...]:
        """Every input that the runs taught something of, before and after."""
        return learnt_values(self.calibrated.fit, self.signature)

    @property
    def text(self) -> str:
        """The signature as TOML, with the comments of the original."""
        before = self.calibrated.before
        text = signatures.read(before.name if before.is_bundled else before.path)[2]
        original = signatures.from_text(text, before.path)
        return text_of(text, original, self.signature, self.values, date.today())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature to a file, replacing an existing one."""
        save_text(path, self.text, signatures.load)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/calibrate/1``, without provenance."""
        found = self.calibrated
        left_out, values = told.left_out_of(found), self.values
        result = {
            **subject(found.before, found.profile, self.settings),
            "path": self.path,
            "warnings": self.warnings,
            "accuracy": told.accuracy_of(left_out),
            "accuracy_of_sizes": told.sizes_of(found),
            "constants": told.constants_of(found, values),
            "inputs": told.inputs_of(found, values),
            "identifiable": told.identifiable_of(found),
            "suspect_runs": told.suspects_of(found),
            "terms": told.terms_of(found, values),
            "noise": found.fit.noise,
            "error_scale": found.error_scale,
            "left_out": left_out,
            "targets": [{"processes": one[0], "threads": one[1]} for one in self.targets],
            "measure_next": told.next_of(self.measure_next),
            "runs": len(found.runs),
        }
        return document(SCHEMA, verdict=told.verdict(result), **result)

    def __repr__(self) -> str:
        one = self.calibrated
        return cut(
            f"<Signature {one.signature.name} calibrated by {plural(len(one.runs), 'run')} on "
            f"{one.profile.name}>"
        )

    @property
    def views(self) -> Views:
        return VIEWS


def calibrate(
    application: SignatureLike,
    runs: TraceLike | Iterable[TraceLike],
    *,
    machine: ProfileLike | None = None,
    settings: Mapping[str, float] | None = None,
    targets: Sequence[tuple[int, int]] | None = None,
    nodes: int | None = None,
    cores_per_node: int | None = None,
    bind: str = "close",
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
) -> CalibratedSignature:
    """Correct the uncertain numbers of a signature by measured runs.

    Parameters
    ----------
    application : path, name or Signature
        The signature; its numbers with intervals are fitted, as are the laws and the machine.
    runs : path or Trace, or several of them
        Traces and tables of runs, as for `validate`, of at least two runs.
    machine : path, name or Profile, optional
        The machine that they were made on.
    settings : mapping of str to float, optional
        Parameters of the application where a run does not say otherwise; constants that are not to
        be fitted.
    targets : sequence of (int, int), optional
        P and T of the runs that the next measurement should narrow; by default all splits of four
        times the cores of the largest run, as far as the machine has them.
    nodes, cores_per_node : int, optional
        Nodes to use, and cores to use of each.
    bind : {'close', 'spread', 'none'}, optional
        Where the threads of a process are.
    window, region, from_start, foa
        As for `validate`.

    Raises
    ------
    FileError
        If a file cannot be read, the model has no prediction for a run, or it was used before.
    UsageError
        If there is one run only, or options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.calibrate(
    ...     "stencil3d",
    ...     "examples/stencil3d/two-core-vm.csv",
    ...     machine="examples/profiles/two-core-vm.json",
    ... )
    >>> found
    <Signature stencil3d calibrated by ... runs on ...>
    >>> found.signature.calibration.noise < 0.05  # how much runs vary
    True
    """
    signature, profile = signature_of(application), profile_of(machine)
    changes = numbers("settings", settings)
    allocation = allocation_of(nodes, cores_per_node, bind)
    constants = {name: value for name, value in changes.items() if name in signature.constants}
    changes = {name: value for name, value in changes.items() if name not in constants}
    set_ = signature.with_settings(constants)
    defaults = {name: one.value for name, one in set_.with_settings(changes).params.items()}
    measured = read_runs(
        runs, signature.params, asked=TracePart.of(window, region, from_start, foa)
    )
    filled = [replace(run, parameters={**defaults, **run.parameters}) for run in measured.runs]
    able, left_out = _able(filled, profile, allocation)
    warnings = [*measured.warnings, *left_out]
    _check(able, signature, left_out, warnings)
    set_ = initial_values(set_, profile, able, defaults, allocation)
    found = calibrated(set_, profile, able, defaults, allocation)
    found = replace(found, before=signature)
    asked = _targets(targets, able, profile, allocation)
    largest = max(able, key=lambda run: run.processes * run.threads)
    question = {**largest.parameters, **changes}
    return CalibratedSignature(
        found,
        question,
        asked,
        next_runs(found.fit, asked, question),
        tuple(warnings),
        (signature.path, profile.path, *measured.files),
    )


def _able(
    runs: Sequence[MeasuredRow], profile: Profile, allocation: Allocation
) -> tuple[list[MeasuredRow], list[str]]:
    """Runs whose threads had cores, and which others are left out and why."""
    topology = profile.topology
    nodes = min(allocation.nodes or topology.nodes, topology.nodes)
    cores = min(allocation.cores_per_node or topology.cores_per_node, topology.cores_per_node)
    reasons: dict[str, list[MeasuredRow]] = {}
    able = []
    for run in runs:
        why = oversubscribed(run, nodes, cores)
        if why is None:
            able.append(run)
        else:
            reasons.setdefault(why, []).append(run)
    return able, [
        f"{plural(len(some), 'run')} left out, first {some[0].place}: {why}"
        for why, some in reasons.items()
    ]


def _check(
    runs: Sequence[MeasuredRow],
    signature: Signature,
    left_out: Sequence[str],
    warnings: list[str],
) -> None:
    """Refuse runs that teach nothing, and say what they cannot teach."""
    used = {} if signature.calibration is None else signature.calibration.runs
    for run in runs:
        if run.digest in used:
            raise FileError(
                run.source,
                f"has a run that calibrated {signature.path} already ({used[run.digest]})",
                line=run.line,
                hint="give the original signature with all runs: counted twice they seem surer",
            )
    if len(runs) < 2:
        raise UsageError(
            f"{plural(len(runs), 'run')} to calibrate by: nothing tells a disturbed run from a "
            "wrong constant",
            "measure at least two, best of several numbers of processes, threads and sizes"
            + "".join(f"; {left}" for left in left_out),
        )
    configurations = {run.configuration for run in runs}
    if 1 < len(configurations) < _FEW:
        warnings.append(
            f"{len(configurations)} configurations are too few to tell what processes, threads and "
            "nodes do: intervals stay wide; measure six"
        )
    if len(configurations) == 1:
        one = runs[0]
        warnings.append(
            f"all runs are {one.processes} x {one.threads} of one size: they tell nothing about "
            "other processes, threads and sizes"
        )
    if signature.calibration is not None:
        warnings.append(
            f"{signature.path} is calibrated already: its constants are taken as they are now, "
            "what it knew of the machine and of the laws is learnt anew"
        )


def _targets(
    targets: Sequence[tuple[int, int]] | None,
    runs: Sequence[MeasuredRow],
    profile: Profile,
    allocation: Allocation,
) -> tuple[tuple[int, int], ...]:
    """The splits that are asked for."""
    if targets is not None:
        return tuple(
            (whole_number("processes", one), whole_number("threads", other))
            for one, other in targets
        )
    topology = profile.topology
    nodes = min(allocation.nodes or topology.nodes, topology.nodes)
    per_node = min(allocation.cores_per_node or topology.cores_per_node, topology.cores_per_node)
    largest = max(run.processes * run.threads for run in runs)
    return splits_of(min(_FARTHER * largest, nodes * per_node), per_node)


def splits_of(cores: int, most: int) -> tuple[tuple[int, int], ...]:
    """Every split of a number of cores with at most so many threads to a process."""
    return tuple(
        (cores // threads, threads)
        for threads in range(1, min(cores, most) + 1)
        if cores % threads == 0
    )
