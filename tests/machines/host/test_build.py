"""Building the measuring programs, finding them again, and what is said when it fails."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from popmodel.base.errors import FileError
from popmodel.machines.host import build as module
from popmodel.machines.host.build import LOG, SOURCES, BuildError, build, sources
from popmodel.machines.host.toolchain import Compiler, find_compiler


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(folder))
    return folder


def fake(tmp_path: Path, script: str) -> Compiler:
    """A compiler that is a script."""
    path = tmp_path / "fake-cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Compiler((str(path),), "fake 1", "-fopenmp")


COPIES = 'while [ "$1" != -o ]; do shift; done; echo "#!/bin/sh" > "$2"; chmod +x "$2"'


def variables(makefile: str) -> dict[str, list[str]]:
    """Lists of files that the Makefile assigns, one in terms of the other."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+) = (.*)$", makefile.replace("\\\n", " "), re.MULTILINE):
        words = re.sub(r"\$\((\w+)\)", lambda m: " ".join(found.get(m[1], [])), value).split()
        found[name] = words
    return found


@pytest.mark.parametrize("program", ["node", "mpi"])
def test_the_makefile_builds_of_the_same_sources(program: str) -> None:
    lists = variables((sources() / "Makefile").read_text())
    assert sorted(lists[program.upper().replace("-", "_")]) == sorted(SOURCES[program])


def test_no_source_is_forgotten() -> None:
    listed = {name for names in SOURCES.values() for name in names if "/" not in name}
    assert {path.name for path in sources().glob("*.c")} == listed


@pytest.mark.usefixtures("folder")
def test_a_program_is_built_and_runs() -> None:
    program = build("hello-openmp", find_compiler())
    done = subprocess.run(
        [program], env={**os.environ, "OMP_NUM_THREADS": "2"}, capture_output=True, check=True
    )
    said = json.loads(done.stdout)
    assert said["threads"] == 2
    assert said["openmp"] >= 201107
    assert said["runtime"].startswith("lib")


def test_a_program_is_built_once(folder: Path, tmp_path: Path) -> None:
    compiler = fake(tmp_path, f"echo called >> {tmp_path}/calls; {COPIES}")
    program = build("hello-openmp", compiler)
    assert program == build("hello-openmp", compiler)
    assert (tmp_path / "calls").read_text() == "called\n"
    assert program.is_relative_to(folder / "programs")
    there = {path.name for path in program.parent.iterdir()}
    assert there == {program.name, f"{program.name}.sha256", LOG}
    assert (program.parent / LOG).read_text().startswith(f"{tmp_path}/fake-cc -std=c11 -D_POSIX")


@pytest.mark.usefixtures("folder")
def cut_short(program: Path) -> None:
    os.truncate(program, 5)


def changed(program: Path) -> None:
    program.write_text("#!/bin/sh\necho another\n")


def without_checksum(program: Path) -> None:
    program.with_name(f"{program.name}.sha256").unlink()


def writable_by_all(program: Path) -> None:
    program.chmod(0o777)


def with_a_checksum_that_all_may_write(program: Path) -> None:
    program.with_name(f"{program.name}.sha256").chmod(0o666)


def a_link(program: Path) -> None:
    other = program.with_name("other")
    program.rename(other)
    program.symlink_to(other)


def not_executable(program: Path) -> None:
    program.chmod(0o600)


