"""The Python of the documents runs and prints what it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from console import ROOT, documents
from extras import needs_matplotlib

PRINTED = {
    "EXTENDING": "parallel_efficiency 0.612\nbalance 0.899\nworking 0.681\nload balance 0.904\n",
    "tables": " processes  threads source\n        32        2 replay\n"
    "        64        1 replay\n",
    "traces": "",
}
"""By page; what `python` prints there in all."""


def blocks(path: Path, language: str) -> list[str]:
    """The code of a document in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)


def test_every_page_with_python_is_tested() -> None:
    pages = [path for path in documents() if path.name != "README.md"]
    assert {path.stem for path in pages if blocks(path, "python")} == set(PRINTED)


@pytest.mark.parametrize("page", PRINTED)
def test_the_python_of_a_page_runs(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    (path,) = (path for path in documents() if path.stem == page)
    for text in blocks(path, "toml"):
        Path("overview.toml").write_text(text)
    for code in blocks(path, "python"):
        exec(compile(code, path.name, "exec"), {})
    assert capsys.readouterr().out == PRINTED[page]


@needs_matplotlib
def test_the_python_of_the_readme_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "traces").symlink_to(ROOT / "examples" / "traces")
    monkeypatch.chdir(tmp_path)  # as in examples: it writes a drawing
    (code,) = blocks(ROOT / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    first, *table, last = capsys.readouterr().out.splitlines()
    assert first.startswith("<Metrics: Doubtful: ")
    assert table[0].split() == ["processes", "threads", "runtime_value"]
    low, _, high, unit = last.split()
    assert (float(low), float(high), unit) == (
        pytest.approx(1.28, rel=0.02),
        pytest.approx(2.15, rel=0.02),
        "s",
    )
    assert Path("splits.svg").read_text().endswith("</svg>\n")
