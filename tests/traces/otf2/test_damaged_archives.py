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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x/2.evt", None, "the archive lacks events: files x/*.evt are missing or damaged"),
        ("x/2.evt", b"", "the archive lacks events: x/2.evt is empty"),
        ("x.def", None, "the archive lacks its definitions: x.def is missing or empty"),
        ("x.def", b"", "the archive lacks its definitions: x.def is missing or empty"),
        ("x.def", b"\x03B", "cannot be read as an archive of OTF2: "),
        ("x.otf2", b"", "is no anchor file of an archive in OTF2: empty, compressed or something"),
    ],
)
def test_what_an_archive_lacks_is_named(
    archive: Path, name: str, content: bytes | None, said: str
) -> None:
    path = archive.parent / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        popmodel.read(archive)
    assert caught.value.message.startswith(f"{archive}: {said}")
    assert caught.value.hint == (
        "copy the archive again, with all of its files, or trace the run again"
    )


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
