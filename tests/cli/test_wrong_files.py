"""A file of a wrong kind: every verb on traces says in one line what it is, and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from popmodel.cli import main

EVENTS = [{"name": "MPI_Send", "ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 0, "args": {"b": 1}}]
WRONG = {
    "chrome.json": json.dumps({"traceEvents": EVENTS}),
    "list.json": json.dumps(EVENTS),
    "numbers.json": "[1, 2, 3]",
    "table.json": '{"a": 1}',
    "text.json": '"text"',
    "cut.json": '{"a":',
    "cut.jsonl": '{"processes": 1,\n',
    "other.csv": "x,y\n1,2\n",
    "other.toml": "a = 1\n",
    "notes.txt": "hello\n",
    "page.html": "<html></html>\n",
    "tree.xml": "<a/>\n",
    "named.prv": "a,b\n",
    "empty": "",
}
VERBS = (
    ("metrics", "{}"),
    ("inspect", "{}"),
    ("whatif", "{}"),
    ("report", "{}", "-o", "new.html"),
    ("signature", "from", "{}"),
    ("convert", "{}", "-o", "new.goal"),
    ("convert", "{}", "-o", "new.csv"),
    ("predict", "{}", "--procs", "4"),
    ("validate", "stencil3d", "{}"),
)
INTERNAL = re.compile(r"None|Error\b|Expecting|Traceback|unexpected|\bdict\b|\bstr\b|args must be")
SIZE_FIRST = {
    ("report", "other.toml"),
    ("signature", "other.toml"),
}  # ask for more


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_wrong_kinds_of_files_are_named_with_what_to_do(
    verb: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in WRONG.items():
        Path(name).write_text(content)
        status = main([word.format(name) for word in verb])
        error, *hints = capsys.readouterr().err.splitlines()
        said = f"{verb} {name}: {error} {hints}"
        assert status in (1, 2), said
        assert error.startswith("popmodel: error: "), said
        assert name in error or (verb[0], name) in SIZE_FIRST, said
        assert not INTERNAL.search(error), said
        assert hints and hints[0].startswith("hint: "), said
        assert len(hints) == 1, said
    assert not list(tmp_path.glob("new.*"))


def test_a_trace_for_chrome_is_one_for_tables_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("chrome.json", "list.json"):
        (path := tmp_path / name).write_text(WRONG[name])
        for verb in (["predict", "--procs", "4"], ["signature", "from"], ["metrics"]):
            assert main([*verb, str(path)]) == 1
            assert f"{name}: is a trace for Perfetto or Chrome" in capsys.readouterr().err


def test_a_list_of_runs_with_a_parameter_of_that_name_is_a_table(tmp_path: Path) -> None:
    from popmodel.runs.run_files import read_file

    (path := tmp_path / "runs.json").write_text(
        json.dumps([{"processes": 2, "threads": 1, "runtime": 1.5, "ph": 7}])
    )
    assert [run.runtime for run in read_file(path).runs] == [1.5]
