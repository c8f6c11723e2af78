"""Pages of predictions, splits, projections, calibrations and validations: ``-o x.html``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

ROOT = Path(__file__).parent.parent.parent
RECORD = ROOT / "examples" / "validation"
RUNS = [
    f"{RECORD}/traces/cannon.{split}.N={size}.1.prv.gz:N={size}"
    for size in (720, 1200)
    for split in ("1x1", "1x2")
]
MACHINE = ("--machine", str(RECORD / "machine.json"))


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("verb", "schema", "words"),
    [
        ("predict", "predict", ("--procs", "4", "--threads", "2")),
        ("predict", "splits", ("cannon", "--cores", "4,16")),
        ("validate", "validate", ("cannon", *RUNS, *MACHINE, "--all-runs")),
        ("signature from", "signature-from", ("cannon", *RUNS, *MACHINE)),
        ("predict", "predict", (str(RUNS[0]).rpartition(":")[0], "--procs", "4")),
    ],
)
def test_a_page_has_the_section_of_its_verb_and_its_document(
    verb: str, schema: str, words: tuple[str, ...], popmodel: Call, tmp_path: Path
) -> None:
    page = tmp_path / "x.html"
    status, out, _ = popmodel(*verb.split(), *words, "-o", str(page))
    assert (status, out) == (0, "")
    assert '<section id="' in page.read_text()
    held = json.loads(popmodel("report", str(page), "--format", "json")[1])
    assert [one["schema"] for one in held["documents"]] == [f"popmodel/{schema}/1"]
