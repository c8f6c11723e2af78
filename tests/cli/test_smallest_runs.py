"""Every command answers for 1 x 1, 1 x 2 and 2 x 1 in any format.

What divides by something that one process or one thread does not have is found here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from extras import needs_matplotlib

from popmodel.traces.paraver.writer import TraceWriter

from .conftest import MS, write_trace

Call = Callable[..., tuple[int, str, str]]

FORMATS = ("table", "json", "csv", "markdown")
SPLITS = [(1, 1), (1, 2), (2, 1)]
SMALL = ("--set", "N=64")

formats = pytest.mark.parametrize("form", FORMATS)
splits = pytest.mark.parametrize(("processes", "threads"), SPLITS, ids=["1x1", "1x2", "2x1"])


def check(popmodel: Call, words: Sequence[str], form: str) -> None:
    """A command succeeds, says nothing beside its result, and its result has no broken number."""
    status, out, err = popmodel(*words, "--format", form)
    assert (status, err) == (0, "")
    assert not re.search(r"\bnan\b", out, re.IGNORECASE)
    if form == "json":
        kind = "splits" if "--cores" in words else words[0]
        assert json.loads(out)["schema"].startswith(f"popmodel/{kind}")
    elif form == "csv":
        rows = csv.DictReader(io.StringIO(out))
        assert rows.fieldnames
        assert list(rows)
    else:
        assert out.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the traces of all tests are."""
    return tmp_path_factory.mktemp("traces")


@pytest.fixture
def traced(folder: Path, processes: int, threads: int) -> str:
    """A run of that size: a barrier where there are processes, a region where there are threads."""
    path = folder / f"{processes}x{threads}.prv"
    if path.exists():
        return str(path)
    if processes > 1:
        return str(write_trace(path, [8, 6], runtime=9))
    writer = TraceWriter([threads])
    writer.state(0, 0, 0, 10 * MS, 1)
    if threads > 1:
        for thread in range(threads):
            writer.event(0, thread, 4 * MS, [(60000001, 1)] * (thread == 0) + [(60000018, 1)])
            writer.event(0, thread, 8 * MS, [(60000018, 0)] + [(60000001, 0)] * (thread == 0))
        writer.state(0, 1, 4 * MS, 7 * MS, 1)
    writer.write(path)
    return str(path)


@formats
@splits
def test_predict(processes: int, threads: int, form: str, shown: Call) -> None:
    split = ("--procs", str(processes), "--threads", str(threads))
    check(shown, ("predict", *split, *SMALL, "--family", "all", "--reference", "1x1"), form)


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
@splits
def test_predict_formula(processes: int, threads: int, form: str, shown: Call) -> None:
    words = ("predict", "--procs", str(processes), "--threads", str(threads), *SMALL)
    metric = "hybrid-additive.process_transfer_efficiency"
    status, out, err = shown(*words, "--formula", metric, "--format", form)
    assert (status, err) == (0, "")
    assert not re.search(r"\bnan\b", out, re.IGNORECASE)


@formats
def test_sweep(form: str, shown: Call) -> None:
    check(shown, ("predict", "--cores", "1", *SMALL), form)


@formats
def test_signature_check(form: str, popmodel: Call) -> None:
    check(popmodel, ("signature", "check", "stencil3d", *SMALL), form)


@formats
@splits
def test_inspect(traced: str, form: str, popmodel: Call) -> None:
    check(popmodel, ("inspect", traced), form)


@formats
@splits
def test_metrics(traced: str, form: str, popmodel: Call) -> None:
    check(popmodel, ("metrics", traced, "--family", "all"), form)


@formats
@splits
def test_replay(traced: str, form: str, popmodel: Call) -> None:
    check(popmodel, ("whatif", traced, "--latency", "0,1us"), form)


@formats
@splits
def test_validate(traced: str, form: str, shown: Call) -> None:
    check(shown, ("validate", "stencil3d", traced, *SMALL, "--family", "all"), form)


@pytest.mark.long(after=20)
@formats
@splits
@pytest.mark.parametrize("verb", ["whatif"])
def test_what_shows_a_run(verb: str, traced: str, form: str, popmodel: Call) -> None:
    check(popmodel, (verb, traced), form)


@needs_matplotlib
@splits
def test_report_and_convert(traced: str, popmodel: Call, tmp_path: Path) -> None:
    for verb, name in (
        ("report", "report.html"),
        ("convert", "run.perfetto.json"),
        ("convert", "run.ti"),
        ("convert", "timeline.svg"),
        *((verb, f"{verb}.svg") for verb in ("inspect", "metrics")),
    ):
        target = tmp_path / name
        status, _, err = popmodel(verb, traced, "-o", str(target))
        assert status == 0, (verb, name)
        assert not err or re.fullmatch(r"popmodel: no ideal replay.*: no MPI calls\n", err), name
        assert target.stat().st_size, (verb, name)
    for network in ((), ("--network", "ideal")):
        target = tmp_path / f"{len(network)}.prv"
        assert popmodel("whatif", traced, *network, "--save-trace", str(target))[0] == 0
        assert target.stat().st_size
