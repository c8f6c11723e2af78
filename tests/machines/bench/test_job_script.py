"""The job script: that a shell takes it, and what it does with a batch system that is played."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from patience import GENEROUS

from popmodel.base.errors import UsageError
from popmodel.machines.bench import bench_plan as plan
from popmodel.machines.bench import run_directory, suite
from popmodel.machines.bench.run_directory import StoredMeasurement
from popmodel.machines.quantity import Cache, Topology

NODE = Topology(1, 4, 1, 1, (Cache("L2", 1 << 20, 1),), 8 << 30)

SRUN = """\
#!/bin/bash
# Plays srun: notes its options and variables, then runs the program once, on this machine.
echo "OMP_PLACES=$OMP_PLACES $*" >>"$SRUN_LOG"
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""

PROGRAM = """\
#!/bin/sh
[ -n "$FAIL" ] && { echo "no such device" >&2; exit 1; }
echo '{"schema":"popmodel/samples/1"}' >"$4"
[ -n "$CUT" ] || echo '{"end":"complete","left":0,"wall":0}' >>"$4"
"""


@pytest.fixture
def run(tmp_path: Path) -> StoredMeasurement:
    made = plan.make(("memory", "p2p", "threads"), "quick", NODE, ranks=8, nodes=2, seed=3)
    return run_directory.begin(tmp_path / "my cluster.samples", made, {"host": "login"})


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name in ("node", "mpi"):
        made[name] = tmp_path / f"built-{name}"
        made[name].write_text(PROGRAM)
        made[name].chmod(0o755)
    return made


def submit(
    run: StoredMeasurement, tmp_path: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the script as the batch system would: a copy of it elsewhere, in the user's directory."""
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir(exist_ok=True)
    srun.write_text(SRUN)
    srun.chmod(0o755)
    spooled = tmp_path / "slurm_script"
    spooled.write_text((run.folder / suite.SCRIPT).read_text())
    environment = {
        "PATH": f"{srun.parent}:{os.environ['PATH']}",
        "SLURM_SUBMIT_DIR": str(run.folder),
        "SRUN_LOG": str(tmp_path / "srun.log"),
        **variables,
    }
    return subprocess.run(
        ["bash", str(spooled)], capture_output=True, text=True, timeout=GENEROUS, env=environment
    )


def test_the_script_says_how_to_submit_and_what_it_wants(
    run: StoredMeasurement, programs: dict[str, Path]
) -> None:
    path = suite.write_script(run, programs, output="my cluster.json")
    assert path == run.folder / "job.sh"
    assert os.access(path, os.X_OK)
    text = path.read_text()
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).stderr == b""
    assert f"#   submit    cd '{run.folder}' && sbatch job.sh\n" in text
    assert (
        f"#   collect   popmodel machine measure --samples '{run.folder}' -o 'my cluster.json'\n"
        in text
    )
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n" in text
    assert "#SBATCH --time=00:" in text
    does = [line for line in text.splitlines() if not line.startswith("#")]
    assert not any("sbatch" in line for line in does)  # it submits nothing


def test_it_starts_every_launch_on_its_nodes(
    run: StoredMeasurement, programs: dict[str, Path], tmp_path: Path
) -> None:
    suite.write_script(run, programs, output="m.json")
    done = submit(run, tmp_path, SLURM_CPUS_ON_NODE="4")
    assert (done.returncode, done.stderr) == (0, "")
    calls = (tmp_path / "srun.log").read_text().splitlines()
    assert len(calls) == len(run.plan.launches)
    for call, launch in zip(calls, run.plan.launches, strict=True):
        words = call.split()
        assert words[0] == f"OMP_PLACES={'cores' if launch.program == 'node' else ''}"
        assert words[1:6] == [
            f"--nodes={launch.nodes}",
            f"--ntasks={launch.ranks}",
            f"--ntasks-per-node={launch.ranks // launch.nodes}",
            f"--cpus-per-task={launch.threads}",
            "--cpu-bind=cores",
        ]
        assert words[6] == f"./popmodel-{launch.program}"
        number = f"launch-{launch.number:03d}"
        assert words[7:13] == ["-j", f"{number}.jobs", "-o", f"{number}.jsonl", "-n",
                               str(launch.number)]  # fmt: skip
        jobs = (run.folder / f"{number}.jobs").read_text().splitlines()
        assert jobs == [job.line for job in launch.jobs]
    assert {launch.ranks for launch in run.plan.launches} == {1, 2, 8}
    assert len(run_directory.all_samples(run.folder)) == len(run.plan.launches)


def test_a_job_that_was_cut_short_goes_on(
    run: StoredMeasurement, programs: dict[str, Path], tmp_path: Path
) -> None:
    suite.write_script(run, programs, output="m.json")
    assert submit(run, tmp_path, CUT="1").returncode == 0
    (run.folder / "launch-001.jsonl").write_text('{"end":"complete"}\n')
    assert submit(run, tmp_path).returncode == 0
    names = {path.name for path in run_directory.all_samples(run.folder)}
    assert {"launch-002.jsonl", "launch-002-2.jsonl"} <= names
    assert "launch-001-2.jsonl" not in names
    before = (tmp_path / "srun.log").read_text()
    assert submit(run, tmp_path).returncode == 0  # all is done now
    assert (tmp_path / "srun.log").read_text() == before


def test_launches_that_fail_are_told_and_the_others_go_on(
    run: StoredMeasurement, programs: dict[str, Path], tmp_path: Path
) -> None:
    suite.write_script(run, programs, output="m.json")
    done = submit(run, tmp_path, FAIL="1")
    assert done.returncode == 1
    assert done.stderr.count("failed: no such device") == len(run.plan.launches)
    assert "launch-001 failed: no such device\n" in done.stderr
    assert done.stderr.endswith(
        "some launches failed; the samples of the others can be collected\n"
    )


def test_a_node_with_fewer_cores_is_refused(
    run: StoredMeasurement, programs: dict[str, Path], tmp_path: Path
) -> None:
    suite.write_script(run, programs, output="m.json")
    done = submit(run, tmp_path, SLURM_CPUS_ON_NODE="2")
    assert done.returncode == 1
    assert done.stderr == (
        "the script is for nodes with 4 cores, this job has 2: write it again with --ranks\n"
    )


def test_it_wants_to_be_submitted_from_its_directory(
    run: StoredMeasurement, programs: dict[str, Path], tmp_path: Path
) -> None:
    suite.write_script(run, programs, output="m.json")
    done = submit(run, tmp_path, SLURM_SUBMIT_DIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == ("popmodel-node not found: submit from the directory of the script\n")


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\u202eb"])
def test_names_that_could_end_a_comment_are_refused(
    tmp_path: Path, run: StoredMeasurement, programs: dict[str, Path], name: str
) -> None:
    with pytest.raises(UsageError, match="the name of the profile contains an invisible character"):
        suite.write_script(run, programs, output=f"{name}.json")
    made = run_directory.begin(tmp_path / f"{name}.samples", run.plan, {"host": "login"})
    with pytest.raises(
        UsageError, match="the path of the directory contains an invisible character"
    ):
        suite.write_script(made, programs, output="machine.json")
    assert not list(tmp_path.glob("*/*.sh"))
