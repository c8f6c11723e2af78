"""The verdict of a page: sentences whose every number is one of the documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.units import format_time
from popmodel.reports.html import verdict
from popmodel.reports.html.columns import PageColumn, PageValue
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import fragment
from popmodel.reports.html.sentences import of_network, of_projection, of_replays, of_run, trend

from ..balanced import Node, parsed

ROOT = Path(__file__).parent.parent.parent.parent
HYBRID = ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz"
STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"


def contents(*inputs: Any) -> Contents:
    return popmodel.report(inputs).contents


def context(of: Contents) -> dict[str, Any]:
    found = verdict.section(of)
    assert found is not None
    return dict(found.context)


def drawn(of: Contents) -> Node:
    found = verdict.section(of)
    assert found is not None
    return parsed(fragment(found))


@pytest.fixture(scope="module")
def measured() -> Contents:
    return contents(popmodel.metrics(HYBRID))


def run(
    name: str,
    threads: int,
    runtime: float,
    *,
    balance: float = 1.0,
    transfer: float = 1.0,
    computing: float | None = None,
) -> PageColumn:
    """A measured run of MPI: load balance, transfer, and its computing against a reference."""
    metrics = {
        "mpi": {
            "parallel_efficiency": PageValue(balance * transfer),
            "load_balance": PageValue(balance),
            "communication_efficiency": PageValue(transfer),
            "serialisation_efficiency": PageValue(1.0),
            "transfer_efficiency": PageValue(transfer),
        }
    }
    if computing is not None:
        metrics["scaling"] = {
            "global_efficiency": PageValue(balance * transfer * computing),
            "computation_scaling": PageValue(computing),
        }
    lowest = {"mpi": "load_balance" if balance < transfer else "transfer_efficiency"}
    return PageColumn(
        name,
        "measured",
        f"{threads} x 1",
        threads,
        PageValue(runtime),
        metrics,
        {},
        lowest,
        computing is not None,
        True,
        "mpi",
    )


def test_the_lead_tells_efficiency_and_largest_loss(measured: Contents) -> None:
    (one,) = measured.of("metrics")[0]["runs"]
    values = one["metrics"]["hybrid-additive"]
    lowest = one["lowest"]["hybrid-additive"]
    lost = (1 - lowest["value"]) * one["runtime"]
    lead = dict(context(measured)["more"])["Run"]  # behind a doubt
    assert f"at {100 * values['parallel_efficiency']:.1f} % parallel efficiency" in lead
    assert f"{100 * (1 - lowest['value']):.1f} points" in lead
    assert f"{format_time(lost, digits=3)} of each thread" in lead
    assert f"{format_time(4 * lost, digits=3)} of all 4 together" in lead


def test_a_run_without_losses_says_so() -> None:
    assert of_run(run("a", 2, 1.0)) == (
        "a (2 x 1) takes 1.000 s at 100.0 % parallel efficiency; no loss is larger than 0.1 points."
    )


def test_a_run_whose_efficiency_is_unknown_has_its_runtime() -> None:
    unknown = PageColumn("a", "measured", "1 x 1", 1, PageValue(2.0), {}, {}, {}, False, True, "")
    assert of_run(unknown) == "a (1 x 1) takes 2.000 s; its parallel efficiency is not known."


def test_a_series_is_told_from_its_ends_and_its_steepest_fall() -> None:
    runs = [run("c", 16, 2.0, balance=0.5), run("a", 1, 8.0), run("b", 4, 2.5, balance=0.8)]
    assert trend(runs) == (
        "From a (1 x 1) to c (16 x 1) the runtime goes from 8.000 s to 2.000 s (4 times as fast), "
        "parallel efficiency from 100.0 to 50.0 %, mostly load balance (100.0 to 50.0 %); it falls "
        "most from b to c: 80.0 to 50.0 %."
    )


def test_a_series_that_is_compared_is_told_by_global_efficiency() -> None:
    runs = [run("a", 1, 8.0, computing=1.0), run("b", 4, 2.5, balance=0.95, computing=0.8)]
    assert trend(runs).endswith(
        "global efficiency from 100.0 to 76.0 %, mostly computation scaling (100.0 to 80.0 %)."
    )


def test_a_run_on_more_threads_may_take_longer() -> None:
    assert "(1.5 times)" in trend([run("a", 1, 2.0), run("b", 4, 3.0, balance=0.9)])


def test_two_runs_on_as_many_threads_are_compared() -> None:
    before, after = run("old", 4, 2.0, transfer=0.6), run("new", 4, 1.5, transfer=0.8)
    assert trend([before, after]) == (
        "new takes 25.0 % less than old (1.500 s, 2.000 s), parallel efficiency from 60.0 to "
        "80.0 %, mostly transfer efficiency (60.0 to 80.0 %)."
    )
    assert trend([after, before]).startswith("old takes 33.3 % longer than new")
    assert trend([before, before]).startswith("old takes as long as old (2.000 s)")


def test_many_runs_on_as_many_threads_have_a_range() -> None:
    runs = [run("a", 4, 2.0), run("b", 4, 1.0), run("c", 4, 3.0)]
    assert trend(runs) == "3 runs on 4 threads take 1.000 s (b) to 3.000 s (c)."


@pytest.mark.long
def test_every_kind_of_result_has_its_sentence() -> None:
    runs = ROOT / "examples" / "stencil3d" / "two-core-vm.csv"
    profile = ROOT / "examples" / "profiles" / "two-core-vm.json"
    whole = contents(
        popmodel.metrics([STENCIL, HYBRID]),
        popmodel.replay(STENCIL, latency=["1us", "10us"]),
        popmodel.sweep("stencil3d", cores=16, draws=50),
        popmodel.predict("stencil3d", procs=4, threads=4, draws=50),
        popmodel.validate("stencil3d", runs, machine=profile, settings={"N": 256}),
    )
    found = context(whole)
    assert found["lead"].startswith("Doubtful: ")
    names = [name for name, _ in found["more"]]
    assert names == ["Run", "Runs", "Replay", "Splits", "Prediction", "Validation"]
    told = dict(found["more"])
    assert told["Replay"].startswith("2 replays take")
    assert "of 5 splits of 16 cores the recommended one is" in told["Splits"]
    assert "4 x 4 is predicted to take" in told["Prediction"]
    assert re.match(r"\d+ of \d+ runs inside the 90 % interval", told["Validation"])


def test_half_the_latency_and_equal_computing_are_weighed() -> None:
    found = popmodel.sensitivity(STENCIL).to_dict()
    runtime = found["runtime"]
    assert "half the latency would not help" in of_network(found)
    costly = {**found, "network": {**found["network"], "latency": 1e-4}}
    x, y = found["latency"]["breakpoints"], found["latency"]["runtimes"]
    saved = 1 - (y[0] + (y[-1] - y[0]) * 0.5e-4 / (x[-1] - x[0])) / runtime
    told = "would not help" if saved < 5e-4 else f"would save {100 * saved:.1f} %"
    assert f"half the latency {told}" in of_network(costly)
    balanced = min(one["balanced"] for one in found["regions"])
    assert f"would save {100 * (1 - balanced / runtime):.1f} %" in of_network(found)


def test_a_network_without_latency_has_no_half() -> None:
    found = popmodel.sensitivity(STENCIL).to_dict()
    free = {**found, "network": {**found["network"], "latency": 0.0}}
    assert "half the latency" not in of_network(free)


def test_replays_that_stop_say_so() -> None:
    stopped = {"runs": [{"runtime": None}]}
    assert of_replays(stopped) == "No replay came to its end."


def test_one_replay_names_its_network() -> None:
    found = popmodel.replay(STENCIL).to_dict()
    (one,) = found["runs"]
    assert of_replays(found) == (
        f"Replayed on {one['network']['name']}, the run takes {format_time(one['runtime'])}, "
        f"{100 * one['change']:+.1f} % against the measured run."
    )


def test_a_projection_is_told_at_its_largest_size() -> None:
    row = {"metric": "runtime", "threads": 1, "low": 1.0, "high": 3.0}
    rows = [{**row, "processes": 4, "value": 4.0}, {**row, "processes": 16, "value": 2.0}]
    assert of_projection({"rows": rows}) == (
        "Projected to 16 x 1, the run takes 2.000 s (90 %: 1.00 s .. 3.00 s)."
    )
    nothing = [{**row, "processes": 16, "value": None}]
    assert of_projection({"rows": nothing}) == "No runtime can be projected to 16 x 1."


def test_the_table_has_the_cost_of_all_threads(measured: Contents) -> None:
    (one,) = measured.of("metrics")[0]["runs"]
    cells = [cell.text for cell in drawn(measured).all("td")]
    lost = (1 - one["metrics"]["hybrid-additive"]["parallel_efficiency"]) * one["runtime"] * 4
    assert cells[:2] == ["2 x 2", format_time(one["runtime"])]
    assert cells[2] == format_time(4 * one["runtime"])
    assert cells[3] == format_time(lost, digits=3)


def test_advice_doubts_and_caveats_are_told(measured: Contents) -> None:
    advice = measured.of("metrics")[0]["advice"]
    text = drawn(measured).text
    assert advice["verdict"] in text
    for cause in advice["causes"]:
        assert cause["why"] in text
    for doubt in advice["doubts"]:
        assert doubt in text
    assert "MPI_Init to MPI_Finalize" in text


def test_names_of_metrics_keep_their_capitals_within_a_sentence() -> None:
    found = context(contents(popmodel.metrics(STENCIL)))
    assert found["lead"].startswith("Doubtful: ")
    assert "is OpenMP parallel region efficiency" in dict(found["more"])["Run"]
    assert not any(text.startswith("Doubtful: ") for text in found["doubts"])


def test_what_was_left_out_is_a_warning(measured: Contents) -> None:
    left_out = [{"trace": "a.prv", "what": "sensitivity", "why": "it deadlocks"}]
    given = measured.with_({**measured.document, "left_out": left_out})
    found = [one for one in drawn(given).all("li") if one.has_class("warning")]
    assert [one.text for one in found] == ["left out: sensitivity of a.prv: it deadlocks"]


def test_a_machine_that_was_not_measured_is_a_doubt() -> None:
    found = context(contents(popmodel.sweep(cores=8, draws=10)))
    assert found["doubts"] == ["sweep: the machine sandybridge-fdr is a preset, not measured"]


def test_networks_of_several_traces_are_told_apart() -> None:
    both = [popmodel.sensitivity(trace) for trace in (STENCIL, HYBRID)]
    found = context(contents(*both))
    assert "alpha-beta" in found["lead"]
    assert [name for name, _ in found["more"]] == ["Network of bt-mz.S.2x2"]
    assert [step.split(":")[0] for step in found["steps"]] == [
        "Network of stencil3d.2x2",
        "Network of bt-mz.S.2x2",
    ]


def test_of_several_runs_the_network_of_the_one_that_is_told_of_is_weighed() -> None:
    both = [popmodel.sensitivity(trace) for trace in (STENCIL, HYBRID)]
    found = context(contents(popmodel.metrics([STENCIL, HYBRID]), *both))
    said = dict(found["more"])
    assert found["lead"].startswith("Doubtful: ")
    assert said["Run"].startswith("bt-mz.S.2x2")
    assert list(said) == ["Run", "Runs", "Network of bt-mz.S.2x2"]  # these are no series


def test_what_has_no_verdict_has_no_section() -> None:
    assert verdict.section(contents(popmodel.communication(STENCIL))) is None
