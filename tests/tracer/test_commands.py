"""What a command starts, and programs that cannot be traced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from popmodel.base.errors import UsageError
from popmodel.machines.host.toolchain import find_compiler
from popmodel.tracer import commands
from popmodel.tracer.commands import (
    CommandError,
    is_dynamic,
    refuse_as_rank,
    refuse_untraceable,
    understand,
)

OPEN_MPI = "mpirun (Open MPI) 5.0.11"
HYDRA = "HYDRA build details:"


def script(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder with a program, and a path with launchers of several kinds."""
    monkeypatch.chdir(tmp_path)
    script(tmp_path / "app")
    script(tmp_path / "bin" / "mpirun", f"echo '{OPEN_MPI}'")
    script(tmp_path / "bin" / "mpiexec", f"echo '{HYDRA}'")
    script(tmp_path / "bin" / "mpirun-other", "echo some other launcher")
    for name in ("srun", "aprun", "jsrun", "mpiexec.hydra", "node"):
        script(tmp_path / "bin" / name, "exit 1")
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("line", "start", "family"),
    [
        ("mpirun -n 2 ./app", 0, "Open MPI"),
        ("mpiexec -n 2 ./app", 0, "Hydra"),
        ("mpiexec.hydra -n 2 ./app", 0, "Hydra"),
        ("srun -n 2 ./app", 0, "srun"),
        ("aprun -n 2 ./app", 0, None),
        ("mpirun-other -n 2 ./app", 0, None),
        ("jsrun -n 2 ./app", 0, None),
        ("env A=1 mpirun -n 2 ./app", 2, "Open MPI"),
        ("timeout -k 1 60 env -u B mpirun -n 2 ./app 7", 7, "Open MPI"),
    ],
)
def test_launchers_are_known(
    line: str, start: int, family: str | None, environment: dict[str, str]
) -> None:
    command = understand(line.split(), environment)
    assert command.is_launcher
    assert (command.start, command.family) == (start, family)
    assert command.words == tuple(line.split())
    assert command.program == Path("./app")


@pytest.mark.parametrize(
    ("line", "start", "program"),
    [
        ("./app 7 mpirun", 0, "./app"),
        ("nice -n 5 ./app", 3, "./app"),
        ("env A=1", 0, None),
        ("env A=1 ./other", 0, None),
    ],
)
def test_other_commands_are_programs(
    line: str, start: int, program: str | None, environment: dict[str, str]
) -> None:
    command = understand(line.split(), environment)
    assert not command.is_launcher
    assert command.family is None
    assert command.start == start
    assert command.program == (None if program is None else Path(program))


