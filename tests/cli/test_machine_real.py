"""``popmodel machine measure`` on the machine that runs the tests, with its compiler and MPI."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS, measuring

from popmodel.machines import profile
from popmodel.machines.bench import bench_plan as plan
from popmodel.machines.bench import jobs as memory_jobs
from popmodel.machines.bench import suite
from popmodel.machines.host import hardware
from popmodel.machines.host.launcher import call, probe
from popmodel.machines.host.toolchain import Mpi, ToolchainError, find_mpi

from .conftest import Call


def load(name: str) -> dict[str, Any]:
    profile.load(name)  # it is a profile
    document: dict[str, Any] = json.loads(Path(name).read_text())
    return document


@pytest.fixture
def mpi() -> Mpi:
    """The MPI of this machine; without one there is nothing to measure."""
    try:
        return find_mpi()
    except ToolchainError as error:
        pytest.skip(f"{error.message} ({error.hint})")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A quick mode that is quicker still, in an empty working directory."""
    if hardware.here().usable_cores < 2:
        pytest.skip("two ranks need two cores")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(suite, "_PATIENCE", GENEROUS)
    mode = plan.MODES["quick"]._replace(rounds=2, seconds=0.5, least=5, most=10, shortest=0.004)
    monkeypatch.setattr(plan, "MODES", {"quick": mode})
    return tmp_path


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
@measuring()
def test_the_real_programs_measure_this_machine(popmodel: Call, mpi: Mpi) -> None:
    status, out, err = popmodel(
        "machine", "measure", "--only", "core,p2p", "--ranks", "2", "-o", "m.json"
    )
    assert status == 0, err
    assert "warning" not in err
    document = load("m.json")
    assert 5e8 < document["core"]["freq"]["1"]["value"] < 7e9
    assert 2e-8 < document["net"]["intra"]["classes"][0]["alpha"]["value"] < 1e-3
    assert mpi.version in document["host"]["mpi"]
    assert document["host"]["openmp"].startswith("lib")
    assert max(map(len, out.splitlines())) <= 60


@pytest.mark.usefixtures("tiny", "mpi")
@measuring()
def test_the_real_programs_fill_every_part(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    # Large arrays take seconds to be filled, whatever the budget of their jobs.
    monkeypatch.setattr(memory_jobs, "LARGEST_ARRAY", 4 << 20)
    one = plan.MODES["quick"]._replace(rounds=1, shortest=0.001)
    monkeypatch.setattr(plan, "MODES", {"quick": one})
    status, _, err = popmodel("machine", "measure", "--ranks", "2", "-o", "m.json")
    assert status == 0, err
    assert "warning" not in err
    document = load("m.json")
    assert document["provenance"]["measurements"][0]["without_sample"] == 0
    assert set(document["quality"]) == {"core", "memory", "openmp", "net", "coll", "noise"}
    assert document["memory"]["by_cores"]["1"]["value"] > 1e8
    assert document["openmp"]["barrier"]["T"][:2] == [1, 2]
    assert document["coll"]["allreduce"][0]["P"] == 2
    assert document["noise"]["fwq"] >= 0
    hidden = document["core"].get("overlap")  # batches of a millisecond may tell nothing
    assert hidden or "core.overlap" in document["absent"]
    assert "needs 2 memory domains" in document["absent"]["memory.remote"] or (
        document["topology"]["domains"] > 1
    )
    for overlap in filter(None, (document["net"]["overlap"], hidden)):
        assert 0 <= overlap["low"] <= overlap["value"] <= overlap["high"] <= 1
    full_support = "multiple_overhead" in document["net"]
    assert full_support or "net.multiple_overhead" in document["absent"]


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_a_measurement_beside_busy_programs_is_noisy(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long against the ticks in which the system counts what others use.
    one = plan.MODES["quick"]._replace(seconds=2.0, most=200)
    monkeypatch.setattr(plan, "MODES", {"quick": one})
    forever = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(forever) for _ in hardware.here().cpus]
    try:
        status, out, err = popmodel("machine", "measure", "--only", "noise", "-o", "m.json")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert status == 0, err
    quality = load("m.json")["quality"]["noise"]
    assert quality["noisy"]
    assert re.search(r"other programs used \d+ % of the CPU time", " ".join(quality["why"]))
    assert "! noisy: noise; measure again on a quiet machine" in " ".join(out.split())


SRUN = """\
#!/bin/bash
# Plays srun on this machine: ranks are started by its own MPI.
while [[ $1 == --* ]]; do
    [[ $1 == --ntasks=* ]] && ranks=${{1#--ntasks=}}
    shift
done
[[ $1 == ./popmodel-node ]] && exec "$@"
exec {launcher} -n "$ranks" "$@"
"""


@pytest.mark.long
@measuring()
def test_the_job_script_measures_with_the_real_programs(
    popmodel: Call, mpi: Mpi, tiny: Path
) -> None:
    status, out, err = popmodel(
        "machine",
        "measure",
        "--script",
        "slurm",
        "--only",
        "core,overlap",
        "--ranks",
        "2",
        "-o",
        "c.json",
    )
    assert status == 0, err
    words, extra = call(probe(mpi), mpi, 2, 1, os.environ)
    srun = tiny / "srun"
    srun.write_text(SRUN.format(launcher=shlex.join(words[: words.index("-n")])))
    srun.chmod(0o755)
    script = Path(out.strip())
    done = subprocess.run(
        ["bash", script.name],
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        env={**os.environ, **extra, "PATH": f"{tiny}:{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    status, _, err = popmodel("machine", "measure", "--samples", str(script.parent), "-o", "c.json")
    assert status == 0, err
    document = load("c.json")
    assert document["core"]["flop_per_cycle"]["value"] > 0
    assert document["provenance"]["measurements"][0]["without_sample"] == 0
    assert {"net", "absent"} & set(document)
