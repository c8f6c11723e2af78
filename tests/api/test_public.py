"""The names of the package: what there is, that each has an example, and that examples run."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import popmodel
from popmodel.reports.result import Drawing

ROOT = Path(__file__).parent.parent.parent
NAMES = [name for name in popmodel.__all__ if name != "__version__"]


def test_dir_shows_the_public_names_and_no_others() -> None:
    assert dir(popmodel) == sorted(popmodel.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'popmodel' has no attribute 'predicts'"):
        popmodel.predicts  # noqa: B018


EXAMPLES = {"popmodel": popmodel, "Drawing": Drawing}
EXAMPLES |= {name: getattr(popmodel, name) for name in NAMES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where the examples' traces lie
    (found,) = doctest.DocTestFinder(recurse=False).find(EXAMPLES[name], name, globs={})
    assert found.examples, f"{name} has no example"
    output: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(found, out=output.append)
    assert not output, "".join(output)


def test_importing_the_package_loads_nothing_large() -> None:
    code = (
        "import sys, popmodel; dir(popmodel); "
        "print([name for name in ('numpy', 'pandas', 'sympy', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
