"""``popmodel bench``: on a machine that is played by a program."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from popmodel.bench import collect, measurement, plan, run_directory, suite
from popmodel.bench.measurement import Request, Tools
from popmodel.bench.plan import PlannedLaunch
from popmodel.bench.run_directory import Files
from popmodel.host import hardware
from popmodel.host.toolchain import Compiler, Mpi, ToolchainError
from popmodel.machine import profile

Answer = tuple[int, str, str]
Call = Callable[..., Answer]

CACHE = "/sys/devices/system/cpu/cpu0/cache/index0"
FILES = {
    "affinity": "0-3",
    "/sys/devices/system/cpu/online": "0-3",
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Played CPU\n",
    "/proc/meminfo": "MemTotal: 8388608 kB\n",
    f"{CACHE}/level": "2",
    f"{CACHE}/type": "Unified",
    f"{CACHE}/size": "1024K",
    f"{CACHE}/shared_cpu_list": "0",
    f"{CACHE}/coherency_line_size": "64",
}

# Plays both measuring programs: a header, a sample for every job, and trouble where asked.
PROGRAM = """\
import json, os, signal, sys
program = os.path.basename(sys.argv[0]).partition("-")[2]
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if os.environ.get("DUMB") == program:
    sys.exit("there is no network")
header = {"schema": "popmodel/samples/1", "program": program, "launch": int(options["-n"]),
          "started": float(os.environ.get("STARTED", 1.8e9)), "host": "played",
          "ranks": 1, "compiler": "cc 1",
          "openmp": {"version": 201511, "runtime": os.environ.get("RUNTIME", "libgomp.so.1")}}
if program == "node":
    header["files"] = json.loads(os.environ["FILES"])
else:
    header["mpi"] = {"library": "Played MPI 1.0", "thread_level": options["--thread-level"]}
    header["ranks_at"] = [{"rank": rank, "host": "played", "socket": 0} for rank in (0, 1)]
