"""Compare what a source archive and a wheel hold with what the repository tracks."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".cpp", ".hpp", "CMakeLists.txt")
"""Of the compiled core: in the archive only."""


def tracked() -> set[str]:
    """Files of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split("\0")) - {""}


def expected_in_wheel(files: set[str]) -> set[str]:
    """Files of the package as a wheel holds them; the C sources of measurements travel with it."""
    package = {name for name in files if name.startswith("popmodel/")}
    core = {name for name in package if name.startswith("popmodel/kernel/")}
    sources = {name for name in core if name.endswith(SOURCES)}
    benchmarks = {f"popmodel/{name}" for name in files if name.startswith("microbench/")}
    return (package - sources) | benchmarks


def sdist_files(path: Path) -> set[str]:
    """Files of a source archive, without its folder."""
    with tarfile.open(path) as archive:
        return {one.name.partition("/")[2] for one in archive if one.isfile()}


def wheel_files(path: Path) -> set[str]:
    """Files of a wheel, without those about it and the compiled core."""
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    return {name for name in names if not name.endswith(".so")}


def main() -> None:
    """Say what is missing or too much, and fail."""
    sdist, wheel = map(Path, sys.argv[1:])
    files = tracked()
    differences = [
        *(f"{sdist.name} lacks {name}" for name in sorted(files - sdist_files(sdist))),
        *(
            f"{wheel.name}: {name}"
            for name in sorted(expected_in_wheel(files) ^ wheel_files(wheel))
        ),
    ]
    sys.exit("\n".join(differences) or 0)


if __name__ == "__main__":
    main()
