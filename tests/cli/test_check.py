"""``popmodel check``: what becomes of programs, of their output and of their exit status."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS
from real_mpi import Mpi

import popmodel as package
from popmodel.cli.check import _compared
from popmodel.reports.check_tables import VIEWS

from .checked import Checked, check, mpi_program, openmp_flag, placed, program
from .traced_programs import Traced

__all__ = ["check", "mpi_program", "openmp_flag", "placed", "program"]

SUMS = Path(__file__).resolve().parents[1] / "data" / "sums"


def test_the_programs_output_stays_and_its_status_is_passed_on(
    check: Checked, program: Path
) -> None:
    found = check(program, "3", "fail", OMP_NUM_THREADS="2")
    assert found.status == 7
    assert sorted(found.out.split()[::4]) == ["placed", "placed"]
    assert "popmodel" not in found.out
    assert "2 threads" in found.err
    assert found.found["library"] == ""
    assert found.found["notes"] == ["it ended with status 7"]


def test_json_has_standard_output_to_itself(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "popmodel", "check", "--format", "json", "--", program, "3"],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.stderr.count("placed 0") == 2
    assert found["schema"] == "popmodel/check/1"
    assert {"placement", "findings", "metrics", "better", "proved"} <= set(found)
    assert all({"id", "cost", "text"} <= set(finding) for finding in found["findings"])


def test_programs_that_follow_each_other_are_runs_of_their_own(
    check: Checked, program: Path
) -> None:
    found = check("sh", "-c", '"$0" 5; "$0" 40 fail; "$0" 5', program, OMP_NUM_THREADS="2")
    assert found.found["processes"] == 1
    assert "oversubscribed" not in found.ids()
    assert found.found["notes"] == ["2 shorter runs of the same command (not shown)"]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("end", ["crash", "quit"])
def test_what_was_summed_up_to_a_crash_is_there(check: Checked, program: Path, end: str) -> None:
    found = check(program, "50", end, OMP_NUM_THREADS="2")
    assert found.status == (0 if end == "quit" else 134)
    assert found.placed() == found.told()
    *ending, note = found.found["notes"]
    assert ending == ([] if end == "quit" else ["it ended with signal SIGABRT"])
    assert note == "1 process did not come to an end: sums up to the last MPI call or region"
    assert found.found["runtime"] > 0


@pytest.mark.long
@pytest.mark.parametrize("end", ["crash", "open", "quit"])
def test_a_run_without_an_end_of_mpi_is_summed_up_to_there(
    end: str, mpi: Mpi, check: Checked, mpi_program: Path
) -> None:
    words = (mpi.mpirun, "-n", "2", "--bind-to", "core", mpi_program, "30")
    found = check(*words, end, OMP_NUM_THREADS="1")
    assert found.found["processes"] == 2
    assert found.found["calls"]["collective"]["calls"] == pytest.approx(60, abs=2)
    assert found.ids() == set()


def test_a_run_that_ends_with_mpi_init_is_told(check: Checked, mpi_program: Path) -> None:
    found = check(mpi_program, "0", "crash")
    assert found.status == 128 + signal.SIGABRT
    assert found.err.endswith(
        "popmodel: error: nothing to check: the run ended with MPI_Init, or as its first parallel "
        "region began\nhint: run it without popmodel: if it ends there as well, the tracer is not "
        "the cause\n"
    )


def test_a_program_of_which_nothing_is_seen_is_told(check: Checked) -> None:
    found = check("/bin/true")
    assert found.status == 1
    assert found.err.count("\n") == 2
    assert "true: nothing was recorded: no process called MPI_Init" in found.err


def test_what_takes_the_tracer_away_is_named(check: Checked, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("unset LD_PRELOAD\n")
    for words, what in (
        (("sh", "run.sh"), "run.sh"),
        (("env", "-u", "LD_PRELOAD", "true"), "the command"),
        (("env", "-i", "/bin/true"), "the command"),
    ):
        found = check(*words)
        assert found.status == 1
        assert f"\nhint: {what} takes LD_PRELOAD away, which loads the tracer" in found.err


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_variables_that_a_script_sets_have_to_be_changed_there(
    check: Checked, program: Path, tmp_path: Path
) -> None:
    place = f"{{{min(os.sched_getaffinity(0))}}}"
    lines = f'export OMP_PLACES="{place}" OMP_PROC_BIND=true\n{program} 3\n'
    (tmp_path / "run.sh").write_text(lines)
    found = check("sh", "run.sh", OMP_NUM_THREADS="2")
    assert found.ids() >= {"share"}
    assert found.found["better"] is None
    told = "a script, or the program, sets OMP_PLACES, OMP_PROC_BIND: change it there"
    assert found.found["why_none"] == told


def test_no_room_for_temporary_files_is_told(check: Checked, program: Path) -> None:
    """As by a full disk: files may not grow."""
    assert check(program, "3").status == 0  # the tracer is built
    for size, said in (
        (0, "temporary files: no usable temporary directory\nhint: free some space, or set TMPDIR"),
        (1024, "contains no sums of a run\nhint: run popmodel check again, where there is room"),
    ):
        found = check(program, "3", largest_file=size, OMP_NUM_THREADS="2")
        assert found.status == 1
        assert said in found.err


@pytest.mark.long
@pytest.mark.parametrize("flags", [["-static"], ["-static", "OPENMP"]])
def test_a_static_program_is_told(
    flags: list[str], check: Checked, placed: Callable[..., Path], openmp_flag: str
) -> None:
    own = [openmp_flag if flag == "OPENMP" else flag for flag in flags]
    found = check(placed(*own, mpicc=["cc"]))
    assert found.status == 1
    assert "it is statically linked" in found.err


def test_a_command_that_is_not_there_is_wrong_usage(check: Checked) -> None:
    found = check("./absent")
    assert found.status == 2
    assert found.err == (
        "popmodel: error: program ./absent not found\n"
        "hint: try popmodel check -- mpirun -n 4 ./app\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files away")
def test_a_program_with_the_rights_of_another_user_is_told(
    check: Checked, program: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copy(program, tmp_path / "other"))
    os.chown(other, 12345, -1)
    other.chmod(0o4755)
    found = check(other)
    assert found.status == 1
    assert "it runs with the rights of another user (set-user-ID)" in found.err


@pytest.mark.long
def test_openmp_that_is_linked_statically_is_told_with_mpi_and_without(
    check: Checked, placed: Callable[..., Path], openmp_flag: str, mpi: Mpi
) -> None:
    own = ("-pthread", "-c", openmp_flag)

    def linked(*flags: str, mpicc: Sequence[str]) -> Path:
        of_openmp = placed(*flags, *own, mpicc=mpicc)
        target = of_openmp.with_name("linked")
        words = [*mpicc, "-x", "none", of_openmp, "-Wl,-Bstatic", "-lgomp", "-Wl,-Bdynamic"]
        done = subprocess.run([*words, "-ldl", "-pthread", "-o", target], check=False)
        if done.returncode:
            pytest.skip("needs an archive of libgomp")
        return target

    found = check(linked(mpicc=["cc"]))
    assert (found.status, found.err.count("\n")) == (1, 2)
    assert "OpenMP is linked statically" in found.err
    with_mpi = linked("-DWITH_MPI", mpicc=mpi.mpicc)
    found = check(mpi.mpirun, "-n", "1", "--bind-to", "none", with_mpi, OMP_NUM_THREADS="2")
    assert found.found["notes"] == ["no OpenMP: the runtime is statically linked"]


@pytest.mark.long
def test_ctrl_c_shows_what_there_is_up_to_it(program: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "popmodel", "check", "--", program, "1000000"],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline(), child.stdout.readline()  # both threads are in the region
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=GENEROUS)
    assert child.returncode == 128 + signal.SIGINT
    assert "Traceback" not in err
    assert "1 process did not come to an end: sums up to the last MPI call or region" in " ".join(
        err.split()
    )


@pytest.mark.long
def test_a_hidden_proc_is_told(program: Path, tmp_path: Path) -> None:
    unshared = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"')
    if subprocess.run([*unshared, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    done = subprocess.run(
        [*unshared, sys.executable, "-m", "popmodel", "check", "--", program, "100"],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS,
    )
    assert done.returncode == 0, done.stderr
    assert "/proc is hidden: how long threads waited for CPUs is not known" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_answer_says_wrong_only_of_what_costs_or_would() -> None:
    document = package.check(sums=SUMS / "share").to_dict()

    def answer(id: str, cost: float | None) -> str:
        findings = [{"id": id, "text": "it is so", "cost": cost, "core_hours": cost}]
        return VIEWS.blocks({**document, "findings": findings})[0][0].text.partition(" ")[0]

    assert answer("share", 0.2) == answer("thread_level", None) == "Wrong:"
    for harmless in (("share", 0.0), ("foreign_load", 0.2), ("domains", None)):
        assert answer(*harmless) == "Nothing"


@pytest.mark.parametrize(("value", "said"), [(1.6, "1.6 times faster"), (0.8, "1.25 times slower")])
def test_what_was_proved_is_said_with_the_times(value: float, said: str) -> None:
    document = package.check(sums=SUMS / "share").to_dict()
    speedup = {"value": value, "low": value / 1.25, "high": value * 1.25}
    proved = {"given": [value, value, 9], "better": [1, 1, 9], "speedup": speedup}
    _, note = VIEWS.blocks({**document, "better": "./app", "proved": proved})[2]
    low, high = (1.28, 2) if value > 1 else (1, 1.56)
    assert f"so: {said} (90 %: {low:.3g} .. {high:.3g}, 3 pairs of runs)" in note.text


@pytest.mark.long
def test_nothing_is_left_behind(check: Checked, program: Path, tmp_path: Path) -> None:
    check(program, "2", OMP_NUM_THREADS="2")
    assert [path.name for path in tmp_path.iterdir()] == ["check.json"]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("condition", "status"), [("runtime > 0", 3), ("runtime < 0", 0)])
def test_a_condition_sets_the_status(
    condition: str, status: int, check: Checked, program: Path
) -> None:
    assert check(program, options=["--fail-if", condition], OMP_NUM_THREADS="2").status == status


@pytest.mark.long
def test_lines_for_a_job_are_a_script_that_checks(program: Path, tmp_path: Path, mpi: Mpi) -> None:
    own = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    (tmp_path / "mpiexec.hydra").write_text(
        '#!/bin/sh\nwhile [ "$1" != "${1#-}" ]; do\n'
        '  [ "$1" = -genv ] && export "$2=$3" && shift 2\n  shift\ndone\nexec "$@"\n'
    )
    (tmp_path / "mpiexec.hydra").chmod(0o755)
    own["MPICC"] = " ".join(mpi.mpicc)
    words = ["./mpiexec.hydra", "--one", str(program), "5"]
    done = subprocess.run(
        [sys.executable, "-m", "popmodel", "check", "--script", "pbs", "--", *words],
        cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    ran = subprocess.run(
        ["bash", "-ec", done.stdout],
        cwd=tmp_path,
        env={**os.environ, **own, "PBS_JOBID": "17.server", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "check-17.server").is_dir()
    assert "1 process x 2 threads" in ran.stdout


SLEEPS = r"""
#include <dirent.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <unistd.h>
static double waited(void)
{
    double sum = 0, ns;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread->d_name);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%*s %lf", &ns) == 1)
            sum += 1e-9 * ns;
        if (file)
            fclose(file);
    }
    closedir(threads);
    return sum;
}
int main(int count, char **words)
{
    int rank, level;
    double before, serial = 0, regions = 0, useful[2] = {0, 0}, begin, fork, end;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
    before = waited();
    begin = omp_get_wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < 3; step++) {
        end = omp_get_wtime();
        usleep(60000);
        fork = omp_get_wtime();
        serial += fork - end;
#pragma omp parallel
        {
            double from = omp_get_wtime();
            usleep((rank + 1) * (omp_get_thread_num() + 1) * 80000);
            useful[omp_get_thread_num()] += omp_get_wtime() - from;
        }
        regions += omp_get_wtime() - fork;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    end = omp_get_wtime();
    printf("%.6f %.6f %.6f %.6f %.6f %.6f %.6f\n", begin, end, serial, regions, useful[0],
           useful[1], waited() - before);
    MPI_Finalize();
}
"""
"""Of each step rank 0 takes 60 + 160 ms and rank 1 takes 60 + 320 ms, of which threads with the
number 0 sleep for half of the region. It tells how long that was: where others use the processors
it is longer. The last number is how long its threads waited for a processor: by so much a thread
may be late between its own clock and the tracer's."""


