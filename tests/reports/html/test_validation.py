"""Predictions beside measurements in a page: every configuration, coverage, errors, baselines."""

from __future__ import annotations

from pathlib import Path

import pytest

import popmodel
from popmodel.base.units import format_time
from popmodel.reports.html import validation

from ..balanced import Node
from . import documents
from .documents import Document, changed, contents, document_of, table

ROOT = Path(__file__).parent.parent.parent.parent
RECORD = ROOT / "examples" / "validation"


@pytest.fixture(scope="module")
def fitted() -> Document:
    """Runs beside a signature that others of them calibrated."""
    return document_of(
        popmodel.validate(
            RECORD / "report" / "cannon" / "calibrated.toml",
            RECORD / "report" / "cannon" / "tests.csv",
            machine=RECORD / "machine.json",
            all_runs=True,
        )
    )


@pytest.fixture(scope="module")
def plain() -> Document:
    """Runs of two splits of two cores, of which nothing was fitted."""
    return document_of(
        popmodel.validate(
            "stencil3d",
            ROOT / "examples" / "stencil3d" / "two-core-vm.csv",
            machine=ROOT / "examples" / "profiles" / "two-core-vm.json",
            settings={"N": 256},
        )
    )


def drawn(*found: Document) -> Node:
    return documents.drawn(validation, *found)


@pytest.mark.long
def test_every_configuration_has_its_runtimes(fitted: Document) -> None:
    (found,) = drawn(fitted).all("table", id="validation-0-runtimes")
    rows = found.all("tbody")[0].all("tr")
    assert len(rows) == len(fitted["splits"])
    for row, split in zip(rows, fitted["splits"], strict=True):
        size, measured, predicted, interval, _, error, inside, _ = (
            cell.text for cell in row.all("td")
        )
        time = split["runtime"]
        assert size == f"{split['parameters']['N']:g}"
        assert measured.startswith(format_time(time["mean"]))
        assert predicted == format_time(time["predicted"])
        assert interval == (
            f"{format_time(time['low'], digits=3)} .. {format_time(time['high'], digits=3)}"
        )
        assert error == f"{100 * time['error']:+.1f} %"
        assert inside == f"{time['covered']} of {split['runs']}"


def test_the_verdict_comes_first(fitted: Document) -> None:
    first = drawn(fitted).all("ul")[0]
    assert [one.text for one in first.all("li")] == fitted["verdict"]


def test_pictures_tell_regions_by_shape_and_words(fitted: Document) -> None:
    shown = drawn(fitted)
    assert len(shown.all("figure")) == 3
    legend = next(one for one in shown.all("ul") if one.has_class("legend"))
    assert [one.text.strip() for one in legend.all("li")] == [
        "test within its range",
        "test beyond the range of the fit",
    ]
    spots = [one for one in shown.all("g") if "-spot-" in (one.attributes.get("id") or "")]
    efficiencies = sum(len(one["metrics"]["hybrid-additive"]) for one in fitted["splits"])
    assert len(spots) == 2 * len(fitted["splits"]) + efficiencies


def test_coverage_stands_with_its_binomial_interval(fitted: Document) -> None:
    found = table(drawn(fitted), "Errors of the runtime")
    (inside,) = (one["runtime"] for one in fitted["regions"] if one["region"] == "interpolation")
    share = inside["coverage"]
    cells = found["interpolation"]
    assert cells[:6] == [
        str(inside["splits"]),
        f"{100 * inside['median_error']:.1f} %",
        f"{100 * inside['largest_error']:.1f} %",
        f"{100 * inside['bias']:+.1f} %",
        f"{100 * share['value']:.0f} %",
        f"{100 * share['low']:.0f} .. {100 * share['high']:.0f} %",
    ]
    assert list(found) == ["interpolation", "extrapolation in N"]


def test_baselines_terms_and_metrics_have_tables(fitted: Document) -> None:
    text = drawn(fitted).text
    for told in ("ideal scaling", "useful (computing, memory)", "Thread efficiency", "MASE"):
        assert told in text


@pytest.mark.long
def test_the_choice_of_the_split_is_judged(plain: Document) -> None:
    assert "Would the right split have been taken?" in drawn(plain).text
    assert "Would the right split" not in drawn({**plain, "decisions": []}).text


def test_the_largest_errors_of_efficiencies_come_first(fitted: Document) -> None:
    (found,) = drawn(fitted).all("table", id="validation-0-efficiencies")
    sizes = [
        float(row.all("td")[4].attributes["data-value"] or "nan")
        for row in found.all("tbody")[0].all("tr")
    ]
    assert sizes == sorted(sizes, reverse=True)
    errors = [
        abs(one["error"])
        for split in fitted["splits"]
        for one in split["metrics"]["hybrid-additive"].values()
    ]
    assert sizes == sorted(errors, reverse=True)[:40]
    assert f"and {len(errors) - 40} smaller errors" in drawn(fitted).text


def test_runs_without_efficiencies_have_runtimes_only() -> None:
    document = document_of(
        popmodel.validate(
            "cannon",
            ROOT / "examples" / "cannon" / "sizes.csv",
            machine=ROOT / "examples" / "profiles" / "two-core-vm.json",
        )
    )
    shown = drawn(document)
    assert len(shown.all("figure")) == 2
    assert "Errors of efficiencies" not in shown.text


def test_what_was_left_out_and_what_is_doubtful_is_told(plain: Document) -> None:
    left = {
        "processes": 9,
        "threads": 1,
        "parameters": plain["splits"][0]["parameters"],
        "sources": ["a.csv"],
        "measured": [1.5],
        "why": "no cores of their own",
    }
    shown = drawn({**plain, "left_out": [left], "warnings": ["units contradict"]})
    assert "9 x 1: 1.500 s: no cores of their own" in shown.text
    (warning,) = (one for one in shown.all("p") if one.has_class("warning"))
    assert warning.text == "units contradict"


def test_names_are_text(plain: Document) -> None:
    hostile = "</h3><script>alert(1)</script>"
    shown = drawn(changed(plain, lambda one: one.update(application=hostile, machine=hostile)))
    assert hostile in shown.all("h3")[0].text
    assert shown.all("script") == []


def test_ids_of_several_validations_differ(plain: Document) -> None:
    shown = drawn(plain, plain)
    ids = [
        node.attributes["id"]
        for name in ("table", "g")
        for node in shown.all(name)
        if "id" in node.attributes
    ]
    assert len(ids) == len(set(ids)) > 4


def test_without_validations_there_is_no_section() -> None:
    assert validation.section(contents()) is None
