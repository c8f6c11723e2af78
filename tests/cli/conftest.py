"""A trace small enough to be read in the test, and runs of the program on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from patience import GENEROUS
from real_mpi import mpi

from popmodel.cli import main
from popmodel.traces.paraver.writer import TraceWriter

from .computed import Known, computed_once
from .played_machine import machine
from .traced_programs import Answer, Call, programs, traced

__all__ = ["machine", "mpi", "programs", "traced"]

MS = 1_000_000
PRESETS = Path(__file__).resolve().parents[2] / "popmodel" / "machines" / "presets"

NOT_MODELLED = "not modelled, assumed to take no time: 50 % of the time in 1 MPI_Comm_split"
"""What is said of it first."""
LEFT_OUT = (
    "analysed 50 ms of 100 ms: MPI_Init to MPI_Finalize (left out: 40 ms before, 10 ms after; "
    "--from-start includes them)"
)
"""What is said of the trace ``started.prv``."""
FEW_CALLS = "the analysed part has only 3 MPI calls: too little for reliable numbers"
"""What is said of it next."""

PCF = """\
EVENT_TYPE
9   50000002    MPI Collective Comm
VALUES
8   MPI_Barrier
0   Outside MPI
"""


def trace_text(useful: Sequence[int], *, runtime: int = 12) -> str:
    """A run of one thread per process: useful work for some ms each, then a barrier up to the end.

    The barrier is left 1 ms after the last one has arrived; the rest of the runtime is useful time
    of nobody.
    """
    n = len(useful)
    leave = max(useful) + 1
    lines = [
        f"#Paraver (01/01/2030 at 00:00):{runtime * MS}_ns:1({n}):1:{n}({','.join(['1:1'] * n)}),1",
        f"c:1:1:{n}:{':'.join(str(rank + 1) for rank in range(n))}",
    ]
    records = []
    for rank, work in enumerate(useful, start=1):
        where = f"{rank}:1:{rank}:1"
        records += [
            (0, f"1:{where}:0:{work * MS}:1"),
            (work, f"1:{where}:{work * MS}:{leave * MS}:5"),
            (leave, f"1:{where}:{leave * MS}:{runtime * MS}:1" if leave < runtime else ""),
            (work, f"2:{where}:{work * MS}:50000002:8:50100004:1"),
            (leave, f"2:{where}:{leave * MS}:50000002:0"),
        ]
    lines += [text for _, text in sorted(records, key=lambda record: record[0]) if text]
    return "\n".join(lines) + "\n"


def write_trace(path: Path, useful: Sequence[int], *, runtime: int = 12) -> Path:
    """Write such a run as a trace."""
    path.write_text(trace_text(useful, runtime=runtime))
    path.with_suffix(".pcf").write_text(PCF)
    return path


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two processes with 8 and 6 ms of useful work before a barrier that ends at 9 ms of 9."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    write_trace(tmp_path / "two.prv", [8, 6], runtime=9)
    return "two.prv"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A process whose MPI starts for 40 of 100 ms and ends for 10; half of the rest is useful."""
    monkeypatch.chdir(tmp_path)
    writer = TraceWriter([1])
    for begin, end, state, value in ((0, 40, 15, 31), (65, 90, 13, 23), (90, 100, 15, 32)):
        writer.state(0, 0, begin * MS, end * MS, state)
        writer.event(0, 0, begin * MS, [(50000003, value)])
        writer.event(0, 0, end * MS, [(50000003, 0)])
    writer.state(0, 0, 40 * MS, 65 * MS, 1)
    writer.write("started.prv")
    return "started.prv"


Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell() -> Shell:
    """Run the program as a process of its own."""

    def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **more.pop("env", {})}  # type: ignore[dict-item]
        command = [sys.executable, "-m", "popmodel", *arguments]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            command,
            **{
                "capture_output": True,
                "text": True,
                "timeout": GENEROUS,
                "env": environment,
                **more,
            },
        )

    return run


@pytest.fixture
def popmodel(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the program: exit status, standard output, standard error."""

    def call(*arguments: str) -> Answer:
        status = main(arguments)
        return status, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def _computed() -> Known:
    return {}


@pytest.fixture
def shown(popmodel: Call, _computed: Known) -> Call:
    """Call the program as `popmodel` does, for tests of how results are shown.

    In a module each result is computed once, however many times and in whatever form it is asked
    for; the command line is read and the result written anew.
    """

    def call(*arguments: str) -> Answer:
        with computed_once(arguments[0], _computed):
            return popmodel(*arguments)

    return call


@pytest.fixture
def few_nodes(tmp_path: Path) -> str:
    """The machine that is taken by default, but of 4 nodes: there are fewer splits to look at."""
    document = json.loads((PRESETS / "sandybridge-fdr.json").read_text())
    document["topology"]["nodes"] = 4
    path = tmp_path / "few.json"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def crowded(trace: str) -> str:
    """The run of `trace` on one processor for both threads, with tests left out, as it says."""
    path = Path(trace)
    lines = path.read_text().splitlines()
    told = (f"2:{rank}:1:{rank}:1:0:40009002:1:40009003:2:40009101:1" for rank in (1, 2))
    path.write_text("\n".join([*lines[:2], *told, *lines[2:]]) + "\n")
    return trace


@pytest.fixture
def runs(trace: str) -> list[str]:
    """The run on two processes and one on four, with half the work for each."""
    write_trace(Path("four.prv"), [4, 3, 3, 2], runtime=5)
    return [trace, "four.prv"]
