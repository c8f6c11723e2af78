"""The page of tables names those of every result."""

from __future__ import annotations

import re

from console import ROOT

import popmodel
from popmodel.base import document_schemas
from popmodel.reports import (
    breakdown_tables,
    check_tables,
    efficiency_tables,
    explanations,
    machine_tables,
    prediction_tables,
    projection_tables,
    recording_tables,
    run_tables,
    scenario_tables,
    sensitivity_tables,
    signature_tables,
    signature_words,
    split_tables,
    study_tables,
    validation_tables,
)
from popmodel.runs.sites import sites_of

PAGE = (ROOT / "popmodel" / "docs" / "tables.md").read_text()
SITES = "Sites of runs"
TRACE = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
VIEWS = {
    "metrics": efficiency_tables.VIEWS,
    "metrics --by process": breakdown_tables.BY_PROCESS,
    "metrics --by region": breakdown_tables.BY_REGION,
    "inspect": run_tables.VIEWS,
    "whatif": sensitivity_tables.VIEWS,
    "whatif --latency ...": scenario_tables.VIEWS,
    "predict": prediction_tables.VIEWS,
    "predict RUNS": projection_tables.VIEWS,
    "predict --cores": split_tables.VIEWS,
    "predict RUNS --cores": projection_tables.SPLITS,
    "validate": validation_tables.VIEWS,
    "signature from": signature_tables.VIEWS,
    "signature check": signature_words.CHECKED,
    "signature check --against": signature_words.AGREEMENT,
    "signature list": signature_words.LISTED,
    "machine check": machine_tables.CHECKED,
    "machine compare": machine_tables.COMPARED,
    "study --dry-run": study_tables.PLAN,
    "check": check_tables.VIEWS,
    "trace": recording_tables.VIEWS,
    "docs NAME": explanations.VIEWS,
}


def sections() -> dict[str, str]:
    """The text of each section by its heading."""
    _, *parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def documented(text: str) -> set[str]:
    """The columns that the tables of a section name."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_page_has_the_tables_of_every_result() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| ?(.*?) ?\|$", PAGE, re.MULTILINE)
    found = {
        name: tuple(tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells)
        for name, *cells in rows[: len(VIEWS)]
    }
    assert found == {
        name: (tuple(path for path in views.tables if path), views.beside)
        for name, views in VIEWS.items()
    }


def test_the_keys_of_tables_are_those_of_documents() -> None:
    """A path that no document has would make an empty table."""
    keys = {key for schema in document_schemas.rows().values() for key in schema}
    for name, views in VIEWS.items():
        for path in views.tables:
            if not path or path == "formulas[]":  # the document itself; made of it
                continue
            place = path.replace("[RANK]", "[]").removeprefix("projection.")
            place = re.sub(r"^explained\..*", "explained", place)  # its parts are free
            below = (place, f"{place}.", f"{place.removesuffix('[]')}.")
            assert any(key.startswith(below) for key in keys), f"{name}: {path}"


def test_the_columns_of_sites_are_told() -> None:
    run = {"run", "run_processes", "run_threads"}
    assert documented(sections()[SITES]) == {*run, *sites_of(popmodel.read(TRACE))}
