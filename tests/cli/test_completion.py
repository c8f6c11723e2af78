"""Completion through the protocol that shells use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from popmodel.cli import completion
from popmodel.cli.completion import files
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.signature.files import bundled
from popmodel.trace.formats import FORMATS

ROOT = Path(__file__).parent.parent.parent


def complete(line: str, where: Path = ROOT) -> list[str]:
    """What bash is told for a line that ends where the cursor is."""
    words = line.split(" ")
    variables = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_POPMODEL_COMPLETE": "complete_bash",
    }
    # as `popmodel` does, and at the end whether anything large was loaded
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*{'numpy', 'sympy', 'pandas'} & {*sys.modules}, "
        "file=sys.stderr, end=''))\n"
        "from popmodel.cli import main\nmain([])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        cwd=where,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("popmodel me", ["metrics"]),
        ("popmodel metrics --outside-mpi ", ["everywhere", "not-in-mpi"]),
        ("popmodel metrics --family t", ["talp"]),
        ("popmodel metrics --family mpi,t", ["mpi,talp"]),
        ("popmodel metrics --fail-under talp.p", ["talp.parallel_efficiency="]),
        ("popmodel sweep --format s", ["svg"]),
        ("popmodel sweep --what-if latency=0.5x,b", ["latency=0.5x,bandwidth="]),
        ("popmodel predict --imbalance persistent=0.1,t", ["persistent=0.1,transient="]),
        ("popmodel predict ca", ["cannon"]),
        ("popmodel project --law a", ["auto", "amdahl"]),
        ("popmodel predict cannon --set ", ["N=", "w="]),
        ("popmodel predict --set ", ["N=", "steps="]),
        ("popmodel signature check cannon --set ", ["N=", "w="]),
        ("popmodel predict --formula run", ["runtime"]),
        ("popmodel sweep --tune s", ["steps"]),
        ("popmodel replay run.prv --network d", ["dimemas"]),
        ("popmodel replay run.prv --collectives r", ["rooted"]),
        ("popmodel validate stencil3d runs.csv --fail-under ", ["coverage="]),
        ("popmodel signature ", ["list", "show", "check", "from"]),
        ("popmodel signature show s", ["stencil3d"]),
        ("popmodel machine d", ["diff"]),
        ("popmodel machine show san", ["sandybridge-fdr"]),
        ("popmodel bench --only core,m", ["core,memory"]),
        ("popmodel docs gram", ["grammar"]),
        ("popmodel explain e_", ["e_mt", "e_mp"]),
        ("popmodel explain memory.bs", ["memory.bsat"]),
        ("popmodel metrics --nothing ", []),
    ],
)
def test_values(line: str, expected: list[str], tmp_path: Path) -> None:
    assert complete(line, tmp_path) == expected


def test_all_families_and_signatures_are_offered(tmp_path: Path) -> None:
    assert complete("popmodel metrics --family ", tmp_path) == [*sorted(load_families()), "all"]
    assert complete("popmodel predict ", tmp_path) == bundled()


def test_traces_are_offered_by_their_suffix(tmp_path: Path) -> None:
    for name in ("a.prv", "b.prv.gz", "b.pcf", "c.csv", ".hidden.prv"):
        (tmp_path / name).touch()
    (tmp_path / "runs").mkdir()
    assert complete("popmodel metrics ", tmp_path) == ["a.prv", "b.prv.gz", "runs/"]
    assert complete("popmodel metrics b", tmp_path) == ["b.prv.gz"]
    assert complete("popmodel info ./a", tmp_path) == ["./a.prv"]
    assert complete("popmodel validate stencil3d c", tmp_path) == ["c.csv"]


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


def test_an_application_that_cannot_be_read_has_no_parameters(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("= 3")
    assert complete("popmodel predict bad.toml --set ", tmp_path) == []
    assert complete("popmodel predict nothing.toml --set ", tmp_path) == []


def test_traces_of_all_formats_are_completed() -> None:
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert sorted(completion.TRACES) == sorted([*suffixes, *(f"{one}.gz" for one in suffixes)])
