"""What is made of the words of launchers, as these really write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.machines.host.launcher import explain, meaningful, not_started, quote

RULE = "-" * 74

ROOT = f"""{RULE}
prterun has detected an attempt to run as root.

Running as root is *strongly* discouraged as any mistake (e.g., in
defining TMPDIR) or bug can result in catastrophic damage to the OS
file system, leaving your system in an unusable state.

You can override this protection by adding the --allow-run-as-root
option to your command line.  However, we reiterate our strong advice
against doing so - please do so at your own risk.
{RULE}
"""
SLOTS = f"""{RULE}
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  ./popmodel-mpi

Either request fewer procs for your application, or make more slots
available for use.
{RULE}
"""
SIGNAL_OF_OPEN_MPI_5 = f"""[node:05322] *** Process received signal ***
[node:05322] Signal: Aborted (6)
[node:05322] [ 0] /lib/libc.so.6(+0x3c050)[0x7efe7c05a050]
[node:05322] *** End of error message ***
{RULE}
prterun noticed that process rank 1 with PID 5322 on node node exited on
signal 6 (Aborted).
{RULE}
"""
SIGNAL_OF_OPEN_MPI_4 = f"""{RULE}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{RULE}
{RULE}
mpirun noticed that process rank 3 with PID 0 on node n01 exited on signal 9 (Killed).
{RULE}
"""
SIGNAL_OF_MPICH = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 5300 RUNNING AT node
=   EXIT CODE: 11
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
ABORT_OF_OPEN_MPI = f"""{RULE}
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
  Proc: [[33380,1],1]
  Errorcode: 7

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
{RULE}
"""
ABORT_OF_MPICH = (
    "Abort(7) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) "
    "- process 1\n"
)
STATUS_OF_OPEN_MPI = f"""popmodel-mpi: jobs.txt:3: unknown job 'barier'; known: barrier, bcast
{RULE}
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-5238@1,0]
   Exit code:    2
{RULE}
"""
STATUS_WITHOUT_WORDS = STATUS_OF_OPEN_MPI.partition("\n")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ROOT,
            "mpirun refuses to run as root: prterun has detected an attempt to run as root.",
        ),
        (
            SLOTS,
            "mpirun does not have enough slots for 4 ranks: There are not enough slots "
            "available in the system "
            "to satisfy the 4 slots that were requested by the application:",
        ),
        (
            "srun: error: Unable to create step for job 17: More processors requested than "
            "permitted\n",
            "mpirun does not have enough slots for 4 ranks: srun: error: Unable to create step "
            "for job 17: "
            "More processors requested than permitted",
        ),
        (
            SIGNAL_OF_OPEN_MPI_5,
            "rank 1 was killed by signal SIGABRT: prterun noticed that process rank 1 with PID "
            "5322 on "
            "node node exited on signal 6 (Aborted).",
        ),
        (
            SIGNAL_OF_OPEN_MPI_4,
            "rank 3 was killed by signal SIGKILL: mpirun noticed that process rank 3 with PID 0 "
            "on node "
            "n01 exited on signal 9 (Killed).",
        ),
        (
            SIGNAL_OF_MPICH,
            "a rank was killed by signal SIGSEGV: YOUR APPLICATION TERMINATED WITH THE EXIT "
            "STRING: "
            "Segmentation fault (signal 11)",
        ),
        (
            "srun: error: n01: task 3: Segmentation fault (core dumped)\n",
            "rank 3 crashed: srun: error: n01: task 3: Segmentation fault (core dumped)",
        ),
        (
            "srun: error: n01: task 0: Exited with exit code 2\n",
            "a rank failed: srun: error: n01: task 0: Exited with exit code 2",
        ),
        (
            ABORT_OF_OPEN_MPI,
            "rank 1 called MPI_Abort: MPI_ABORT was invoked on rank 1 in communicator "
            "MPI_COMM_WORLD "
            "Proc: [[33380,1],1] Errorcode: 7",
        ),
        (ABORT_OF_MPICH, f"rank 1 called MPI_Abort: {ABORT_OF_MPICH.strip()}"),
        (
            STATUS_OF_OPEN_MPI,
            "popmodel-mpi: jobs.txt:3: unknown job 'barier'; known: barrier, bcast",
        ),
        (
            STATUS_WITHOUT_WORDS,
            "a rank failed: prterun detected that one or more processes exited with non-zero "
            "status, thus causing the job to be terminated. The first process to do so was:",
        ),
        (
            "popmodel-node: cannot write samples to x.jsonl: No space left on device\n",
            "the disk is full: popmodel-node: cannot write samples to x.jsonl: "
            "No space left on device",
        ),
        ("one\ntwo\n", "mpirun failed with exit status 1: two"),
        ("", "mpirun failed with exit status 1 and no output"),
    ],
)
def test_why_it_failed(text: str, message: str) -> None:
    assert explain(1, text, ["/opt/bin/mpirun", "x"], 4).message == message


@pytest.mark.parametrize(
    ("status", "ended"), [(137, "was killed by signal SIGKILL"), (3, "failed"), (255, "failed")]
)
def test_open_mpi_4_that_says_half_of_it(status: int, ended: str) -> None:
    said = SIGNAL_OF_OPEN_MPI_4.partition("mpirun noticed")[0]
    assert explain(status, said, ["/opt/bin/mpirun", "x"], 4).message == (
        f"a rank {ended}: Primary job terminated normally, but 1 process returned "
        "a non-zero exit code. Per user-direction, the job has been aborted."
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            ROOT,
            "use another account, or add the launcher's option for root: --launcher 'mpirun "
            "OPTION'",
        ),
        (SLOTS, "use fewer with --ranks, or request more from the batch system"),
        (
            "write error: No space left on device",
            "free some space, or choose another path with -o; the same command resumes from here",
        ),
        (ABORT_OF_MPICH, "full output: run.log"),
        ("", "full output: run.log"),
    ],
)
def test_what_to_do(text: str, hint: str) -> None:
    assert explain(1, text, ["mpirun", "x"], 4, Path("run.log")).hint == hint


def test_without_a_log_the_command_can_be_tried() -> None:
    assert explain(1, "", ["mpirun", "-n", "2", "a b"], 2).hint == (
        "run it by hand: mpirun -n 2 'a b'"
    )


def test_a_signal_of_the_launcher_itself() -> None:
    assert explain(-9, "", ["mpirun"], 2).message == (
        "mpirun failed with signal SIGKILL and no output"
    )


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("/x: No such file or directory", "check that it exists on this machine"),
        (
            "/x: Permission denied",
            "its directory may be mounted noexec: set POPMODEL_CACHE_DIR to another one",
        ),
    ],
)
def test_what_the_system_does_not_start(said: str, hint: str) -> None:
    error = explain(127, said, ["/x"], 1)
    assert (error.message, error.hint) == (f"cannot start {said}", hint)
    assert not_started(said).words == (said,)


def test_words_without_rules() -> None:
    assert meaningful(SLOTS)[0] == (
        "There are not enough slots available in the system to satisfy the 4"
    )
    assert meaningful(f"{RULE}\n\n===\n") == ()
    assert len(meaningful("line\n" * 100)) == 12


def test_a_long_line_is_quoted_in_part() -> None:
    quoted = quote(["word " * 100])
    assert len(quoted) <= 200
    assert quoted.endswith("word...")
    assert quote([]) == ""
