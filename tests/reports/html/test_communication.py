"""Who talks to whom, on a page."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import popmodel
from popmodel.reports.html import page_communication as communication
from popmodel.reports.html.contents import SCHEMA, Contents, Section, alone
from popmodel.reports.html.page import fragment, page
from popmodel.structure.traffic import Pairs, gathered

from .test_page import HOSTILE, STAMP, Reader

DATA = Path(__file__).parent.parent.parent / "data"
COMD = DATA / "comd.4.prv.gz"


@pytest.fixture(scope="module")
def comd() -> dict[str, Any]:
    return popmodel.inspect(COMD, show="communication").to_dict()["communication"]


def document_of(part: Any) -> dict[str, Any]:
    """The document with a communication, which may have a trace of its own."""
    named = {"schema": "popmodel/inspect/1", "trace": part.get("trace", str(COMD))}
    return {**named, "communication": part, "provenance": STAMP}


def made(*parts: Any) -> Section:
    whole = {"schema": SCHEMA, "title": "t", "documents": list(map(document_of, parts))}
    section = communication.section(Contents(whole))
    assert section is not None
    return section


def large(processes: int, partners: int) -> dict[str, Any]:
    """The document of a run in which each rank sends to so many."""
    sender = np.repeat(np.arange(processes), partners)
    receiver = (sender + np.tile(np.arange(1, partners + 1), processes)) % processes
    ones = np.ones(len(sender), np.int64)
    every = Pairs(sender, receiver, 10 * ones, 4096 * ones, sender // 8 == receiver // 8)
    together, shown = gathered(every, processes)
    names = {"sender": "from", "receiver": "to", "within": "within_node"}
    return {
        **popmodel.inspect(COMD, show="communication").to_dict()["communication"],
        "processes": processes,
        "nodes": -(-processes // 8),
        "messages": int(every.messages.sum()),
        "bytes": int(every.bytes.sum()),
        "ranks_together": together,
        "pairs": {
            names.get(name, name): values.tolist() for name, values in shown._asdict().items()
        },
    }


def texts(section: Section) -> str:
    return " ".join(" ".join(Reader(fragment(section)).texts).split())


def test_without_results_there_is_no_section() -> None:
    assert communication.section(Contents({"documents": []})) is None


def test_the_matrix_has_a_cell_for_each_pair(comd: dict[str, Any]) -> None:
    (run,) = made(comd).context["runs"]
    cells = "".join(run["matrix"]["paths"].values())
    covered = sum(int(width) for width in re.findall(r"h(\d+)v", cells))
    assert covered == len(comd["pairs"]["from"]) == 12


def test_the_table_of_pairs_adds_up_to_all_messages() -> None:
    document = large(100, 3)
    (run,) = made(document).context["runs"]
    assert run["pairs"].count("<tr>") == 1 + 50
    assert "and 250 pairs more with 1000 KiB in 2,500 messages" in texts(made(document))


def test_ranks_that_are_together_are_named_so() -> None:
    document = large(300, 100)
    assert document["ranks_together"] == 2
    (run,) = made(document).context["runs"]
    assert run["matrix"]["each"] == 6  # at most 64 rows, and whole pairs of ranks
    assert '<th scope="row">0-1 to ' in run["pairs"]
    assert "A cell is the sum over 6 x 6 ranks." in texts(made(document))


def test_nodes_are_told_apart_where_there_are_several(comd: dict[str, Any]) -> None:
    assert "within nodes" not in texts(made(comd))
    assert "one node" in texts(made(large(100, 3)))
    assert "one node" not in texts(made({**comd, "nodes": None, "within_nodes": None}))


def test_names_are_text_and_elements_are_closed(comd: dict[str, Any]) -> None:
    for name in HOSTILE:
        document = {
            **comd,
            "trace": f"{name}.prv",
        }
        read = Reader(fragment(made(document, {**document, "trace": "b"})))
        assert (read.open, read.wrong) == ([], [])
        assert {tag for tag, _ in read.elements}.isdisjoint({"img", "script"})


def test_of_sixteen_processes_it_is_small(real_trace: Callable[[str], Path]) -> None:
    document = popmodel.inspect(real_trace("epoch_16proc"), show="communication")._stamped()
    text = page(alone(document))
    section = text.partition('<section id="communication"')[2].partition("</section>")[0]
    assert len(section) <= 15_000


@pytest.mark.parametrize(("partners", "most"), [(6, 200), (999, 600)])
def test_a_thousand_processes_are_small(partners: int, most: int) -> None:
    """Beside the document itself, in columns of at most 16,384 pairs."""
    found = large(1000, partners)
    text = page(alone(document_of({**found, "trace": "large.prv"})))
    assert len(found["pairs"]["from"]) <= 16_384
    assert len(text) < most * 1000