launch = int(options["-n"])
with open(options["-o"], "w") as samples:
    print(json.dumps(header), file=samples, flush=True)
    for line in open(options["-j"]):
        name, *words = line.split()
        params = {k: int(v) if v.isdecimal() else v for k, v in (w.split("=") for w in words)}
        size = params.get("bytes", 0)
        if os.environ.get("DIE") == f"{name} {size}":
            os.kill(os.getpid(), signal.SIGKILL)
        base = {"late_receiver": 1e-6 if size <= 4096 else 6e-4}.get(name, 1e-6 + 1e-10 * size)
        result = {"job": name, "params": params, "inner": 10, "stopped": "converged", "wall": 0.01,
                  "at": 1.8e9, "involuntary": 0, "steal": 0, "foreign": 0.0,
                  "seconds": [base * (1 + 0.001 * (i % 7) + 0.0005 * launch) for i in range(50)]}
        if name in ("clock", "fma", "loads", "stores"):
            result["work"] = 2000
        if name in ("window", "triad", "load", "copy"):
            result["moved"] = max(size, 1)
        print(json.dumps(result), file=samples, flush=True)
    print(json.dumps({"end": "complete", "left": 0, "wall": 1.0}), file=samples)
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 4 cores whose programs are played; the working directory is empty."""
    for name in ("DUMB", "DIE", "RUNTIME", "STARTED", "OMP_PLACES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FILES", json.dumps(FILES))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "cache"))
    mode = replace(plan.MODES["quick"], rounds=3)
    monkeypatch.setattr(plan, "MODES", {**plan.MODES, "quick": mode})
    programs = {}
    (tmp_path / "played").mkdir()
    for name in ("node", "mpi"):
        # The name of an interpreter after #! has no blanks and is short, this one's may not be so.
        played = tmp_path / "played" / f"popmodel-{name}"
        played.write_text(PROGRAM)
        words = shlex.join([sys.executable, "-SE", str(played)])
        programs[name] = tmp_path / played.name
        programs[name].write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        programs[name].chmod(0o755)
    monkeypatch.setattr(hardware, "here", lambda: hardware.read(FILES))
    tools = Tools(Compiler(("cc",), "cc 1", "-fopenmp"), None, programs)
    monkeypatch.setattr(measurement, "tools", lambda request, cores: tools)  # noqa: ARG005
    where = tmp_path / "work"
    where.mkdir()
    monkeypatch.chdir(where)
    return where


def load(name: str) -> dict[str, Any]:
    profile.load(name)  # it is a profile
    document: dict[str, Any] = json.loads(Path(name).read_text())
    return document


def calls(folder: str) -> dict[str, int]:
    """Samples of every file of a run directory."""
    return {
        path.name: len(run_directory.done_in(path)[0])
        for path in run_directory.all_samples(Path(folder))
    }


def test_it_measures_and_writes_profile_and_page(popmodel: Call, machine: Path) -> None:
    status, out, err = popmodel("bench", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    assert err == (
        f"popmodel: {sum(calls('m.core-p2p.samples').values())} jobs in 6 launches; "
        "samples go to m.core-p2p.samples\n"
    )
    document = load("m.json")
    assert document["schema"] == "popmodel/machine/1"
    assert document["host"]["cpu"] == "Played CPU"
    assert document["topology"]["cores_per_node"] == 4
    assert document["net"]["intra"]["classes"][0]["alpha"]["value"] == pytest.approx(1e-6, rel=0.1)
    provenance = document["provenance"]
    assert provenance["command"] == "popmodel bench --only core,p2p -o m.json"
    assert len(provenance["inputs"]) == 6
    (measured,) = provenance["measurements"]
    assert measured["samples"] == "m.core-p2p.samples"
    assert (measured["mode"], measured["parts"]) == ("quick", ["core", "p2p"])
    assert measured["seed"] >= 0
    assert document["absent"]["net.inter"].startswith("needs 2 nodes")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.split() == ["cpu", "Played", "CPU"] for line in lines)
    assert "one node" in lines
    assert machine.joinpath("m.core-p2p.samples", "plan.json").exists()


@pytest.mark.usefixtures("machine")
def test_without_a_file_the_samples_are_kept_in_the_cache(popmodel: Call, tmp_path: Path) -> None:
    status, out, err = popmodel("bench", "--only", "core", "--format", "json")
    assert status == 0
    assert json.loads(out)["schema"] == "popmodel/machine/1"
    folder = tmp_path / "cache" / "bench" / f"{os.uname().nodename}.core.samples"
    before = calls(str(folder))
    assert err.splitlines() == [
        f"popmodel: 24 jobs in 3 launches; samples go to {folder}",
        f"popmodel: to save this profile: popmodel bench collect {folder} -o machine.json",
    ]
    # Measured again, not taken from there, when asked again; and what was there is kept.
    for number in (1, 2):
        err = popmodel("bench", "--only", "core")[2]
        aside = folder.with_name(f"{os.uname().nodename}.core.{number}.samples")
        assert err.splitlines()[:2] == [
            f"popmodel: the samples of the previous measurement are now in {aside}",
            f"popmodel: 24 jobs in 3 launches; samples go to {folder}",
        ]
        assert calls(str(aside)) == before
        assert popmodel("bench", "collect", str(aside), "-o", f"{number}.json")[0] == 0
    err = popmodel("bench", "--only", "core", "--force")[2]
    assert err.startswith("popmodel: 24 jobs in 3 launches")
    # Other parts go to a place of their own.
    err = popmodel("bench", "--only", "noise")[2]
    assert "now in" not in err
    assert calls(str(folder)) == before


@pytest.mark.usefixtures("machine")
def test_the_profile_can_go_to_standard_output(popmodel: Call) -> None:
    status, out, _ = popmodel("bench", "--only", "core", "-o", "-")
    assert status == 0
    document = json.loads(out)
    assert document["core"]["freq"]["1"]["origin"] == "measured"


@pytest.mark.usefixtures("machine")
def test_other_formats_of_the_page(popmodel: Call) -> None:
    assert (
        "| core | value | 90 % |"
        in (popmodel("bench", "--only", "core", "--format", "markdown")[1])
    )
    assert popmodel("bench", "--only", "core", "--format", "csv")[1].startswith("path,value,low")


@pytest.mark.usefixtures("machine")
def test_parts_measured_anew_replace_those_of_the_profile(popmodel: Call) -> None:
    assert popmodel("bench", "--only", "core,p2p,noise", "-o", "m.json")[0] == 0
    before = load("m.json")
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 2
    assert load("m.json") == before
    assert popmodel("bench", "--only", "core", "-o", "m.json", "--force")[0] == 0
    after = load("m.json")
    assert (after["net"], after["noise"]) == (before["net"], before["noise"])
    assert after["absent"] == before["absent"]
    parts = [each["parts"] for each in after["provenance"]["measurements"]]
    assert parts == [["core", "p2p", "noise"], ["core"]]
    assert Path("m.core-p2p-noise.samples").is_dir()
    assert popmodel("bench", "--only", "core", "-o", "m.json", "--force")[0] == 0
    assert popmodel("machine", "diff", "m.json", "m.json")[0] == 0


@pytest.mark.usefixtures("machine")
def test_a_profile_is_as_old_as_its_oldest_part(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "measured 2020-09-13"
    monkeypatch.setenv("STARTED", "1.6e9")
    assert old in popmodel("bench", "--only", "core,noise", "-o", "m.json")[1]
    assert old in popmodel("bench", "collect", "m.core-noise.samples")[1]
    monkeypatch.setenv("STARTED", "1.7e9")
    assert old in popmodel("bench", "--only", "core", "-o", "m.json", "--force")[1]
    document = load("m.json")
    assert document["host"]["measured"] == "2020-09-13T12:26:40Z"
    assert [one["started"] for one in document["provenance"]["measurements"]] == [
        "2020-09-13T12:26:40Z",
        "2023-11-14T22:13:20Z",
    ]
    assert "days ago" in popmodel("machine", "check", "m.json")[1]
    # With the last of the old parts its age goes as well.
    assert (
        "measured 2023-11-14" in popmodel("bench", "--only", "noise", "-o", "m.json", "--force")[1]
    )


def test_parts_of_another_machine_are_not_put_together(
    popmodel: Call, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert popmodel("bench", "--only", "core,noise", "-o", "m.json")[0] == 0
    monkeypatch.setenv("RUNTIME", "libomp.so.5")
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json", "--force")
    assert status == 2
    assert err.splitlines()[1:] == [
        "popmodel: error: --only: OpenMP is libomp.so.5 (OpenMP 201511), but was "
        "libgomp.so.1 (OpenMP 201511) when the profile was measured",
        "hint: measure everything again, or write this part to another file with -o",
    ]
    assert machine.joinpath("m.core.samples").is_dir()  # nothing measured is lost


@pytest.mark.usefixtures("machine")
def test_a_profile_to_be_completed_has_to_be_one(popmodel: Call) -> None:
    Path("m.json").write_text("{}")
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json", "--force")
    assert status == 1
    assert err.startswith("popmodel: error: m.json: is not a machine profile: its schema is None")
    assert not Path("m.core.samples").exists()


@pytest.mark.usefixtures("machine")
def test_a_machine_that_hides_its_caches_has_a_profile(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {path: text for path, text in FILES.items() if not path.startswith(CACHE)}
    monkeypatch.setenv("FILES", json.dumps(hidden))
    status, out, err = popmodel("bench", "--only", "core,memory", "-o", "m.json")
    assert status == 0, err
    document = load("m.json")
    assert "caches" not in document["topology"]
    why = document["absent"]["topology.caches"]
    assert why == "neither sysfs nor lstopo reports the caches"
    assert why in " ".join(out.split())
    assert popmodel("bench", "collect", "m.core-memory.samples")[0] == 0


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("output", ["m.json", "-"])
def test_a_profile_that_cannot_be_read_replaces_none(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 0
    before = Path("m.json").read_text()
    real = collect.collect

    def damaged(*folders: Any) -> tuple[dict[str, Any], list[Path]]:
        document, paths = real(*folders)
        return {**document, "topology": {}}, paths

    monkeypatch.setattr(collect, "collect", damaged)
    status, out, err = popmodel(
        "bench", "collect", "m.core.samples", "-o", output, *["--force"] * (output != "-")
    )
    assert (status, out) == (1, "")
    assert err.splitlines()[0].endswith(": topology.cores_per_node is missing")
    assert Path("m.json").read_text() == before


@pytest.mark.usefixtures("machine")
def test_a_measurement_that_takes_longer_than_its_mode_says_so(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(plan.MODES["quick"], seconds=0.1)
    monkeypatch.setattr(plan, "MODES", {"quick": short})
    err = popmodel("bench", "--only", "core", "-o", "m.json")[2]
    assert err.splitlines()[1:] == [
        "popmodel: this may take up to 780 ms on so many cores; --only measures fewer parts"
    ]


# -- interrupts


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
    command = ("bench", "--only", "core", "-o", "m.json")
    with monkeypatch.context() as patch:
        patch.setattr(suite, "starter", interrupted_at(2, 3))
        status, out, err = popmodel(*command)
    assert (status, out) == (130, "")
    assert err.splitlines()[1:] == [
        "popmodel: samples are kept in m.core.samples: run the same command to resume",
        "popmodel: for a profile of what was measured: popmodel bench collect m.core.samples",
        "popmodel: interrupted",
    ]
    assert not Path("m.json").exists()
    status, out, err = popmodel("bench", "collect", "m.core.samples", "-o", "part.json")
    lacking = "13 of 24 jobs have no sample: launch 2 was interrupted; launch 3 did not start"
    assert (status, err) == (0, f"popmodel: warning: m.core.samples: {lacking}\n")
    part = load("part.json")
    assert part["quality"]["core"]["launches"] == 2
    assert part["provenance"]["measurements"][0]["without_sample"] == 13
    assert lacking in " ".join(out.split())
    assert lacking in " ".join(popmodel("machine", "check", "part.json")[1].split())
    status, out, err = popmodel(*command)
    assert status == 0
    assert err == (
        "popmodel: resuming, 13 of 24 jobs left in 3 launches; samples go to m.core.samples\n"
    )
    assert calls("m.core.samples") == {
        "launch-001.jsonl": 8,
        "launch-002.jsonl": 3,
        "launch-002-2.jsonl": 5,
        "launch-003.jsonl": 8,
    }


@pytest.mark.usefixtures("machine")
def test_another_command_does_not_go_on(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(suite, "starter", interrupted_at(2, 3))
        popmodel("bench", "--only", "core", "-o", "m.json")
    status, _, err = popmodel("bench", "--only", "core", "--full", "-o", "m.json")
    assert status == 2
    assert err == (
        "popmodel: error: m.core.samples: contains samples of a different measurement (mode "
        "quick, not full)\nhint: finish that one with its own options, choose another file "
        "with -o, or discard it with --force\n"
    )
    status, _, err = popmodel("bench", "--only", "core", "--ranks", "2", "-o", "m.json", "--force")
    assert status == 0
    assert "going on" not in err


@pytest.mark.usefixtures("machine")
def test_an_unfinished_measurement_without_a_file_is_kept_from_another(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(suite, "starter", interrupted_at(2, 3))
        assert popmodel("bench", "--only", "core")[0] == 130
    folder = measurement.default_folder(("core",))
    kept = calls(str(folder))
    status, _, err = popmodel("bench", "--only", "core", "--full")
    assert status == 2
    assert err.startswith(
        f"popmodel: error: {folder}: contains samples of a different measurement (mode quick, "
        "not full)\n"
    )
    assert calls(str(folder)) == kept
    assert popmodel("bench", "--only", "core", "--ranks", "2", "--force")[0] == 0


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("more", [(), ("--full",), ("--force",), ("--script", "slurm")])
def test_two_commands_do_not_measure_into_one_directory(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    command = ("bench", "--only", "core", "-o", "m.json")
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
        "popmodel: error: m.core.samples: is in use by another popmodel bench",
        "hint: wait until it ends, or choose another file with -o",
    ]
    assert popmodel(*command)[0] == 0  # the lock has gone with its command


@pytest.mark.usefixtures("machine")
def test_a_lost_profile_is_made_of_its_samples(popmodel: Call) -> None:
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 0
    before = calls("m.core.samples")
    core = load("m.json")["core"]
    Path("m.json").unlink()
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json")
    assert status == 0
    assert err == (
        "popmodel: already measured, samples in m.core.samples: use --force to measure again\n"
    )
    assert calls("m.core.samples") == before
    assert load("m.json")["core"] == core


# -- launches that fail


@pytest.mark.usefixtures("machine")
def test_a_launch_that_dies_is_told_and_the_rest_is_measured(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE", "ping_pong 1048576")
    status, out, err = popmodel("bench", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    warning = "launch 2 (mpi) failed in ping_pong bytes=1048576 tier=node: "
    line, lacking = [line for line in err.splitlines() if "warning" in line]
    assert lacking.startswith("popmodel: warning: m.core-p2p.samples: ")
    assert line.startswith(f"popmodel: warning: {warning}")
    assert "signal SIGKILL" in line
    document = load("m.json")
    (failure,) = document["provenance"]["measurements"][0]["failures"]
    assert failure.startswith(warning)
    assert document["net"]["intra"]["classes"]
    assert "warnings" in out
    assert "launch 2 (mpi) failed in ping_pong" in " ".join(out.split())


@pytest.mark.usefixtures("machine")
def test_a_program_that_does_not_begin_leaves_its_parts_absent(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMB", "mpi")
    status, _, err = popmodel("bench", "--only", "core,p2p", "-o", "m.json")
    assert status == 0
    assert err.splitlines()[2] == "hint: full output: m.core-p2p.samples/launch-002.log"
    document = load("m.json")
    assert "net" not in document
    assert document["absent"]["net.intra"].startswith(
        "launch 2 (mpi) failed before its first job: "
    )
    assert "there is no network" in document["absent"]["net.intra"]


@pytest.mark.usefixtures("machine")
def test_nothing_measured_is_a_failure(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMB", "node")
    status, out, err = popmodel("bench", "--only", "core", "-o", "m.json")
    assert (status, out) == (1, "")
    assert "popmodel: error: nothing could be measured: launch 1 (node) failed before" in err
    assert "there is no network" in err
    assert not Path("m.json").exists()
    monkeypatch.delenv("DUMB")
    assert popmodel("bench", "--only", "core", "-o", "m.json")[0] == 0  # and can be tried again


@pytest.mark.usefixtures("machine")
def test_nothing_measured_of_what_was_asked_is_a_failure(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMB", "mpi")
    status, out, err = popmodel("bench", "--only", "p2p", "-o", "m.json")
    assert (status, out) == (1, "")
    lines = err.splitlines()
    assert err.count("launch 2 (mpi)") == 1
    assert lines[-3] == (
        "popmodel: samples are kept in m.p2p.samples: run the same command to resume"
    )
    assert lines[-2].startswith(
        "popmodel: error: p2p: nothing could be measured: launch 2 (mpi) failed before its "
        "first job: "
    )
    assert "there is no network" in lines[-2]
    assert lines[-1] == "hint: full output: m.p2p.samples/launch-002.log"
    assert not Path("m.json").exists()
    monkeypatch.delenv("DUMB")
    status, _, err = popmodel("bench", "--only", "p2p", "-o", "m.json")
    assert (status, err.startswith("popmodel: resuming, ")) == (0, True)


def test_what_is_absent_is_the_reason_where_no_launch_failed() -> None:
    document = {"absent": {"core.smt_factor": "no SMT", "net.thread_factor": "no such level"}}
    error = collect.nothing_of(("threads",), document, ())
    assert error.message == "threads: nothing could be measured: no such level"
    assert error.hint == "popmodel doctor shows what works on this machine"
    error = collect.nothing_of(("core", "p2p"), {}, ())
    assert error.message == ("core, p2p: nothing could be measured: there are no samples")


# -- collect


@pytest.mark.usefixtures("machine")
def test_samples_of_several_directories_make_one_profile(popmodel: Call) -> None:
    popmodel("bench", "--only", "core", "-o", "a.json")
    popmodel("bench", "--only", "noise,p2p", "-o", "b.json")
    status, out, err = popmodel(
        "bench", "collect", "a.core.samples", "b.p2p-noise.samples", "-o", "both.json"
    )
    assert (status, err) == (0, "")
    document = load("both.json")
    assert {"core", "net", "noise"} <= set(document)
    assert [each["samples"] for each in document["provenance"]["measurements"]] == [
        "a.core.samples",
        "b.p2p-noise.samples",
    ]
    assert "one node" in out


@pytest.mark.usefixtures("machine")
def test_samples_of_different_machines_are_refused(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    popmodel("bench", "--only", "core", "-o", "a.json")
    monkeypatch.setenv("RUNTIME", "libomp.so.5")
    popmodel("bench", "--only", "core", "-o", "b.json")
    status, _, err = popmodel("bench", "collect", "a.core.samples", "b.core.samples")
    assert status == 1
    assert err == (
        "popmodel: error: b.core.samples/launch-001.jsonl: OpenMP runtime is libomp.so.5, but "
        "it is "
        "libgomp.so.1 in a.core.samples/launch-001.jsonl\n"
        "hint: collect the samples of each machine into a separate profile\n"
    )


@pytest.mark.usefixtures("machine")
def test_samples_beside_a_damaged_plan_can_be_collected(popmodel: Call) -> None:
    popmodel("bench", "--only", "core", "-o", "m.json")
    Path("m.core.samples/plan.json").write_text("{")
    Path("m.json").unlink()
    status, _, err = popmodel("bench", "--only", "core", "-o", "m.json")
    assert status == 1
    assert err.splitlines()[-1] == (
        "hint: restart with --force, or collect the samples: popmodel bench collect m.core.samples"
    )
    status, _, err = popmodel("bench", "collect", "m.core.samples", "-o", "m.json")
    assert status == 0
    assert err.startswith(
        "popmodel: warning: m.core.samples: m.core.samples/plan.json:1: is not JSON: "
    )
    assert err.endswith(": missing jobs cannot be counted\n")
    assert load("m.json")["core"]


@pytest.mark.usefixtures("machine")
def test_directories_without_samples_are_refused(popmodel: Call) -> None:
    Path("empty").mkdir()
    for name, problem in (("empty", "contains no samples (*.jsonl)"), ("no", "is not a directory")):
        assert popmodel("bench", "collect", name)[::2] == (
            1,
            f"popmodel: error: {name}: {problem}\n"
            "hint: give the directory of the samples, such as machine.samples\n",
        )


# -- programs and scripts


def test_built_programs_are_named(popmodel: Call, machine: Path) -> None:
    status, out, err = popmodel("bench", "--build-only")
    assert (status, err) == (0, "")
    node = machine.parent / "popmodel-node"
    assert out.startswith(f"popmodel-node  {node}\n")
    document = json.loads(popmodel("bench", "--build-only", "--format", "json")[1])
    assert document["schema"] == "popmodel/build/1"
    assert document["programs"]["node"] == str(node)
    assert document["compiler"] == "cc 1"
    assert not list(machine.iterdir())


def test_a_job_script_is_written_and_not_submitted(popmodel: Call, machine: Path) -> None:
    status, out, err = popmodel(
        "bench", "--script", "slurm", "--nodes", "2", "--ranks", "96", "-o", "c.json"
    )
    assert (status, out) == (0, "c.samples/job.sh\n")
    assert err == (
        "popmodel: to submit: cd c.samples && sbatch job.sh\npopmodel: after the job: "
        "popmodel bench collect c.samples -o c.json\n"
    )
    text = machine.joinpath("c.samples", "job.sh").read_text()
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=48\n" in text
    assert machine.joinpath("c.samples", "popmodel-mpi").exists()
    assert not Path("c.json").exists()


@pytest.mark.usefixtures("machine")
def test_a_script_with_the_mpi_of_a_python_package_is_doubted(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    using = measurement.tools(Request("quick", ("p2p",)), 4)
    mpi = Mpi(using.compiler, (), "Open MPI", "5.0.11", "abc", "wheel")
    monkeypatch.setattr(
        measurement,
        "tools",
        lambda request, cores: replace(using, mpi=mpi),  # noqa: ARG005
    )
    err = popmodel("bench", "--script", "slurm")[2]
    assert err.startswith(
        "popmodel: warning: this MPI is a Python package; srun may not be able to start its "
        "programs: load the cluster's MPI module\n"
    )


def test_an_mpi_that_is_missing_is_not_needed_by_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_mpi(launcher: str | None) -> Mpi:  # noqa: ARG001
        raise ToolchainError("no MPI found", "install one")

    monkeypatch.setattr(measurement, "find_mpi", no_mpi)
    monkeypatch.setattr(measurement, "find_compiler", lambda mpi: Compiler(("cc",), str(mpi), ""))
    monkeypatch.setattr(measurement, "build", lambda program, _: Path(program))
    with pytest.raises(ToolchainError) as error:
        measurement.tools(Request("quick", ("core", "p2p")), 4)
    assert error.value.message == "no MPI found"
    assert error.value.hint == (
        "install one; without MPI: popmodel bench --only core,memory,openmp,noise"
    )
    for request, cores in (
        (Request("quick", ("core",)), 4),
        (Request("quick", ("core", "p2p")), 1),
    ):
        assert measurement.tools(request, cores).programs == {"node": Path("node")}


def test_without_a_compiler_no_part_is_offered_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_mpi(launcher: str | None) -> Mpi:  # noqa: ARG001
        raise ToolchainError("mpicc lacks its compiler", "install one")

    def no_compiler(mpi: Mpi | None) -> Compiler:  # noqa: ARG001
        raise ToolchainError("no C compiler found", "install gcc")

    monkeypatch.setattr(measurement, "find_mpi", no_mpi)
    monkeypatch.setattr(measurement, "find_compiler", no_compiler)
    with pytest.raises(ToolchainError) as error:
        measurement.tools(Request("quick", ("core", "p2p")), 4)
    assert (error.value.message, error.value.hint) == ("no C compiler found", "install gcc")


# -- wrong usage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--quick", "--full"],
            "--quick and --full are mutually exclusive\nhint: leave one of them out",
        ),
        (["--only", "opnmp"], "--only opnmp: unknown part 'opnmp'\nhint: did you mean openmp?"),
        (
            ["--ranks", "0"],
            "--ranks: must be a whole number, at least 1, not '0'\nhint: try --ranks 4",
        ),
        (
            ["--ranks", "8"],
            "--ranks 8: this process may use only 4 cores\nhint: use --ranks 4: ranks that "
            "share a core would measure time slicing",
        ),
        (
            ["--only", "p2p", "--ranks", "1"],
            "--only p2p: cannot be measured here: needs at least 2 ranks\nhint: "
            "check --ranks and --nodes: this process may use 4 cores",
        ),
        (
            ["--nodes", "2"],
            "--nodes: only valid with --script\nhint: several nodes are measured in a batch "
            "job: popmodel bench --script slurm --nodes 2",
        ),
        (
            ["--script", "slurm", "--nodes", "2", "--ranks", "5"],
            "--ranks 5: must be a multiple of --nodes 2\nhint: --ranks counts the ranks on "
            "all nodes, for example --ranks 8",
        ),
        (["--script", "pbs"], "--script: unknown value 'pbs'\nhint: choose one of slurm"),
        (
            ["--script", "slurm", "--launcher", "mpirun"],
            "--launcher mpirun: must be srun for a Slurm script\n"
            'hint: omit it, or give srun with options: --launcher "srun --mpi=pmix"',
        ),
        (
            ["-o", "m.md"],
            "-o m.md: a profile must be a .json file\nhint: for other formats: popmodel "
            "machine show FILE.json -o FILE.md",
        ),
        (
            ["-o", "-", "--format", "csv"],
            "-o -: a profile is JSON, not csv\nhint: leave -o - out",
        ),
        (
            ["--build-only", "--script", "slurm"],
            "--build-only and --script are mutually exclusive\nhint: leave --build-only out: "
            "--script builds the programs",
        ),
        (
            ["--build-only", "-o", "-"],
            "-o -: not valid with --build-only\nhint: leave -o out",
        ),
        (
            ["colect", "x"],
            "bench: unexpected argument 'colect'\nhint: to measure: popmodel bench; to make "
            "a profile from samples: popmodel bench collect DIR...",
        ),
        (
            ["collect"],
            "collect: no directory given\nhint: popmodel bench collect machine.samples",
        ),
        (
            ["collect", "x", "--full"],
            "collect: only --format, -o and --force are valid with it\n"
            "hint: popmodel bench collect DIR... -o machine.json",
        ),
    ],
)
@pytest.mark.usefixtures("machine")
def test_wrong_usage(popmodel: Call, arguments: list[str], message: str) -> None:
    assert popmodel("bench", *arguments) == (2, "", f"popmodel: error: {message}\n")


@pytest.mark.usefixtures("machine")
def test_a_directory_of_something_else_is_not_written_to(popmodel: Call) -> None:
    Path("m.samples").mkdir()
    Path("m.samples/data.csv").write_text("1")
    status, _, err = popmodel("bench", "-o", "m.json")
    assert status == 1
    assert "m.samples: contains files that popmodel bench did not write, such as data.csv" in err
