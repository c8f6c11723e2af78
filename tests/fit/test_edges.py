"""Work whose data leave a cache: found, told from none, and foretold between and beyond sizes."""

import csv
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from popmodel.fit.law import law
from popmodel.fit.samples import Sample

MEASURED = Path(__file__).parent.parent.parent / "examples" / "validation" / "runs"
SIZES = (96, 128, 160, 192, 224)
Split = tuple[int, int, float]


def of_study(sizes: Sequence[int]) -> list[Split]:
    """Splits that a study on two cores makes; the largest size on two processes is left out."""
    first, *others = sizes
    ends: list[Split] = [(1, 1, first), (2, 1, first), (1, 2, first)]
    more: list[Split] = [(p, 1, size) for size in others for p in (1, 2)]
    return [one for one in (*ends, *more) if one != (2, 1, sizes[-1])]


def missing(data: float, cache: float) -> float:
    """Part of data that is a cache of random replacement lacks: not the law's formula."""
    return max(0.0, 1 - cache / data)


def truth(split: Split, cache: float, slower: float, shared: bool) -> float:
    p, t, size = split
    data = size**3 if shared else size**3 / (p * t)
    return 1e-9 * size**3 / (p * t) * (1 + slower * missing(data, cache))


def drawn(
    splits: Sequence[Split], cache: float, slower: float, shared: bool, seed: int = 0
) -> list[Sample]:
    rng = np.random.default_rng(seed)
    return [
        Sample(
            p, t, truth((p, t, n), cache, slower, shared) * math.exp(0.02 * rng.normal()), {"N": n}
        )
        for p, t, n in splits
    ]


@pytest.mark.parametrize("slower", [1.0, 2.5])
@pytest.mark.parametrize("shared", [True, False])
def test_a_size_beyond_the_edge_is_foretold(slower: float, shared: bool) -> None:
    cache = 144**3 if shared else 120**3
    found = law(drawn(of_study(SIZES), cache, slower, shared), hints=("1/P",))
    for split in ((2, 1, 224), (2, 1, 256), (1, 2, 192)):
        there = found.at(*split[:2], {"N": split[2]})
        assert there.value == pytest.approx(truth(split, cache, slower, shared), rel=0.15)


@pytest.mark.long
def test_intervals_hold_what_was_left_out() -> None:
    """Where at least two sizes lie beyond the edge: one alone may be anything."""
    held = 0
    for seed in range(15):
        cache = (130 + 4 * seed) ** 3
        found = law(drawn(of_study(SIZES), cache, 1.5, True, seed), hints=("1/P",))
        there = found.at(2, 1, {"N": 224})
        held += there.low <= truth((2, 1, 224), cache, 1.5, True) <= there.high
    assert held >= 13


@pytest.mark.long(after=1)
@pytest.mark.parametrize("slower", [0.0, 0.05])
def test_work_that_all_fits_has_none(slower: float) -> None:
    for seed in range(5):
        found = law(drawn(of_study(SIZES), 144**3, slower, True, seed), hints=("1/P",))
        assert found.form == "N**3/(P*T)"


def test_two_sizes_tell_a_power_as_well() -> None:
    splits = [(p, 1, size) for p in (1, 2, 4) for size in (96, 224)]
    found = law(drawn(splits, 144**3, 1.5, True), hints=("1/P",))
    assert "1 + (" not in found.form


def measured(name: str, parameter: str) -> dict[Split, float]:
    """Useful time of an average process by split, the middle of three runs, s."""
    found: Mapping[Split, list[float]] = defaultdict(list)
    with (MEASURED / name).open() as lines:
        for row in csv.DictReader(lines):
            split = int(row["processes"]), int(row["threads"]), float(row[parameter])
            found[split].append(float(row["aggregates.useful_mean"]))
    return {split: median(values) for split, values in found.items()}


@pytest.mark.long
@pytest.mark.parametrize(("name", "parameter"), [("stencil3d.csv", "N"), ("hpccg.csv", "n")])
def test_measured_programs_are_foretold_across_an_edge(name: str, parameter: str) -> None:
    """Without an edge the law of the work is off by 25 and 38 % in the middle."""
    runs = measured(name, parameter)
    samples = {
        split: Sample(*split[:2], value, {parameter: split[2]}) for split, value in runs.items()
    }
    off = []
    for split, value in list(runs.items())[::3]:
        found = law([one for other, one in samples.items() if other != split], hints=("1/(P*T)",))
        there = found.at(*split[:2], {parameter: split[2]})
        off.append(abs(there.value / value - 1))
    assert median(off) < 0.05
    largest = max(split[2] for split in runs)
    smaller = [one for split, one in samples.items() if split[2] < largest]
    found = law(smaller, hints=("1/(P*T)",))
    for split in (split for split in runs if split[2] == largest):
        there = found.at(*split[:2], {parameter: largest})
        assert there.value == pytest.approx(runs[split], rel=0.08)
        assert there.low <= runs[split] <= there.high
