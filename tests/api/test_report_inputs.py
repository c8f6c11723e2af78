"""Reports: what they are made from, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.provenance import stamped

ROOT = Path(__file__).parent.parent.parent
STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
BT_MZ = ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz"


def schemas(*inputs: Any, **options: Any) -> list[str]:
    documents = popmodel.report(inputs, **options).to_dict()["documents"]
    return [one["schema"].split("/")[1] for one in documents]


def saved(tmp_path: Path, document: dict[str, Any], name: str = "saved.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(stamped(document, ("verb",))))
    return path


def test_traces_are_measured_together_and_looked_at_one_by_one() -> None:
    found = popmodel.report([STENCIL, BT_MZ])
    documents = found.to_dict()["documents"]
    assert [one["schema"].split("/")[1] for one in documents] == [
        "metrics",
        *("whatif", "inspect") * 2,
    ]
    assert len(documents[0]["runs"]) == 2
    assert found.contents.title == "stencil3d.2x2, bt-mz.S.2x2"


def test_many_inputs_have_a_short_title() -> None:
    sweep = popmodel.predict("stencil3d", cores=4)
    assert popmodel.report([sweep] * 5).contents.title.endswith(", 2 more")


def test_what_a_trace_does_not_give_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise PopmodelError("the replay stopped")

    monkeypatch.setattr("popmodel.cli.whatif.whatif", stopped)
    found = popmodel.report(STENCIL).to_dict()
    assert found["left_out"] == [
        {"trace": str(STENCIL), "what": "sensitivity", "why": "the replay stopped"}
    ]


def test_a_signature_is_predicted_on_the_machine_that_stands_beside_it() -> None:
    machine = ROOT / "examples" / "profiles" / "two-core-vm.json"
    signature = ROOT / "examples" / "traces" / "stencil3d.2x2.toml"
    found = popmodel.report([signature, machine], cores=2).to_dict()["documents"]
    assert [one["schema"] for one in found] == ["popmodel/splits/1"]
    assert str(machine) in [one["path"] for one in found[0]["provenance"]["inputs"]]


def test_saved_results_and_reports_are_taken_as_they_are(tmp_path: Path) -> None:
    sweep = popmodel.predict("stencil3d", cores=8).to_dict()
    path = saved(tmp_path, sweep)
    page = tmp_path / "report.html"
    popmodel.report([path, STENCIL]).save(page)
    assert schemas(page, path) == ["metrics", "whatif", "inspect", "splits", "splits"]
    document = json.loads(path.read_text())
    assert popmodel.report(path).to_dict()["documents"] == [document]


def test_a_report_alone_stays_what_it_was(tmp_path: Path) -> None:
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    popmodel.report(popmodel.predict("stencil3d", cores=8)).save(first)
    popmodel.report(first).save(second)
    assert first.read_text() == second.read_text()


def test_a_trace_that_was_read_and_its_window_are_taken() -> None:
    trace = popmodel.read(STENCIL)
    found = popmodel.report(trace, window="0.2s:0.4s").to_dict()["documents"]
    assert found[0]["runs"][0]["window"]["duration"] == pytest.approx(0.2)
    assert found[1]["window"]["duration"] == pytest.approx(0.2)


def test_the_repr_is_a_line() -> None:
    found = popmodel.report(popmodel.predict("stencil3d", cores=8))
    assert repr(found).startswith("<Report of 1 result: ")
    assert "popmodel predict" in str(found)


def test_wrong_usage_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path, popmodel.predict("stencil3d", cores=8).to_dict())
    wrong: tuple[tuple[list[Any], dict[str, Any], str], ...] = (
        ([3], {}, "inputs: must be a path, a trace, a signature or a result, not int"),
        ([STENCIL], {"cores": 4}, "--cores: there is no signature to predict"),
        ([STENCIL], {"settings": {"N": 4}}, "--set: there is no signature to predict"),
        (["stencil3d.toml"], {}, "--cores is missing, to predict the splits of a signature"),
        ([path], {"from_start": True}, "--from-start: there is no trace"),
    )
    for inputs, options, message in wrong:
        with pytest.raises(UsageError) as caught:
            popmodel.report(inputs, **options)
        assert caught.value.message.startswith(message)


def test_two_profiles_are_one_too_many() -> None:
    machine = ROOT / "examples" / "profiles" / "two-core-vm.json"
    with pytest.raises(UsageError, match="a second machine profile"):
        popmodel.report([STENCIL, machine, machine])
