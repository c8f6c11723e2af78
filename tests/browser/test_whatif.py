"""Sliders of the what-if: exact, by keyboard, in words, in the address."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import popmodel

from .conftest import Open

DATA = Path(__file__).parent.parent / "data"
FIELDS = ("latency", "bandwidth", "speed")


expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


@pytest.fixture(scope="module")
def cg() -> Any:
    """What a run depends on."""
    return popmodel.whatif(DATA / "cg.S.2.prv.gz").sensitivity


@pytest.fixture(scope="module")
def cg_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whatif") / "cg.html"
    popmodel.report([popmodel.whatif(DATA / f"{name}.prv.gz") for name in NAMES]).save(path)
    return path


NAMES = ("cg.S.2", "comd.4")
CG = "whatif-run=0"
"""The page opens on the largest run, which is the other one."""


def value(page: Any) -> float:
    return float(page.locator("#whatif-runtime").get_attribute("value"))


def test_values_of_an_address_are_those_of_python_to_1e_12(
    cg: Any, cg_page: Path, open_page: Open
) -> None:
    for latency, bandwidth, speed in [
        (3.3e-6, 7e9, 1.7),
        (0.0, math.inf, 0.25),
        (9e-5, 1.1e8, 4.0),
    ]:
        rate = "Infinity" if bandwidth == math.inf else repr(bandwidth)
        page = open_page(
            cg_page,
            f"{CG}&whatif-latency={latency!r}&whatif-bandwidth={rate}&whatif-speed={speed!r}",
        )
        expected = cg.planes(latency, 1 / bandwidth, 1 / speed)
        assert value(page) == pytest.approx(expected, rel=1e-12)


def test_every_position_of_a_slider_is_evaluated_as_in_python(
    cg: Any, cg_page: Path, open_page: Open
) -> None:
    page = open_page(cg_page, CG)
    for position in (0, 1, 17, 150, 299, 300):
        page.locator("#whatif-latency").fill(str(position))
        state = page.evaluate("popmodel.state.get('whatif-latency')")
        latency = 2e-6 if state is None else float(state)
        assert value(page) == pytest.approx(cg.planes(latency, 1e-10), rel=1e-12)
    assert page.evaluate("popmodel.state.get('whatif-latency')") == "0.0001"


def test_efficiencies_follow(cg: Any, cg_page: Path, open_page: Open) -> None:
    page = open_page(cg_page, f"{CG}&whatif-latency=1e-5&whatif-speed=2")
    runtime = cg.planes(1e-5, 1e-10, 0.5)
    document = popmodel.whatif(DATA / "cg.S.2.prv.gz").to_dict()["sensitivity"]
    (longest,) = (one["runtime"] for one in document["scenarios"] if one["name"] == "no waiting")
    shown = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.get_by_role("region", name="Efficiencies as set").locator("tbody tr").all()
    }
    assert shown["Transfer efficiency"][1] == f"{100 * 0.5 * cg.ideal_runtime / runtime:.1f} %"
    assert shown["Communication efficiency"][1] == f"{100 * 0.5 * longest / runtime:.1f} %"
    before = 100 * cg.ideal_runtime / cg.runtime
    assert shown["Transfer efficiency"][0] == f"{before:.1f} %"
    assert float(shown["Transfer efficiency"][2]) == pytest.approx(
        100 * 0.5 * cg.ideal_runtime / runtime - before, abs=0.051
    )


def test_parts_add_up_to_the_runtime(cg_page: Path, open_page: Open) -> None:
    page = open_page(cg_page, f"{CG}&whatif-latency=0.00001")
    shares = page.locator("[data-share]").all_inner_texts()
    assert sum(float(one.removesuffix(" %")) for one in shares) == pytest.approx(100, abs=0.21)


def test_parts_add_up_on_a_machine_whose_sizes_differ_in_latency(
    tmp_path: Path, open_page: Open
) -> None:
    path = tmp_path / "machine.html"
    found = popmodel.whatif(
        DATA / "bt-mz.S.2x2.prv.gz", machine="sandybridge-fdr", sensitivity=True
    )
    popmodel.report(found).save(path)
    page = open_page(path, "whatif-latency=0.00008")
    shares = page.locator("[data-share]").all_inner_texts()
    assert sum(float(one.removesuffix(" %")) for one in shares) == pytest.approx(100, abs=0.21)
    assert all(float(one.removesuffix(" %")) >= 0 for one in shares)


def test_sliders_are_moved_by_keyboard_and_said_in_words(cg_page: Path, open_page: Open) -> None:
    page = open_page(cg_page, CG)
    slider = page.get_by_role("slider", name="Latency")
    slider.focus()
    assert slider.get_attribute("aria-valuetext") == "2 us"
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == "100 us"
    expect(page).to_have_url(re.compile("&whatif-latency=0.0001$"))
    assert page.locator("#whatif-latency-set").inner_text() == "100 us"
    expect(page.locator("#whatif-status")).to_have_text(
        "Runtime 141.9 ms, +684.6 % against the network analysed"
    )
    page.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext") == "0 s"
    page.get_by_role("slider", name="Bandwidth").press("End")
    assert page.locator("#whatif-bandwidth-set").inner_text() == "inf"
    page.get_by_role("button", name="As analysed").press("Enter")
    assert value(page) == 0.0180841382
    expect(page).not_to_have_url(re.compile("whatif-latency"))


def test_a_network_is_chosen_by_its_button(cg: Any, cg_page: Path, open_page: Open) -> None:
    page = open_page(cg_page, CG)
    page.get_by_role("button", name="ideal: no latency, infinite bandwidth").click()
    assert value(page) == pytest.approx(cg.ideal_runtime, rel=1e-12)
    page.get_by_role("button", name="dimemas: 5 us, 1 GB/s").click()
    assert value(page) == pytest.approx(cg.planes(5e-6, 1e-9), rel=1e-12)


def test_an_address_with_values_out_of_range_shows_the_run_as_analysed(
    cg_page: Path, open_page: Open
) -> None:
    page = open_page(cg_page, "whatif-latency=-1&whatif-speed=NaN&whatif-run=0")
    assert value(page) == 0.0180841382


def test_one_run_is_shown_at_a_time_the_largest_first(cg_page: Path, open_page: Open) -> None:
    page = open_page(cg_page)
    assert page.get_by_role("heading", name="comd.4", exact=True).is_visible()
    assert not page.get_by_role("heading", name="cg.S.2", exact=True).is_visible()
    page.locator("#whatif-run").select_option("cg.S.2")
    assert page.get_by_role("heading", name="cg.S.2", exact=True).is_visible()
    expect(page).to_have_url(re.compile("whatif-run=0"))
    assert value(page) == 0.0180841382


def test_charts_are_told_in_words_and_follow_the_sliders(cg_page: Path, open_page: Open) -> None:
    page = open_page(cg_page, CG)
    chart = page.locator("#whatif-latency-chart")
    assert chart.get_attribute("aria-label") == (
        "Runtime over latency: 15.82 ms at 0 s, 141.9 ms at 100 us; now 18.08 ms at 2 us"
    )
    place = chart.locator(".now")
    before = [float(place.get_attribute(name)) for name in ("cx", "cy")]
    page.get_by_role("slider", name="Latency").press("End")
    after = [float(place.get_attribute(name)) for name in ("cx", "cy")]
    assert after[0] > before[0]
    assert after[1] < before[1]  # above: it takes longer
