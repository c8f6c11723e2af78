"""Regenerate the study from the stored runs: ``python make.py [--into FOLDER] [PROGRAM ...]``.

Only `runs/`, `machine.json`, `split.toml` and the signatures are read. No prediction sees a test:
the ones before the calibration come from machine and signature, the others from the file that the
runs of the calibration gave.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import popmodel

HERE = Path(__file__).resolve().parent
MACHINE = Path("machine.json")  # relative, as all paths that reports name
Runs = list[dict[str, str]]
Configuration = tuple[int, int, float]  # P, T, problem size
WHEN = ("before", "after")  # the calibration


def study() -> dict[str, dict[str, Any]]:
    """The declared split of each program."""
    return tomllib.loads((HERE / "split.toml").read_text())


def parted(program: str, declared: Mapping[str, Any]) -> tuple[Runs, Runs]:
    """The runs that calibrate, and the tests."""
    with (HERE / "runs" / f"{program}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    fit = [row for row in rows if float(row[declared["parameter"]]) in declared["calibration"]]
    return fit, [row for row in rows if row not in fit]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def configurations(rows: Runs, parameter: str) -> list[Configuration]:
    """P, T and size of the runs, each once."""
    return sorted(
        {(int(r["processes"]), int(r["threads"]), float(r[parameter])) for r in rows},
        key=lambda one: (one[2], *one),
    )


def predicted(validation: Any, parameter: str, when: str) -> list[dict[str, Any]]:
    """The predicted runtimes, seconds, with the ends of their 90 % intervals."""
    found = {}
    for row in validation.to_dict()["rows"]:
        if row["metric"] != "runtime":
            continue
        size = row["parameters"][parameter]
        found[size, row["processes"], row["threads"]] = {
            "processes": row["processes"],
            "threads": row["threads"],
            parameter: f"{size:g}",
            "when": when,
        } | {
            f"{name}_s": "" if row[name] is None else f"{row[name]:.5g}"
            for name in ("predicted", "low", "high")
        }
    return [found[key] for key in sorted(found)]


def power_law(fit: Runs, parameter: str, asked: Configuration) -> float:
    """The runtime of a split as a power of the size, through the runs that calibrate; seconds."""
    means = _means(fit, parameter, asked)
    (small, first), *_, (large, last) = sorted(means.items())
    exponent = math.log(last / first) / math.log(large / small)
    return first * (asked[2] / small) ** exponent


def cubed(fit: Runs, parameter: str, asked: Configuration) -> float:
    """The runtime of the nearest size of the split, scaled with the number of cells; seconds."""
    means = _means(fit, parameter, asked)
    near = min(means, key=lambda size: abs(math.log(size / asked[2])))
    return means[near] * (asked[2] / near) ** 3


def nearest(fit: Runs, parameter: str, asked: Configuration) -> float:
    """The runtime of the nearest size of the split, as it is; seconds."""
    means = _means(fit, parameter, asked)
    return means[min(means, key=lambda size: abs(math.log(size / asked[2])))]


def _means(fit: Runs, parameter: str, asked: Configuration) -> dict[float, float]:
    times: dict[float, list[float]] = {}
    for row in fit:
        if (int(row["processes"]), int(row["threads"])) == asked[:2]:
            times.setdefault(float(row[parameter]), []).append(float(row["runtime"]))
    # the median: one run that something else disturbed must not make the baselines look bad
    return {size: statistics.median(some) for size, some in times.items()}


BASELINES = {
    "power law of the size": power_law,
    "nearest run, times cells": cubed,
    "nearest run": nearest,
}


def figures(
    found: Mapping[str, Any], fit: Runs, tests: Runs, declared: Mapping[str, Any]
) -> dict[str, Any]:
    """Errors by region, before and after the calibration, and of the baselines."""
    parameter, sizes = declared["parameter"], declared["calibration"]
    regions: dict[str, Any] = {}
    for region in ("interpolation", "extrapolation"):
        inner = region == "interpolation"
        some = [r for r in tests if (min(sizes) < float(r[parameter]) < max(sizes)) == inner]
        asked = configurations(some, parameter)
        measured = {one: _means(some, parameter, one)[one[2]] for one in asked}
        regions[region] = {when: _of(found[when], region) for when in WHEN}
        regions[region]["baselines"] = {
            name: _rounded(
                statistics.median(
                    abs(rule(fit, parameter, one) / measured[one] - 1) for one in asked
                )
            )
            for name, rule in BASELINES.items()
        }
    return regions


def _of(validation: Any, region: str) -> dict[str, Any]:
    parts = [one for one in validation.to_dict()["regions"] if one["region"] == region]
    (part,) = [one for one in parts if one["beyond"] is None]
    runtime, metrics = part["runtime"], part["metrics"]
    names = ("splits", "median_error", "largest_error", "bias", "covered", "intervals")
    kept = {name: _rounded(runtime[name]) for name in (*names, "median_half_width")}
    return kept | {"points": _rounded(metrics["median_error"])}


def _rounded(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) else value


def told(program: str, region: str, values: Mapping[str, Any]) -> str:
    """A row of the table in the README, per cent."""
    cells = [f"{program}, {region}"]
    for when in WHEN:
        one = values[when]
        cells += [_cent(one["median_error"]), _cent(one["largest_error"])]
        cells += [f"{one['covered']} of {one['intervals']}", _cent(one["median_half_width"])]
    cells += [_cent(values["baselines"][name]) for name in list(BASELINES)[:2]]
    return f"| {' | '.join(cells)} |"


def _cent(value: float) -> str:
    return f"{100 * value:.3g}"


def make(program: str, into: Path) -> dict[str, Any]:
    """Write predictions, calibrated signature and reports of a program; return its figures."""
    declared = study()[program]
    parameter = declared["parameter"]
    fit, tests = parted(program, declared)
    into.mkdir(parents=True, exist_ok=True)
    files = {"calibration": into / "calibration.csv", "tests": into / "tests.csv"}
    for name, rows in (("calibration", fit), ("tests", tests)):
        files[name].write_text(table(rows))

    before = declared["signature"]
    calibrated = popmodel.signature([before, files["calibration"]], machine=MACHINE)
    calibrated.save(into / "calibrated.toml")
    (into / "calibration.txt").write_text(f"{calibrated}\n")
    after = into / "calibrated.toml"

    found = {}
    for when, signature in (("before", before), ("after", after)):
        found[when] = popmodel.validate(
            signature,
            [files["calibration"], files["tests"]],
            trained_on=files["calibration"],
            machine=MACHINE,
            all_runs=True,  # a study of record leaves nothing out
        )
        (into / f"{when}.txt").write_text(f"{found[when]}\n")
    predictions = [one for when in WHEN for one in predicted(found[when], parameter, when)]
    (into / "predictions.csv").write_text(table(predictions))
    made = figures(found, fit, tests, declared)
    (into / "figures.json").write_text(json.dumps(made, indent=1) + "\n")
    return made


def main() -> None:
    """Make all programs, or those that are named."""
    asks = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asks.add_argument("programs", nargs="*", metavar="PROGRAM")
    asks.add_argument("--into", type=Path, default=HERE / "report")
    given = asks.parse_args()
    into = given.into.resolve()
    with contextlib.chdir(HERE):
        if into.is_relative_to(HERE):
            into = into.relative_to(HERE)
        for program in given.programs or study():
            make(program, into / program)


if __name__ == "__main__":
    main()
