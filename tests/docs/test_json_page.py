"""The page of JSON keys has every key of real documents, and no other."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from console import ROOT
from parameters_page import with_parameters

from popmodel.base import document_schemas
from popmodel.cli import main
from popmodel.machines.register import REGISTER

PAGE = (ROOT / "popmodel" / "docs" / "json.md").read_text()
TRACE = "examples/traces/stencil3d.2x2.prv.gz"
TWO_CORES = "examples/profiles/two-core-vm.json"
PRESET = "popmodel/machines/presets/sandybridge-fdr.json"
COMMANDS = (
    f"inspect {TRACE}",
    f"inspect {TRACE} --foa auto",
    "inspect tests/data/bt-mz.S.2x2.prv.gz",
    "inspect tests/data/comd.4.prv.gz",
    "inspect tests/data/offload.2.prv.gz",
    "metrics tests/data/offload.2.prv.gz",
    "inspect tests/data/mix.4.prv.gz --window 0.1s:",
    "inspect tests/data/cg.S.2.prv.gz",
    "inspect tests/data/smpi/cgA.4.ti.txt.gz --flop-rate 1Gflop/s",
    "inspect tests/data/smpi/jac2048.16.ti.txt.gz",
    f"metrics {TRACE}",
    "metrics tests/data/cg.S.2.prv.gz tests/data/mg.S.4.prv.gz",
    f"metrics {TRACE} --by process",
    "history",
    "history line",
    f"whatif {TRACE} --latency 1us,2us",
    "whatif tests/data/comd.4.prv.gz --machine sandybridge-fdr --metrics",
    "whatif tests/data/comd.4.prv.gz --machine sandybridge-fdr --mapping block:2 "
    "--algorithm allreduce=ring --rank-speed 0=2",
    "whatif tests/data/comd.4.prv.gz --network smpi",
    "whatif tests/data/comd.4.prv.gz --send-overhead 1us --receive-overhead 1us",
    "whatif tests/data/comd.4.prv.gz --machine examples/profiles/two-core-vm.json",
    "whatif tests/data/comd.4.prv.gz --latency 1us --mapping block:1 --links 1 --links-within 1",
    "whatif tests/data/comd.4.prv.gz --latency 1us --mapping block:1 "
    "--topology tests/data/fat_tree.toml",
    f"report {TRACE}",
    f"whatif {TRACE}",
    "whatif tests/data/is.S.4.prv.gz --machine sandybridge-fdr --sensitivity",
    "predict tests/data/epoch.csv --procs 64 --law amdahl",
    "predict tests/data/epoch.csv --cores 16,64",
    f"predict {TRACE} --procs 4",
    "predict --procs 16 --threads 4",
    "predict cannon --procs 16 --threads 1",
    "predict --procs 16 --threads 4 --formula runtime --imbalance persistent=0.1",
    "predict --procs 16 --imbalance persistent=0.1",
    "predict examples/traces/stencil3d.2x2.toml --procs 4 --threads 2",
    "predict examples/traces/stencil3d.2x2.toml --cores 8",
    "predict --cores 16,64 --imbalance persistent=0.1 --what-if latency=0.5x",
    "predict cannon --efficiency 0.9 --set N=512",
    f"signature from stencil3d examples/stencil3d/two-core-vm.csv --machine {TWO_CORES}",
    "signature from cannon examples/validation/report/cannon/calibration.csv "
    "--machine examples/validation/machine.json",
    f"validate stencil3d {TRACE} --set N=200 --trained-on examples/stencil3d/two-core-vm.csv",
    f"validate stencil3d examples/stencil3d/two-core-vm.csv --set N=256 --machine {TWO_CORES}",
    f"convert {TRACE}:N=200",
    "docs",
    "docs load_balance",
    "docs serialisation_efficiency",
    "docs mpi.communication_efficiency",
    "docs study",
    "machine check",
    "signature",
    "signature check stencil3d",
    "signature from tests/data/is.S.4.prv.gz",
    "signature from examples/cannon/cannon.c",
    f"signature from {TRACE}:N=200",
    "signature from tests/data/smpi/jac2048.4.ti.txt.gz tests/data/smpi/jac2048.16.ti.txt.gz "
    "--flop-rate 1Gflop/s",
    f"signature check stencil3d --set N=200 --against {TRACE}",
    "machine show sandybridge-fdr",
    "machine check sandybridge-fdr",
    f"machine compare sandybridge-fdr {TWO_CORES}",
)
RARE = {
    # What takes a compiler, an MPI, more cores, a trace with marked regions or places of its calls,
    # or a mistake.
    "popmodel/check/1": r".*",
    "popmodel/trace/1": r".*",
    "popmodel/convert/1": r".*",
    "popmodel/metrics/1": (
        r"runs\[\]\.((call_sites|warnings|by_region|threads)\[\].*|observables\.vector_counts\..*)"
        r"|runs\[\]\.observables\.(bytes_(read|written)\[\]|io_bandwidth)"
        r"|advice\.steepest_fall\..*"
        r"|advice\.causes\[\]\.network\..*"
        r"|history\.comparisons\[\]\.(threads\[\]|interval\[\]|causes\[\]|place\..*)"
    ),
    "popmodel/history/1": r"threads\[\]",
    "popmodel/inspect/1": (
        r".*\.(caveats|notes)\[\]|info\.((counters|functions|threads|warnings)\[\].*|user_regions\..*)|"
        r"communication\.patterns\[\]\.(facts\.(dim|by|crosses\[\]|direction\[\]|blocks|root|way"
        r"|sizes\[\]\..*)|inside\[\])"
    ),
    "popmodel/whatif/1": r"written|runs\[\]\.error|(caveats|doubts)\[\]|sensitivity\.network\..*"
    r"|sensitivity\.tolerance\[\]\.why\..*",
    "popmodel/report/1": r"left_out\[\]\..*",
    "popmodel/predict/1 with `projection`": r"absent\..*",
    "popmodel/validate/1": (
        r"(ignored|left_out)\[\].*|(noisy|warnings)\[\]|terms\[\]\.cancelling\[\]"
    ),
    "popmodel/runs/1": r"runs\[\]\.(caveats\[\]|binding|waited)",
    "popmodel/signature-check/1": r"(caveats|mistakes|remarks)\[\]|against\.(caveats|notes)\[\]",
    "popmodel/signature-from/1": (
        r"(unknown|notes|caveats)\[\].*|source\.items\..*|traces\.laws\[\]\.(notes\[\]|rejected\[\].*)|"
        r"(values\[\]\.(learnt|why|before\..*))|calibration\.("
        r"(application|suspect_runs\[\]|measure_next\[\]|terms\[\]\.amplitude)\..*|"
        r"machine\.noisy\[\])"
    ),
    "popmodel/machine/1": r"net\.TIER\.pairs\[\]\..*",
    "popmodel/splits/1": (
        r"sizes|assumptions\[\]|candidates\[\]\.validity\.reasons\[\]|machine\.noisy\[\]|"
        r"choices\[\]\.doubt\..*|"
        r"application\.calibration\..*|"
        r"impossible\[\]\..*|study\..*"
    ),
    "popmodel/study-plan/1": r".*",
    "popmodel/study/1": r".*",
    "popmodel/predict/1": (
        r"sizes|validity\.reasons\[\]|machine\.noisy\[\]|application\.calibration\..*|replay\.why"
    ),
    "popmodel/formula/1": r"machine\.noisy\[\]|application\.calibration\..*",
}
"""Keys that the documents of these tests do not have on every machine, by schema."""


def _tables() -> dict[str, dict[str, str]]:
    """For each schema, and part that documents share, of the page its keys with their units."""
    found = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        name = re.match(r"popmodel/[\w-]+/1(?: with `\w+`)?|In every|\w+", section)
        assert name is not None
        rows = re.findall(r"^\| `([^`]+)` \| (.*?) ?\| .+ \|$", section, re.MULTILINE)
        found[name[0]] = dict(rows)
    return found


TABLES = _tables()
SHARED = {name.lower(): tuple(rows) for name, rows in TABLES.items() if name.isalpha()}
CONTAINERS = re.compile(r"\(?(table|list)\b.*")
"""What stands under keys that have no value of their own."""


def keys(value: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """Give the path of every value in a document, and whether it is there at all."""
    if path == "documents[]":  # of a report: each has a schema of its own
        yield path, True
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from keys(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{path}[]")
    else:
        yield path, value is not None


def pattern(key: str, unit: str = "") -> re.Pattern[str]:
    """What paths of documents a key of the page stands for: words in capitals are names."""
    text = _escaped(key)
    if parts := SHARED.get(unit.strip("()").split(",")[0].rstrip("?")):
        text += rf"(\.({'|'.join(map(_escaped, parts))}))?"
    return re.compile(text)


def _escaped(key: str) -> str:
    return re.sub(r"\b[A-Z]{2,}\b", ".+", re.escape(key))


def form_of(made: dict[str, Any]) -> str:
    """The section of a document."""
    with_key = f"{made['schema']} with `projection`"
    return with_key if "projection" in made else str(made["schema"])


@cache
def document(source: str) -> dict[str, Any]:
    """What a command prints as JSON, or what a file holds."""
    if source.endswith(".json") and " " not in source:
        return dict(json.loads((ROOT / source).read_text()))
    if source.startswith("convert "):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT):
            path = Path(folder) / "runs.json"
            assert main([*shlex.split(source), "-o", str(path)]) == 0
            return dict(json.loads(path.read_text()))
    if source.startswith("history"):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT):
            words = ["metrics", TRACE, "--history", f"{folder}/perf.jsonl", "--format", "json"]
            for label in "ab":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    assert main([*words, "--label", label]) == 0
            line = Path(folder, "perf.jsonl").read_text().splitlines()[0]
        return dict(json.loads(line if source == "history line" else printed.getvalue()))
    printed = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(printed):
        assert main([*shlex.split(source), "--format", "json"]) == 0
    return dict(json.loads(printed.getvalue()))


@pytest.mark.long(after=11)
@pytest.mark.parametrize("source", [*COMMANDS, TWO_CORES, PRESET])
def test_every_key_of_a_document_is_on_the_page(source: str) -> None:
    made = document(source)
    rows = TABLES["In every"] | TABLES[form_of(made)]
    known = [pattern(key, unit) for key, unit in rows.items()]
    if "provenance" in made and made["schema"] != "popmodel/machine/1":
        document_schemas.check(made, source)
    unknown = {
        path
        for path, there in keys(made)
        if not any(each.fullmatch(path) for each in known)
        # a whole part may be missing
        and (there or not any(key.startswith((f"{path}.", f"{path}[")) for key in rows))
    }
    assert unknown == set(), "add them to popmodel/docs/json.md"


@pytest.mark.long
def test_every_key_of_the_page_is_in_a_document() -> None:
    seen = defaultdict(set)
    for source in [*COMMANDS, TWO_CORES, PRESET]:
        made = document(source)
        seen[form_of(made)].update(path for path, _ in keys(made))
    allowed = {one.path for one in REGISTER}
    gone = [
        f"{schema}: {key}"
        for schema, rows in TABLES.items()
        for key, unit in rows.items()
        if "/" in schema
        and key not in allowed
        and not CONTAINERS.fullmatch(unit)
        and not re.fullmatch(RARE.get(schema, "-"), key)
        and not any(pattern(key, unit).fullmatch(path) for path in seen[schema])
    ]
    assert gone == [], "remove them from popmodel/docs/json.md"


def test_units_of_a_profile_are_those_of_the_register() -> None:
    assert with_parameters(PAGE) == PAGE, "run tests/update_documents.py popmodel/docs/json.md"


def test_a_new_parameter_gets_a_row_with_the_words_of_the_register() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `net.TIER.os` "))
    found = with_parameters(PAGE.replace(f"{row}\n", "").replace("parameter, Hz", "GHz"))
    assert "| `net.TIER.os` | parameter, s | CPU time to send a message |\n" in found
    assert found.replace("CPU time to send a message |", "CPU time to send |") == PAGE
