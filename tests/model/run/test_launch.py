"""Launch lines: they ask for the layout that was placed."""

from __future__ import annotations

from popmodel.machine.topology import Topology
from popmodel.model.run.launch import launch_line, mpirun_line
from popmodel.model.run.placement import Allocation, place

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


def test_launch_lines_scatter_processes_over_a_node_that_is_not_full() -> None:
    placement = place(8, 2, NODES, Allocation(nodes=4))
    assert "OMP_NUM_THREADS=2 " in launch_line(placement, "./a")
    assert "srun -N 4 -n 8 -c 8 --ntasks-per-node=2 " in launch_line(placement, "./a")
    assert " --map-by ppr:2:node:PE=8 " in mpirun_line(placement, "./a")
    wide = place(1, 12, NODES)
    assert "OMP_PLACES=sockets OMP_PROC_BIND=spread " in launch_line(wide, "./a")
    assert "srun -N 1 -n 1 -c 16 " in launch_line(wide, "./a")
    assert " --map-by ppr:1:node:PE=16 " in mpirun_line(wide, "./a")
    alone = place(1, 4, NODES)
    assert "srun -N 1 -n 1 -c 4 --ntasks-per-node=1 --cpu-bind" in launch_line(alone, "./a")


def test_a_program_is_one_word_of_the_shell() -> None:
    placement = place(16, 4, NODES)
    for line in (launch_line(placement, "./a b; c $D"), mpirun_line(placement, "./a b; c $D")):
        assert line.endswith(" './a b; c $D'")


def test_launch_lines_share_processes_out_by_socket() -> None:
    placement = place(8, 4, Topology(4, 36, 2, 2, ()))
    assert " --distribution=block:cyclic " in launch_line(placement, "./a")
    assert " --map-by ppr:4:socket:PE=4 " in mpirun_line(placement, "./a")


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
