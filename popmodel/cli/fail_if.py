"""``--fail-if``: conditions that a result must not meet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from popmodel.base.errors import PopmodelError, ThresholdError, UsageError
from popmodel.base.values import NamedTuple
from popmodel.cli.options import fraction

if TYPE_CHECKING:
    from popmodel.reports.result import Result


class FailCondition(NamedTuple):
    """A value below or above a limit, or its change against earlier runs."""

    id: str  # METRIC, FAMILY.METRIC or another name of the verb's document
    below: bool
    limit: float
    is_change: bool = False  # the limit has a sign: ``+5 %``


def read_conditions(texts: Iterable[str]) -> list[FailCondition]:
    """Read ``ID < NUMBER`` or ``ID > NUMBER``; a number may be a percentage, and have a sign."""
    return [_condition(text) for text in texts]


def _condition(text: str) -> FailCondition:
    match = re.fullmatch(r"\s*([A-Za-z_][\w.-]*)\s*([<>])\s*(\S+)\s*(%?)\s*", text)
    example = "write ID < NUMBER or ID > NUMBER in quotes, such as 'parallel_efficiency < 0.8'"
    if match is None:
        raise UsageError(f"--fail-if {text}: is no condition", example)
    limit = fraction(match[3] + match[4])
    if not math.isfinite(limit):
        raise UsageError(f"--fail-if {text}: must be a number, not '{match[3]}'", example)
    return FailCondition(match[1], match[2] == "<", limit, match[3][0] in "+-")


def expect_known(condition: FailCondition, result: Result) -> None:
    """Refuse an id that a result has not, and a limit that no fraction reaches."""
    sign = "<" if condition.below else ">"
    if _is_change(condition, result):
        result.changes(condition.id)
        return
    where = f"--fail-if '{condition.id} {sign} {condition.limit:g}'"
    try:
        known = result.find(condition.id)
    except UsageError as error:
        hint = error.hint or "popmodel docs --all lists the metrics"
        raise UsageError(f"{where}: {error.message}", hint) from error
    from popmodel.efficiency.hierarchy import BUNDLED

    family = known[0].id.rpartition(".")[0]
    is_fraction = known[0].id in _FRACTIONS or family in set(BUNDLED) - {"scaling"}
    if is_fraction and condition.limit >= _NO_FRACTION:
        raise UsageError(f"{where}: is a fraction", f"write {condition.limit:g}%")


_FRACTIONS = ("error", "coverage", "fidelity")
_NO_FRACTION = 5  # limits from here on are meant in per cent


def check(conditions: Sequence[FailCondition], result: Result) -> None:
    """Hold a result against conditions.

    Raises `ThresholdError` where one is met, and `PopmodelError` where a value is absent: nobody
    can tell then whether it is. A change counts only if it is more than noise.
    """
    met: list[str] = []
    unknown: dict[str, list[str]] = {}  # by reason, which several values can share
    for condition in conditions:
        if _is_change(condition, result):
            met += _changed(condition, result)
            continue
        for value in result.find(condition.id):
            where = f"{value.id} of {value.where}" if value.where else value.id
            if value.value is None:
                unknown.setdefault(value.why, []).append(where)
            elif (
                (value.value < condition.limit)
                if condition.below
                else (value.value > condition.limit)
            ):
                than = "less" if condition.below else "more"
                met.append(f"{where} is {value.value:.4g}, {than} than {condition.limit:g}")
    if met:
        raise ThresholdError("; ".join(met))
    if unknown:
        told = "; ".join(f"{', '.join(names)} ({why})" for why, names in unknown.items())
        raise PopmodelError(
            f"--fail-if cannot be checked: no value for {told}",
            "leave the condition out or analyse runs that have the value",
        )


def _is_change(condition: FailCondition, result: Result) -> bool:
    """Whether a limit is a change against earlier runs: elsewhere it is a number with a sign."""
    from popmodel.reports.result import Result as Plain

    return condition.is_change and type(result).changes is not Plain.changes


def _changed(condition: FailCondition, result: Result) -> list[str]:
    """Where a value changed by more than a limit, and not by chance."""
    from popmodel.runs.regression import p_text, signed

    met = []
    for where, change in result.changes(condition.id):
        beyond = change.ratio - 1 - condition.limit
        if change.is_shown and (beyond < 0 if condition.below else beyond > 0):
            than = "below" if condition.below else "above"
            met.append(
                f"{change.id} of {where} changed by {signed(change.ratio)} ({p_text(change.p)}), "
                f"{than} {100 * condition.limit:+g} %"
            )
    return met
