"""Recipes of package managers ask for what the package asks for, and are read by their readers."""

from __future__ import annotations

import re
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPES = ROOT / ".ci" / "recipes"
BUILD = ("scikit-build-core", "nanobind")


def bounds(requirement: str) -> tuple[str, str, str]:
    """Name, least version and the version that is too new of ``name>=1,<2``."""
    name = re.match(r"[\w-]+", requirement)
    least, below = (re.search(rf"{sign}([\d.]+)", requirement) for sign in (">=", "<"))
    assert name is not None
    return name[0], least[1] if least else "", below[1] if below else ""


def needed(requirements: list[str]) -> dict[str, tuple[str, str]]:
    return {name: rest for name, *rest in map(bounds, requirements)}  # type: ignore[misc]


RUN = needed(PROJECT["project"]["dependencies"])


def test_the_conda_recipe_asks_for_what_the_package_needs() -> None:
    recipe = yaml.safe_load((RECIPES / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["project"]["version"]
    asked = needed([one.replace(" ", "") for one in recipe["requirements"]["run"]])
    assert asked.pop("python") == ["", ""]
    asked["isal"] = asked.pop("python-isal")  # its name there
    assert asked == RUN
    built = needed([one.replace(" ", "") for one in recipe["requirements"]["host"]])
    assert {name: built[name] for name in BUILD} == needed(PROJECT["build-system"]["requires"])
    assert recipe["about"]["license"] == PROJECT["project"]["license"]
    assert (RECIPES / "conda" / recipe["source"]["path"] / "pyproject.toml").resolve().exists()


def test_the_conda_recipe_is_read_by_its_builder() -> None:
    builder = pytest.importorskip("rattler_build", reason="rattler-build reads conda recipes")
    builder.Stage0Recipe.from_yaml((RECIPES / "conda" / "recipe.yaml").read_text())


def spack_directives(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Any, ...]]]:
    """The directives of the Spack package, run as Spack runs them: when its class is made."""
    said: dict[str, list[tuple[Any, ...]]] = {}
    module = types.ModuleType("spack.package")

    def directive(name: str) -> Any:
        return lambda *words, **given: said.setdefault(name, []).append((*words, given))

    for name in ("license", "version", "variant", "depends_on"):
        setattr(module, name, directive(name))
    module.PythonPackage = type("PythonPackage", (), {})  # type: ignore[attr-defined]
    module.run_after = module.on_package_attributes = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", module)
    text = (RECIPES / "spack" / "package.py").read_text()
    exec(compile(text, "package.py", "exec"), {})
    return said


def test_the_spack_package_asks_for_what_the_package_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    said = spack_directives(monkeypatch)
    assert said["version"] == [(PROJECT["project"]["version"], {})]
    asked = {}
    for spec, given in said["depends_on"]:
        name, _, versions = spec.removeprefix("py-").partition("@")
        if spec.startswith("py-") and "when" not in given:
            least, _, most = versions.partition(":")
            asked[name] = (least, most)
    wanted = RUN | needed(PROJECT["build-system"]["requires"])
    assert set(asked) == set(wanted)
    for name, (least, below) in wanted.items():
        assert asked[name][0] == least, name
        # Spack's last version is included: the one before that which is too new.
        head, _, last = below.rpartition(".")
        assert asked[name][1] == (f"{head}.{int(last) - 1}" if below else ""), name


def test_the_container_has_its_sections() -> None:
    lines = (RECIPES / "popmodel.def").read_text().splitlines()
    assert lines[0] == "Bootstrap: docker"
    assert [line for line in lines if line.startswith("%")] == ["%post", "%runscript", "%test"]
