"""How far calibrated predictions can be trusted: ``python tests/benchmarks/calibration.py``.

Truths that share no law with the model (`tests/truth`), each with six measured runs on at most two
nodes. By family: errors of predictions for runs inside of what was measured, and at four and eight
times as many processes; how many 90 % intervals hold the run; the splits that are taken of the
cores of eight nodes. Beside them the signature as it was written, and plain extrapolations of the
same six run times.

    --seeds 20            truths of each family
    --first 0             the first seed
    --families moderate,hard,irregular
    --only-runtimes       nothing else is known of the runs
    --truths              a line for each truth
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from truth import truth  # noqa: E402
from truth.judged import (  # noqa: E402
    AS_WRITTEN,
    CALIBRATED,
    REGIONS,
    TOP,
    Row,
    Verdict,
    binomial,
    judged,
    poisoned,
    recovered,
)

from popmodel.fit.baselines import BASELINES  # noqa: E402

METHODS = (CALIBRATED, AS_WRITTEN, *BASELINES)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--families", default="moderate,hard,irregular")
    parser.add_argument("--only-runtimes", action="store_true")
    parser.add_argument("--truths", action="store_true")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for family in asked.families.split(","):
            found = []
            for seed in seeds:
                found.append(judged(truth(family, seed), folder, asked.only_runtimes))
                if asked.truths:
                    print(line(found[-1]), flush=True)
            print(f"\n{family}: {len(found)} truths, six runs each\n")
            print(errors(found), "\n")
            print(by_metric(found), "\n")
            print(decisions(found), "\n")
            seconds = [one.seconds for one in found]
            print(f"calibration: {np.median(seconds):.1f} s CPU, at most {max(seconds):.1f} s")
            print(poison(found, folder), flush=True)
        print(f"\n{constants(seeds, folder)}")


def errors(found: Sequence[Verdict]) -> str:
    """Errors and coverage of the runtime, by region and method."""
    lines = [
        f"{'':8}{'runtime':12}{'error:':>8}{'90 % of':>9}{'90 % intervals':>25}{'half':>7}"
        f"{'efficiency':>12}",
        f"{'region':8}{'by':12}{'median':>8}{'runs':>9}{'that hold the run':>25}{'width':>7}"
        f"{'error':>12}",
    ]
    for region in REGIONS:
        for method in METHODS:
            rows = of(found, region, method)
            times = [row.error for row in rows]
            held = [row.said.covers(row.measured) for row in rows]
            widths = [row.said.half_width for row in rows if row.said.half_width is not None]
            points = [row.metrics[TOP].error for row in rows if row.metrics]
            text = (
                f"{region:8}{method:12}{_percent(np.median(times)):>8}"
                f"{_percent(np.quantile(times, 0.9)):>9}"
                f"{share([one for one in held if one is not None], len(held)):>25}"
            )
            text += f"{_percent(np.median(widths)):>7}" if widths else ""
            text += f"{np.median(points):>12.3f}" if points else ""
            lines.append(text.rstrip())
    return "\n".join(lines)


def of(found: Sequence[Verdict], region: str, method: str) -> list[Row]:
    """Rows of a region by a method."""
    return [
        row for one in found for row in one.rows if (row.region, row.method) == (region, method)
    ]


def by_metric(found: Sequence[Verdict]) -> str:
    """Errors and coverage of every metric that is foretold, by region."""
    lines = [
        f"{'median error in points; share of intervals':44}"
        + "".join(f"{region:>24}" for region in REGIONS),
        f"{'that hold the run, and the mean of many':44}"
        + "".join(f"{'points    run   mean':>24}" for _ in REGIONS),
    ]
    rows = {region: of(found, region, CALIBRATED) for region in REGIONS}
    for metric in dict.fromkeys(
        name for every in rows.values() for row in every for name in row.metrics
    ):
        cells = []
        for every in rows.values():
            known = [row.metrics[metric] for row in every if metric in row.metrics]
            error = 100 * np.median([one.error for one in known])
            run = [one.said.covers(one.measured) for one in known]
            mean = [one.said_of_mean.covers(one.mean) for one in known]
            cells.append(f"{error:>10.1f}{_of_known(run)}{_of_known(mean)}")
        lines.append(f"{metric:44}" + "".join(cells))
    return "\n".join(lines)


def share(held: Sequence[bool], every: int) -> str:
    """How many hold, with the 90 % interval of the share; and how many there are none of."""
    if not held:
        return ""
    low, high = binomial(held)
    none = f", {every - len(held)} none" if every > len(held) else ""
    return f"{_percent(np.mean(held))} ({100 * low:.0f} .. {100 * high:.0f}){none}"


def decisions(found: Sequence[Verdict]) -> str:
    """Loss of the splits that are taken, by method."""
    lines = [f"{'split by':20}{'announced':>10}{'found':>8}{'90 %':>8}{'worst':>8}{'best':>8}"]

    def row(name: str, losses: Sequence[float], announced: Sequence[float] = ()) -> str:
        said = _percent(np.mean(announced)) if announced else ""
        return (
            f"{name:20}{said:>10}{_percent(np.mean(losses)):>8}"
            f"{_percent(np.quantile(losses, 0.9)):>8}{_percent(max(losses)):>8}"
            f"{_percent(np.mean(np.array(losses) < 1e-9)):>8}"
        )

    for method in METHODS:
        taken = [each for one in found for each in one.decisions if each.method == method]
        announced = [one.announced for one in taken if one.announced is not None]
        lines.append(row(method, [one.found for one in taken], announced))
    lines.append(row("all MPI", [one.default for one in found]))
    return "\n".join(lines)


def poison(verdicts: Sequence[Verdict], folder: Path) -> str:
    """How often a run that took twice as long is named, and what it does to the answer."""
    found = [poisoned(one.truth, folder, one.calibrated) for one in verdicts]
    named = [one.named for one in found]
    return (
        f"one run of six twice as long: named in {share(named, len(named))}, moves the answer by "
        f"less than its interval in {_percent(np.mean([one.moved < 1 for one in found]))}; "
        f"undisturbed runs suspected: {_percent(np.mean([one.alarms for one in found]) / 6)}"
    )


def constants(seeds: Sequence[int], folder: Path) -> str:
    """How often intervals of constants hold the value with which the model has made the runs."""
    found = [one for seed in seeds for one in recovered(seed, folder)]
    before = [bool(one.before.covers(one.true)) for one in found]
    after = [bool(one.after.covers(one.true)) for one in found]
    widths = [
        (one.after.half_width or 0.0) / one.before.half_width
        for one in found
        if one.before.half_width
    ]
    return (
        f"runs by the model itself: intervals hold {share(after, len(after))} of the constants "
        f"({share(before, len(before))} before), and are {np.median(widths):.2f} times as wide"
    )


def line(one: Verdict) -> str:
    """A truth in one line: errors of the calibrated runtime by region, and of the choice."""
    values = []
    for region in REGIONS:
        rows = of([one], region, CALIBRATED)
        gaps = " ".join(f"{100 * (row.said.value / row.measured - 1):+.0f}" for row in rows)
        held = sum(bool(row.said.covers(row.measured)) for row in rows)
        values.append(f"{region} {gaps} ({held} of {len(rows)} held)")
    taken = next(each for each in one.decisions if each.method == CALIBRATED)
    terms = [each.name.rpartition(".")[2] for each in one.calibrated.terms if each.is_taken]
    return (
        f"{one.truth.name:12}{', '.join(one.truth.terms.names)} -> {', '.join(terms) or 'none'}; "
        f"{'; '.join(values)}; split {_percent(taken.found)}, announced "
        f"{_percent(taken.announced or 0.0)}"
    )


def _of_known(held: Sequence[bool | None]) -> str:
    known = [one for one in held if one is not None]
    return f"{100 * np.mean(known):>7.0f}" if known else f"{'':>7}"


def _percent(value: float | np.floating[Any]) -> str:
    return f"{100 * float(value):.1f} %"


if __name__ == "__main__":
    main()