@pytest.mark.long
@pytest.mark.parametrize("from_trace", [False, True])
def test_efficiencies_are_those_by_hand(
    from_trace: bool,
    mpi: Mpi,
    check: Checked,
    traced: Traced,
    openmp_flag: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "sleeps.c").write_text(SLEEPS)
    program = tmp_path / "sleeps"
    subprocess.run([*mpi.mpicc, openmp_flag, "-o", program, program.with_suffix(".c")], check=True)
    words = [mpi.mpirun, "-n", "2", "--bind-to", "none", program]
    if from_trace:
        done = traced(*words, options=("-o", "run.prv.gz"), OMP_NUM_THREADS="2")
        assert done.returncode == 0, done.stderr
        trace, out = package.metrics(tmp_path / "run.prv.gz"), done.stdout
        found: Any = {name: trace[f"hybrid-additive.{name}"] for name in by_hand(out)[0]}
    else:
        checked = check(*words, OMP_NUM_THREADS="2")
        found, out = checked.found["metrics"]["hybrid-additive"], checked.out
    expected, late = by_hand(out)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=0.04 + late)


def by_hand(told: str) -> tuple[dict[str, float], float]:
    """Efficiencies of two ranks with two threads, from what each tells; what may be off in them."""
    begin, end, serial, regions, *useful, waited = map(list, zip(*rows_of(told), strict=True))
    runtime = max(end) - max(begin)
    busy = [of_serial + of_regions for of_serial, of_regions in zip(serial, regions, strict=True)]
    in_regions = sum(map(sum, useful))
    efficiencies = {
        "parallel_efficiency": (sum(serial) + in_regions) / (4 * runtime),
        "process_load_balance": 1 - (max(busy) - sum(busy) / 2) / runtime,
        "process_communication_efficiency": max(busy) / runtime,
        "openmp_region_efficiency": 1 - (sum(regions) / 2 - in_regions / 4) / runtime,
        "serial_region_efficiency": 1 - sum(serial) / 4 / runtime,
    }
    return efficiencies, sum(waited) / runtime


