"""Which region pays: the sentence on top and the tables."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.base.plain import document
from popmodel.efficiency.verdict import region_sentence
from popmodel.reports import sensitivity_regions
from popmodel.reports.renderers.tables import Style
from popmodel.reports.renderers.terminal import block_lines
from popmodel.sensitivity.region_gains import (
    FASTER,
    Durations,
    Gain,
    Rest,
    Scenario,
    Slowest,
    Worth,
)

RANKS = Durations(0.1, 0.2, (3, 0, 1), 0)


def region(
    name: str, share: float, path: float, *, kind: str = "user region", slope: float | None = None
) -> Worth:
    """A region of a run of 1 s whose runtime falls by `slope` up to its end."""
    slope = path if slope is None else slope
    gain = tuple(Gain(one, 1 - slope * one) for one in FASTER)
    one = Slowest(3, tuple(Gain(one, 1 - 0.5 * slope * one) for one in FASTER))
    return Worth(name, kind, share, share, path, gain, one, 0.9, 1 - 0.1 * slope, RANKS)


def found(*regions: Worth, rest: Rest | None = None, scenarios: tuple[Scenario, ...] = ()) -> Any:
    return document(
        "popmodel/sensitivity/1",
        trace="run.prv",
        runtime=1.0,
        regions=regions,
        other_regions=rest or Rest(0, 0.0, 0.0),
        scenarios=scenarios,
    )


def lines(section, width: int = 80) -> list[str]:
    return block_lines([section], Style(width))


def test_the_sentence_names_what_pays_and_what_hides() -> None:
    run = found(region("solve", 0.7, 0.72), region("exchange", 0.12, 0.0))
    assert region_sentence(run) == (
        "10 % less time in solve saves 7.2 % of the runtime; exchange has 12.0 % of the time and "
        "pays nothing: it hides behind waiting"
    )


def test_a_phase_is_called_by_what_is_computed() -> None:
    run = found(
        region("before MPI_Send in main", 0.4, 0.3, kind="phase"),
        region("before MPI_Wait", 0.3, 0.02, kind="phase"),
    )
    assert region_sentence(run) == (
        "10 % less time computing before MPI_Send in main saves 3.0 % of the runtime; computing "
        "before MPI_Wait has 30.0 % of the time and pays only 0.2 %: it hides behind waiting"
    )


def test_where_nothing_pays_the_sentence_says_so() -> None:
    run = found(region("solve", 0.02, 0.001))
    assert region_sentence(run) == (
        "no region pays: 10 % less time in any of them saves less than 0.1 % of the runtime"
    )


def test_a_small_region_that_does_not_pay_is_not_worth_a_word() -> None:
    run = found(region("solve", 0.7, 0.7), region("setup", 0.04, 0.0))
    assert "setup" not in region_sentence(run)


def test_without_computing_there_is_nothing_to_say() -> None:
    assert sensitivity_regions.regions(found()) == ()
    assert region_sentence(found()).startswith("nothing is computed")


def test_the_table_has_shares_and_gains() -> None:
    run = found(region("solve", 0.7, 0.72), region("exchange", 0.12, 0.0))
    assert lines(sensitivity_regions.regions(run))[:3] == [
        "which region pays",
        "self %  path %  -10 %  -50 %   one  even",
        "  70.0    72.0    7.2   36.0  18.0   7.2  solve",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_table_fits_narrow_terminals(width) -> None:
    run = found(region("a_function_with_a_long_name", 0.7, 0.72))
    assert all(len(line) <= width for line in lines(sensitivity_regions.regions(run), width))


def test_regions_that_are_not_shown_are_summed_up() -> None:
    many = [region(f"r{i}", 0.05, 0.04) for i in range(10)]
    shown = lines(sensitivity_regions.regions(found(*many, rest=Rest(3, 0.02, 0.01))), 200)
    assert (
        " and 5 regions more: together 12.0 % of the time, 9.0 % of the critical path, which is "
        "the most they can gain" in shown
    )


def test_regions_of_next_to_nothing_are_not_shown() -> None:
    run = found(region("solve", 0.7, 0.72), region("setup", 0.0004, 0.0))
    shown = lines(sensitivity_regions.regions(run), 200)
    assert not any("setup" in line for line in shown)
    assert any("and 1 region more" in line for line in shown)


def test_scenarios_have_their_gains() -> None:
    run = found(scenarios=(Scenario("no transfer", "no latency", 0.8, 0.2),))
    assert lines(sensitivity_regions.scenarios(run)) == [
        "potential gains",
        "gain %      gain   runtime",
        "  20.0  200.0 ms  800.0 ms  no transfer: no latency",
    ]


def test_where_no_scenario_gains_anything_a_sentence_says_so() -> None:
    run = found(scenarios=(Scenario("no transfer", "no latency", 1.0, 0.0),))
    assert lines(sensitivity_regions.scenarios(run)) == [
        "potential gains: less than 0.1 % of the runtime in every ideal scenario"
    ]


def test_records_have_a_line_for_each_value() -> None:
    run = found(
        region("solve", 0.7, 0.72), scenarios=(Scenario("no transfer", "no latency", 0.8, 0.2),)
    )
    rows = {
        (one["quantity"], one["name"], one["value"]): one
        for one in sensitivity_regions.records(run)
    }
    assert rows["faster", "solve", 0.0]["slope"] == -0.72
    assert rows["faster", "solve", 0.1]["runtime"] == pytest.approx(0.928)
    assert rows["faster on the slowest rank", "solve", 0.5]["runtime"] == pytest.approx(0.82)
    assert rows["balance", "solve", 1.0]["runtime"] == pytest.approx(0.928)
    assert rows["gain", "no transfer", 0.2]["runtime"] == 0.8
