"""Commands that start a run where a prediction puts it."""

from __future__ import annotations

from popmodel.model.run.placement import Placement


def launch_line(placement: Placement, program: str) -> str:
    """Return the commands that start a program in this placement, for Slurm."""
    bound = "none" if placement.bind == "none" else "cores"
    # else ranks would take turns between the sockets, and a process might get cores of two
    on_sockets = "" if bound == "none" else ":block" if placement.per_socket is None else ":cyclic"
    words = [
        f"srun -N {placement.nodes} -n {placement.processes} -c {placement.cores_per_process}",
        f"--ntasks-per-node={placement.per_node}",
        f"--distribution=block{on_sockets}" if placement.per_node > 1 else "",
        f"--cpu-bind={bound} {program}",
    ]
    return f"{_environment(placement)} \\\n" + " ".join(word for word in words if word)


def mpirun_line(placement: Placement, program: str) -> str:
    """Return the same as `launch_line` for Open MPI without a batch system."""
    variables = [word.partition("=")[0] for word in _settings(placement)]
    # its own variables are the only ones that Open MPI takes to other nodes by itself
    exported = " ".join(f"-x {name}" for name in variables)
    where = f"{placement.per_node}:node"
    if placement.per_socket is not None:
        where = f"{placement.per_socket}:socket"
    bound = f"{where}:PE={placement.cores_per_process} --bind-to core"
    if placement.bind == "none":
        bound = f"{where} --bind-to none"
    return f"{_environment(placement)} \\\n" + (
        f"mpirun -np {placement.processes} {exported} --map-by ppr:{bound} {program}"
    )


def _environment(placement: Placement) -> str:
    return " ".join(_settings(placement))


def _settings(placement: Placement) -> list[str]:
    """Variables of OpenMP, and their values."""
    count = f"OMP_NUM_THREADS={placement.threads}"
    if placement.bind == "none":
        return [count, "OMP_PROC_BIND=false"]
    bind = "spread" if placement.places == "sockets" else placement.bind
    return [count, f"OMP_PLACES={placement.places}", f"OMP_PROC_BIND={bind}"]
