"""Where OTF2's library is looked for, and what is said where there is none, or an unfit one."""

import ctypes.util
import shutil
import subprocess
from pathlib import Path

import pytest

import popmodel
from popmodel.base.errors import TraceError, UsageError
from popmodel.traces.otf2 import libotf2
from popmodel.traces.otf2.libotf2 import VARIABLE, find_library


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the library."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(libotf2, "_NAMES", ("libotf2-of-nobody.so",))
    monkeypatch.setattr(libotf2, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.usefixtures("nowhere")
def test_without_the_library_a_line_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "x.otf2").write_bytes(b"\x03BOTF2\0\3")
    with pytest.raises(UsageError) as caught:
        popmodel.read(tmp_path / "x.otf2")
    assert caught.value.message == (
        "OTF2's library is not installed, which reads and writes its archives"
    )
    assert caught.value.hint == (
        "pip install 'popmodel-hpc[otf2]', or name a libotf2.so of this machine with POPMODEL_OTF2"
    )


def library(folder: Path, *functions: str) -> Path:
    """Build a library that has some functions."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"int {name}(void) {{ return 0; }}\n" for name in functions)
    (folder / "x.c").write_text(text or "int nothing;\n")
    made = folder / "libotf2.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, folder / "x.c"], check=True)
    return made


def test_a_library_that_is_named_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ("OTF2_Reader_Open", "OTF2_EvtReaderCallbacks_SetProgramBeginCallback")
    made = library(tmp_path / "site" / "lib", *needed)
    for told in (made, tmp_path / "site"):
        monkeypatch.setenv(VARIABLE, str(told))
        assert find_library() == str(made)


def test_the_library_of_otf2_config_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ("OTF2_Reader_Open", "OTF2_EvtReaderCallbacks_SetProgramBeginCallback")
    made = library(tmp_path / "lib", *needed)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(libotf2, "find_spec", lambda _: None)
    if ctypes.util.find_library("otf2"):
        pytest.skip("the system has a library of its own")
    config = tmp_path / "otf2-config"
    config.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    config.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_library() == str(made)


@pytest.mark.parametrize(
    ("functions", "problem"),
    [
        ((), "is not OTF2's library"),
        (("OTF2_Reader_Open",), "is older than 2.3, which is needed"),
    ],
)
def test_an_unfit_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, functions: tuple[str, ...], problem: str
) -> None:
    made = library(tmp_path, *functions)
    monkeypatch.setenv(VARIABLE, str(made))
    with pytest.raises(UsageError) as caught:
        find_library()
    assert caught.value.message == f"{VARIABLE}={made}: {problem}"


def test_what_is_no_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "x.so"))
    with pytest.raises(UsageError, match=r"x\.so: cannot be opened as a library"):
        find_library()


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"x\.otf2: no such archive"):
        popmodel.read(tmp_path / "x.otf2")


def test_an_archive_has_one_application(tmp_path: Path) -> None:
    (tmp_path / "x.otf2").write_bytes(b"\x03BOTF2\0\3")
    with pytest.raises(UsageError, match="no application 2"):
        popmodel.read(tmp_path / "x.otf2", application=2)
