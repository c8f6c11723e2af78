"""Splits in a page: all their figures, what to take in words, how to launch each."""

from __future__ import annotations

import pytest

import popmodel
from popmodel.base.units import format_size, format_time
from popmodel.reports.html import splits

from ..balanced import Node
from . import documents
from .documents import Document, changed, commands, contents, document_of


@pytest.fixture(scope="module")
def stencil() -> Document:
    return document_of(popmodel.predict("stencil3d", cores=[16, 64], draws=40))


@pytest.fixture(scope="module")
def cannon() -> Document:
    return document_of(popmodel.predict("cannon", cores=16, draws=40))


def drawn(*found: Document) -> Node:
    return documents.drawn(splits, *found)


def rows(shown: Node, id: str) -> dict[str, list[str]]:
    """Texts of the cells of each split."""
    (table,) = shown.all("table", id=id)
    return documents.rows(table)


def test_every_split_has_its_figures(stencil: Document) -> None:
    found = rows(drawn(stencil), "splits-0-64")
    mine = [one for one in stencil["candidates"] if one["cores"] == 64]
    assert {name for name, cells in found.items() if len(cells) > 1} == {
        f"{one['processes']} x {one['threads']}" for one in mine
    }
    for one in mine:
        cells = found[f"{one['processes']} x {one['threads']}"]
        assert cells[0] == format_time(one["runtime"]["value"])
        assert cells[3:7] == [
            f"{100 * one['parallel_efficiency']['value']:.1f} %",
            f"{100 * one['probability_best']:.0f} %",
            f"{100 * one['probability_tied']:.0f} %",
            f"{100 * one['regret']:.1f} %",
        ]
        assert cells[7] == format_size(one["memory_per_process"], digits=3)


def test_what_to_take_and_what_is_as_good_stand_in_words(stencil: Document) -> None:
    shown = drawn(stencil)
    for choice in stencil["choices"]:
        found = rows(shown, f"splits-0-{choice['cores']}")
        first, *others = (f"{p} x {t}" for p, t in choice["tied"])
        assert first == f"{choice['take'][0]} x {choice['take'][1]}"
        assert found[first][-1].startswith("recommended")
        assert all(found[one][-1].startswith("equally good") for one in others)
        assert sum(cells[-1].startswith("recommended") for cells in found.values()) == 1


def test_numbers_to_sort_by_are_those_of_the_document(stencil: Document) -> None:
    (table,) = drawn(stencil).all("table", id="splits-0-16")
    values = [
        float(row.all("td")[0].attributes["data-value"] or "nan")
        for row in table.all("tbody")[0].all("tr")
    ]
    assert sorted(values) == sorted(
        one["runtime"]["value"] for one in stencil["candidates"] if one["cores"] == 16
    )


def test_splits_that_are_not_possible_say_why(cannon: Document) -> None:
    found = rows(drawn(cannon), "splits-0-16")
    assert found["8 x 2"] == [
        "not possible: cannon cannot run with 8 processes: it requires is_square(P)"
    ]


def test_cores_without_a_split_say_why() -> None:
    document = document_of(popmodel.predict("stencil3d", cores=[16, 10**6], draws=0))
    (impossible,) = document["impossible"]
    shown = drawn(document)
    (warning,) = (one for one in shown.all("p") if one.has_class("warning"))
    assert impossible["why"] in warning.text
    assert impossible["hint"] in warning.text


def test_every_split_can_be_launched(stencil: Document) -> None:
    found = commands(drawn(stencil))
    for one in stencil["candidates"]:
        assert {one["launch"], one["launch_mpirun"]} <= found


def test_parts_of_the_time_and_efficiencies_stand_beside_each_other(stencil: Document) -> None:
    text = drawn(stencil).text
    one = stencil["candidates"][0]
    for part, seconds in one["breakdown"]["time"].items():
        assert part in text
        assert format_time(seconds, digits=3) in text
    for value in one["breakdown"]["metrics"].values():
        assert f"{100 * value:.1f}" in text


def test_several_numbers_of_cores_have_an_overview(stencil: Document, cannon: Document) -> None:
    assert len(drawn(stencil).all("figure")) == 1
    assert drawn(cannon).all("figure") == []
    grown = stencil["growth"][0]
    assert (
        f"64 cores are {grown['speedup']['value']:.2f} times as fast as 16" in drawn(stencil).text
    )


def test_documents_without_what_was_added_later_are_shown(stencil: Document) -> None:
    def forget(document: Document) -> None:
        for one in document["candidates"]:
            for key in ("breakdown", "launch", "launch_mpirun"):
                del one[key]

    old = drawn(changed(stencil, forget))
    assert len(rows(old, "splits-0-64")) == len(rows(drawn(stencil), "splits-0-64"))
    assert "Where the time goes" not in old.text
    assert "Launch another split" not in old.text
    assert stencil["choices"][0]["launch"] in commands(old)


def test_what_is_not_compared_or_beyond_what_was_measured_says_so(stencil: Document) -> None:
    def change(document: Document) -> None:
        first, second, third, *_ = document["candidates"]
        first |= {"probability_best": None, "probability_tied": None, "regret": None}
        split = [first["processes"], first["threads"]]
        document["choices"][0]["checked"]["not_replayed"] = [{"split": split, "why": "too large"}]
        second["validity"] = {"status": "extrapolated", "factor": 4.0, "reasons": ["nodes x4"]}
        third["validity"] = {"status": "outside", "factor": 90.0, "reasons": ["nodes x90"]}
        third["runtime"] = {"value": 2.0, "low": None, "high": None, "why": "outside"}

    found = rows(drawn(changed(stencil, change)), "splits-0-16")
    remarks = [cells[-1] for cells in found.values()]
    # beside a split without an interval no probability, and no recommendation, is sure
    assert all("%" not in " ".join(cells[4:7]) for cells in found.values() if len(cells) > 1)
    assert not any("equally good" in one for one in remarks)
    assert any(one.startswith("fastest, not recommended for sure") for one in remarks)
    assert any("closed form, not compared with replays: too large" in one for one in remarks)
    assert any("extrapolated: nodes x4" in one for one in remarks)
    assert any(
        "too far outside the measured range for an interval: nodes x90" in r for r in remarks
    )
    assert [cells[1] for cells in found.values() if cells[0] == "2.000 s"] == ["-"]


def test_ids_of_several_sweeps_differ(stencil: Document, cannon: Document) -> None:
    shown = drawn(stencil, cannon, stencil)
    ids = [
        node.attributes["id"]
        for name in ("table", "g", "svg", "section")
        for node in shown.all(name)
        if "id" in node.attributes
    ]
    assert len(ids) == len(set(ids)) > 5


def test_names_are_text(stencil: Document) -> None:
    hostile = "</h3><script>alert(1)</script>"
    shown = drawn(
        changed(stencil, lambda one: one["application"].update(name=hostile, bundled=False))
    )
    assert hostile in shown.all("h3")[0].text
    assert shown.all("script") == []


def test_without_splits_there_is_no_section() -> None:
    assert splits.section(contents()) is None
