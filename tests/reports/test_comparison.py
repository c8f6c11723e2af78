"""What makes the difference between measured runs."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.reports.compared_values import (
    RunFactors,
    common_factors,
    compared_runs,
    comparison_blocks,
    effects,
)
from popmodel.reports.renderers.markdown import markdown_lines
from popmodel.runs.regression import FACTORS

DATA = Path(__file__).parent.parent / "data"
BT_MZ, COMD = DATA / "bt-mz.S.2x2.prv.gz", DATA / "comd.4.prv.gz"
SIGNS = {name: sign for name, (_, sign) in FACTORS.items()} | {"threads": -1}


def run(useful: float, efficiency: float, threads: float = 1.0, **parts: float) -> RunFactors:
    factors = {"useful_time": useful, "parallel_efficiency": efficiency, "threads": threads}
    return RunFactors("a", useful / (threads * efficiency), {**factors, **parts}, {})


def test_two_causes_share_the_difference_by_their_logarithms() -> None:
    """Twice the threads and four times the work: twice as long, of which work makes two parts."""
    runs = run(1.0, 1.0), run(4.0, 1.0, 2.0)
    found = effects(common_factors(runs), *runs)
    assert found == pytest.approx({"useful_time": 2.0, "parallel_efficiency": 0.0, "threads": -1.0})


def test_runs_of_equal_length_may_have_effects_that_cancel() -> None:
    runs = run(2.0, 1.0), run(4.0, 1.0, 2.0)
    found = effects(common_factors(runs), *runs)
    assert found["useful_time"] == pytest.approx(2 * math.log(2))
    assert found["threads"] == pytest.approx(-2 * math.log(2))


def test_what_a_run_does_not_tell_is_not_divided() -> None:
    parts = {"load_balance": 0.5, "communication": 1.0, "thread_efficiency": 1.0}
    runs = run(1.0, 0.5, **parts), run(1.0, 0.5)
    assert common_factors(runs) == ["useful_time", "parallel_efficiency", "threads"]
    assert common_factors(runs[:1]) == ["useful_time", *parts, "threads"]
    assert common_factors([*runs, RunFactors("a", 1.0, {}, {})]) == []


_SOME = st.floats(1e-3, 1e3)


@given(st.lists(st.tuples(_SOME, _SOME, st.integers(1, 64)), min_size=2))
def test_effects_add_up_to_the_difference_and_change_signs(
    made: list[tuple[float, float, int]],
) -> None:
    runs = [run(*numbers) for numbers in made]
    names = common_factors(runs)
    for one in runs:
        there, back = effects(names, runs[0], one), effects(names, one, runs[0])
        assert math.fsum(there.values()) == pytest.approx(one.runtime - runs[0].runtime, abs=1e-6)
        assert there == pytest.approx({name: -effect for name, effect in back.items()})


@pytest.mark.parametrize("path", [BT_MZ, COMD], ids=lambda path: path.name)
def test_factors_of_real_runs_make_their_runtimes(path: Path) -> None:
    (one,) = compared_runs([popmodel.metrics(path).to_dict()])
    names = common_factors([one])
    assert len(names) > 4  # the efficiency is divided
    product = math.prod(one.factors[name] ** SIGNS[name] for name in names)
    assert product == pytest.approx(one.runtime, rel=1e-9)


@pytest.fixture(scope="module")
def both() -> dict[str, Any]:
    return popmodel.metrics([BT_MZ, COMD]).to_dict()


def test_one_run_in_several_documents_is_one_run(both: dict[str, Any]) -> None:
    alone = {**both, "runs": both["runs"][:1]}
    assert [one.name for one in compared_runs([alone, alone])] == ["bt-mz.S.2x2"]
    assert comparison_blocks([alone]) == comparison_blocks([alone, alone]) == []
    window = {**both["runs"][0]["window"], "begin": 0.5}
    part = {**both, "runs": [{**both["runs"][0], "window": window}]}
    assert len(compared_runs([alone, part])) == 2


def test_time_in_calls_is_that_of_a_thread_on_average(both: dict[str, Any]) -> None:
    in_calls = sum(site["time"] for site in both["runs"][0]["call_sites"])
    assert sum(compared_runs([both])[0].calls.values()) == pytest.approx(in_calls / 4)


def shown(*documents: Any) -> list[str]:
    return markdown_lines(comparison_blocks(documents))


def slower(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """The first run of a document, in a document of its own, after all waiting took longer."""
    run = {**document["runs"][0], "trace": "after.prv"}
    run |= {name: factor * run[name] for name in ("runtime", "ideal_runtime")}
    return {**document, "runs": [run], "scaling": {"reference": "after.prv"}}


def test_before_and_after_from_two_results(both: dict[str, Any]) -> None:
    lines = shown(both | {"runs": both["runs"][:1]}, slower(both, 1.25))
    assert lines[0].startswith("after takes 19.6 ms (25.0 %) longer than bt-mz.S")
    row = next(line for line in lines if line.startswith("| Serialisation"))
    assert "+19.6 ms | +25.0 |" in row
    assert next(line for line in lines if line.startswith("| Load balance")).count(" 0.0 |")


def test_alike_runs_are_said_to_be_so(both: dict[str, Any]) -> None:
    first = shown(both | {"runs": both["runs"][:1]}, slower(both, 1.0001))[0]
    assert first.startswith("after takes as long as bt-mz.S.2x2: ")
    assert "Largest causes" not in first


def test_of_several_runs_all_are_compared_with_the_reference(both: dict[str, Any]) -> None:
    third = {**both["runs"][1], "trace": "third.prv"}
    lines = shown({**both, "runs": [*both["runs"], third]})
    assert any("all against" in line and line.endswith("| third |") for line in lines)
    assert not any(line.startswith("| all against") for line in shown(both))
    reference = both["scaling"] | {"reference": both["runs"][1]["trace"]}
    assert "longer than comd.4" in shown({**both, "scaling": reference})[0] or (
        "less than comd.4" in shown({**both, "scaling": reference})[0]
    )
