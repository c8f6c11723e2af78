"""Everything that a screen labels can be explained: labels are read from the real screens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import UsageError
from popmodel.cli import main
from popmodel.cli.output import OutputTarget
from popmodel.reports.renderers.data import encodable
from popmodel.reports.views import Document

from .conftest import CG, COMD, HYBRID, ROOT, RUNS, VM

COUNTED = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"

SCREENS = {
    "inspect": ["inspect", str(HYBRID)],
    "inspect with counters": ["inspect", str(COUNTED), "--all"],
    "inspect a grid": ["inspect", str(COMD)],
    "metrics": ["metrics", str(HYBRID), "--family", "all"],
    "metrics of a series": ["metrics", str(CG), str(COUNTED)],
    "scenario": ["whatif", str(CG), "--network", "ideal"],
    "scenarios": ["whatif", str(CG), "--latency", "1us,2us", "--eager-threshold", "1KiB,1MiB"],
    "sensitivity": ["whatif", str(COUNTED), "--all"],
    "project": ["predict", str(ROOT / "tests" / "data" / "epoch.csv"), "--procs", "64"],
    "project a hybrid run": ["predict", str(HYBRID), "--procs", "4"],
    "predict": ["predict", "--procs", "16", "--threads", "4", "--family", "all"],
    "predict on a measured machine": ["predict", "--machine", str(VM), "--procs", "2"],
    "sweep": ["predict", "--cores", "32,64"],
    "signature": ["signature", "from", "stencil3d", str(RUNS), "--machine", str(VM)],
    "validate": ["validate", "stencil3d", str(RUNS), "--machine", str(VM), "--set", "N=256"],
    "validate traces": ["validate", "stencil3d", str(COUNTED)],
}

SPLIT = re.compile(r"\*? *\d+ x +\d+(?: \.\. \d+ x \d+)?|\d+ -> \d+")
NUMBER = re.compile(r"-?\[?\d[\d,.]*\]?")
STRIP = re.compile(r"[ .:=+*#%@|-]+")
SIZES = re.compile(r"[\d.]+ [KMG]?i?B(?: to [\d.]+ [KMG]?i?B)?")
TIMES = re.compile(r"\d[\d.]* [mun]?s(?: to \d[\d.]* [mun]?s)?")
GAP = re.compile(r" {2,}")
DATA = {
    "trace",
    "phases",
    "calls",
    "regions",
    "call_sites",
    "runs",
    "application",
    "splits",
    "sites",
}
"""Keys of documents below which names of the program, its files and its parameters stand."""


def _names(value: Any, *, inside: bool = False) -> Iterator[str]:
    """Names that come from the data: of regions, calls, files, parameters."""
    if isinstance(value, dict):
        for key, one in value.items():
            below = inside or key in DATA
            if key in ("calls", "settings", "regions") and isinstance(one, dict):
                yield from one
            yield from _names(one, inside=below)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one, inside=inside)
    elif isinstance(value, str) and inside:
        yield value
        yield value.partition(":")[0]
        yield Path(value.partition(":")[0]).name
        yield from value.split()
        yield Path(value).name.removesuffix(".gz").removesuffix(".prv")


def _labels(screen: str) -> Iterator[str]:
    """First cells of lines with several cells, and all cells of lines without figures: heads."""
    lines = [*screen.splitlines(), ""]
    for line, following in pairwise(lines):
        cells = GAP.split(line.strip())
        if len(cells) < 2 or line.startswith(("OMP_", "srun", "mpirun", "  --", "#")):
            continue
        if any(re.search(r"\d", cell.replace("90 %", "")) for cell in cells):
            cells = cells[:1]
        elif len(cells) == 2 and len(line) != len(following):
            cells = cells[:1]  # a fact, label and text: columns end where their figures do
        yield from cells


@pytest.mark.long(after=10)
@pytest.mark.parametrize("name", SCREENS)
def test_every_label_can_be_explained(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    documents: list[Document] = []
    write = OutputTarget.write

    def written(target: OutputTarget, document: Document, *rest: Any) -> None:
        documents.append(document)
        write(target, document, *rest)

    monkeypatch.setattr(OutputTarget, "write", written)
    assert main(SCREENS[name]) == 0
    screen = capsys.readouterr().out.split("\n\npopmodel 0.")[0]
    (document,) = documents
    found = _names(encodable(document))
    data = {name for name in found if len(name) > 3}  # no part of another word
    unknown = []
    for label in dict.fromkeys(_labels(screen)):
        text = label.removesuffix(" <-").removesuffix(" (bundled)")
        figures = (SPLIT, NUMBER, SIZES, TIMES, STRIP)
        if any(name in text for name in data) or any(one.fullmatch(text) for one in figures):
            continue
        try:
            popmodel.docs(text)
        except UsageError:
            unknown.append(label)
    assert not unknown, "\n".join(["cannot be explained:", *unknown])
