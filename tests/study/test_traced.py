"""The command of a run, and what its program said before it failed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from popmodel.shell import filled
from popmodel.study.plan import Run
from popmodel.study.request import Prepared
from popmodel.study.traced import _said, command_of, words_of
from popmodel.tracer.commands import understand

RULE = "-" * 60
OF_THE_LAUNCHER = "prterun detected that a process exited with non-zero status\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"app: only squares\n{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", "app: only squares"),
        (f"{RULE}\n{OF_THE_LAUNCHER}app: only squares\n{RULE}\n", "app: only squares"),
        (f"{RULE}\n{OF_THE_LAUNCHER}app: only squares\n", "app: only squares"),
        (f"it is no square\n{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", "it is no square"),
        (f"{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", ""),
    ],
)
def test_the_words_of_the_program_are_found(tmp_path: Path, text: str, said: str) -> None:
    log = tmp_path / "2x1.log"
    log.write_text(text)
    assert _said(log, Path("bin/app")) == said


def test_nothing_is_said_where_there_is_no_output(tmp_path: Path) -> None:
    assert _said(tmp_path / "2x1.log", None) == ""


@pytest.mark.parametrize("name", ["./my app", "bin/../my app", "my app"])
@pytest.mark.parametrize("launcher", [("mpirun", "-n", "{P}"), ()], ids=["mpirun", "alone"])
def test_a_program_of_any_spelling_is_found_in_its_command(
    launcher: tuple[str, ...], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for file in ("my app", "bin/my app", "bin/mpirun"):
        (tmp_path / file).write_text("#!/bin/sh\n")
        (tmp_path / file).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    words = (*launcher, name, "a b")
    command = understand(filled(words, {"P": 2}))
    assert command.program is not None
    assert Prepared(words, command, command.program, 2, ()).own_words == (name, "a b")


@pytest.mark.parametrize(
    "launcher",
    [
        ("mpirun", "-n", "{P}"),
        ("mpiexec", "-n", "{P}", "--map-by", "node"),
        ("srun", "-n", "{P}", "-c", "{T}"),
        ("aprun", "-n", "{P}", "-d", "{T}"),
        ("jsrun", "-n", "{P}", "-a", "1"),
        ("ibrun", "-np", "{P}"),
        ("env", "A=b c", "srun", "-n", "{P}"),
    ],
    ids=lambda words: words[0],
)
def test_a_program_gets_its_own_arguments_behind_any_launcher(
    launcher: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpirun", "mpiexec", "srun", "aprun", "jsrun", "ibrun", "my app"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    run = Run(2, 4, (("N", 1200.0),))
    own = (str(folder / "my app"), "{N}", "a b", "$HOME", "*", "it's", '"x"', "", "~", "{P}x{T}")
    words = (*launcher, *own)
    command = understand(filled(words, run.values))
    assert command.program == folder / "my app"
    about = Prepared(words, command, command.program, 8, (run,))
    assert about.own_words == own
    started = words_of(words, run, command)
    printed = command_of(Path("my study"), started, run)
    # a shell makes of what is printed the very words that are run
    listed = printed.replace("popmodel trace", "printf '%s\\0'", 1)
    out = subprocess.run(["sh", "-c", listed], capture_output=True, check=True).stdout.decode()
    assert tuple(out.split("\0")[4:-1]) == started
    assert started[-len(own) :] == filled(own, run.values)
