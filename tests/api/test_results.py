"""What all results have in common: a short repr, a screen, a document, a table, a drawing."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from extras import needs_matplotlib

import popmodel
from popmodel.base.errors import FileError
from popmodel.base.values import LONGEST
from popmodel.cli import main
from popmodel.cli.metrics import Metrics
from popmodel.cli.predict import Prediction
from popmodel.cli.whatif import WhatIf
from popmodel.reports.result import Drawing, Result
from popmodel.simulator.from_trace import from_trace

from ..reports.balanced import parsed
from .conftest import CG, HYBRID, RUNS, VM

LINES = 5


@pytest.mark.long(after=2)
def test_repr_is_short_and_says_what_it_is(result: Result) -> None:
    shown = repr(result)
    assert len(shown) <= LONGEST
    assert shown.startswith(f"<{type(result).__name__}")
    assert " s" in shown or " ms" in shown or "%" in shown or " cores: " in shown


@pytest.mark.long(after=3)
def test_print_shows_the_screen_of_the_command(
    capsys: pytest.CaptureFixture[str], result: Result
) -> None:
    commands = {
        "Metrics": ["metrics", str(CG), str(HYBRID)],
        "WhatIf": ["whatif", str(CG), "--latency", "1us,20us"],
        "Prediction": ["predict", "--procs", "16", "--threads", "4"],
        "Splits": ["predict", "--cores", "32,64"],
        "Validation": ["validate", "stencil3d", str(RUNS), "--machine", str(VM), "--set", "N=256"],
    }
    name = "Splits" if "candidates" in result.to_dict() else type(result).__name__
    assert main(commands[name]) == 0
    printed = capsys.readouterr().out.split("\n\npopmodel 0.")[0]
    assert str(result) == printed


OTHERS: dict[str, Callable[[], Result]] = {
    "project": lambda: popmodel.predict([CG, HYBRID], procs=8),
    "sensitivity": lambda: popmodel.whatif(HYBRID),
    "inspect": lambda: popmodel.inspect(CG),
    "report": lambda: popmodel.report([HYBRID]),
}
"""Functions that return a result, other than those of `result`."""


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", OTHERS)
def test_every_result_is_a_table_shown_in_notebooks_and_can_be_pickled(
    name: str,
) -> None:
    one = OTHERS[name]()
    assert pickle.loads(pickle.dumps(one)).to_dict() == one.to_dict()
    assert len(one.to_dataframe())
    found = parsed(one._repr_html_())
    assert [each.name for each in found.children] == ["div"]
    assert not found.all("script")


def test_a_notebook_shows_what_a_page_shows_without_scripts(result: Result) -> None:
    found = parsed(result._repr_html_())
    sections = [one.attributes["aria-label"] for one in found.all("section")]
    assert sections
    assert found.all("table")
    assert not found.all("script")


def test_results_of_one_notebook_share_no_ids(result: Result) -> None:
    assert re.findall(r'\s(?:id|for|aria-[a-z]+by|href)="#?', result._repr_html_()) == []


def test_documents_are_those_of_the_command(result: Result) -> None:
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["schema"].startswith("popmodel/")
    assert "provenance" not in document


def test_tables_have_the_records_of_the_command(
    capsys: pytest.CaptureFixture[str], swept: Prediction
) -> None:
    assert main(["predict", "--cores", "32,64", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    table = swept.to_dataframe()
    assert len(table) == len(rows)
    assert table["processes"].tolist() == [int(row["processes"]) for row in rows]
    assert set(table.columns) < set(rows[0])


def test_tables_have_values_by_name(measured: Metrics) -> None:
    (row,) = measured.to_dataframe().query("trace.str.contains('bt-mz')").to_dict("records")
    expected = measured.evaluations[1]["hybrid-additive"].values
    values = {name: row[f"hybrid-additive.{name}"] for name in expected}
    assert values == pytest.approx(expected)


def test_a_table_has_infinity_where_there_is_no_limit(replayed: WhatIf) -> None:
    table = replayed.to_dataframe()
    assert table.network_bandwidth.tolist() == [math.inf] * len(table)
    assert replayed.to_dict()["runs"][0]["network"]["bandwidth"] is None


def test_threads_are_numbers_unless_processes_differ(measured: Metrics) -> None:
    assert measured.to_dataframe().threads.unique().tolist() == [1, 2]


def test_results_can_be_sent_to_another_process(result: Result) -> None:
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == repr(result)
    assert again.to_dict() == result.to_dict()


@needs_matplotlib
def test_drawings_are_svg_that_says_where_it_comes_from(measured: Metrics) -> None:
    drawing = measured.plot()
    root = ElementTree.fromstring(str(drawing))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "in Python" in str(drawing)
    assert repr(drawing).startswith("<Drawing: SVG, ")
    assert drawing._repr_svg_().startswith("<svg")
    assert ElementTree.fromstring(drawing._repr_svg_()).tag == root.tag


@needs_matplotlib
def test_a_drawing_is_saved(tmp_path: Path, swept: Prediction) -> None:
    drawing = swept.plot()
    drawing.save(tmp_path / "sweep.svg")
    assert (tmp_path / "sweep.svg").read_text() == str(drawing)


def test_a_drawing_that_cannot_be_saved_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        Drawing("<svg/>").save(tmp_path / "no" / "folder.svg")
    assert "folder.svg: cannot be written" in str(caught.value)


def _objects() -> list[Any]:
    trace = popmodel.read(HYBRID)
    (run,) = popmodel.metrics(trace).runs
    family = popmodel.load_families()["hybrid-additive"]
    program = from_trace(trace)
    replays = popmodel.whatif(trace, "ideal")
    return [
        trace,
        run,
        run.observables,
        family,
        family.evaluate(run.observables.aggregates(), run.observables.absent),
        program,
        replays.runs[0],
        replays.runs[0].execution,
        replays.runs[0].network,
        popmodel.load_machine("sandybridge-fdr"),
        popmodel.load_signature("cannon"),
        popmodel.Network(),
    ]


def test_what_a_user_meets_has_a_short_repr() -> None:
    for one in _objects():
        assert len(repr(one)) <= LONGEST, type(one)
        assert repr(one).count("\n") < LINES


def test_a_repr_does_not_grow_with_names() -> None:
    text = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n[params]\n'
    text += "".join(f"parameter_{number} = {number}\n" for number in range(1, 100))
    text += "[[program]]\nserial = { trip = 1, flops = 1 }\n"
    from popmodel.model.signatures import from_text

    assert len(repr(from_text(text))) <= LONGEST
