"""The page of tables has every column of real results, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from console import ROOT

import popmodel
from popmodel.runs.sites import sites_of
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

PAGE = (ROOT / "popmodel" / "docs" / "tables.md").read_text()
SITES = "Sites of runs"
MARK = 60000019
TRACE = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
VERBS: dict[str, Callable[[], list[Any]]] = {
    "metrics": lambda: [
        popmodel.metrics(TRACE),
        popmodel.metrics(TRACE, by="process"),
    ],
    "inspect": lambda: [popmodel.inspect(TRACE)],
    "whatif, scenarios": lambda: [
        popmodel.whatif(TRACE, "ideal", metrics=True),
        popmodel.whatif(
            TRACE,
            machine="sandybridge-fdr",
            mapping="block:1",
            algorithm="bcast=linear",
            rank_speed="0=2",
        ),
        popmodel.whatif(TRACE, "smpi"),
        popmodel.whatif(TRACE, "ideal", send_overhead=1e-6, receive_overhead=1e-6),
        popmodel.whatif(TRACE, mapping="block:1", topology="tests/data/fat_tree.toml"),
    ],
    "whatif, sensitivity": lambda: [popmodel.whatif(TRACE)],
    "predict": lambda: [
        popmodel.predict(procs=4, draws=0),
        popmodel.predict("tests/data/epoch.csv", procs=16),
    ],
    "predict --cores": lambda: [
        popmodel.predict(cores=64, draws=0),
        popmodel.predict("tests/data/epoch.csv", cores=16),
    ],
    "signature": lambda: [
        popmodel.signature(TRACE),
        popmodel.signature(
            ["stencil3d", ROOT / "examples" / "stencil3d" / "two-core-vm.csv"],
            machine=ROOT / "examples" / "profiles" / "two-core-vm.json",
        ),
    ],
    "validate": lambda: [popmodel.validate("stencil3d", TRACE, settings={"N": 200})],
}


@pytest.fixture
def regions(tmp_path: Path) -> str:
    """A trace of a second in which the program marks half a second as a region."""
    labels = Labels(event_types={MARK: "User region"}, event_values={MARK: {0: "End", 1: "solve"}})
    writer = TraceWriter([1], labels=labels, duration=10**9)
    writer.event(0, 0, 10**8, [(MARK, 1)])
    writer.event(0, 0, 6 * 10**8, [(MARK, 0)])
    writer.state(0, 0, 0, 10**9, 1)
    writer.write(tmp_path / "regions.prv")
    return str(tmp_path / "regions.prv")


def sections() -> dict[str, str]:
    """The text of each section by its heading."""
    _, *parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def documented(text: str) -> set[str]:
    """The columns that the tables of a section name."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def as_documented(column: str) -> str:
    """A column as the page names it: one name for all metrics, one for all parameters."""
    if "." in column:
        return "FAMILY.METRIC"
    return "parameter_NAME" if column.startswith("parameter_") else column


def test_every_verb_has_a_section() -> None:
    assert [name for name in sections() if name != SITES] == list(VERBS)


def test_the_columns_of_sites_are_told() -> None:
    run = {"run", "run_processes", "run_threads"}
    assert documented(sections()[SITES]) == {*run, *sites_of(popmodel.read(TRACE))}


@pytest.mark.long(after=8)
@pytest.mark.parametrize("verb", VERBS)
def test_the_columns_are_those_of_the_tables(verb: str, regions: str) -> None:
    found = VERBS[verb]()
    if verb == "metrics":
        found.append(popmodel.metrics(regions, by="region"))
    if verb == "inspect":
        found.append(popmodel.inspect(regions))
    real = {as_documented(name) for one in found for name in one.to_dataframe().columns}
    assert documented(sections()[verb]) == real
