"""Losses of the computation itself against the reference run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.efficiency.advice.remark import Remark, RemarkLoss, percent
from popmodel.units import format_time

if TYPE_CHECKING:
    from popmodel.efficiency.measure import MeasuredRun


def computation(loss: RemarkLoss) -> Remark:
    """Say how useful time grew where no counters tell why."""
    if loss.reference is None:
        return Remark("", loss.advice)
    useful, before = (float(run.observables.useful.sum()) for run in (loss.run, loss.reference))
    lacking = dict.fromkeys(
        reason
        for name, reason in loss.cost.evaluation.absent.items()
        if name in loss.cost.evaluation.family.parts(loss.cost.metric)
        for reason in reason.split("; ")
    )
    return Remark(
        f"The useful time of all threads is {format_time(useful)} against {format_time(before)} in "
        f"{loss.reference_name}" + (f" ({'; '.join(lacking)})." if lacking else "."),
        "Trace with counters (popmodel trace --counters; Extrae: PAPI_TOT_INS, PAPI_TOT_CYC): "
        "they show whether the run executes more instructions, at a lower IPC or at a lower clock.",
    )


def instructions(loss: RemarkLoss) -> Remark:
    """Say how many more instructions are executed."""
    return Remark(
        f"The run executes {percent(1 / loss.cost.value - 1)} more instructions than "
        f"{_reference(loss)} at equal work.",
        loss.advice,
    )


def ipc(loss: RemarkLoss) -> Remark:
    """Say what the instructions per cycle were and are."""
    return _compare(loss, "instructions", "cycles", 1.0, "IPC", "")


def frequency(loss: RemarkLoss) -> Remark:
    """Say what the clock was and is."""
    return _compare(loss, "cycles", "useful", 1e-9, "The clock", " GHz")


def _compare(
    loss: RemarkLoss, above: str, below: str, factor: float, what: str, unit: str
) -> Remark:
    if loss.reference is None:
        return Remark("", loss.advice)
    now, before = (
        factor * _sum(run, above) / _sum(run, below) for run in (loss.run, loss.reference)
    )
    return Remark(
        f"{what} is {now:.3g}{unit} against {before:.3g}{unit} in {_reference(loss)}.",
        loss.advice,
    )


def _sum(run: MeasuredRun, name: str) -> float:
    return float(getattr(run.observables, name).sum())


def _reference(loss: RemarkLoss) -> str:
    return loss.reference_name or "the reference run"