@pytest.mark.parametrize(
    "damage",
    [
        cut_short,
        changed,
        without_checksum,
        writable_by_all,
        with_a_checksum_that_all_may_write,
        a_link,
        not_executable,
        Path.unlink,
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_not_as_it_was_built_is_built_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    compiler = fake(tmp_path, f"echo called >> {tmp_path}/calls; {COPIES}")
    program = build("hello-openmp", compiler)
    good = program.read_bytes()
    damage(program)
    for _ in range(2):
        assert build("hello-openmp", compiler) == program
        assert program.read_bytes() == good
        assert not program.is_symlink()
        assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert (tmp_path / "calls").read_text() == "called\n" * 2


@pytest.mark.usefixtures("folder")
def test_a_program_of_another_user_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = fake(tmp_path, f"echo called >> {tmp_path}/calls; {COPIES}")
    program = build("hello-openmp", compiler)
    if os.geteuid() == 0:
        os.chown(program, 4321, 4321)
        build("hello-openmp", compiler)
        assert program.stat().st_uid == 0
        assert (tmp_path / "calls").read_text() == "called\n" * 2
    else:  # then the folders are another user's as well
        monkeypatch.setattr(os, "geteuid", lambda: program.stat().st_uid + 1)
        with pytest.raises(BuildError, match="belongs to another user"):
            build("hello-openmp", compiler)


@pytest.mark.parametrize("below", ["", "programs", "programs/*"])
def test_nothing_is_run_from_a_folder_that_others_can_write(
    folder: Path, tmp_path: Path, below: str
) -> None:
    compiler = fake(tmp_path, f"echo called >> {tmp_path}/calls; {COPIES}")
    build("hello-openmp", compiler)
    (open_to_all,) = folder.parent.glob(f"{folder.name}/{below}".rstrip("/"))
    open_to_all.chmod(0o770)
    with pytest.raises(BuildError) as raised:
        build("hello-openmp", compiler)
    assert raised.value.message == (
        f"{open_to_all} is writable by others (mode 770): programs in it are not run"
    )
    assert raised.value.hint == (
        f"if you trust its contents, chmod -R go-w {folder}; otherwise set POPMODEL_CACHE_DIR "
        "to another directory"
    )
    assert (tmp_path / "calls").read_text() == "called\n"


def test_an_umask_that_lets_the_group_write_is_no_hindrance(folder: Path, tmp_path: Path) -> None:
    compiler = fake(tmp_path, f"echo called >> {tmp_path}/calls; {COPIES}")
    before = os.umask(0o002)
    try:
        program = build("hello-openmp", compiler)
        assert build("hello-openmp", compiler) == program
    finally:
        os.umask(before)
    assert (tmp_path / "calls").read_text() == "called\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_a_program_is_made_from_tells_it_from_others(tmp_path: Path) -> None:
    first = fake(tmp_path, COPIES)
    newer = Compiler(first.command, "fake 2", first.openmp)
    programs = [
        build("hello-openmp", first),
        build("hello-openmp", newer),
        build("hello-openmp", first, {**os.environ, "CFLAGS": "-O3"}),
        build("hello-openmp", first, {**os.environ, "LDFLAGS": "-s"}),
    ]
    assert len(set(programs)) == 4


@pytest.mark.usefixtures("folder")
def test_a_changed_source_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "sources"
    copies.mkdir()
    for path in sources().glob("*.[ch]"):
        (copies / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(module, "sources", lambda: copies)
    compiler = fake(tmp_path, COPIES)
    first = build("hello-openmp", compiler)
    with (copies / "hello_openmp.c").open("a") as file:
        file.write("/* changed */\n")
    assert build("hello-openmp", compiler) != first


@pytest.mark.usefixtures("folder")
def test_the_users_flags_are_honoured(tmp_path: Path) -> None:
    compiler = fake(tmp_path, f'echo "$@" > {tmp_path}/words; {COPIES}')
    build("hello-openmp", compiler, {**os.environ, "CFLAGS": "-O3 '-Da=b c'", "LDFLAGS": "-L/x"})
    words = (tmp_path / "words").read_text()
    assert " -O2 -O3 -Da=b c " in words
    assert " -L/x " in words


@pytest.mark.usefixtures("folder")
def test_several_build_the_same_at_once(tmp_path: Path) -> None:
    compiler = fake(tmp_path, f"sleep 0.2; {COPIES}")
    with ThreadPoolExecutor(3) as pool:
        programs = list(pool.map(lambda _: build("hello-openmp", compiler), range(3)))
    assert len(set(programs)) == 1
    there = {path.name for path in programs[0].parent.iterdir()}
    assert there == {programs[0].name, f"{programs[0].name}.sha256", LOG}


def test_what_the_compiler_refuses(folder: Path, tmp_path: Path) -> None:
    compiler = fake(
        tmp_path,
        "echo 'hello_openmp.c: In function main:'\n"
        "echo 'hello_openmp.c:9:1: error: expected declaration'\n"
        "echo 'hello_openmp.c:10:1: error: and more'; exit 1",
    )
    with pytest.raises(BuildError) as raised:
        build("hello-openmp", compiler)
    (log,) = folder.glob(f"programs/*/{LOG}")
    assert raised.value.message == (
        f"{tmp_path}/fake-cc failed to build popmodel-hello-openmp: hello_openmp.c:9:1: "
        "error: expected declaration"
    )
    assert raised.value.hint == f"full compiler output: {log}"
    assert "and more" in log.read_text()
    assert [path.name for path in log.parent.iterdir()] == [LOG]


@pytest.mark.parametrize(
    "said",
    [
        "hello_openmp.c:8:10: fatal error: omp.h: No such file or directory",
        "/usr/bin/ld: cannot find -lomp: No such file or directory",
        "clang: error: unsupported option -fopenmp",
    ],
)
def test_a_compiler_without_openmp(folder: Path, tmp_path: Path, said: str) -> None:
    with pytest.raises(BuildError) as raised:
        build("hello-openmp", fake(tmp_path, f"echo '{said}' >&2; exit 1"))
    (log,) = folder.glob(f"programs/*/{LOG}")
    assert raised.value.message.endswith(f": {said}")
    assert raised.value.hint == (
        f"install the OpenMP runtime of this compiler, or set CC to another one ({log})"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("x.s: fatal error: error writing to x.s: No space left on device", "no space left"),
        ("as: x.o: Disk quota exceeded", "disk quota exceeded"),
    ],
)
def test_a_disk_that_fills_up_while_compiling(
    folder: Path, tmp_path: Path, said: str, told: str
) -> None:
    script = f"echo '{said}' >&2; echo 'collect2: error: ld returned 1 exit status'; exit 1"
    with pytest.raises(BuildError) as raised:
        build("hello-openmp", fake(tmp_path, script))
    assert raised.value.message == f"{told} in {folder} while building popmodel-hello-openmp"
    assert raised.value.hint == (
        "free some space there, or set POPMODEL_CACHE_DIR to another directory"
    )
    (log,) = folder.glob(f"programs/*/{LOG}")
    assert said in log.read_text()


@pytest.mark.usefixtures("folder")
def test_a_compiler_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with pytest.raises(BuildError, match=r"no answer within 0\.2 s"):
        build("hello-openmp", fake(tmp_path, "exec sleep 600"))


def test_a_cache_on_a_full_disk(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.files, "write_text", full)
    with pytest.raises(FileError) as raised:
        build("hello-openmp", fake(tmp_path, COPIES))
    assert raised.value.message.startswith(f"{folder}/programs/")
    assert raised.value.message.endswith("cannot store build results here: No space left on device")
    assert raised.value.hint == (
        "free some space there, or set POPMODEL_CACHE_DIR to another directory"
    )


def test_flags_that_are_no_words(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised:
        build("hello-openmp", fake(tmp_path, COPIES), {**os.environ, "CFLAGS": "-D'x"})
    assert raised.value.message == "$CFLAGS: no closing quotation"
    assert raised.value.hint == "try CFLAGS='-O3 -g'"
    assert not folder.exists()


def test_a_package_without_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "__file__", str(tmp_path / "popmodel" / "machines" / "host" / "build.py")
    )
    with pytest.raises(BuildError) as raised:
        sources()
    assert raised.value.message == (
        f"{tmp_path / 'popmodel'}: the sources of the benchmark programs are missing"
    )
    assert raised.value.hint == "reinstall popmodel: the package is incomplete"
