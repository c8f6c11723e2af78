"""Pages about machine profiles."""

import re
from typing import Any

import pytest
from machines.profiles import document

import popmodel
from popmodel.cli.machine import check
from popmodel.cli.progress import progress_line
from popmodel.machines import profile as profiles
from popmodel.machines.profile import named_quantities
from popmodel.machines.quantity import Quantity
from popmodel.reports.figures import figure, interval_text, value_text
from popmodel.reports.machine_tables import inverse, unit_of, views
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style

Document = dict[str, Any]
NARROW = Style(60, whole=True)


def page(one: Document, style: Style = NARROW) -> list[str]:
    return block_lines(views(profiles.from_document(one)).blocks({}), style)


def line(lines: list[str], begin: str) -> str:
    (found,) = [each for each in lines if each.strip().startswith(begin)]
    return " ".join(found.split())


def test_every_quantity_is_shown_by_a_name_that_is_explained() -> None:
    profile = profiles.from_document(document())
    lines = block_lines(views(profile).blocks({}), Style(200, whole=True))
    named = [line.split("  ")[0].strip() for line in lines if re.match(r" [a-z]+\.", line)]
    assert named == [*named_quantities(profile)]
    for name in named:
        assert popmodel.docs(name).to_dict()["words"], name


def test_doubts_and_what_is_absent_stand_below() -> None:
    one = document() | {"absent": {"memory.latency": "the last cache is too large to leave"}}
    lines = page(one)
    assert lines[lines.index("warnings") + 1] == " - memory: noisy (others used a CPU)"
    assert lines[lines.index("not available") + 1].startswith(
        " - memory.latency: the last cache is "
    )
    assert not any("not used" in each for each in lines)  # that is what check is for


def test_a_check_says_what_the_profile_is_good_for() -> None:
    one = document()
    del one["memory"]["kappa"]
    profile = profiles.from_document(one)
    checked = check(profile)
    assert checked.to_dict()["usable"] is True
    lines = block_lines(checked.views.blocks(checked.to_dict()), NARROW)
    assert max(map(len, lines)) <= 60
    assert line(lines, "usable") == f"usable yes, {len(profile.quantities)} parameters"
    assert line(lines, "warnings") == "warnings 3"
    titles = [each for each in lines if each and not each.startswith(" ")][4:]
    assert titles == [
        "missing, needed by some predictions",
        "noisy measurements",
        "not measured",
        "measured, but not used by the model",
    ]
    assert dict(checked.to_dataframe().iloc[1])["kind"] == "noisy"


# -- values


def test_values_and_intervals_have_three_digits_and_a_unit() -> None:
    for value, unit, text in (
        (2.512e-7, "s", "251 ns"),
        (9.996e-7, "s", "1 us"),
        (0.0, "s", "0 s"),
        (3e-10, "s", "0.3 ns"),
        (65536, "B", "64 KiB"),
        (1020, "B", "1020 B"),
        (2.8512e10, "B/s", "28.5 GB/s"),
        (31.94, "1/cycle", "31.9 per cycle"),
        (0.5, "cycle", "0.5 cycles"),
        (5.12e-11, "s/B", "51.2 ps/B"),
        (0.0021312, "1", "0.00213"),
    ):
        assert value_text(Quantity(value), unit) == text
    assert interval_text(Quantity(1e-6, 9e-7, 1.25e-6), "s") == "0.9 .. 1.25"
    assert interval_text(Quantity(1e-6), "s") == "-"
    assert interval_text(Quantity(2e-8, 1.8e-8, 2.3e-8), "1") == "1.8e-08 .. 2.3e-08"
    assert (figure(99.96), figure(0)) == ("100", "0")


def test_what_may_be_nothing_has_the_unit_of_its_upper_bound() -> None:
    task = Quantity(0.0, 0.0, 2.7e-6)
    assert (value_text(task, "s"), interval_text(task, "s")) == ("0 us", "0 .. 2.7")
    gap = Quantity(0.0, 0.0, 65536.0)
    assert (value_text(gap, "B"), interval_text(gap, "B")) == ("0 KiB", "0 .. 64")


def test_a_time_per_byte_is_a_bandwidth() -> None:
    turned = inverse(Quantity(1e-10, 5e-11, 2e-10))
    assert turned is not None
    assert (turned.value, turned.low, turned.high) == pytest.approx((1e10, 5e9, 2e10))
    assert inverse(Quantity(0.0)) is None
    assert inverse(Quantity(1e-10, 0.0, 2e-10)) == Quantity(1 / 1e-10)


def test_units_come_from_the_schema() -> None:
    assert unit_of("memory.cache_bw.L1") == "B/s"
    assert unit_of("openmp.barrier.seconds[2]") == "s"
    for path in ("core.nothing", "noise.x", "host.cpu.model", "net.intra.classes"):
        with pytest.raises(KeyError):
            unit_of(path)
    for path in profiles.from_document(document()).quantities:
        assert unit_of(path)


# -- while measuring


def test_the_line_of_progress_fits_the_terminal() -> None:
    assert progress_line("p2p", 30, 120, 75.2, 80) == (
        "p2p         [#####...............] 30/120 jobs, 1:15 left"
    )
    assert progress_line("collectives", 30, 120, 5, 40) == "collectives 30/120 jobs, 0:05 left"
    assert len(progress_line("collectives", 30, 120, 5, 20)) <= 20
    assert "[####################] 0/0 jobs" in progress_line("core", 0, 0, 0, 80)
