"""The library: for which MPI it is built, what is said when it cannot be, and that it loads."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from real_mpi import Mpi

from popmodel.base import files
from popmodel.base.errors import FileError
from popmodel.machines.host.build import LOG, TRACER, BuildError, build_tracer, sources
from popmodel.machines.host.toolchain import Compiler, ToolchainError, find_compiler, find_mpi
from popmodel.tracer import library
from popmodel.tracer.commands import Family, TracedCommand
from popmodel.tracer.library import Library, find_or_build
from popmodel.tracer.symbol_table import SourceLines, SymbolPlace

COPIES = (
    'for word; do case "$last" in -o) echo made >"$word"; chmod +x "$word";; esac; '
    'last=$word; done; [ "$last" = --version ] && echo "fake cc 1"; exit 0'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(folder))
    return folder


def fake(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def compiler(path: Path, text: str = COPIES) -> Compiler:
    return Compiler((str(fake(path, text)),), "fake cc 1", "-fopenmp")


def mpi_words(mpi: Mpi) -> dict[str, str]:
    return {**os.environ, "MPICC": shlex.join(mpi.mpicc)}


def launched(mpi: Mpi, program: Path | None, family: Family = "Open MPI") -> TracedCommand:
    return TracedCommand((mpi.mpirun, "-n", "2", "x"), mpi.mpirun, 0, True, family, program)


def loads(path: Path) -> bool:
    """Whether all that a library needs is there as soon as it is loaded."""
    code = f"import ctypes, os; ctypes.CDLL({str(path)!r}, os.RTLD_NOW)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode == 0


def needed(path: Path) -> set[str]:
    """Names of the libraries that a library brings with it."""
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("needs readelf (binutils)")
    said = subprocess.run([readelf, "-d", path], capture_output=True, text=True, check=True)
    return set(re.findall(r"\(NEEDED\).*\[(.+?)\.so", said.stdout))


def test_the_library_brings_no_mpi_with_it(mpi: Mpi) -> None:
    found = find_or_build(None, mpi_words(mpi))
    assert found.mpi is not None
    assert found.without_mpi is None
    assert found.path.name == TRACER
    assert needed(found.path) <= {"libc", "libdl", "libpthread", "ld-linux-x86-64", "libgcc_s"}
    assert loads(found.path)


@pytest.mark.long
def test_without_mpi_there_is_a_library_for_openmp(folder: Path) -> None:
    path = build_tracer(find_compiler(), None)
    assert loads(path)
    log = (path.parent / LOG).read_text()
    assert "/process.c" in log
    assert "/p2p.c" not in log
    assert path.is_relative_to(folder)


def test_the_makefile_builds_of_the_same_sources(tmp_path: Path) -> None:
    made = tmp_path / "words"
    cc = compiler(tmp_path / "cc", f'echo "$@" >>{made}; {COPIES}')
    mpicc = replace(find_mpi_of(cc), compiler=cc)
    build_tracer(cc, mpicc)
    compiling = made.read_text().splitlines()[0].split()
    named = {Path(word).name for word in compiling if word.endswith(".c")}
    # The Makefile takes all files of the folder.
    assert "TRACER = $(wildcard tracer/*.c)" in (sources() / "Makefile").read_text()
    assert named == {path.name for path in (sources() / "tracer").glob("*.c")}


@pytest.mark.long
def test_the_makefile_builds_without_a_warning(mpi: Mpi, tmp_path: Path) -> None:
    words = [f"MPICC={shlex.join(mpi.mpicc)}", f"BUILD={tmp_path}"]
    command = ["make", "-s", "-j2", "-C", sources(), "tracer", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert loads(tmp_path / "libpopmodel_trace.so")


def find_mpi_of(cc: Compiler) -> library.Mpi:
    return library.Mpi(cc, (), "Open MPI", "5.0", "identity", "user")


@pytest.mark.usefixtures("folder")
def test_what_it_is_built_for_tells_it_from_others(tmp_path: Path) -> None:
    cc = compiler(tmp_path / "cc")
    one = find_mpi_of(cc)
    paths = [
        build_tracer(cc, one),
        build_tracer(cc, replace(one, identity="other")),
        build_tracer(replace(cc, version="fake cc 2"), one),
        build_tracer(cc, one, {**os.environ, "CFLAGS": "-g"}),
        build_tracer(cc, None),
    ]
    assert len(set(paths)) == 5
    begun: list[str] = []
    assert build_tracer(cc, one, on_begin=lambda: begun.append("again")) == paths[0]
    assert begun == []
    build_tracer(replace(cc, version="fake cc 3"), one, on_begin=lambda: begun.append("new"))
    assert begun == ["new"]


def test_what_a_compiler_refuses_is_told(folder: Path, tmp_path: Path) -> None:
    cc = compiler(tmp_path / "cc", "echo 'p2p.c:1:1: error: no such thing'; exit 1")
    with pytest.raises(BuildError) as raised:
        build_tracer(cc, find_mpi_of(cc))
    (log,) = folder.glob(f"programs/*/{LOG}")
    assert raised.value.message == (
        f"{tmp_path}/cc failed to build {TRACER}: p2p.c:1:1: error: no such thing"
    )
    assert raised.value.hint == f"full compiler output: {log}"


def test_a_path_that_cannot_be_preloaded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MPICC", raising=False)
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "my cache"))
    monkeypatch.setattr(library, "find_compiler", lambda *_: compiler(tmp_path / "cc"))
    monkeypatch.setattr(library, "find_mpi", no_mpi)
    with pytest.raises(FileError) as raised:
        find_or_build(plain())
    assert "cannot be preloaded: a path in LD_PRELOAD must not contain blanks" in (
        raised.value.message
    )
    assert raised.value.hint == "set POPMODEL_CACHE_DIR to another directory"


def no_mpi(**_: object) -> None:
    raise ToolchainError("no MPI found", "install one")


def plain() -> TracedCommand:
    return TracedCommand(("./app",), "./app", 0, False, None, None)


def test_where_there_is_no_mpi_a_program_is_traced_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MPICC", raising=False)
    monkeypatch.setattr(library, "find_compiler", lambda *_: compiler(tmp_path / "cc"))
    monkeypatch.setattr(library, "find_mpi", no_mpi)
    found = find_or_build(plain())
    assert found.mpi is None
    assert found.without_mpi == "no MPI found"
    for command in (None, replace(plain(), is_launcher=True, words=("mpirun", "./app"))):
        with pytest.raises(ToolchainError, match="no MPI found"):
            find_or_build(command)
    monkeypatch.setenv("MPICC", "mpicc")
    with pytest.raises(ToolchainError, match="no MPI found"):
        find_or_build(plain())


def test_the_mpi_is_that_of_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPICC", raising=False)
    asked = []

    def find(environment: dict[str, str]) -> None:
        asked.append(environment.get("MPICC"))
        raise ToolchainError("enough is seen")

    monkeypatch.setattr(library, "find_mpi", find)
    launcher = fake(tmp_path / "mpi" / "bin" / "mpirun", "exit 0")
    command = TracedCommand((str(launcher), "./app"), str(launcher), 0, True, "Hydra", None)
    with pytest.raises(ToolchainError):
        find_or_build(command)
    wrapper = fake(tmp_path / "mpi" / "bin" / "mpicc", "exit 0")
    with pytest.raises(ToolchainError):
        find_or_build(command)
    with pytest.raises(ToolchainError):
        find_or_build(command, {**os.environ, "MPICC": "own"})
    assert asked == [None, str(wrapper), "own"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("family", "linked", "content", "wanted"),
    [
        ("Open MPI", None, b"", "mpicc.openmpi"),
        ("Hydra", None, b"", "mpicc.mpich"),
        (None, "libmpich.so.12", b"", "mpicc.mpich"),
        (None, "libmpi.so.40", b"\0ompi_mpi_comm_world\0", "mpicc.openmpi"),
        ("srun", None, b"", "mpicc"),
    ],
)
def test_of_several_makes_in_one_folder_it_is_that_of_the_command(
    family: Family | None,
    linked: str | None,
    content: bytes,
    wanted: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MPICC", raising=False)
    for name in ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpirun"):
        fake(tmp_path / "bin" / name, "exit 0")
    launcher = str(tmp_path / "bin" / "mpirun")
    if linked is not None:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / linked).write_bytes(content)
    monkeypatch.setattr(library, "_linked_with", lambda *_: linked and tmp_path / "lib" / linked)
    asked = []

    def find(environment: dict[str, str]) -> None:
        asked.append(environment.get("MPICC"))
        raise ToolchainError("enough is seen")

    monkeypatch.setattr(library, "find_mpi", find)
    with pytest.raises(ToolchainError):
        find_or_build(TracedCommand((launcher, "./app"), launcher, 0, True, family, None))
    assert asked == [str(tmp_path / "bin" / wanted)]


def test_the_mpi_is_that_which_the_program_is_linked_with(mpi: Mpi, tmp_path: Path) -> None:
    program = tmp_path / "app"
    source = tmp_path / "app.c"
    source.write_text("#include <mpi.h>\nint main(void) { MPI_Init(0, 0); MPI_Finalize(); }\n")
    subprocess.run([*mpi.mpicc, "-o", program, source], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "MPICC"}
    found = find_or_build(
        replace(plain(), program=program), {**environment, "PATH": "/usr/bin:/bin"}
    )
    own = find_mpi(environment=mpi_words(mpi))
    assert found.mpi is not None
    assert (found.mpi.library, found.mpi.version) == (own.library, own.version)


@pytest.mark.usefixtures("folder")
def test_another_make_of_mpi_is_refused(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = find_mpi(environment=mpi_words(mpi))
    is_open_mpi = own.library == "Open MPI"
    linked = tmp_path / "libmpi.so.12"
    linked.write_bytes(b"" if is_open_mpi else b"\0ompi_mpi_comm_world\0")
    monkeypatch.setattr(library, "_linked_with", lambda *_: linked)
    with pytest.raises(ToolchainError) as raised:
        find_or_build(launched(mpi, None), mpi_words(mpi))
    other = "another MPI" if is_open_mpi else "Open MPI"
    assert raised.value.message == (
        f"the program is linked with {other} ({linked}), but {mpi.mpicc[0]} belongs to {own.name}"
    )
    assert raised.value.hint == (
        "load the module of the program's MPI, or set MPICC to its compiler wrapper"
    )


def without_compiler(folder: Path, *programs: str) -> dict[str, str]:
    """An environment in which there are these programs, and no compiler."""
    folder.mkdir()
    for name in programs:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    kept_out = {"MPICC", "CC"}
    return {name: value for name, value in os.environ.items() if name not in kept_out} | {
        "PATH": str(folder)
    }


@pytest.fixture
def built(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """The library in a cache of its own: a copy, for to build takes seconds."""
    kept = find_or_build(None, mpi_words(mpi))
    folder = tmp_path / "copies"
    there = kept.path.parent
    shutil.copytree(there, folder / there.relative_to(files.cache_folder()))
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(folder))
    return find_or_build(None, mpi_words(mpi))


def test_what_was_built_serves_where_there_is_no_compiler(
    built: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built.mpi is not None
    node = without_compiler(tmp_path / "bin")
    monkeypatch.setattr("popmodel.machines.host.toolchain._mpicc_of_package", lambda: None)
    for command in (None, plain(), replace(plain(), is_launcher=True)):
        found = find_or_build(command, node)
        assert found.path == built.path
        assert found.mpi is not None
        assert found.mpi.name == built.mpi.name
        assert found.compiler.version == built.compiler.version
    # A named compiler that is not there is a mistake, and so is another make of MPI.
    with pytest.raises(ToolchainError):
        find_or_build(None, {**node, "MPICC": "mpicc"})
    monkeypatch.setattr(library, "_linked_with", lambda *_: tmp_path / "libmpi.so")
    monkeypatch.setattr(library, "_is_open_mpi", lambda _: built.mpi.library != "Open MPI")
    with pytest.raises(ToolchainError):
        find_or_build(plain(), node)


def test_what_is_kept_must_be_whole_and_of_these_sources(
    built: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = without_compiler(tmp_path / "bin")
    monkeypatch.setattr("popmodel.machines.host.toolchain._mpicc_of_package", lambda: None)
    said = built.path.with_name("made-for.json")
    text = said.read_text()
    for damage in ("{", "[]", "{}", text.replace('"sources": "', '"sources": "0'), "null"):
        said.write_text(damage)
        with pytest.raises(ToolchainError, match=r"no MPI found|no C compiler found"):
            find_or_build(None, node)
    said.write_text(text)
    assert find_or_build(None, node).path == built.path
    os.truncate(built.path, 1000)
    with pytest.raises(ToolchainError):
        find_or_build(None, node)


def test_source_lines_are_found(tmp_path: Path) -> None:
    if shutil.which("addr2line") is None or shutil.which("nm") is None:
        pytest.skip("needs addr2line and nm (binutils)")
    source, program = tmp_path / "app.c", tmp_path / "app"
    source.write_text(
        "int f(int x)\n{\n    return x + 1;\n}\n\nint main(void)\n{\n    return f(-1);\n}\n"
    )
    subprocess.run([*find_compiler().command, "-g", "-O0", "-o", program, source], check=True)
    said = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    places = {name: int(place, 16) for place, name in re.findall(r"^(\w+) T (\w+)$", said, re.M)}
    lines = SourceLines()
    assert lines(str(program), [places["f"], places["main"], 0]) == [
        SymbolPlace("f", "app.c:2"), SymbolPlace("main", "app.c:7"), SymbolPlace(None, None),
    ]  # fmt: skip
    assert lines.problem is None
