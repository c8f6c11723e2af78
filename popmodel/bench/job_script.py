"""The job script of a batch system, which measures without Python on the compute nodes.

It is written beside the jobs and copies of the programs, so that the directory is all that the
compute nodes need. It is never submitted from here: account, partition and time are the user's.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path

from popmodel import files, shell
from popmodel.bench import run_directory
from popmodel.bench.plan import PlannedLaunch
from popmodel.bench.run_directory import Files, StoredMeasurement
from popmodel.bench.suite import limits_of
from popmodel.errors import UsageError

SYSTEMS = ("slurm",)
SCRIPT = "job.sh"

_SPARE_MINUTES = 5  # the system starts steps, file systems are slow

_HEAD = """\
#!/bin/bash
# Measures {nodes} of a cluster for popmodel: {mode} mode, about {minutes} min.
#
#   submit    cd {folder} && sbatch {script}
#   collect   popmodel bench collect {folder} -o {output}
#
# Add what your site requires (account, partition) to sbatch or as #SBATCH lines. The script is for
# identical nodes with {cores} cores; for others write it again with --ranks (ranks on all nodes).
# An interrupted job resumes when it is submitted again: finished launches are not repeated.
#
#SBATCH --job-name=popmodel
#SBATCH --nodes={number}
#SBATCH --ntasks-per-node={per_node}
#SBATCH --cpus-per-task=1
#SBATCH --exclusive
#SBATCH --time={time}

cd "${{SLURM_SUBMIT_DIR:-$(dirname "$0")}}" || exit 1
if [ ! -x popmodel-node ]; then
    echo "popmodel-node not found: submit from the directory of the script" >&2
    exit 1
fi
if [ "${{SLURM_CPUS_ON_NODE:-{cores}}}" -lt {cores} ]; then
    echo "the script is for nodes with {cores} cores, this job has $SLURM_CPUS_ON_NODE:" \\
        "write it again with --ranks" >&2
    exit 1
fi

failed=0

# launch NAME NODES RANKS RANKS_PER_NODE CORES_PER_RANK PROGRAM ARGUMENTS...
launch() {{
    local name=$1 nodes=$2 ranks=$3 per_node=$4 cores=$5 program=$6 samples=$1 again=1
    shift 6
    while [ -e "$samples.jsonl" ]; do
        grep -q '^{{"end"' "$samples.jsonl" && return
        again=$((again + 1))
        samples=$name-$again
    done
    echo "$(date +%T) $samples: $program, ranks $ranks, nodes $nodes"
    {launcher} --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node="$per_node" \\
        --cpus-per-task="$cores" --cpu-bind=cores \\
        "./popmodel-$program" -j "$name.jobs" -o "$samples.jsonl" "$@" \\
        >"$samples.log" 2>&1 && return
    failed=1
    echo "$samples failed: $(tail -n 1 "$samples.log")" >&2
}}

"""

_TAIL = """
if [ $failed -ne 0 ]; then
    echo "some launches failed; the samples of the others can be collected" >&2
fi
exit $failed
"""


def write(
    run: StoredMeasurement,
    programs: Mapping[str, Path],
    *,
    output: str,
    launcher: str = "srun",
) -> Path:
    """Write the script, the jobs of all launches and copies of the programs."""
    words = shlex.split(launcher)
    if not words or Path(words[0]).name != "srun":
        raise UsageError(
            f"--launcher {launcher}: must be srun for a Slurm script",
            'omit it, or give srun with options: --launcher "srun --mpi=pmix"',
        )
    script = run.folder / SCRIPT
    try:
        for name, program in programs.items():
            files.copy(program, run.folder / f"popmodel-{name}", files.PROGRAM)
        steps = [
            _step(launch, run_directory.files(run, launch, launch.jobs))
            for launch in run.plan.launches
        ]
        text = _head(run, output, shell.join(words)) + "".join(steps) + _TAIL
        files.write_text(script, text, files.PROGRAM)
    except OSError as error:
        raise run_directory.unwritable(run.folder, error) from error
    return script


def _head(run: StoredMeasurement, output: str, launcher: str) -> str:
    plan = run.plan
    minutes = math.ceil(sum(launch.limit() for launch in plan.launches) / 60)
    hours, rest = divmod(minutes + _SPARE_MINUTES, 60)
    per_node = plan.ranks // plan.nodes
    return _HEAD.format(
        nodes="a node" if plan.nodes == 1 else f"{plan.nodes} nodes",
        number=plan.nodes,
        mode=plan.mode,
        minutes=minutes,
        folder=_word(str(run.folder.resolve()), "the path of the directory"),
        script=SCRIPT,
        output=_word(output, "the name of the profile"),
        cores=max(launch.threads for launch in plan.launches),
        per_node=per_node,
        time=f"{hours:02d}:{rest:02d}:00",
        launcher=launcher,
    )


def _word(name: str, what: str) -> str:
    return shell.quote(shell.plain(name, what))


def _step(launch: PlannedLaunch, files: Files) -> str:
    """One launch. Its jobs are written already; the script names the samples."""
    places = (
        "OMP_PLACES=${OMP_PLACES:-cores} OMP_PROC_BIND=${OMP_PROC_BIND:-close} "
        if launch.program == "node"
        else ""
    )
    head = [
        files.jobs.stem,
        launch.nodes,
        launch.ranks,
        launch.ranks // launch.nodes,
        launch.threads,
        launch.program,
    ]
    words = [*map(str, head), *limits_of(launch, len(launch.jobs))]
    return f"{places}launch {shell.join(words)}\n"
