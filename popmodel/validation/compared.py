"""Measured runs compared with their predictions, but for those that say nothing about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from popmodel.runs.measurement import Measurement
from popmodel.validation import training
from popmodel.validation.comparison import Paired, by_machine, paired, rows_of
from popmodel.validation.decision import Decision, decisions
from popmodel.validation.left_out import LeftOut, of_runs, oversubscribed, suspicious
from popmodel.validation.predicted import Predicted
from popmodel.validation.repeats import splits
from popmodel.validation.subject import Subject
from popmodel.validation.training import Region, Training
from popmodel.values import dataclass


@dataclass(frozen=True)
class Compared:
    """What came of it."""

    # All runs; what a run leaves open of its parameters is as predicted.
    measured: tuple[Measurement, ...]
    pairs: tuple[Paired, ...]  # Those that are compared, with their predictions
    training: Training | None  # The runs that the model was fitted to, if any are known
    decisions: tuple[Decision, ...]  # Whether the right split would have been chosen
    left_out: tuple[LeftOut, ...]  # Runs that are not compared


def compared(
    about: Subject,
    runs: Sequence[Measurement],
    fitted: Sequence[Measurement] = (),
    *,
    all_runs: bool = False,
) -> Compared:
    """Compare runs with what is predicted of them."""

    def filled(some: Sequence[Measurement]) -> tuple[Measurement, ...]:
        return tuple(
            replace(run, parameters={**about.parameters, **run.parameters}) for run in some
        )

    measured = filled(runs)
    read = (*fitted, *runs)
    known = _trained(about, list(zip(read, filled(read), strict=True)), filled(fitted))

    def placed(run: Measurement, one: Predicted) -> Region:
        return by_machine(run, one) if known is None else training.region_of(run, one.nodes, known)

    able, crowded = (list(runs), []) if all_runs else _parted(runs, about)
    pairs = paired(about.predict(able), filled(able), placed)
    left = of_runs((one, why) for run, why in crowded for one in filled([run]))
    kept = splits(rows_of(pairs))
    if not all_runs:
        kept, disturbed = suspicious(kept)
        left += disturbed
        pairs = tuple(one for one in pairs if any(split.holds(one) for split in kept))
    return Compared(measured, pairs, known, decisions(kept, about.choose), left)


def _trained(
    about: Subject,
    runs: Sequence[tuple[Measurement, Measurement]],
    fitted: Sequence[Measurement],
) -> Training | None:
    """The runs that the model was fitted to, as the signature knows and as they were named."""
    found = []
    if about.calibration is not None:
        found.append(training.of_calibration(about.calibration, runs))
    if fitted:
        found.append(training.of_runs(fitted, about.nodes_of))
    return training.joined(found)


def _parted(
    runs: Sequence[Measurement], about: Subject
) -> tuple[list[Measurement], list[tuple[Measurement, str]]]:
    """Runs whose threads had cores, and the others with the reason; all if there are no others."""
    able: list[Measurement] = []
    crowded: list[tuple[Measurement, str]] = []
    for run in runs:
        why = None if about.available is None else oversubscribed(run, *about.available)
        if why is None and run.disturbed:
            why = "their threads waited for CPUs"
        if why is None:
            able.append(run)
        else:
            crowded.append((run, why))
    # where none is left, prediction and verdict say what the machine has, and what disturbed
    return (able, crowded) if able else (list(runs), [])
