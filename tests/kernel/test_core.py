"""A compiled core that is missing or outdated is one line that says what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from popmodel.kernel import _kernel

PACKAGE = Path(__file__).parent.parent.parent / "popmodel"

# Python as after an install that is not editable: the tree in the current directory comes first.
WITHOUT_EDITABLE = """
import sys
sys.meta_path = [one for one in sys.meta_path if "editable" not in type(one).__module__]
sys.path.insert(0, "")
"""
IN_PYTHON = f"{WITHOUT_EDITABLE}\nimport popmodel\npopmodel.metrics('x.prv')"
AS_COMMAND = (
    f"{WITHOUT_EDITABLE}\nfrom popmodel.cli import main\nsys.exit(main(['metrics', 'x.prv']))"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clone of the package as it is before it is built."""
    skip = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "popmodel", ignore=skip)
    return tmp_path


def _run(code: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=False
    )


def test_the_source_tree_says_where_to_start_python(tree: Path) -> None:
    done = _run(IN_PYTHON, tree)
    *_, message, hint = done.stderr.splitlines()
    assert done.returncode == 1
    assert message == (
        f"popmodel.kernel.CoreError: {tree}/popmodel is the source tree of popmodel without its "
        "compiled core"
    )
    assert hint == (
        "hint: start Python in another directory, or build the core with: "
        "python -m pip install -e ."
    )


def test_the_command_says_the_same(tree: Path) -> None:
    done = _run(AS_COMMAND, tree)
    assert done.returncode == 1
    assert "is the source tree of popmodel without its compiled core" in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_package_alone_needs_no_core(tree: Path) -> None:
    done = _run(f"{WITHOUT_EDITABLE}\nimport popmodel\nprint(popmodel.__version__)", tree)
    assert done.stdout.startswith("0.")


def test_a_core_of_older_sources_says_to_build_it_again(tree: Path) -> None:
    (tree / "popmodel" / "kernel" / "_kernel.py").write_text("interface = 'of before'\n")
    done = _run(IN_PYTHON, tree)
    *_, message, hint = done.stderr.splitlines()
    assert message == (
        "popmodel.kernel.CoreError: the compiled core of popmodel was built from an older version "
        "of the sources"
    )
    assert hint == "hint: build it again: python -m pip install -e ."


def test_an_install_without_its_core_gives_the_reason(tree: Path) -> None:
    (tree / "popmodel" / "kernel" / "CMakeLists.txt").unlink()
    done = _run(IN_PYTHON, tree)
    *_, message, hint = done.stderr.splitlines()
    assert message == (
        "popmodel.kernel.CoreError: the compiled core of popmodel cannot be loaded: "
        "No module named 'popmodel.kernel._kernel'"
    )
    assert hint == "hint: install popmodel again, with the Python that runs it"


def test_the_core_knows_its_interface() -> None:
    assert _kernel.interface == (PACKAGE / "kernel" / "_kernel.pyi").read_text()
