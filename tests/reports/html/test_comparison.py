"""Two runs beside each other, on a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.comparison import ComparedKind
from popmodel.reports.html import comparison
from popmodel.reports.html.contents import SCHEMA, Contents
from popmodel.reports.html.page import fragment

from .test_page import HOSTILE, Reader

DATA = Path(__file__).parent.parent.parent / "data"
BT_MZ, COMD = DATA / "bt-mz.S.2x2.prv.gz", DATA / "comd.4.prv.gz"


@pytest.fixture(scope="module")
def both() -> dict[str, Any]:
    return popmodel.metrics([BT_MZ, COMD]).to_dict()


def contents(*documents: Any) -> Contents:
    return Contents({"schema": SCHEMA, "title": "t", "documents": documents})


def changed(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """The first run of a document, in a document of its own, after all waiting took longer."""
    run = {**document["runs"][0], "trace": "after.prv"}
    run["runtime"] *= factor
    metrics = dict(run["metrics"]["hybrid-multiplicative"])
    metrics["mpi_serialisation_efficiency"] /= factor
    run["metrics"] = {"hybrid-multiplicative": metrics}
    return {**document, "runs": [run], "scaling": {"reference": "after.prv"}}


def test_one_run_is_compared_with_nothing(both: dict[str, Any]) -> None:
    assert comparison.section(contents({**both, "runs": both["runs"][:1]})) is None
    assert comparison.section(contents()) is None
    alone = {**both, "runs": both["runs"][:1]}
    assert comparison.section(contents(alone, alone)) is None


def test_before_and_after_from_two_results(both: dict[str, Any]) -> None:
    made = comparison.section(contents(both | {"runs": both["runs"][:1]}, changed(both, 1.25)))
    assert made is not None
    assert (made.context["base"], made.context["other"]) == (0, 1)
    assert made.context["sentence"].startswith("after takes 19.6 ms (25.0 %) longer than bt-mz.S")
    first, second = made.context["factors"][:2]
    assert (first["name"], first["effect"], first["share"]) == (
        "MPI serialisation efficiency",
        "+19.6 ms",
        "+25.0 %",
    )
    assert first["more"]
    assert second["share"] == "0.0 %"


def test_alike_runs_are_said_to_be_so(both: dict[str, Any]) -> None:
    made = comparison.section(contents(both | {"runs": both["runs"][:1]}, changed(both, 1.0001)))
    assert made is not None
    assert made.context["sentence"].startswith("after takes as long as bt-mz.S.2x2: ")
    assert "Largest causes" not in made.context["sentence"]


def test_what_scales_with_another_reference_is_not_compared(both: dict[str, Any]) -> None:
    def names(*documents: Any) -> list[str]:
        made = comparison.section(contents(*documents))
        assert made is not None
        return [row["name"] for row in made.context["families"][0]["rows"]]

    alone = [{**both, "runs": [run]} for run in both["runs"]]
    assert names(both)[:2] == ["Global efficiency", "Parallel efficiency"]
    assert names(*alone)[0] == "Parallel efficiency"
    depths = comparison.section(contents(*alone)).context["families"][0]["rows"]
    assert depths[0]["depth"] == 0


def test_the_family_that_divides_the_runtime_is_open(both: dict[str, Any]) -> None:
    def opened(document: dict[str, Any]) -> list[str]:
        made = comparison.section(contents(document))
        assert made is not None
        return [one["title"] for one in made.context["families"] if one["open"]]

    assert opened(both) == ["MPI + OpenMP (multiplicative)"]
    alone = popmodel.metrics(COMD).to_dict()
    later = {**alone["runs"][0], "trace": "later.prv"}
    assert opened({**alone, "runs": [*alone["runs"], later]}) == ["MPI (multiplicative)"]


def test_each_pair_is_divided_as_far_as_both_tell(both: dict[str, Any]) -> None:
    """A run without threads and without replay among others does not coarsen their factors."""
    coarse = {**both["runs"][1], "metrics": {}, "trace": "coarse.prv"}
    made = comparison.section(contents({**both, "runs": [*both["runs"], coarse]}))
    assert made is not None
    divisions, pairs = made.data["divisions"], made.data["pairs"]
    names = [[[one[0] for one in divisions[number]] for number in row] for row in pairs]
    assert names[2][2] == names[0][2] == names[2][1]
    assert names[0][2][2:] == ["Parallel efficiency"]
    assert names[1][1][2:] == ["Load balance", "Serialisation efficiency", "Transfer efficiency"]
    assert len(names[0][1]) == 7
    for base, row in enumerate(names):
        for other, known in enumerate(row):
            for run in (base, other):
                assert set(known) <= set(made.data["runs"][run]["values"])


def test_points_are_differences_of_per_cents(both: dict[str, Any]) -> None:
    made = comparison.section(contents(both))
    assert made is not None
    families = {one["title"]: one["rows"] for one in made.context["families"]}
    row = next(
        one for one in families["MPI (multiplicative)"] if one["name"] == "Transfer efficiency"
    )
    base, other = (
        both["runs"][made.context[which]]["metrics"]["mpi"]["transfer_efficiency"]
        for which in ("base", "other")
    )
    assert float(row["difference"]) == pytest.approx(100 * (other - base), abs=0.051)
    assert row["base"] == f"{100 * base:.1f} %"


def test_amounts_change_by_per_cent_of_the_base() -> None:
    sums = [
        comparison.ComparedAmount("a", ComparedKind.NUMBER, (1000, 1250)),
        comparison.ComparedAmount("b", ComparedKind.SIZE, (0, 2048)),
        comparison.ComparedAmount("c", ComparedKind.TIME, (None, 0.5)),
        comparison.ComparedAmount("d", ComparedKind.TIME, (2.0, 0.0)),
    ]
    assert [tuple(row.values()) for row in comparison._changes(sums, 0, 1)] == [
        ("a", "1,000", "1,250", "+25.0 %"),
        ("b", "0 B", "2 KiB", "-"),
        ("c", "-", "500.0 ms", "-"),
        ("d", "2.000 s", "0 s", "-100.0 %"),
    ]


def test_regions_that_one_run_does_not_have_are_shown_for_the_others(
    both: dict[str, Any],
) -> None:
    runs = [{**both["runs"][1], "trace": name} for name in ("a.prv", "b.prv", "c.prv")]
    regions = popmodel.whatif(COMD).to_dict()
    known = [{**regions, "trace": name} for name in ("a.prv", "b.prv")]
    document = {**both, "runs": runs, "scaling": {"reference": "a.prv"}}

    def titles(*documents: Any) -> list[str]:
        made = comparison.section(contents(*documents))
        assert made is not None
        return [one["title"] for one in made.context["places"]]

    assert titles(document, *known) == ["Computing", "MPI calls"]
    assert titles(document, known[0]) == ["MPI calls"]


def test_places_with_the_largest_difference_come_first() -> None:
    places = comparison.Places(
        "t", "c", ("a", "b", "c", "d"), ((1.0, 2.0, None, None), (1.5, 5.0, 1.0, None)), True
    )
    rows = list(comparison._differences(places, 0, 1))
    assert [(row["name"], row["base"], row["other"], row["difference"]) for row in rows] == [
        ("b", "2.00 s", "5.00 s", "+3.00 s"),
        ("c", "-", "1.00 s", "+1.00 s"),
        ("a", "1.00 s", "1.50 s", "+500 ms"),
    ]


def test_of_what_is_not_listed_no_difference_is_told() -> None:
    places = comparison.Places("t", "c", ("a", "b"), ((1.0, 2.0), (1.5, None)), False)
    rows = list(comparison._differences(places, 0, 1))
    assert [(row["name"], row["other"], row["difference"]) for row in rows] == [
        ("b", "-", "-"),
        ("a", "1.50 s", "+500 ms"),
    ]


def test_what_a_table_leaves_out_is_summed_up() -> None:
    names = tuple(f"p{number}" for number in range(20))
    times = (tuple(1.0 for _ in names), tuple(2.0 + number for number in range(20)))
    places = comparison.Places("t", "c", names, times, True)
    *_, last = comparison._differences(places, 0, 1)
    assert (last["name"], last["base"], last["other"]) == ("8 more", "8.00 s", "44.0 s")
    assert last["difference"] == "+36.0 s"


def test_of_several_runs_all_are_compared_with_the_reference(both: dict[str, Any]) -> None:
    runs = [both["runs"][0], *changed(both, 1.25)["runs"], *changed(both, 0.8)["runs"]]
    scaling = {"reference": runs[0]["trace"]}
    made = comparison.section(contents({**both, "runs": runs, "scaling": scaling}))
    assert made is not None
    overview = made.context["overview"]
    assert overview["heads"] == ["after #1", "after #2"]
    rows = dict(overview["rows"])
    assert rows["Change, % of the runtime"] == ["+25.0 %", "-20.0 %"]
    assert rows["MPI serialisation efficiency"] == rows["Change"]


def test_names_are_text_and_elements_are_closed(both: dict[str, Any]) -> None:
    for name in HOSTILE:
        runs = [
            {
                **run,
                "call_sites": [{**site, "function": name} for site in run["call_sites"]],
                "trace": f"{number}{name}.prv",
            }
            for number, run in enumerate(both["runs"])
        ]
        made = comparison.section(
            contents({**both, "runs": runs, "scaling": {"reference": runs[0]["trace"]}})
        )
        assert made is not None
        read = Reader(fragment(made))
        assert (read.open, read.wrong) == ([], [])
        assert {tag for tag, _ in read.elements}.isdisjoint({"img", "script"})


def test_without_scripts_there_are_all_tables(both: dict[str, Any]) -> None:
    made = comparison.section(contents(both))
    assert made is not None
    text = fragment(made)
    assert len(re.findall("<table", text)) == len(re.findall("<caption", text)) >= 7
    assert "What makes the difference" in text
    assert made.context["sentence"] in text
