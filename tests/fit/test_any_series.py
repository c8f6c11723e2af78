"""Projections of any series of runs: finite numbers, or none and why; never an unexpected error."""

import math
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popmodel import predict
from popmodel.base.document_schemas import check
from popmodel.base.errors import UsageError
from popmodel.cli.predict import Prediction
from popmodel.fit.efficiency_laws import LAWS
from popmodel.fit.projection import project as carried
from popmodel.runs.measurement import MeasuredRow

RUNTIME = ("", "runtime")


def expect_finite(value: Any, at: str = "") -> None:
    """Every number of a document is finite."""
    if isinstance(value, dict):
        for name, entry in value.items():
            expect_finite(entry, f"{at}.{name}")
    elif isinstance(value, list):
        for entry in value:
            expect_finite(entry, f"{at}[]")
    elif isinstance(value, float):
        assert math.isfinite(value), at


def expect_whole(found: Prediction) -> None:
    """All numbers are finite, and what is not there says why."""
    document = found.to_dict()
    expect_finite(document)
    check(found._stamped(), "result.json")
    inner = document["projection"]
    for row in inner["rows"]:
        assert (row["low"] is None) == (row["high"] is None) == bool(row["why"])
        if row["value"] is None:
            assert row["why"]
        elif row["low"] is not None:
            assert row["low"] <= row["value"] <= row["high"]
            assert row["low"] > 0
    for line in inner["lines"]:
        for law in line["laws"]:
            for tried in law["tried"]:
                assert (tried["error"] is None) == bool(tried["why"])
    assert "nan" not in str(found)
    assert "inf " not in str(found)


def table(path: Path, runs: list[tuple[int, float]]) -> Path:
    path.write_text("".join(["processes,threads,runtime\n", *(f"{p},1,{t!r}\n" for p, t in runs)]))
    return path


SIZES = st.integers(1, 24).map(lambda power: round(1.7**power)) | st.integers(1, 9)
SHAPES = {
    "constant": lambda p, _: 0 * p + 1.0,
    "ideal": lambda p, _: 1 / p,
    "rising": lambda p, _: p,
    "steep": lambda p, _: p**3,
    "saturating": lambda p, _: 1 / p + 0.1,
    "slower beyond": lambda p, k: k / p + p / k,
    "superlinear": lambda p, _: p**-1.4,
}


@st.composite
def series(draw: st.DrawFn) -> list[tuple[int, float]]:
    """Positive runtimes over different processes: of a law, or of none."""
    places = sorted(draw(st.sets(SIZES, min_size=1, max_size=6)))
    scale = 10.0 ** draw(st.integers(-9, 9))
    shape = draw(st.sampled_from([*SHAPES, None]))
    if shape is None:
        times = [10 ** draw(st.floats(-2, 2)) for _ in places]
    else:
        knee = 2.0 ** draw(st.integers(0, 12))
        noise = draw(st.sampled_from([0.0, 0.02, 0.5]))
        times = [SHAPES[shape](p, knee) * math.exp(noise * draw(st.floats(-1, 1))) for p in places]
    repeats = draw(st.integers(1, 2))
    return [(p, scale * t) for p, t in zip(places, times, strict=True)] * repeats


@pytest.mark.long
@settings(deadline=None, max_examples=15)
@given(runs=series(), targets=st.sets(SIZES | st.just(10**6), min_size=1, max_size=2))
@example(runs=[(1, 25), (2, 12), (3, 113)], targets={4, 1024})
@example(runs=[(1, 10), (2, 6), (4, 8)], targets={8, 64})
@example(runs=[(1, 102), (2, 54), (4, 33), (8, 28.5), (16, 38.25)], targets={64, 10**6})
@example(runs=[(1, 1e-9), (2, 1e9), (3, 1e-9)], targets={3})
@example(runs=[(2, 1e9), (3, 1e-9), (4, 1e-9)], targets={2, 10**6})
def test_any_runtimes_give_finite_numbers_or_a_reason(
    runs: list[tuple[int, float]], targets: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = table(tmp_path_factory.mktemp("runs") / "runs.csv", runs)
    try:
        found = predict(path, cores=sorted(targets))
    except UsageError as reason:  # a speed-up that no machine has
        assert ".speedup would be" in reason.message
        assert max(t for _, t in runs) > 1e6 * min(t for _, t in runs)
    else:
        expect_whole(found)


@pytest.mark.parametrize("runs", [[(3, 1e17), (16, 1)], [(16, 1e17), (24, 2e-3)]])
def test_a_speedup_that_no_machine_has_is_refused(
    runs: list[tuple[int, float]], tmp_path: Path
) -> None:
    """Saved results would be refused, and projected runtimes no numbers."""
    with pytest.raises(UsageError, match=r"runs.csv:3: against .*runs.csv:2, .*speedup would be"):
        predict(table(tmp_path / "runs.csv", runs), procs=64)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("runs", [[(4, 3.0)], [(1, 3.0)], [(2, 3.0), (2, 3.1)], [(2, 3.0), (4, 2)]])
def test_a_law_that_one_configuration_cannot_determine_is_structural(
    law: Literal["structural", "amdahl", "pipe", "linear"],
    runs: list[tuple[int, float]],
    tmp_path: Path,
) -> None:
    found = predict(table(tmp_path / "runs.csv", runs), procs=64, law=law)
    expect_whole(found)
    (row,) = found.to_dict()["projection"]["lines"][0]["laws"]
    alone = len({p for p, _ in runs}) == 1
    assert row["law"] == ("structural" if alone else law)


SHARES = st.floats(0.05, 1.0)


@pytest.mark.long
@settings(deadline=None, max_examples=8)
@given(
    rows=st.lists(st.tuples(SIZES, st.floats(-1.5, 1.5), SHARES, SHARES, SHARES), min_size=1),
    target=SIZES,
)
def test_any_efficiencies_give_finite_numbers_or_a_reason(
    rows: list[tuple[int, float, float, float, float]],
    target: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    head = "processes,threads,runtime,mpi.load_balance,mpi.serialisation_efficiency,"
    lines = [f"{p},1,{10**t!r},{lb!r},{ser!r},{tra!r}" for p, t, lb, ser, tra in rows]
    path.write_text("\n".join([f"{head}mpi.transfer_efficiency", *lines]) + "\n")
    expect_whole(predict(path, procs=target))


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_a_runtime_that_grows_again_is_carried_on(scale: float) -> None:
    """``100/P + 2 P``: the runs seem to saturate, and get slower beyond."""
    runs = [MeasuredRow(f"{p}.prv", p, 1, scale * (100 / p + 2 * p), {}) for p in (1, 2, 4, 8, 16)]
    (row,) = (
        row
        for row in carried(runs, [(64, 1)], "strong", 0).rows
        if (row.family, row.metric) == RUNTIME
    )
    assert row.value == pytest.approx(scale * (100 / 64 + 128), rel=0.05)
    assert row.low is not None and row.high is not None
    assert row.low < scale * (100 / 64 + 128) < row.high


def test_where_no_law_holds_nothing_is_projected() -> None:
    runs = [MeasuredRow(f"{p}.prv", p, 1, t, {}) for p, t in ((1, 25.0), (2, 12.0), (3, 113.0))]
    for row in carried(runs, [(4, 1)], "strong", 0).rows:
        assert (row.value, row.low, row.high) == (None, None, None)
        assert row.why.startswith("no law holds")
