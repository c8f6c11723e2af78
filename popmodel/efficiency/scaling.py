"""Runs of one program compared with one of them, the reference run.

The formulas are those of the family ``scaling``; this module decides which run is the reference,
whether the problem grew with the cores, and says why (POP Standard Metrics, Computation Scaling).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import Literal, TypeVar

from popmodel.base.errors import UsageError
from popmodel.base.expressions.elementary import Value
from popmodel.base.values import dataclass
from popmodel.efficiency.family import REASONS, FamilyEvaluation
from popmodel.efficiency.hierarchy import load_families

Mode = Literal["strong", "weak"]
Number = TypeVar("Number", float, Value)

_SHARED = ("runtime", "useful_sum", "instructions_sum", "cycles_sum")


@dataclass(frozen=True)
class Comparable:
    """What a comparison needs to know of one run."""

    name: str  # How to refer to the run, such as the path of its trace
    aggregates: Mapping[str, float]  # As `Observables.aggregates` gives them
    # Reasons for what is missing, as `Observables.absent`.
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scaling:
    """The comparison of all runs with the reference run."""

    mode: Mode  # Whether all runs do the same work, or work that grows with the cores
    reference: int  # Index of the reference run
    why: str  # Why this mode and this reference, in words
    evaluations: tuple[
        FamilyEvaluation, ...
    ]  # The metrics of family ``scaling``, one evaluation per run
    # Whether the run or its reference has processes with several threads.
    threaded: tuple[bool, ...]
    # What families of devices take from the reference run; None of a run with devices where that
    # has none.
    devices: tuple[Mapping[str, float] | None, ...]
    # Signs that the runs did not do the work that the comparison assumes.
    doubts: tuple[str, ...] = ()
    # Runs of another program than the reference run, which have no scaling metrics: a sentence.
    strangers: Mapping[int, str] = field(default_factory=dict)

    def aggregates(self, index: int) -> dict[str, float]:
        """What the comparison adds to the aggregates of one run, for other families.

        These are the MPI-only ones, to which a process is its master thread: computation scaling,
        which is of all threads, says nothing there if processes have several.
        """
        return {**self._of_masters(index)[0], **(self.devices[index] or {})}

    def absent(self, index: int) -> dict[str, str]:
        """Reasons for what the comparison could not add, by the name of the aggregate."""
        lacking = _OF_DEVICES if self.devices[index] is None else ()
        return {**self._of_masters(index)[1], **dict.fromkeys(lacking, _NO_DEVICES)}

    def _of_masters(self, index: int) -> tuple[dict[str, float], dict[str, str]]:
        evaluation = self.evaluations[index]
        return of_masters(evaluation.values, evaluation.absent, threaded=self.threaded[index])


SCALING = "scaling"
STRANGER = "another program than "
"""How what is said of a run begins that is of another program than the reference run."""
COMPARABLE = 5.0
"""Ratio of useful times that cache effects or contention hardly explain in runs of one program."""
_NAME = "computation_scaling"
_OF_ALL_THREADS = (
    "processes have several threads: the family scaling has the global efficiency of all threads"
)


def evaluate_all(run: Comparable, scaled: Scaling, index: int) -> dict[str, FamilyEvaluation]:
    """Evaluate every family for one of the compared runs."""
    values = {**run.aggregates, **scaled.aggregates(index)}
    absent = {**run.absent, **scaled.absent(index)}
    return {
        name: scaled.evaluations[index] if name == SCALING else family.evaluate(values, absent)
        for name, family in load_families().items()
    }


def scale(
    runs: Sequence[Comparable],
    mode: Mode | None = None,
    reference: int | str | None = None,
    work: Sequence[float] | None = None,
    difference: Callable[[int, int], str | None] = lambda reference, run: None,  # noqa: ARG005
) -> Scaling:
    """Compare runs with a reference run.

    `difference` says of two runs, by their numbers, by what they are of different programs.
    """
    if not runs:
        raise ValueError("no runs to compare")
    _check_work(runs, mode, work)
    chosen, why_reference = _choose_reference(runs, reference)
    strangers = {
        number: f"{STRANGER}{runs[chosen].name}, so no scaling: {why}"
        for number in range(len(runs))
        if number != chosen and (why := difference(chosen, number))
    }
    alike = [run for number, run in enumerate(runs) if number not in strangers]
    home = alike.index(runs[chosen])
    asked = mode is not None
    if len(alike) == 1 and mode is None and work is None:
        single = "no other run of the program" if strangers else "a single run"
        mode, why_mode = "strong", f"strong scaling: {single}"
    elif mode is not None:
        why_mode = f"{mode} scaling: as requested"
    elif work is not None:
        mode, why_mode = "weak", "weak scaling: work given for each run"
    else:
        mode, why_mode = _detect_mode(alike, home)
    if mode == "weak" and work is None:
        work = [_cores(run) for run in runs]
        why_mode += "; work assumed proportional to the cores"
    ratios = [1.0] * len(runs) if work is None else [amount / work[chosen] for amount in work]
    family = load_families()[SCALING]
    base = runs[chosen]
    compared = {name: base.aggregates[name] for name in _SHARED if base.aggregates.get(name)}
    lacking = [*(f"reference_{name}" for name in _SHARED), "work_ratio"]
    no_reference = dict.fromkeys(lacking, f"{STRANGER}{base.name}, so no scaling")
    evaluations = [
        family.evaluate(
            against(run.aggregates, compared, ratio),
            {**_missing_of_reference(run, base), **run.absent},
        )
        if number not in strangers
        else family.evaluate(run.aggregates, {**run.absent, **no_reference})
        for number, (run, ratio) in enumerate(zip(runs, ratios, strict=True))
    ]
    threaded = tuple(_is_threaded(run) or _is_threaded(base) for run in runs)
    weak = mode == "weak"
    devices = tuple(
        _of_devices(run.aggregates, {} if number in strangers else base.aggregates, weak=weak)
        for number, run in enumerate(runs)
    )
    doubts = [
        *_implausible(evaluations),
        *([] if asked else _grows(alike, home, mode)),
        *_some_offload(alike),
    ]
    why = f"{why_mode}; {why_reference}"
    return Scaling(
        mode, chosen, why, tuple(evaluations), threaded, devices, tuple(doubts), strangers
    )


def against(
    run: Mapping[str, Number], reference: Mapping[str, Number], work_ratio: Number
) -> dict[str, Number]:
    """Join to the aggregates of a run what the family ``scaling`` needs of its reference."""
    shared = {f"reference_{name}": reference[name] for name in _SHARED if name in reference}
    return {**run, **shared, "work_ratio": work_ratio}


def of_masters(
    values: Mapping[str, Number], absent: Mapping[str, str], *, threaded: bool
) -> tuple[dict[str, Number], dict[str, str]]:
    """Return what the families of MPI alone take from the family ``scaling``."""
    if threaded:
        return {}, {_NAME: _OF_ALL_THREADS}
    if _NAME in values:
        return {_NAME: values[_NAME]}, {}
    return {}, {_NAME: absent[_NAME]} if _NAME in absent else {}


_OF_DEVICES = ("device_work_ratio", "reference_device_useful_sum")
_NO_DEVICES = "the reference run has no devices, or is of another program"


def _of_devices(
    run: Mapping[str, float], reference: Mapping[str, float], *, weak: bool
) -> dict[str, float] | None:
    """What families of devices take from the reference run: its kernels, and the work."""
    if "devices" not in run:
        return {}
    if "devices" not in reference:
        return None
    ratio = run["devices"] / reference["devices"] if weak else 1.0
    return dict(zip(_OF_DEVICES, (ratio, reference["device_useful_sum"]), strict=True))


def _is_threaded(run: Comparable) -> bool:
    return run.aggregates["threads"] > run.aggregates["processes"]


def _cores(run: Comparable) -> float:
    return run.aggregates["threads"]


def _check_work(
    runs: Sequence[Comparable], mode: Mode | None, work: Sequence[float] | None
) -> None:
    if mode not in (None, "strong", "weak"):
        raise UsageError(f"unknown kind of scaling {mode!r}", "choose strong or weak")
    if work is None:
        return
    if mode == "strong":
        raise UsageError(
            "work per run is given, but in strong scaling all runs do the same work",
            "ask for weak scaling, or leave out the work",
        )
    if len(work) != len(runs):
        raise UsageError(
            f"work is given for {len(work)} runs, but there are {len(runs)}",
            "give one number per run",
        )
    for run, amount in zip(runs, work, strict=True):
        if not (math.isfinite(amount) and amount > 0):
            raise UsageError(
                f"the work of run {run.name} is {amount:g}", "give a positive number per run"
            )


def _choose_reference(runs: Sequence[Comparable], wanted: int | str | None) -> tuple[int, str]:
    if len(runs) == 1 and wanted is None:
        return 0, "it is its own reference, so its scaling metrics are 1"
    if isinstance(wanted, int):
        if not 0 <= wanted < len(runs):
            raise UsageError(
                f"reference {wanted} is not one of the {len(runs)} runs",
                f"count from 0 to {len(runs) - 1}, or give the name of a run",
            )
        return wanted, f"reference {runs[wanted].name} as requested"
    if wanted is not None:
        return _find_by_name(runs, wanted), f"reference {wanted} as requested"
    keys = [(_cores(run), _cores(run) / run.aggregates["processes"]) for run in runs]
    chosen = keys.index(min(keys))
    fewest, threads = keys[chosen]
    why = f"reference {runs[chosen].name}: fewest cores ({fewest:g})"
    if sum(cores == fewest for cores, _ in keys) > 1:
        why += f", then fewest threads per process ({threads:g})"
    if keys.count(keys[chosen]) > 1:
        why += f", the first of {keys.count(keys[chosen])} such runs"
    return chosen, why


def _find_by_name(runs: Sequence[Comparable], wanted: str) -> int:
    for name_of in (str, lambda name: PurePath(name).name, lambda name: PurePath(name).stem):
        found = [index for index, run in enumerate(runs) if name_of(run.name) == wanted]
        if len(found) > 1:
            raise UsageError(
                f"reference {wanted!r} is the name of {len(found)} runs",
                "choose the reference by its position",
            )
        if found:
            return found[0]
    names = [run.name for run in runs]
    near = difflib.get_close_matches(wanted, names, n=1)
    raise UsageError(
        f"reference {wanted!r} is not the name of a run",
        f"did you mean {near[0]!r}?" if near else f"runs: {', '.join(names)}",
    )


def _detect_mode(runs: Sequence[Comparable], reference: int) -> tuple[Mode, str]:
    """Strong if, in most runs, instructions stay rather than grow with the cores."""
    votes = _stays(runs, reference, "instructions_sum")
    if not votes:
        if len({_cores(run) for run in runs}) == 1:
            return "strong", "strong scaling assumed: all runs have the same number of cores"
        return "strong", "strong scaling assumed: no instruction counters"
    among = f"in {sum(votes)} of {len(votes)} runs"
    if 2 * sum(votes) > len(votes):
        return "strong", f"strong scaling: total instructions stay roughly constant ({among})"
    among = f"in {len(votes) - sum(votes)} of {len(votes)} runs"
    return "weak", f"weak scaling: total instructions grow with the cores ({among})"


def _stays(runs: Sequence[Comparable], reference: int, name: str) -> list[bool]:
    """For each run that can tell: whether an aggregate stays rather than grows with the cores."""
    base = runs[reference]
    votes = []
    for run in runs:
        more_cores = math.log(_cores(run) / _cores(base))
        amounts = (run.aggregates.get(name, 0.0), base.aggregates.get(name, 0.0))
        if more_cores == 0 or min(amounts) <= 0:
            continue  # such a run cannot tell the two apart
        growth = math.log(amounts[0] / amounts[1])
        votes.append(abs(growth) < abs(growth - more_cores))
    return votes


def _grows(runs: Sequence[Comparable], reference: int, mode: Mode) -> list[str]:
    """A doubt about strong scaling that was only assumed."""
    votes = _stays(runs, reference, "useful_sum")
    if mode == "weak" or _stays(runs, reference, "instructions_sum") or not votes or any(votes):
        return []
    return ["the total useful time grows with the cores: if the work does too, use --scaling weak"]


def _implausible(evaluations: Sequence[FamilyEvaluation]) -> list[str]:
    """A doubt where the runs hardly did the same work."""
    ratios = [each.values[_NAME] for each in evaluations if each.values.get(_NAME, 0) > 0]
    extreme = max(ratios, key=lambda value: max(value, 1 / value), default=1.0)
    if 1 / COMPARABLE <= extreme <= COMPARABLE:
        return []
    return [
        f"implausible computation scaling of {extreme:.3g}: check that all runs are of the same "
        "program and input"
    ]


def _some_offload(runs: Sequence[Comparable]) -> list[str]:
    """A doubt where some of the runs compute on devices."""
    offload = [run.name for run in runs if "devices" in run.aggregates]
    if len(offload) in (0, len(runs)):
        return []
    return [
        f"computation scaling is of threads alone: {', '.join(offload)} computes on devices too"
    ]


def _missing_of_reference(run: Comparable, reference: Comparable) -> dict[str, str]:
    """Reasons for what the reference run lacks, by the names of the aggregates.

    Where the run lacks a counter too, its own reason says it all.
    """
    reasons = {}
    if not reference.aggregates.get("useful_sum", 1.0):  # a table may not have it
        reasons["reference_useful_sum"] = f"no useful time in the reference run {reference.name}"
    for counter in ("instructions", "cycles"):
        if f"{counter}_sum" in reference.aggregates:
            continue
        if f"{counter}_sum" in run.aggregates:
            reason = reference.absent.get(counter, REASONS[counter][0])
            reasons[f"reference_{counter}"] = f"{reason} (reference run {reference.name})"
        else:
            reasons[f"reference_{counter}"] = run.absent.get(counter, REASONS[counter][0])
    return reasons
