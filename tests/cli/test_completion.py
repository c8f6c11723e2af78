"""Completion through the protocol that shells use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from popmodel.cli import completion
from popmodel.cli.completion import files
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.signatures import bundled
from popmodel.traces.trace_formats import FORMATS

# What `popmodel` does with each line, which is in the environment of a process of its own, and at
# the end whether anything large was loaded. The processes share what all of them begin with.
COMPLETING = """
import json, os, sys, traceback
import popmodel.cli.app
from popmodel.cli import main

def complete(variables):
    os.environ.update(variables)
    try:
        main([])
    except BaseException as ended:
        if getattr(ended, "code", 1):
            traceback.print_exc()
    finally:
        print(*{"numpy", "sympy", "pandas"} & {*sys.modules}, file=sys.stderr, end="")
        sys.stdout.flush()
        os._exit(0)

for each in json.load(sys.stdin):
    reading, writing = os.pipe()
    if not os.fork():
        os.dup2(writing, 1)
        complete(each)
    os.close(writing)
    with open(reading) as file:
        print(json.dumps(file.read()), flush=True)
    os.wait()
"""


def complete_all(lines: Sequence[str], where: Path) -> list[list[str]]:
    """What bash is told for lines that end where the cursor is."""
    variables = [
        {
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
            "_POPMODEL_COMPLETE": "complete_bash",
        }
        for line in lines
    ]
    done = subprocess.run(
        [sys.executable, "-c", COMPLETING],
        input=json.dumps(variables),
        cwd=where,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return [[line for line in text.splitlines() if line] for text in told]


def complete(line: str, where: Path) -> list[str]:
    """What bash is told for one line."""
    (told,) = complete_all([line], where)
    return told


VALUES = [
    ("popmodel me", ["metrics"]),
    ("popmodel metrics --outside-mpi ", ["everywhere", "not-in-mpi"]),
    ("popmodel metrics --family t", ["talp"]),
    ("popmodel metrics --family mpi,t", ["mpi,talp"]),
    ("popmodel metrics --fail-if talp.p", ["talp.parallel_efficiency"]),
    ("popmodel metrics --format s", ["svg"]),
    ("popmodel metrics --nothing ", []),
    ("popmodel machine c", ["compare", "check"]),
    ("popmodel machine show san", ["sandybridge-fdr"]),
    ("popmodel machine measure --only core,m", ["core,memory"]),
    ("popmodel docs gram", ["grammar"]),
    ("popmodel docs e_", ["e_mt", "e_mp"]),
    ("popmodel docs memory.bs", ["memory.bsat"]),
    ("popmodel trace --openmp g", ["gomp"]),
    ("popmodel predict --machine san", ["sandybridge-fdr"]),
    ("popmodel predict cannon --set ", ["N=", "w="]),
    ("popmodel signature ", ["list", "show", "check", "from"]),
    ("popmodel whatif run.prv --network d", ["dimemas"]),
]


@pytest.mark.long
def test_values(tmp_path: Path) -> None:
    lines = [line for line, _ in VALUES]
    assert dict(zip(lines, complete_all(lines, tmp_path), strict=True)) == dict(VALUES)


def test_all_families_and_signatures_are_offered(tmp_path: Path) -> None:
    lines = ["popmodel metrics --family "]
    assert complete_all(lines, tmp_path) == [[*sorted(load_families()), "all"]]
    assert completion.bundled_signatures(None) == bundled()


def test_traces_are_offered_by_their_suffix(tmp_path: Path) -> None:
    for name in ("a.prv", "b.prv.gz", "b.pcf", "c.csv", ".hidden.prv"):
        (tmp_path / name).touch()
    (tmp_path / "runs").mkdir()
    told = {
        "popmodel metrics ": ["a.prv", "b.prv.gz", "runs/"],
        "popmodel metrics b": ["b.prv.gz"],
        "popmodel metrics ./a": ["./a.prv"],
    }
    assert complete_all([*told], tmp_path) == [*told.values()]


def test_one_folder_is_left_to_the_shell(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert complete("popmodel metrics ru", tmp_path) == []


def test_files_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.prv").touch()
    assert files(f"{tmp_path}/runs/", (".prv",)) == [f"{tmp_path}/runs/a.prv"]
    assert files(f"{tmp_path}/nothing/", (".prv",)) == []
    assert files("a", ()) == []
    assert "/tmp/" in files("/t", (".prv",)) or not Path("/tmp").is_dir()


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("cannon", ["N=", "w="]),
        (["more.csv", "cannon"], ["N=", "w="]),
        (None, ["N=", "steps="]),  # of the default
        ("bad.toml", []),
        ("nothing.toml", []),
    ],
)
def test_parameters_are_those_of_the_signature_that_is_named(
    named: str | list[str] | None,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "bad.toml").write_text("= 3")
    monkeypatch.chdir(tmp_path)
    context = SimpleNamespace(params={"inputs": named, "procs": None}, args=[])
    assert completion.signature_parameters(context) == expected


def test_traces_of_all_formats_are_completed() -> None:
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    packed = [f"{suffix}.gz" for suffix in suffixes if suffix != ".otf2"]  # a directory's anchor
    assert sorted(completion.TRACES) == sorted([*suffixes, *packed])
