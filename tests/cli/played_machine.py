"""A machine of four cores for ``popmodel machine measure``, played by a program."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS

from popmodel.machines import profile
from popmodel.machines.bench import bench_plan, run_directory, suite
from popmodel.machines.bench.bench_plan import Tools
from popmodel.machines.host import hardware
from popmodel.machines.host.toolchain import Compiler

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
RATES = ("clock", "fma", "loads", "stores", "instructions", "in_flight")
WITH_WORK = (*RATES, "dependent", "line_takeover")
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
        if name in WITH_WORK:
            result["work"] = 2000
        if name in ("in_flight", "construct", "overlap"):
            factor = 3 if name == "in_flight" else 0.5
            result["reference"] = [factor * seconds for seconds in result["seconds"]]
        if name == "overlap":
            result["compute"] = 0.5 * base
        if name in ("window", "triad", "load", "update", "narrow_update", "copy"):
            result["moved"] = max(size, 1)
        print(json.dumps(result), file=samples, flush=True)
    print(json.dumps({"end": "complete", "left": 0, "wall": 1.0}), file=samples)
"""


def played_programs(folder: Path) -> dict[str, Path]:
    """The measuring programs, by name."""
    programs = {}
    (folder / "played").mkdir()
    for name in ("node", "mpi"):
        # The name of an interpreter after #! has no blanks and is short, this one's may not be so.
        played = folder / "played" / f"popmodel-{name}"
        played.write_text(PROGRAM)
        words = shlex.join([sys.executable, "-SE", str(played)])
        programs[name] = folder / played.name
        programs[name].write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        programs[name].chmod(0o755)
    return programs


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 4 cores whose programs are played; the working directory is empty."""
    for name in ("DUMB", "DIE", "RUNTIME", "STARTED", "OMP_PLACES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FILES", json.dumps(FILES))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "cache"))
    mode = bench_plan.MODES["quick"]._replace(rounds=3)
    monkeypatch.setattr(bench_plan, "MODES", {**bench_plan.MODES, "quick": mode})
    monkeypatch.setattr(suite, "_PATIENCE", GENEROUS)
    programs = played_programs(tmp_path)
    monkeypatch.setattr(hardware, "here", lambda: hardware.read(FILES))
    tools = Tools(Compiler(("cc",), "cc 1", "-fopenmp"), None, programs)
    monkeypatch.setattr(bench_plan, "tools", lambda request, cores: tools)  # noqa: ARG005
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
