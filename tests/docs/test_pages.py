"""The pages as a whole: links, options, commands of the tutorial."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
import tutorial
from console import ROOT, documents

from popmodel.cli import main
from popmodel.cli.app import VERBS

PAGES = documents()
OTHERS = (
    # options of other programs
    *(
        "--nodes",
        "--ntasks-per-node",
        "--distribution",
        "--cpu-bind",
        "--map-by",
        "--bind-to",
        "--oversubscribe",
    ),
    *("--hostfile", "--no-index", "--find-links", "--check", "--ntasks", "--cpus-per-task"),
    *("--into", "--also", "--hogs", "--repeats"),  # of examples/tournament
    "--src",  # of examples/validation
)


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Every option of every verb."""
    from contextlib import redirect_stdout
    from io import StringIO

    found = StringIO()
    with redirect_stdout(found):
        for verb in VERBS:
            for action in ("", *getattr(import_module(f"popmodel.cli.{verb}"), "ACTIONS", ())):
                assert main([*filter(None, (verb, action)), "--help"]) == 0
    return set(re.findall(r"--[a-z][a-z-]+", found.getvalue()))


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), (page, target)


def test_options_in_the_text_exist(known: set[str]) -> None:
    for page in PAGES:
        options = set(re.findall(r"(?<=[ `])--[a-z][a-z-]+", page.read_text()))
        assert options - known - set(OTHERS) == set(), page


def test_the_tutorial_uses_the_verbs_that_it_promises() -> None:
    commands = [shlex.split(line) for line in tutorial.script().replace("\\\n", " ").splitlines()]
    verbs = {words[words.index("popmodel") + 1] for words in commands if "popmodel" in words}
    assert verbs >= {
        *("trace", "inspect", "metrics", "whatif", "signature"),
        *("machine", "predict", "validate"),
    }


def test_the_job_script_for_pbs_starts_ranks_as_srun_would(tmp_path: Path) -> None:
    page = (ROOT / "popmodel" / "docs" / "clusters.md").read_text()
    (script,) = re.findall(
        r"^```\n(#!(?:(?!```).)*?\bjob\.sh\n)```$", page, re.DOTALL | re.MULTILINE
    )
    (tmp_path / "cluster.samples").mkdir()
    # As the last lines of job.sh start a program.
    (tmp_path / "cluster.samples" / "job.sh").write_text(
        "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=3 --cpu-bind=cores "
        "./popmodel-mpi -j 'a b.jobs'\n"
    )
    mpirun = tmp_path / "mpirun"
    mpirun.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    mpirun.chmod(0o755)
    ended = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PBS_O_WORKDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        *("-n", "8", "--map-by", "ppr:4:node:PE=3", "--bind-to", "core"),
        *("./popmodel-mpi", "-j", "a b.jobs"),
    ]


def test_no_page_of_the_package_sends_users_to_tests() -> None:
    pages = (ROOT / "popmodel" / "docs").glob("*.md")
    named = {
        f"{page.name}: {name}"
        for page in pages
        for name in re.findall(r"`[^`\n]*\b(?:tests/|\.ci/)[^`\n]*`", page.read_text())
    }
    assert named == set()
