"""What ``whatif`` and ``convert`` write for other tools: whole or not at all."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic import Program, programs, run

from popmodel.traces import read
from popmodel.traces.codes import Event
from popmodel.traces.paraver.numbers import NUMBERS
from popmodel.traces.selection import TracePart, focused

from .conftest import Call

Writing = tuple[tuple[str, ...], str, str]
Shell = Callable[..., "subprocess.CompletedProcess[str]"]
WRITING = {
    "scenario": (("whatif", "--network", "ideal"), "--save-trace", "new.prv.gz"),
    "path": (("whatif",), "--save-trace", "new.prv.gz"),
    "convert": (("convert",), "-o", "new.ti.gz"),
}


@pytest.fixture(params=WRITING)
def writing(request: pytest.FixtureRequest) -> Writing:
    """A verb with options, the option that names what it writes, and a name."""
    return WRITING[request.param]


@pytest.fixture
def run_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of some hundred calls."""
    monkeypatch.chdir(tmp_path)
    run(programs.jacobi((4,), 30), transient=0.1).write(Path("run.prv"))
    return "run.prv"


@pytest.mark.long(after=1)
def test_a_full_disk_leaves_the_old_file_and_no_other(
    writing: Writing, run_: str, shell: Shell
) -> None:
    """The limit on the size of files stands in for a full disk; both fail in the write."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    verb, option, name = writing
    Path(name).write_text("precious")
    before = set(Path().iterdir())
    done = shell(*verb, run_, option, name, "--force", preexec_fn=limit)
    assert done.returncode == 1
    assert f"{name}: cannot be written: file too large\n" in done.stderr
    assert Path(name).read_text() == "precious"
    assert set(Path().iterdir()) == before


def test_an_interrupt_leaves_the_old_file_and_no_other(
    writing: Writing, run_: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, option, name = writing
    Path(name).write_text("precious")
    before = set(Path().iterdir())

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    status, _, err = popmodel(*verb, run_, option, name, "--force")
    assert (status, err.splitlines()[-1]) == (130, "popmodel: interrupted")
    assert Path(name).read_text() == "precious"
    assert set(Path().iterdir()) == before


@pytest.mark.long(after=1)
def test_the_file_is_whole_though_nobody_reads_the_result(
    writing: Writing, run_: str, popmodel: Call, shell: Shell
) -> None:
    verb, option, name = writing
    assert popmodel(*verb, run_, option, f"a-{name}")[0] == 0
    gone = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    gone.wait()
    assert gone.stdin is not None
    done = shell(*verb, run_, option, f"b-{name}", capture_output=False, stdout=gone.stdin)
    gone.stdin.close()
    assert done.returncode == 141
    assert Path(f"b-{name}").read_bytes() == Path(f"a-{name}").read_bytes()


@pytest.mark.parametrize("network", [(), ("--network", "ideal")])
def test_a_narrow_screen_is_kept(
    network: tuple[str, ...], run_: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = popmodel("whatif", run_, *network, "--save-trace", "x.prv.gz")[1]
    assert max(map(len, out.splitlines())) <= 40


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    "program",
    [
        programs.jacobi((2, 3), 8, periodic=True),
        programs.pipeline((3, 2), 4),
        programs.rows_and_transposes(2, 4, 2, 3),
        programs.transposes(5, 3),
    ],
    ids=["halos", "pipelines", "butterflies", "transposes"],
)
def test_the_path_of_a_replayed_run_is_on_a_rank_or_in_a_message_at_any_time(
    program: Program, popmodel: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(program, persistent=0.1, transient=0.1).write(Path("run.prv"))
    network = ("--network", "alpha-beta", "--latency", "20us", "--format", "json")
    assert popmodel("whatif", "run.prv", *network[:4], "--save-trace", "replayed.prv")[0] == 0
    status, out, _ = popmodel(
        "whatif", "replayed.prv", *network, "--sensitivity", "--save-trace", "path.prv"
    )
    assert status == 0
    told = json.loads(out)
    assert told["sensitivity"]["runtime"] == pytest.approx(told["measured_runtime"], abs=5e-9)
    part = focused(read("path.prv"), TracePart.of(None, None, False))[0]
    stretches = []
    events = part.whole.records.events if part.whole else part.records.events
    for location in range(part.processes):
        mine = events.at(slice(location, location + 1))
        on_path = mine.type == NUMBERS[Event.CRITICAL_PATH]
        times, values = mine.time[on_path].tolist(), mine.value[on_path].tolist()
        stretches += [
            (a, b) for a, b, value in zip(times, times[1:], values, strict=False) if value
        ]
    until = part.begin
    for begin, end in sorted(stretches):
        assert begin <= until + 20_000 + 1_000  # latency, and at most 10 kB; ns
        until = max(until, end)
    assert until >= part.end - 5