def rows_of(told: str) -> list[list[float]]:
    return [[float(word) for word in line.split()] for line in told.splitlines()]


@pytest.mark.long
def test_proof_says_first_how_many_runs_it_takes_and_then_compares(
    check: Checked, program: Path
) -> None:
    words = ("taskset", "-c", "0", program, "200")
    found = check(*words, options=["--prove"], OMP_NUM_THREADS="2")
    first = found.err.splitlines()[0]
    proved = found.found["proved"]
    pairs = len(proved["given"])
    assert pairs == len(proved["better"])
    assert pairs in (3, 5)  # 3 where a run is long
    assert first.startswith(f"popmodel: proving by {2 * pairs} more runs, about ")
    assert proved["speedup"]["low"] <= proved["speedup"]["value"] <= proved["speedup"]["high"]
    assert found.out.count("placed") == 2  # that of the first run only


def test_a_speed_up_is_the_mean_of_pairs_with_the_interval_of_students_t() -> None:
    speedup = _compared({"given": [2.0, 2.2, 1.8], "better": [1.0, 1.1, 0.9]})["speedup"]
    assert speedup == pytest.approx({"value": 2.0, "low": 2.0, "high": 2.0})
    speedup = _compared({"given": [2.0, 2.0, 2.0], "better": [1.0, 1.25, 0.8]})["speedup"]
    # logarithms of 2, 1.6, 2.5: mean .6931, deviation .2231; t(2, .95) = 2.920
    assert speedup["value"] == pytest.approx(2.0)
    assert speedup["high"] / speedup["value"] == pytest.approx(1.4567, abs=2e-3)
