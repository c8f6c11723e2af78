"""What makes the difference between two runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.reports.compared_values import (
    ComparedFactor,
    ComparedKind,
    ComparedMeasurement,
    amounts,
    comparison_blocks,
    effects,
    factors,
    measured,
    reference,
)
from popmodel.reports.renderers.markdown import markdown_lines
from popmodel.reports.sensitivity_tables import flat

DATA = Path(__file__).parent.parent / "data"
BT_MZ, COMD = DATA / "bt-mz.S.2x2.prv.gz", DATA / "comd.4.prv.gz"


def run(
    runtime: float,
    useful: Sequence[float],
    threads: Sequence[int] | None = None,
    instructions: Sequence[float] | None = None,
    cycles: Sequence[float] | None = None,
    metrics: dict[str, Any] | None = None,
) -> ComparedMeasurement:
    observables = {
        "useful": useful,
        "threads": threads or [1] * len(useful),
        "instructions": instructions,
        "cycles": cycles,
    }
    facts = {"runtime": runtime, "observables": observables, "call_sites": [], "window": None}
    return ComparedMeasurement("a", {**facts, "trace": "a.prv", "metrics": metrics or {}})


def mpi(runtime: float, useful: Sequence[float], ideal: float | None = None) -> dict[str, Any]:
    """Metrics of the family ``mpi``, from their definitions."""
    found = {
        "parallel_efficiency": sum(useful) / len(useful) / runtime,
        "load_balance": sum(useful) / len(useful) / max(useful),
        "communication_efficiency": max(useful) / runtime,
    }
    if ideal is not None:
        found |= {
            "serialisation_efficiency": max(useful) / ideal,
            "transfer_efficiency": ideal / runtime,
        }
    return {"mpi": found}


def test_a_longer_run_of_one_cause_has_one_effect() -> None:
    """Two ranks; the second run only has its work divided worse: 6 and 2 instead of 4 and 4."""
    runs = [
        run(4.0, [4.0, 4.0], metrics=mpi(4.0, [4.0, 4.0], 4.0)),
        run(6.0, [6.0, 2.0], metrics=mpi(6.0, [6.0, 2.0], 6.0)),
    ]
    found = factors(runs)
    made = dict(zip([one.name for one in found], effects(found, runs, 0, 1), strict=True))
    assert made.pop("Load balance") == pytest.approx(2.0)
    assert set(made) == {
        "Useful time of all threads",
        "Threads",
        "Serialisation efficiency",
        "Transfer efficiency",
    }
    assert list(made.values()) == pytest.approx([0.0] * 4)


def test_two_causes_share_the_difference_by_their_logarithms() -> None:
    """Twice the threads and four times the work: twice as long, of which work makes two parts."""
    runs = [run(1.0, [1.0]), run(2.0, [2.0, 2.0])]
    found = factors(runs)
    assert [one.name for one in found] == [
        "Useful time of all threads",
        "Threads",
        "Parallel efficiency",
    ]
    assert effects(found, runs, 0, 1) == pytest.approx([2.0, -1.0, 0.0])


def test_useful_time_is_divided_where_all_runs_have_counters() -> None:
    """Twice the instructions at twice the IPC and half the clock."""
    runs = [
        run(1.0, [1.0], instructions=[1e9], cycles=[2e9]),
        run(2.0, [2.0], instructions=[2e9], cycles=[2e9]),
    ]
    found = factors(runs)
    assert [(one.name, one.kind, one.values) for one in found[:3]] == [
        ("Useful instructions", ComparedKind.COUNT, (1e9, 2e9)),
        ("Instructions per cycle", ComparedKind.RATIO, (0.5, 1.0)),
        ("Clock frequency", ComparedKind.FREQUENCY, (2e9, 1e9)),
    ]
    made = effects(found, runs, 0, 1)
    assert made[:3] == pytest.approx([1.0, -1.0, 1.0])
    assert factors([*runs, run(1.0, [1.0])])[0].name == "Useful time of all threads"


def test_what_a_run_does_not_tell_is_not_divided() -> None:
    """Of one run there is no replay."""
    useful = [3.0, 1.0]
    runs = [
        run(4.0, useful, metrics=mpi(4.0, useful, 3.5)),
        run(5.0, useful, metrics=mpi(5.0, useful)),
    ]
    names = [one.name for one in factors(runs)]
    assert names[2:] == ["Load balance", "Communication efficiency"]


def test_metrics_that_do_not_make_the_runtime_are_not_used() -> None:
    """As of hybrid runs, of which the family ``mpi`` sees masters only."""
    made = mpi(4.0, [3.0, 1.0])
    made["mpi"]["load_balance"] = 0.9
    runs = [run(4.0, [3.0, 1.0], metrics=made), run(4.0, [3.0, 1.0], metrics=made)]
    (plain,) = factors(runs)[2:]
    assert (plain.name, plain.values) == ("Parallel efficiency", (0.5, 0.5))


def test_a_run_without_computing_has_no_factors() -> None:
    assert factors([run(1.0, [1.0]), run(1.0, [0.0])]) == []
    assert factors([run(1.0, [1.0]), run(0.0, [1.0])]) == []


_SOME = st.floats(1e-3, 1e3)


@given(
    st.lists(st.tuples(_SOME, st.integers(1, 64), st.lists(_SOME, min_size=1, max_size=5))),
    _SOME,
)
def test_effects_add_up_to_the_difference_and_change_signs(
    made: list[tuple[float, int, list[float]]], last: float
) -> None:
    runs = [run(time, useful, [number] * len(useful)) for time, number, useful in made]
    runs += [run(last, [1.0]), run(last, [2.0])]
    found = factors(runs)
    for place, one in enumerate(runs):
        product = math.prod(each.values[place] ** each.sign for each in found)
        assert product == pytest.approx(one.runtime)
        there = effects(found, runs, 0, place)
        back = effects(found, runs, place, 0)
        assert math.fsum(there) == pytest.approx(one.runtime - runs[0].runtime, abs=1e-9)
        assert there == pytest.approx([-each for each in back])


def test_runs_of_equal_length_may_have_effects_that_cancel() -> None:
    runs = [run(2.0, [2.0]), run(2.0, [2.0, 2.0])]
    found = [
        ComparedFactor("work", ComparedKind.TIME, 1, (2.0, 4.0)),
        ComparedFactor("n", ComparedKind.NUMBER, -1, (1.0, 2.0)),
    ]
    assert effects(found, runs, 0, 1) == pytest.approx([2 * math.log(2), -2 * math.log(2)])


@pytest.mark.parametrize("path", [BT_MZ, COMD], ids=lambda path: path.name)
def test_factors_of_real_runs_make_their_runtimes(path: Path) -> None:
    runs = measured([popmodel.metrics(path).to_dict()], [])
    found = factors(runs)
    assert len(found) > 4  # the efficiency is divided
    product = math.prod(each.values[0] ** each.sign for each in found)
    assert product == pytest.approx(runs[0].runtime, rel=1e-9)


def test_regions_are_those_of_the_analysis_of_the_same_trace() -> None:
    metrics = popmodel.metrics([BT_MZ, COMD]).to_dict()
    sensitivity = flat(popmodel.whatif(COMD).to_dict())
    first, second = measured([metrics], [sensitivity])
    assert (first.name, second.name) == ("bt-mz.S.2x2", "comd.4")
    assert first.computing is None
    assert second.computing == {one["name"]: one["time"] for one in sensitivity["regions"]}
    assert second.listed_in_full is (not sensitivity["other_regions"]["regions"])


def test_of_two_analyses_of_a_trace_each_run_has_its_own() -> None:
    metrics = popmodel.metrics(COMD).to_dict()
    later = {**metrics, "runs": [{**metrics["runs"][0], "runtime": 2.0}]}
    found = flat(popmodel.whatif(COMD).to_dict())
    other = {**found, "regions": []}
    runs = measured([metrics, later], [found, other])
    assert [one.name for one in runs] == ["comd.4 #1", "comd.4 #2"]
    assert [bool(one.computing) for one in runs] == [True, False]
    assert measured([metrics, later], [found])[1].computing is None


def test_one_run_in_several_documents_is_one_run() -> None:
    metrics = popmodel.metrics(COMD).to_dict()
    assert [one.name for one in measured([metrics, metrics], [])] == ["comd.4"]
    window = {**metrics["runs"][0]["window"], "begin": 0.5}
    part = {**metrics, "runs": [{**metrics["runs"][0], "window": window}]}
    assert len(measured([metrics, part], [])) == 2


def test_time_in_calls_is_that_of_a_thread_on_average() -> None:
    document = popmodel.metrics(BT_MZ).to_dict()
    (one,) = measured([document], [])
    entry = document["runs"][0]
    assert one.threads == 4
    in_calls = sum(site["time"] for site in entry["call_sites"])
    assert sum(one.calls.values()) == pytest.approx(in_calls / 4)


def test_the_reference_is_that_of_the_scaling() -> None:
    both = popmodel.metrics([COMD, BT_MZ], reference=BT_MZ).to_dict()
    runs = measured([both], [])
    assert reference([both], runs) == 1
    assert reference([both, both], runs) == 0


def test_amounts_are_those_of_all_threads() -> None:
    metrics = popmodel.metrics([BT_MZ, COMD]).to_dict()
    found = popmodel.inspect(COMD, show="communication").to_dict()
    messages = {"trace": found["trace"], **found["communication"]}
    found = {one.name: one for one in amounts(measured([metrics], [], [messages]))}
    for name, key in (("Useful time", "useful"), ("Time in MPI", "in_mpi")):
        sums = [sum(run["observables"][key]) for run in metrics["runs"]]
        assert found[f"{name} of all threads"].values == pytest.approx(sums)
    assert found["Messages"].values == (None, 984)
    assert found["Bytes in messages"].values == (None, messages["bytes"])
    assert found["Mean size of messages"].values[1] == messages["bytes"] / 984
    assert found["MPI calls"].values[1] == sum(
        site["count"] for site in metrics["runs"][1]["call_sites"]
    )


def test_what_no_run_tells_is_no_amount() -> None:
    names = [one.name for one in amounts(measured([popmodel.metrics([BT_MZ, COMD]).to_dict()]))]
    assert names == ["Useful time of all threads", "Time in MPI of all threads", "MPI calls"]


def test_no_messages_have_no_mean_size() -> None:
    metrics = popmodel.metrics(COMD).to_dict()
    silent = {"trace": metrics["runs"][0]["trace"], "messages": 0, "bytes": 0}
    found = {one.name: one.values for one in amounts(measured([metrics], [], [silent]))}
    assert found["Messages"] == (0,)
    assert "Mean size of messages" not in found


def shown(*documents: Any) -> list[str]:
    return markdown_lines(comparison_blocks(documents))


@pytest.fixture(scope="module")
def both() -> dict[str, Any]:
    return popmodel.metrics([BT_MZ, COMD]).to_dict()


def slower(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """The first run of a document, in a document of its own, after all waiting took longer."""
    run = {**document["runs"][0], "trace": "after.prv"}
    run["runtime"] *= factor
    metrics = dict(run["metrics"]["hybrid-multiplicative"])
    metrics["mpi_serialisation_efficiency"] /= factor
    run["metrics"] = {"hybrid-multiplicative": metrics}
    return {**document, "runs": [run], "scaling": {"reference": "after.prv"}}


def test_one_run_is_compared_with_nothing(both: dict[str, Any]) -> None:
    alone = {**both, "runs": both["runs"][:1]}
    assert shown(alone) == shown(alone, alone) == []


def test_before_and_after_from_two_results(both: dict[str, Any]) -> None:
    lines = shown(both | {"runs": both["runs"][:1]}, slower(both, 1.25))
    assert lines[0].startswith("after takes 19.6 ms (25.0 %) longer than bt-mz.S")
    row = next(line for line in lines if line.startswith("| MPI serialisation efficiency"))
    assert "+19.6 ms | +25.0 |" in row
    assert next(line for line in lines if line.startswith("| MPI load balance")).count(" 0.0 |")


def test_alike_runs_are_said_to_be_so(both: dict[str, Any]) -> None:
    first = shown(both | {"runs": both["runs"][:1]}, slower(both, 1.0001))[0]
    assert first.startswith("after takes as long as bt-mz.S.2x2: ")
    assert "Largest causes" not in first


def test_of_several_runs_all_are_compared_with_the_reference(both: dict[str, Any]) -> None:
    third = {**both["runs"][1], "trace": "third.prv"}
    lines = shown({**both, "runs": [*both["runs"], third]})
    assert any("all against" in line and line.endswith("| third |") for line in lines)
    assert not any(line.startswith("| all against") for line in shown(both))
