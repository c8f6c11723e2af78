"""Archives that are damaged in any way are refused in a line, or read; the process survives."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")

import popmodel
from popmodel.base.errors import TraceError
from popmodel.traces.otf2.archive_writer import write_archive

FUZZ = Path(__file__).parents[2] / "fuzz" / "archives.py"


@pytest.fixture
def archive(tmp_path: Path, real_trace: Callable[[str], Path]) -> Path:
    write_archive(tmp_path / "x.otf2", popmodel.read(real_trace("is.S.4")))
    return tmp_path / "x.otf2"


def test_a_file_that_lacks_is_named(archive: Path) -> None:
    (archive.parent / "x" / "2.evt").unlink()
    with pytest.raises(TraceError) as caught:
        popmodel.read(archive)
    assert caught.value.message.startswith(f"{archive}: cannot be read as an archive of OTF2: ")
    assert caught.value.hint == (
        "copy the archive again, with all of its files, or trace the run again"
    )


def test_an_archive_without_its_definitions_is_refused(archive: Path) -> None:
    archive.with_suffix(".def").unlink()
    with pytest.raises(TraceError, match="cannot be read as an archive of OTF2"):
        popmodel.read(archive)


def test_an_empty_anchor_is_refused(archive: Path) -> None:
    archive.write_bytes(b"")
    with pytest.raises(TraceError, match="cannot be read as an archive of OTF2"):
        popmodel.read(archive)


@pytest.mark.parametrize(
    ("first", "count"), [(0, 40), pytest.param(40, 2000, marks=pytest.mark.long)]
)
def test_any_damage_is_an_error_or_read(archive: Path, first: int, count: int) -> None:
    """In a process of its own, as damage could end it."""
    command = [sys.executable, FUZZ, archive, str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("{'read': ")
    assert "'refused': " in done.stdout
