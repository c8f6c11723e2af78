"""Every command answers for 1 x 1, 1 x 2 and 2 x 1 in any format.

What divides by something that one process or one thread does not have is found here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from extras import needs_matplotlib

from popmodel.traces.paraver.writer import TraceWriter

from .conftest import MS, Call, write_trace

FORMATS = ("table", "json", "csv", "markdown")
SPLITS = [(1, 1), (1, 2), (2, 1)]
SMALL = ("--set", "N=64")


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
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], str]:
    """A run of each size: a barrier where there are processes, a region where there are threads."""
    folder = tmp_path_factory.mktemp("traces")
    made = {}
    for processes, threads in SPLITS:
        path = folder / f"{processes}x{threads}.prv"
        made[processes, threads] = str(path)
        if processes > 1:
            write_trace(path, [8, 6], runtime=9)
            continue
        writer = TraceWriter([threads])
        writer.state(0, 0, 0, 10 * MS, 1)
        if threads > 1:
            for thread in range(threads):
                writer.event(0, thread, 4 * MS, [(60000001, 1)] * (thread == 0) + [(60000018, 1)])
                writer.event(0, thread, 8 * MS, [(60000018, 0)] + [(60000001, 0)] * (thread == 0))
            writer.state(0, 1, 4 * MS, 7 * MS, 1)
        writer.write(path)
    return made


OF_TRACES = (
    ("inspect",),
    ("metrics", "--family", "all"),
    ("whatif",),
    ("whatif", "--latency", "0,1us"),
    ("validate", "stencil3d", *SMALL, "--family", "all"),
)


@pytest.mark.parametrize("words", OF_TRACES, ids=" ".join)
def test_results_of_a_trace(
    words: tuple[str, ...], traces: dict[tuple[int, int], str], shown: Call
) -> None:
    verb = 2 if words[0] == "validate" else 1
    for trace, form in product(traces.values(), FORMATS):
        check(shown, (*words[:verb], trace, *words[verb:]), form)


def test_results_of_a_signature(shown: Call) -> None:
    metric = "hybrid-additive.process_transfer_efficiency"
    for form in FORMATS:
        for processes, threads in SPLITS:
            words = ("predict", "--procs", str(processes), "--threads", str(threads), *SMALL)
            check(shown, (*words, "--family", "all", "--reference", "1x1"), form)
            if form != "csv":
                status, out, err = shown(*words, "--formula", metric, "--format", form)
                assert (status, err) == (0, "")
                assert not re.search(r"\bnan\b", out, re.IGNORECASE)
        check(shown, ("predict", "--cores", "1", *SMALL), form)
        check(shown, ("signature", "check", "stencil3d", *SMALL), form)


@needs_matplotlib
@pytest.mark.parametrize("split", SPLITS, ids="{0[0]}x{0[1]}".format)
def test_report_and_convert(
    split: tuple[int, int], traces: dict[tuple[int, int], str], popmodel: Call, tmp_path: Path
) -> None:
    traced = traces[split]
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
