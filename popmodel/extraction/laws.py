"""Amounts of a signature from several runs: laws of P, T and the parameters of the problem."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.expressions import parse
from popmodel.extraction.amounts import Amount, Constant
from popmodel.extraction.assumed import paths
from popmodel.extraction.names import TIME
from popmodel.extraction.outline import Calls, Meeting, Repeat, Work
from popmodel.extraction.written import Noted
from popmodel.fitting.counts import Count, exact_law
from popmodel.fitting.formula import FIT
from popmodel.fitting.pooling import pooled
from popmodel.fitting.samples import Sample
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.extraction.aligned import Totals
    from popmodel.extraction.amounts import Key
    from popmodel.extraction.outline import Node, Outline
    from popmodel.extraction.spread import Description
    from popmodel.fitting.law import Law

__all__ = ["Beside", "Fitted", "fitted"]

_MATTERS = 0.005
"""Share of the time of a program from which on a phase has a law with all of its constants."""
_FEW = 2
"""Counts that some formula of P gives by chance."""
_SAME = 1e-6
"""Relative difference of counts and sizes that are the same."""


@dataclass(frozen=True)
class Beside:
    """A run laid beside the first.

    Attributes
    ----------
    processes, threads : int
        P and T.
    parameters : mapping of str to float
        Of the problem.
    totals : Totals
        Of the places of the first run.
    both : bool[places + 1]
        Which places it has, too.
    useful : mapping of int to float
        By point that is a parallel region, its useful time of an average thread per execution, s.
    """

    processes: int
    threads: int
    parameters: Mapping[str, float]
    totals: Totals
    both: NDArray[np.bool_]
    useful: Mapping[int, float]

    def sample(self, value: float, error: float | None = None) -> Sample:
        """A value of this run."""
        return Sample(self.processes, self.threads, value, self.parameters, error)


@dataclass(frozen=True)
class Fitted:
    """Laws of several runs.

    Attributes
    ----------
    amounts : mapping of Key to Amount
        As in a signature.
    let : mapping of str to value
        Names of the factors by which phases grow that grow alike: ``work``, ``share``.
    laws : tuple of dict
        What each law is of, its form, origin and error.
    notes : tuple of str
        Contradictions, and what the runs do not tell.
    """

    amounts: Mapping[Key, Amount]
    let: Mapping[str, Any]
    laws: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def fitted(
    outline: Outline,
    descriptions: Sequence[Description],
    runs: Sequence[Beside],
    assumed: Mapping[Key, Amount],
    scaling: str,
) -> Fitted:
    """Find the laws by which the amounts of a program grow.

    Parameters
    ----------
    outline : Outline
        The program of the first run.
    descriptions : sequence of Description
        Of its points.
    runs : sequence of Beside
        All runs, the first one included.
    assumed : mapping of Key to Amount
        What one run alone gives.
    scaling : {"strong", "weak"}
        What is tried first.
    """
    counts = _counts(outline, runs, assumed)
    amounts = {**assumed, **counts.amounts}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    let: dict[str, Any] = {}
    for in_teams in (False, True):
        points = [
            point
            for point, one in enumerate(descriptions)
            if one.mean > 0 and (outline.teams[point] is not None) is in_teams
        ]
        if points:
            samples = {
                point: _seconds(outline, point, descriptions[point], runs, bool(counts.laws))
                for point in points
            }
            part = _computing(samples, outline, descriptions, scaling)
            amounts |= part.amounts
            let |= part.let
            laws += part.laws
            notes += part.notes
    laws += counts.laws
    notes += counts.notes
    return Fitted(amounts, let, tuple(laws), tuple(dict.fromkeys(notes)))


def _counts(outline: Outline, runs: Sequence[Beside], assumed: Mapping[Key, Amount]) -> Fitted:
    """Counts of loops: by a formula that gives those of all runs exactly, or as in the first run.

    A law that only comes near is none: where runs differ in how their calls nest, a count is
    compared with that of another loop.
    """
    amounts: dict[Key, Amount] = {}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    for key, samples, what, hints in _counted(outline, runs):
        values = [one.value for one in samples]
        if max(values) - min(values) <= _SAME * max(values):
            in_all = "" if len(samples) == len(runs) else " that have it"
            amounts[key] = Amount(assumed[key].formula, note=f"the same in all runs{in_all}")
            continue
        found = exact_law(samples, hints)
        if found is None or found.origin != FIT or not _is_sure(found, samples):
            amounts[key] = Amount(assumed[key].formula, note="as in the first run; others differ")
            notes.append(f"{what}: runs differ, that of the first is kept")
            continue
        amounts[key] = Amount(found.text, note=f"{found.origin}: exact in all runs")
        laws.append(_exactly(what, found, len(samples)))
        notes += [f"{what}: {note}" for note in found.notes]
    return Fitted(amounts, {}, tuple(laws), tuple(notes))


def _is_sure(found: Count, samples: Sequence[Sample]) -> bool:
    """Whether a formula is no chance: some formula of P or T gives most pairs of counts."""
    return parse(found.text).names.isdisjoint(("P", "T")) or len(samples) > _FEW


def _exactly(what: str, found: Count, samples: int) -> dict[str, Any]:
    return {
        "of": what,
        "unit": "1",
        "share": None,
        "form": found.text,
        "formula": found.text,
        "constants": {},
        "origin": found.origin,
        "samples": samples,
        "error": 0.0,
        "rejected": [{"form": one, "error": 0.0} for one in found.others],
        "notes": list(found.notes),
    }


def _computing(
    samples: Mapping[int, Sequence[Sample]],
    outline: Outline,
    descriptions: Sequence[Description],
    scaling: str,
) -> Fitted:
    """Laws of phases, all serial or all parallel regions: one for those that grow alike."""
    points = list(samples)
    in_teams = outline.teams[points[0]] is not None
    likely = ("1/(P*T)" if in_teams else "1/P") if scaling == "strong" else "1"
    turns = [descriptions[point].executions for point in points]
    parts = [
        [replace(one, value=one.value * count) for one in samples[point]]
        for point, count in zip(points, turns, strict=True)
    ]
    time = sum(point.total for point in outline.points) or 1.0
    shares = [outline.points[point].total / time for point in points]
    amounts: dict[Key, Amount] = {
        ("seconds", point): Amount(0, note="0 in all runs") for point in points
    }
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    let: dict[str, Any] = {}
    for order, pool in enumerate(pooled(parts, hints=(likely,)), start=1):
        name = ("share" if in_teams else "work") + (str(order) if order > 1 else "")
        factor, shape = _shape(name, pool.law)
        let |= factor
        what = _what([outline.labels[points[index]] for index in pool.sizes])
        laws.append(_told(what, "s", pool.law, sum(shares[index] for index in pool.sizes)))
        notes += [f"{what}: {note}" for note in pool.law.notes]
        for index, size in pool.sizes.items():
            point, turn = points[index], turns[index]
            source = f"{outline.labels[point]}, {size.meaning}"
            ends = size.value / turn, size.low / turn, size.high / turn
            constant = Constant(TIME + outline.names[point], *ends, "s", size.origin, source)
            amounts["seconds", point] = Amount(f"{constant.name}*{name}", (constant, *shape))
            shape = ()
    return Fitted(amounts, let, tuple(laws), tuple(notes))


def _what(labels: Sequence[str]) -> str:
    """What a law is of."""
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} alike"


def _shape(name: str, found: Law) -> tuple[dict[str, Any], tuple[Constant, ...]]:
    """The factor by which phases grow, 1 at the reference, and its constants."""
    text = found.formula.removeprefix("{a}").removeprefix("*") or "1"
    constants = []
    for key, one in found.constants.items():
        if key != "a":
            text = text.replace(f"{{{key}}}", f"{name}_{key}")
            constants.append(
                Constant(
                    f"{name}_{key}", one.value, one.low, one.high, "1", one.origin, one.meaning
                )
            )
    noted = Noted(text, f"{found.origin}: {found.form}")
    return {name: noted}, tuple(constants)


def _seconds(
    outline: Outline, point: int, one: Description, runs: Sequence[Beside], by_run: bool
) -> list[Sample]:
    """Seconds of an average process in every run, per execution of that or of the first run."""
    computing, team = outline.points[point], outline.teams[point]
    error = _error(one)
    if team is not None:
        return [run.sample(run.useful.get(point, 0.0), error) for run in runs]
    base, group = runs[0], _group(computing.place, runs)
    behind = int(group[-1])
    own = computing.place if all(run.both[computing.place] for run in runs) else behind

    def of(run: Beside) -> float:
        spent = float(run.totals.computing[group].sum()) / run.processes
        counted = run if by_run else base
        return spent / max(float(counted.totals.executions[own]), 1.0)

    whole = of(base)
    return [run.sample(one.mean * of(run) / whole if whole else 0.0, error) for run in runs]


def _group(place: int, runs: Sequence[Beside]) -> NDArray[np.int64]:
    """Places around one that end where all runs have a place: their times are known together."""
    common = np.flatnonzero(np.logical_and.reduce([run.both for run in runs]))
    place = len(runs[0].both) - 1 if place < 0 else place
    last = int(common[np.searchsorted(common, place)])
    before = common[common < last]
    return np.arange(int(before[-1]) + 1 if len(before) else 0, last + 1)


def _error(one: Description) -> float | None:
    """Relative error of a mean, from its interval; None if nobody knows."""
    if one.low is None or one.high is None or not one.low > 0:
        return None
    return max(math.log(one.high / one.low) / (2 * 1.645), 0.01)


def _counted(
    outline: Outline, runs: Sequence[Beside]
) -> list[tuple[Key, list[Sample], str, tuple[str, ...]]]:
    """Counts of loops in every run that has them, with what is likely of them."""
    found: list[tuple[Key, list[Sample], str, tuple[str, ...]]] = []
    names = tuple(runs[0].parameters)
    for path, node in paths(outline.body):
        if isinstance(node, Repeat):
            inside, around = _places(outline, node.body), _around(outline, path)
            base = _often(runs[0], inside) / _often(runs[0], around)
            samples = [
                run.sample(node.count * _often(run, inside) / _often(run, around) / base, 0.0)
                for run in runs
                if not inside or run.totals.executions[inside].any()
            ]
            found.append((("count", path), samples, f"iterations of {node.name}", ("1", *names)))
    return found


def _places(outline: Outline, body: Sequence[Node]) -> list[int]:
    """Places directly in a body, in loops inside if there are none."""
    found: list[int] = []
    for node in body:
        match node:
            case Work():
                found.append(outline.points[node.point].place)
            case Calls():
                found += node.places
            case Meeting():
                found.append(node.place)
            case Repeat():
                pass
    if not found:
        for node in body:
            if isinstance(node, Repeat):
                found += _places(outline, node.body)
    return [place for place in found if place >= 0]


def _around(outline: Outline, path: tuple[int, ...]) -> list[int]:
    body: Sequence[Node] = outline.body
    for index in path[:-1]:
        node = body[index]
        assert isinstance(node, Repeat)
        body = node.body
    direct = [node for node in body if not isinstance(node, Repeat)]
    return _places(outline, direct) if len(path) > 1 else []


def _often(run: Beside, places: Sequence[int]) -> float:
    """How often a body is executed: as its places are, in the middle of them."""
    if not places:
        return 1.0
    return max(float(np.median(run.totals.executions[list(places)])), 1.0)


def _told(label: str, unit: str, found: Law, share: float | None) -> dict[str, Any]:
    return {
        "of": label,
        "unit": unit,
        "share": share,
        "form": found.form,
        "formula": found.formula,
        "constants": {
            name: {"value": one.value, "low": one.low, "high": one.high, "origin": one.origin}
            for name, one in found.constants.items()
        },
        "origin": found.origin,
        "samples": found.samples,
        "error": found.error,
        "rejected": [{"form": form, "error": error} for form, error in found.rejected],
        "notes": list(found.notes),
    }
