"""Documents are checked against the tables of their page, docs/json.md, when they are read."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base import document_schemas, provenance
from popmodel.base.errors import FileError

TRACE = str(Path(__file__).parent / "data" / "is.S.4.prv.gz")

OPEN = r"\.facts\.roots|^reference\.settings"
"""Where anything may stand: ranks or formulas, and what the page does not have."""


def stamped(result: Any) -> dict[str, Any]:
    return provenance.stamped(result.to_dict(), ["x"])


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    return {
        "metrics": stamped(popmodel.metrics(TRACE)),
        "predict": stamped(popmodel.predict("cannon", procs=16)),
        "splits": stamped(popmodel.predict("cannon", cores=16)),
        "inspect": stamped(popmodel.inspect(TRACE)),
    }


def places(value: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every place of a document: what holds it, its key, and where it is."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        here = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}".lstrip(".")
        yield value, key, here
        if isinstance(value[key], dict | list):
            yield from places(value[key], here)


def refused(document: Any) -> str:
    with pytest.raises(FileError) as told:
        document_schemas.check(document, "saved.json")
    return told.value.message


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("metrics", ("runs", 0, "metrics", "mpi", "parallel_efficiency")),
        ("predict", ("metrics", "hybrid-additive", "parallel_efficiency", "value")),
        ("splits", ("candidates", 0, "parallel_efficiency", "high")),
    ],
)
def test_an_efficiency_may_exceed_one_but_not_everything(
    documents: dict[str, dict[str, Any]], name: str, place: tuple[Any, ...]
) -> None:
    document = copy.deepcopy(documents[name])
    holder: Any = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = 1.3
    document_schemas.check(document, "saved.json")
    for wrong in (9.2e18, -0.5, float("nan"), "0.9", [0.9]):
        holder[place[-1]] = wrong
        assert str(place[-1]) in refused(document)


def test_what_is_wrong_is_found_wherever_it_is(documents: dict[str, dict[str, Any]]) -> None:
    """A list of lists stands nowhere: each place of a document refuses it and is named."""
    for document in documents.values():
        damaged = copy.deepcopy(document)
        for holder, key, path in list(places(damaged)):
            if re.search(OPEN, path):
                continue
            kept, holder[key] = holder[key], [[["?"]]]
            message = refused(damaged)
            assert message.startswith("saved.json: ")
            assert path.split("[")[0].split(".")[0] in message
            holder[key] = kept
        document_schemas.check(damaged, "saved.json")


def test_a_report_is_checked_with_all_its_documents(
    documents: dict[str, dict[str, Any]],
) -> None:
    report = {
        "schema": "popmodel/report/1",
        "title": "t",
        "documents": copy.deepcopy(list(documents.values())),
        "left_out": [],
    }
    document_schemas.check(report, "saved.json")
    report["documents"][1]["processes"] = -3
    assert refused(report) == (
        "saved.json: documents[1].processes must be a whole number, at least 0, not -3"
    )
    report["documents"][1]["schema"] = "popmodel/predict/2"
    assert "documents[1] is no document that popmodel knows" in refused(report)


def test_keys_may_be_added_and_rounding_is_no_damage(
    documents: dict[str, dict[str, Any]],
) -> None:
    document = {**documents["metrics"], "later": {"a": [1]}}
    document["runs"] = copy.deepcopy(document["runs"])
    document["runs"][0]["ideal_runtime"] = -1e-18
    document_schemas.check(document, "saved.json")


def test_every_row_of_the_page_says_what_may_stand_there() -> None:
    rows = document_schemas.rows()
    profile = ("popmodel/machine/1",)  # has a schema of its own
    assert [
        f"{schema}: {key}"
        for schema, cells in rows.items()
        for key, cell in cells.items()
        if not cell and schema not in profile
    ] == [], "fill the column unit of popmodel/docs/json.md"
