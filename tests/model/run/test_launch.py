"""Launch lines: they ask for the layout that was placed."""

import json
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from popmodel.base import shell
from popmodel.base.errors import PopmodelError
from popmodel.machines.quantity import Topology
from popmodel.model.run.process_placement import (
    Allocation,
    Placement,
    launch_line,
    mpirun_line,
    place,
)
from popmodel.model.signatures import from_text

NODES = Topology(4, 16, 2, 2, ())


def test_launch_lines() -> None:
    placement = place(16, 4, NODES)
    assert launch_line(placement, "./a") == (
        "OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close \\\n"
        "srun -N 4 -n 16 -c 4 --ntasks-per-node=4 --distribution=block:block --cpu-bind=cores ./a"
    )
    assert mpirun_line(placement, "./a").endswith(
        "mpirun -np 16 -x OMP_NUM_THREADS -x OMP_PLACES -x OMP_PROC_BIND "
        "--map-by ppr:4:node:PE=4 --bind-to core ./a"
    )


WORDS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])),
    min_size=1,
)


@pytest.mark.parametrize("line", [launch_line, mpirun_line])
@given(words=WORDS)
@example(words=["./a b", "1200", "$HOME", "*", "it's", '"x"', "~", "", "{N}", "a;b", "`id`", "\\"])
def test_a_shell_gives_the_program_its_own_arguments(
    line: Callable[[Placement, str], str], words: list[str]
) -> None:
    signature = from_text(
        PROGRAM.replace("COMMAND", json.dumps(shell.join(words), ensure_ascii=False))
    )
    placement = place(16, 4, NODES)
    command = line(placement, signature.started(16, 4, {}))
    program = command.rpartition("cpu-bind=cores " if line is launch_line else "bind-to core ")[2]
    assert run_by_shell(program) == [word.replace("{N}", "64") for word in words]


def run_by_shell(command: str) -> list[str]:
    """The words that a shell makes of a command."""
    listed = ["sh", "-c", f"printf '%s\\0' {command}"]
    out = subprocess.run(listed, capture_output=True, check=True).stdout.decode()
    return out.split("\0")[:-1]


PROGRAM = """
schema = "popmodel/signature/1"
[app]
name = "cg"
command = COMMAND
[params]
N = 64
[[program]]
loop = { name = "step", count = 1 }
  [[program.body]]
  serial = { name = "a", trip = "N", flops = 3 }
"""


def test_arguments_are_those_of_the_run() -> None:
    signature = from_text(PROGRAM.replace("COMMAND", '"./cg {N} 60 {P}x{T} {else}"'))
    assert signature.started(8, 2, {}) == "./cg 64 60 8x2 '{else}'"
    assert signature.started(8, 2, {"N": 1200.0}) == "./cg 1200 60 8x2 '{else}'"
    plain = from_text(PROGRAM.replace("command = COMMAND\n", ""))
    assert plain.started(8, 2, {}) == "./cg"


@pytest.mark.parametrize("command", ['"./cg \'1"', '""', '"./cg \\n"', "3"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(PopmodelError, match="command"):
        from_text(PROGRAM.replace("COMMAND", command))


def test_launch_lines_spread_threads() -> None:
    placement = place(1, 4, NODES, Allocation(bind="spread"))
    for line in (launch_line(placement, "./a"), mpirun_line(placement, "./a")):
        assert line.startswith("OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=spread \\\n")
    assert "srun -N 1 -n 1 -c 16 --ntasks-per-node=1 --cpu-bind=cores" in launch_line(
        placement, "./a"
    )
    assert "--map-by ppr:1:node:PE=16 --bind-to core" in mpirun_line(placement, "./a")


def test_launch_lines_bind_nothing() -> None:
    placement = place(16, 4, NODES, Allocation(bind="none"))
    assert launch_line(placement, "./a") == (
        "OMP_NUM_THREADS=4 OMP_PROC_BIND=false \\\n"
        "srun -N 4 -n 16 -c 4 --ntasks-per-node=4 --distribution=block --cpu-bind=none ./a"
    )
    assert mpirun_line(placement, "./a") == (
        "OMP_NUM_THREADS=4 OMP_PROC_BIND=false \\\n"
        "mpirun -np 16 -x OMP_NUM_THREADS -x OMP_PROC_BIND --map-by ppr:4:node --bind-to none ./a"
    )
