"""The action for GitHub and the component for GitLab, carried out step by step by a shell."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "data" / "cg.S.2.prv.gz"
ACTION = ROOT / ".github" / "actions" / "popmodel" / "action.yml"
COMPONENT = ROOT / ".ci" / "gitlab" / "popmodel.yml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with three runs of a commit: files that differ."""
    for level in (1, 5, 9):
        text = gzip.decompress(TRACE.read_bytes())
        (tmp_path / f"run{level}.prv.gz").write_bytes(gzip.compress(text, level))
    return tmp_path


def environment(project: Path, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    summary = {"GITHUB_STEP_SUMMARY": str(project / "summary.md")}
    return {**os.environ, "PATH": path, "PYTHONWARNINGS": "", **summary, **more}


def shell(command: str, project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step as the runners of both forges do."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=project,
        env=environment(project, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with its expressions replaced; an unknown one is an error."""
    return re.sub(r"\$(?:\{\{|\[\[) *([\w.-]+) *(?:\}\}|\]\])", lambda one: values[one[1]], text)


def action_steps(**inputs: str) -> list[tuple[str, dict[str, str]]]:
    """Command and environment of each step of the action."""
    action = yaml.safe_load(ACTION.read_text())
    known = {"github.sha": "0123abc", "github.action_path": str(ACTION.parent)}
    given = {
        f"inputs.{name}": inputs.get(name.replace("-", "_"), filled(one.get("default", ""), known))
        for name, one in action["inputs"].items()
    }
    assert action["runs"]["using"] == "composite"
    steps = []
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an expression in a script is read as code"
        steps.append((step["run"], {k: filled(v, given) for k, v in step.get("env", {}).items()}))
    return steps


def component(**inputs: str) -> tuple[list[str], dict[str, str]]:
    """The script of the component's job and its variables."""
    head, body = yaml.safe_load_all(COMPONENT.read_text())
    given = {
        f"inputs.{name}": inputs.get(name.replace("-", "_"), (one or {}).get("default", ""))
        for name, one in head["spec"]["inputs"].items()
    }
    job: dict[str, Any] = body["popmodel"]
    variables = {name: filled(value, given) for name, value in job["variables"].items()}
    assert variables.pop("LABEL") == "$CI_COMMIT_SHA"
    return [filled(line, given) for line in job["script"]], {**variables, "LABEL": "0123abc"}


def history(project: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / "perf.jsonl").read_text().splitlines()]


def test_the_action_adds_the_runs_and_writes_summary_page_and_badge(project: Path) -> None:
    for command, variables in action_steps(traces="run*.prv.gz")[1:]:
        done = shell(command, project, **variables)
        assert done.returncode == 0, done.stderr
    assert {line["label"] for line in history(project)} == {"0123abc"}
    assert "2 x 1: no earlier runs" in (project / "summary.md").read_text()
    assert (project / "popmodel.svg").read_text().startswith("<svg")
    assert "Change against earlier runs" in (project / "popmodel.html").read_text()


def test_the_action_fails_where_its_condition_is_met(project: Path) -> None:
    *first, (command, variables) = action_steps(
        traces="run*.prv.gz", fail_if="parallel_efficiency < 0.99"
    )
    for step, given in first[1:]:
        assert shell(step, project, **given).returncode == 0
    assert shell(command, project, **variables).returncode == 3


def test_the_component_does_the_same(project: Path) -> None:
    script, variables = component(traces="run*.prv.gz", fail_if="parallel_efficiency < 0.99")
    page, check = script[1:]
    assert shell(page, project, **variables).returncode == 0
    assert shell(check, project, **variables).returncode == 3
    assert "2 x 1: no earlier runs" in (project / "popmodel.md").read_text()
    assert (project / "popmodel.svg").exists()
    assert [line["run"] for line in history(project)] == ["run1", "run5", "run9"]


def test_both_compare_with_the_same_condition_and_are_short() -> None:
    (_, variables), (_, of_component) = action_steps()[-1], component()
    assert variables["CONDITION"] == of_component["CONDITION"] == "runtime > +5 %"
    job = COMPONENT.read_text().partition("---\n")[2]
    assert len(job.splitlines()) <= 12


@pytest.mark.long
@pytest.mark.parametrize("forge", ["action", "component"])
def test_the_first_step_installs_popmodel(forge: str, project: Path) -> None:
    venv.create(project / "env", with_pip=True)
    python = project / "env" / "bin" / "python"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    # What popmodel needs to run comes from here; popmodel does not: no .pth file counts there.
    (site,) = (project / "env" / "lib").glob("python*/site-packages")
    (site / "needed.pth").write_text("\n".join(packages))
    if forge == "action":
        command, variables = action_steps(traces="run*.prv.gz")[0]
    else:
        command, variables = component(package=str(ROOT))[0][0], {}
    variables |= {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    done = shell(command, project, **variables)
    assert done.returncode == 0, done.stderr
    where = subprocess.run(
        [python, "-c", "import popmodel; print(popmodel.__file__)"],
        cwd=project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert where.stdout.startswith(str(project))
