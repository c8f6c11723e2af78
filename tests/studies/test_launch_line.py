"""Better launch lines: what says where processes go is exchanged, all else stays."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from popmodel.studies.launch_line import Line, line_with
from popmodel.tracer.commands import TracedCommand, understand

SAYS = {
    "mpirun": "echo 'mpirun (Open MPI) 5.0.11'",
    "mpiexec.hydra": "true",
    "srun": "true",
    "other": "true",
    "app": "true",
    "taskset": "true",
    "numactl": "true",
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name, text in SAYS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def command(text: str, environment: dict[str, str]) -> TracedCommand:
    return understand(shlex.split(text), environment)


PLACES = "OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close"


@pytest.mark.parametrize(
    ("given", "better"),
    [
        ("mpirun -n 2 app x y", "mpirun --map-by slot:PE=4 --bind-to core -n 2 app x y"),
        ("mpirun --bind-to none -np 2 app", "mpirun --map-by slot:PE=4 --bind-to core -np 2 app"),
        (
            "mpirun --bind-to=none --map-by socket --report-bindings -n 2 app -n 3",
            "mpirun --map-by slot:PE=4 --bind-to core --report-bindings -n 2 app -n 3",
        ),
        (
            "mpirun -x OMP_NUM_THREADS=2 -x A=1 --cpu-set 0,1 -n 2 app",
            "mpirun --map-by slot:PE=4 --bind-to core -x A=1 -n 2 app",
        ),
        (
            "mpirun -n 2 taskset -c 0 app",
            "mpirun --map-by slot:PE=4 --bind-to core -n 2 app",
        ),
        (
            "taskset -c 0,1 mpirun -n 2 env OMP_NUM_THREADS=1 A=2 app",
            "mpirun --map-by slot:PE=4 --bind-to core -n 2 env A=2 app",
        ),
        (
            "mpirun -n 2 numactl --physcpubind=0 -m 0 app",
            "mpirun --map-by slot:PE=4 --bind-to core -n 2 app",
        ),
        ("mpiexec.hydra -n 2 -bind-to core app", "mpiexec.hydra -bind-to core:4 -n 2 app"),
        (
            "mpiexec.hydra -genv OMP_NUM_THREADS 2 -genv A 1 -n 2 app",
            "mpiexec.hydra -bind-to core:4 -genv A 1 -n 2 app",
        ),
        (
            "srun -n 8 -c2 --cpu-bind=none --hint nomultithread -p fast app in.txt",
            "srun -c 4 --cpu-bind=cores -n 8 -p fast app in.txt",
        ),
        ("env A=1 OMP_PROC_BIND=false taskset 0x1 app 3", "env A=1 app 3"),
        ("app 3", "app 3"),
    ],
)
def test_only_what_places_processes_is_exchanged(
    given: str, better: str, environment: dict[str, str]
) -> None:
    line = line_with(command(given, environment), 4, environment=environment)
    assert str(line) == f"{PLACES} {better}"


def test_variables_that_contradict_the_line_are_taken_away(environment: dict[str, str]) -> None:
    own = {**environment, "KMP_AFFINITY": "disabled", "OMP_THREAD_LIMIT": "1", "A": "1"}
    places = PLACES.replace("=4", "=2")
    for given, better in (
        ("app", "app"),
        ("env -u A KMP_AFFINITY=none B=1 taskset 1 app", "env -u A B=1 app"),
        ("mpirun -x KMP_AFFINITY -n 1 app", "mpirun --map-by slot:PE=2 --bind-to core -n 1 app"),
    ):
        line = line_with(command(given, own), 2, environment=own)
        assert str(line) == f"{places} env -u KMP_AFFINITY -u OMP_THREAD_LIMIT {better}"
    alone = line_with(command("app", own), 2, openmp=False, environment=own)
    assert str(alone) == "app"


def test_ranks_are_exchanged_where_there_are_too_many(environment: dict[str, str]) -> None:
    given = command("mpirun -np 8 --oversubscribe app", environment)
    line = line_with(given, 1, ranks=2, openmp=False, environment=environment)
    assert str(line) == "mpirun -n 2 --bind-to core app"


def test_variables_go_to_other_nodes(environment: dict[str, str]) -> None:
    given = command("mpirun -n 2 app", environment)
    line = line_with(given, 2, several_nodes=True, environment=environment)
    assert isinstance(line, Line)
    assert [word for word in line.words if word.startswith("OMP_")] == list(line.environment)


@pytest.mark.parametrize("given", ["mpirun -n 1 app : -n 1 app", "mpirun -n 2 nothing-there"])
def test_there_is_no_line_where_the_command_is_not_understood(
    given: str, environment: dict[str, str]
) -> None:
    assert line_with(command(given, environment), 2, environment=environment) is None
