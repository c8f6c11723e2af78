"""What ``pip`` calls this package, and what the wheel holds."""

from __future__ import annotations

import re
import tomllib

from console import ROOT

from popmodel.cli.docs import pages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADVICE = re.compile(r"pip install\s+(?:-e\s+)?'?([\w.-]+)(?:\[[\w,]+\])?'?")


def test_the_name_is_not_the_one_that_another_project_has_on_the_index() -> None:
    assert PROJECT["name"] == "popmodel-hpc"
    assert list(PROJECT["scripts"]) == ["popmodel"]


def test_extras_that_build_on_others_name_this_distribution() -> None:
    needed = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    assert [each for each in needed if re.match(r"popmodel\b(?!-hpc)", each)] == []


def test_no_advice_installs_the_other_project() -> None:
    texts = [
        path
        for folder in ("popmodel", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".toml", ".c", ".h", ".sh"}
    ]
    installed = {
        name
        for path in [ROOT / "README.md", *texts]
        for name in ADVICE.findall(path.read_text())
        if "popmodel" in name
    }
    assert installed == {"popmodel-hpc"}


def test_wheel_and_sdist_have_every_page() -> None:
    # .ci/run looks at each page of an installed wheel; this says early what would fail there.
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert build["wheel"]["packages"]["popmodel"] == "popmodel"
    assert "sdist" not in build  # it has all that the repository has
    excluded = build["wheel"]["exclude"]
    for page in pages():
        path = page.path.relative_to(ROOT)
        assert not [pattern for pattern in excluded if path.match(pattern)], path
