"""``popmodel machine measure``: what an interrupt leaves, and who goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from popmodel.machines.bench import suite
from popmodel.machines.bench.bench_plan import PlannedLaunch
from popmodel.machines.bench.run_directory import Files

from .conftest import Answer, Call
from .played_machine import calls, load


def interrupted_at(number: int, jobs: int) -> Callable[..., suite.Starter]:
    """A starter whose launch of that number is interrupted when it has done some jobs."""
    real = suite.starter

    def make(programs: Any, mpi: Any) -> suite.Starter:
        begin = real(programs, mpi)

        def start(
            launch: PlannedLaunch,
            arguments: Sequence[str],
            files: Files,
            patience: float,
            on_progress: Callable[[int], None],
        ) -> None:
            begin(launch, arguments, files, patience, on_progress)
            if launch.number == number:
                lines = files.samples.read_text().splitlines(keepends=True)
                files.samples.write_text("".join(lines[: jobs + 1]) + lines[jobs + 1][:30])
                raise KeyboardInterrupt

        return start

    return make


@pytest.mark.usefixtures("machine")
def test_an_interrupt_is_told_and_the_same_command_goes_on(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("machine", "measure", "--only", "core", "-o", "m.json")
    with monkeypatch.context() as patch:
        patch.setattr(suite, "starter", interrupted_at(2, 3))
        status, out, err = popmodel(*command)
    assert (status, out) == (130, "")
    assert err.splitlines()[1:] == [
        "popmodel: samples are kept in m.core.samples: run the same command to resume",
        "popmodel: for a profile of what was measured: popmodel machine measure --samples "
        "m.core.samples",
        "popmodel: interrupted",
    ]
    assert not Path("m.json").exists()
    status, out, err = popmodel(
        "machine", "measure", "--samples", "m.core.samples", "-o", "part.json"
    )
    lacking = "41 of 66 jobs have no sample: launch 2 was interrupted; launch 3 did not start"
    assert (status, err) == (0, f"popmodel: warning: m.core.samples: {lacking}\n")
    part = load("part.json")
    assert part["quality"]["core"]["launches"] == 2
    assert part["provenance"]["measurements"][0]["without_sample"] == 41
    assert lacking in " ".join(out.split())
    assert lacking in " ".join(popmodel("machine", "check", "part.json")[1].split())
    status, out, err = popmodel(*command)
    assert status == 0
    assert err == (
        "popmodel: resuming, 41 of 66 jobs left in 3 launches; samples go to m.core.samples\n"
    )
    assert calls("m.core.samples") == {
        "launch-001.jsonl": 22,
        "launch-002.jsonl": 3,
        "launch-002-2.jsonl": 19,
        "launch-003.jsonl": 22,
    }


@pytest.mark.usefixtures("machine")
def test_another_command_does_not_go_on(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(suite, "starter", interrupted_at(2, 3))
        popmodel("machine", "measure", "--only", "core", "-o", "m.json")
    status, _, err = popmodel("machine", "measure", "--only", "core", "--full", "-o", "m.json")
    assert status == 2
    assert err == (
        "popmodel: error: m.core.samples: contains samples of a different measurement (mode "
        "quick, not full)\nhint: finish that one with its own options, choose another file "
        "with -o, or discard it with --force\n"
    )
    status, _, err = popmodel(
        "machine", "measure", "--only", "core", "--ranks", "2", "-o", "m.json", "--force"
    )
    assert status == 0
    assert "going on" not in err


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("more", [(), ("--full",), ("--force",), ("--script", "slurm")])
def test_two_commands_do_not_measure_into_one_directory(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    command = ("machine", "measure", "--only", "core", "-o", "m.json")
    seen: list[Answer] = []

    def meanwhile(run: Any, *_: Any) -> list[Any]:
        before = sorted(run.folder.iterdir())
        seen.append(popmodel(*command, *more))
        assert sorted(run.folder.iterdir()) == before
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(suite, "measure", meanwhile)
        popmodel(*command)
    ((status, out, err),) = seen
    assert (status, out) == (1, "")
    assert err.splitlines()[-2:] == [
        "popmodel: error: m.core.samples: is in use by another popmodel machine measure",
        "hint: wait until it ends, or choose another file with -o",
    ]
    assert popmodel(*command)[0] == 0  # the lock has gone with its command


@pytest.mark.usefixtures("machine")
def test_a_lost_profile_is_made_of_its_samples(popmodel: Call) -> None:
    assert popmodel("machine", "measure", "--only", "core", "-o", "m.json")[0] == 0
    before = calls("m.core.samples")
    core = load("m.json")["core"]
    Path("m.json").unlink()
    status, _, err = popmodel("machine", "measure", "--only", "core", "-o", "m.json")
    assert status == 0
    assert err == (
        "popmodel: already measured, samples in m.core.samples: use --force to measure again\n"
    )
    assert calls("m.core.samples") == before
    assert load("m.json")["core"] == core