def test_the_value_of_an_option_is_not_taken_for_the_program(environment: dict[str, str]) -> None:
    words = ["mpirun", "--map-by", "node", "-n", "2", "./app"]
    assert understand(words, environment).program == Path("./app")
    words = ["mpirun", "--oversubscribe", "node", "x.js"]  # nothing better: it may be the program
    assert understand(words, environment).program == Path(
        shutil.which("node", path=environment["PATH"]) or ""
    )
    assert understand(["mpirun", "-n", "2", "./absent"], environment).program is None


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("", "trace: no command given", commands.EXAMPLE),
        ("absent 1", "program absent not found", f"try {commands.EXAMPLE}"),
        ("./absent", "program ./absent not found", f"try {commands.EXAMPLE}"),
        ("app 7", "program app not found in PATH", "write ./app"),
        ("./bin", "./bin: is a directory, not a program", commands.EXAMPLE),
        (
            "./data",
            "./data: is not executable",
            ("chmod +x ./data, or give the interpreter that runs it"),
        ),
        ("--frob", "trace: no such option: --frob", commands.EXAMPLE),
        ("mpirun", "mpirun: the launcher has no program to start", commands.EXAMPLE),
        (
            "mpirun -n 4 --oversubscribe",
            "mpirun -n 4 --oversubscribe: the launcher has no program to start",
            commands.EXAMPLE,
        ),
    ],
)
def test_what_cannot_be_started_is_refused(
    line: str, message: str, hint: str, environment: dict[str, str]
) -> None:
    Path("data").write_text("x")
    with pytest.raises(UsageError) as raised:
        understand(line.split(), environment)
    assert (raised.value.message, raised.value.hint) == (message, hint)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same program, linked in several ways."""
    folder = tmp_path_factory.mktemp("programs")
    source = folder / "app.c"
    source.write_text("int main(void) { return 0; }\n")
    cc = find_compiler().command
    made = {}
    for kind, flags in {"dynamic": [], "static": ["-static"], "pie": ["-static-pie"]}.items():
        made[kind] = folder / kind
        done = subprocess.run([*cc, *flags, "-o", made[kind], source], capture_output=True)
        if done.returncode != 0:
            pytest.skip("needs static libraries of C")
    return made


def test_programs_that_load_libraries_are_fine(compiled: dict[str, Path], tmp_path: Path) -> None:
    assert is_dynamic(compiled["dynamic"])
    refuse_untraceable(compiled["dynamic"])
    refuse_untraceable(Path(sys.executable))
    text = script(tmp_path / "run.sh")
    assert not is_dynamic(text)
    refuse_untraceable(text)


@pytest.mark.parametrize("kind", ["static", "pie"])
def test_a_static_program_is_refused(kind: str, compiled: dict[str, Path]) -> None:
    with pytest.raises(CommandError) as raised:
        refuse_untraceable(compiled[kind])
    assert raised.value.message == (f"{compiled[kind]}: cannot be traced: it is statically linked")
    assert raised.value.hint == (
        "link it dynamically: without -static, with an MPI that has shared libraries"
    )


@pytest.mark.parametrize("place", [4, 18])  # word length, processor
def test_a_program_for_another_processor_is_refused(
    place: int, compiled: dict[str, Path], tmp_path: Path
) -> None:
    image = bytearray(compiled["dynamic"].read_bytes())
    image[place] ^= 3
    other = tmp_path / "other"
    other.write_bytes(image)
    with pytest.raises(CommandError, match="it is built for another architecture"):
        refuse_untraceable(other)


def test_a_program_whose_headers_were_moved_is_given_a_try(
    compiled: dict[str, Path], tmp_path: Path
) -> None:
    image = bytearray(compiled["dynamic"].read_bytes())
    image[32:40] = (1 << 40).to_bytes(8, sys.byteorder)
    other = tmp_path / "other"
    other.write_bytes(image)
    refuse_untraceable(other)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a program away")
@pytest.mark.parametrize(("bit", "what"), [(0o4000, "user"), (0o2000, "group")])
def test_a_program_with_other_rights_is_refused(
    bit: int, what: str, compiled: dict[str, Path], tmp_path: Path
) -> None:
    program = tmp_path / "app"
    shutil.copy(compiled["dynamic"], program)
    program.chmod(0o755 | bit)
    refuse_untraceable(program)  # one's own rights are none that the system guards
    os.chown(program, 12345, 12345)
    program.chmod(0o755 | bit)
    with pytest.raises(CommandError) as raised:
        refuse_untraceable(program)
    assert raised.value.message == (
        f"{program}: cannot be traced: it runs with the rights of another {what} (set-{what}-ID)"
    )
    assert raised.value.hint == "trace a copy without that bit"


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_popmodel_is_no_rank_itself(variable: str) -> None:
    for number in ("1", "", "many"):
        refuse_as_rank({variable: number})
    refuse_as_rank({"SLURM_NTASKS": "4"})  # a job of ranks, in which popmodel is none
    with pytest.raises(UsageError) as raised:
        refuse_as_rank({variable: "4"})
    assert raised.value.message == (f"popmodel trace was started as one of 4 ranks ({variable})")
    assert raised.value.hint == f"put popmodel trace before the launcher: {commands.EXAMPLE}"
