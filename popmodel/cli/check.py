"""``popmodel check``: run a program and say what is wrong with its launch."""

from __future__ import annotations

import math
import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base import shell
from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.units import format_time
from popmodel.base.values import document
from popmodel.cli.app import Verb
from popmodel.cli.command import OfCommand, argument, flag, option
from popmodel.cli.options import one_of
from popmodel.cli.streams import remark, write_out
from popmodel.reports.result import ResultValue

if TYPE_CHECKING:
    from popmodel.studies.launch_check import LaunchCheck
    from popmodel.studies.launch_line import Line
    from popmodel.tracer.commands import TracedCommand
    from popmodel.tracer.library import Library

EXAMPLES = (
    "popmodel check -- mpirun -n 4 ./app",
    "popmodel check --prove -- srun -n 64 -c 4 ./app input.txt",
    "popmodel check -o summary.json -- ./openmp_app 100",
    "popmodel check --fail-if 'parallel_efficiency < 0.8' -- mpirun -n 4 ./app",
    "popmodel check --script slurm -- ./app",
)
CONDITIONS = True
FORMATS = ("table", "json", "csv", "markdown")
PAIRS = 3
"""Pairs of runs with --prove; 5 where a run is short."""
_SHORT = 20.0  # seconds
_EXPORTED = ("hybrid-additive", "mpi", "talp")
"""Families of which sums of threads give something."""


class CheckCommand(Verb):
    """The verb, whose options end where the command begins, which has options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options."""
        ctx.allow_interspersed_args = False
        rest: list[str] = super().parse_args(ctx, args)
        return rest


VERB = CheckCommand


class Checked(OfCommand):
    """What is wrong with a launch, as returned by `check`."""

    def values(self) -> list[ResultValue]:
        """The runtime, efficiencies, and what the findings cost together."""
        numbers = [ResultValue("runtime", self.found["runtime"])]
        for family, values in self.found["metrics"].items():
            numbers += [ResultValue(f"{family}.{id}", number) for id, number in values.items()]
        for family, reasons in self.found["absent"].items():
            numbers += [ResultValue(f"{family}.{id}", None, "", why) for id, why in reasons.items()]
        costs = [finding["cost"] for finding in self.found["findings"]]
        return [*numbers, ResultValue("cost", min(1.0, sum(filter(None, costs))))]


def check(
    command: Annotated[
        Sequence[str] | str,
        argument(
            "[[--] COMMAND...]",
            "The command to run, as without popmodel; everything after it is passed on.",
            several=True,
        ),
    ] = (),
    *,
    prove: Annotated[
        bool,
        flag("Run the better launch line as well, several times in turn, and compare."),
    ] = False,
    script: Annotated[
        str | None,
        option(
            "slurm|pbs",
            "Print the lines that check a program inside a job script, instead of running.",
            one_of(("slurm", "pbs")),
        ),
    ] = None,
    sums: Annotated[
        str | os.PathLike[str] | None,
        option("DIR", "Read the sums that a run has left in DIR, instead of running."),
    ] = None,
    arguments: Sequence[str] = (),
) -> Checked | None:
    """Run a program and say what is wrong with its launch.

    Shows where processes and threads ran, whether they share cores, overlap or leave cores idle,
    what that costs, and the launch line that does better. The program need not be changed; its
    output and exit status are passed through. Overhead is below 1 % and no trace is kept. The
    answer goes to standard error; with --format and without -o it goes to standard output, and the
    program's output to standard error.

    Parameters
    ----------
    command : sequence of str, or str
        The command to run, as without popmodel; a text is split as by a shell.
    prove : bool
        Run the better launch line as well and compare measured with measured.
    script : {"slurm", "pbs"}, optional
        Print lines for a job script instead of running; the result is None.
    sums : path, optional
        Read what a run has left in this directory instead of running.
    arguments : sequence of str
        The command line.

    Raises
    ------
    PopmodelError
        If nothing can be checked: with the reason. Its ``exit_status`` is the program's if that
        failed.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.check(["mpirun", "-n", "2", "./app"])  # doctest: +SKIP
    >>> found["parallel_efficiency"]  # doctest: +SKIP
    """
    from popmodel.tracer.commands import refuse_as_rank, understand

    words = shlex.split(command) if isinstance(command, str) else list(command)
    if sums is not None:
        if prove or script is not None:
            raise UsageError("--sums: nothing is run", "leave --prove or --script out")
        known = understand(words, verb="check") if words else None
        return Checked(_checked(Path(sums), known)[0])
    refuse_as_rank(verb="check")
    known = understand(words, verb="check")
    if script is not None:
        _print_lines(known, script)
        return None
    moved = _shows_on_stdout(arguments)
    status, found, made = _run(known, 2 if moved else None)
    if prove:
        found["proved"] = _proved(known, made, found, status)
    return Checked(found, on_stderr=not moved, exit_status=status)


def _shows_on_stdout(arguments: Sequence[str]) -> bool:
    """Whether the answer goes to standard output: in another format than for people, or to -."""
    own = list(arguments)
    own = own[: own.index("--")] if "--" in own else own
    formats = [word for word in own if word.startswith("--format")]
    files = [word for word in own if word.startswith(("-o", "--output"))]
    return bool(formats) and "table" not in own and not files


def _run(command: TracedCommand, output: int | None) -> tuple[int, dict[str, Any], LaunchCheck]:
    """Run a command with sums; its status, the document, and what was found."""
    from popmodel.cli.trace import tracer
    from popmodel.tracer import raw_directory
    from popmodel.tracer.commands import Settings
    from popmodel.tracer.run import ending, not_traced, nothing_recorded

    library = tracer(command)
    with tempfile.TemporaryDirectory(prefix="popmodel-check-", dir=_shared()) as folder:
        raw = Path(folder)
        status, seconds = _summed(command, library, raw, output)
        if not raw_directory.files(raw):
            error = nothing_recorded(command, status, Settings())
            error.exit_status = status or error.exit_status
            raise error
        try:
            found, made = _checked(raw, command, seconds)
            has_openmp = bool(found["openmp"])
            if status != 0:
                found["notes"].insert(0, f"it ended with {ending(command, status)}")
            found["notes"] += not_traced(command, library, Settings(), has_openmp)
        except PopmodelError as error:
            if status != 0:
                error.exit_status = status
            raise
    return status, found, made


def _shared() -> str | None:
    """Where all nodes see the files of a run: in a job here, else where temporary files go."""
    from popmodel.machines.host.launcher import BATCH_SYSTEMS

    in_job = any(os.environ.get(name) for name in BATCH_SYSTEMS)
    return os.fspath(Path.cwd()) if in_job else None


def _summed(
    command: TracedCommand, library: Library, raw: Path, output: int | None
) -> tuple[int, float]:
    """Run a command whose sums go to a directory; its status and how long it took."""
    from popmodel.tracer.commands import Settings, place, variables
    from popmodel.tracer.run import run

    settings = Settings(summary=True, call_sites=False)
    call = place(command, variables(library.path, raw, settings), os.environ)
    begin = time.monotonic()
    environment = {**os.environ, **call.environment}
    status = run(command.path, call.words, environment, output)
    return status, time.monotonic() - begin


def _checked(
    raw: Path, command: TracedCommand | None, seconds: float | None = None
) -> tuple[dict[str, Any], LaunchCheck]:
    """The document of a run, and what was found."""
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.studies.launch_check import bound_in_words, check_launch
    from popmodel.tracer.summaries import calls_of, observables_of, placement_of, read_sums

    run = read_sums(raw)
    if not any(process.seconds for process in run.processes):
        raise PopmodelError(
            "nothing to check: the run ended with MPI_Init, or as its first parallel region began",
            "run it without popmodel: if it ends there as well, the tracer is not the cause",
        )
    observed = observables_of(run.processes)
    made = check_launch(run.processes, command, None if seconds is None else os.environ)
    aggregates = observed.aggregates()
    families = load_families()
    evaluated = {
        name: families[name].evaluate(aggregates, observed.absent)
        for name in _EXPORTED
        if name != "mpi" or not observed.has_openmp
    }
    metas = [process.meta for process in run.processes]
    threads = [len(process.rows) for process in run.processes]
    found = document(
        "popmodel/check/1",
        command=None if command is None else shell.join(command.words),
        processes=len(run.processes),
        threads=threads[0] if len(set(threads)) == 1 else threads,
        nodes=[
            {
                "host": node.host,
                "cores": node.cores,
                "sockets": len({cpu.socket for cpu in node.cpus.values()}),
                "domains": len({cpu.domain for cpu in node.cpus.values()}),
            }
            for node in made.nodes
        ],
        library=metas[0].library,
        openmp=sorted({meta.openmp for meta in metas if meta.openmp} - {"none"}),
        runtime=observed.runtime,
        seconds=seconds,
        placement=placement_of(metas, run.processes),
        placed=[list(line) for line in bound_in_words(metas)],
        findings=[finding.to_dict() for finding in made.findings],
        metrics={name: family.values for name, family in evaluated.items()},
        absent={name: family.absent for name, family in evaluated.items()},
        calls=calls_of(run.processes),
        observables=observed.to_dict(),
        better=None if made.better is None else str(made.better),
        why_none=made.why_none,
        proved=None,
        notes=list(run.notes),
    )
    return found, made


# -- measured against measured


def _proved(
    command: TracedCommand, made: LaunchCheck, found: dict[str, Any], status: int
) -> dict[str, Any] | None:
    """Run both lines in turn, and compare their runtimes; None where there is no other line."""
    if made.better is None or status != 0:
        why = made.why_none or "nothing is wrong with the launch"
        remark(f"nothing to prove: {f'the program ended with status {status}' if status else why}")
        return None
    better, environment = _command_of(made.better)
    once = float(found["seconds"])
    pairs = PAIRS if once > _SHORT else 5
    remark(
        f"proving by {2 * pairs} more runs, about {format_time(2 * pairs * once, digits=2)}: "
        "as given and better in turn, without output"
    )
    times: dict[str, list[float]] = {"given": [], "better": []}
    for pair in range(pairs):
        order = ("given", "better") if pair % 2 == 0 else ("better", "given")
        for which in order:
            times[which].append(
                _once(command, {}) if which == "given" else _once(better, environment)
            )
    return _compared(times)


def _command_of(line: Line) -> tuple[TracedCommand, dict[str, str]]:
    from popmodel.tracer.commands import understand

    return understand(line.words), line.environment


def _once(command: TracedCommand, environment: dict[str, str]) -> float:
    """The runtime of one more run, s; its output goes nowhere."""
    from popmodel.cli.trace import tracer
    from popmodel.tracer.summaries import observables_of, read_sums

    kept = dict(os.environ)
    os.environ.update(environment)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="popmodel-check-", dir=_shared()) as folder,
            Path(os.devnull).open("wb") as nowhere,
        ):
            status, _ = _summed(command, tracer(command), Path(folder), nowhere.fileno())
            if status != 0:
                raise PopmodelError(
                    f"--prove: {shell.join(command.words)}: ended with status {status}",
                    "run this line by hand",
                )
            return observables_of(read_sums(Path(folder)).processes).runtime
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _compared(times: dict[str, list[float]]) -> dict[str, Any]:
    """Speed-up with its 90 % interval: of the mean logarithm of pairs, by Student's t."""
    from popmodel.fit.samples import student

    logs = [math.log(g / b) for g, b in zip(times["given"], times["better"], strict=True)]
    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1))
    half = student(len(logs) - 1) * spread / math.sqrt(len(logs))
    return {
        "given": times["given"],
        "better": times["better"],
        "speedup": {
            "value": math.exp(mean),
            "low": math.exp(mean - half),
            "high": math.exp(mean + half),
        },
    }


# -- lines for a job


_LINES = """\
# In the job, in place of the line that starts {program}; its sums go to a directory:
raw=$PWD/check-${job}
mkdir "$raw"
{command}
# After it, here or wherever popmodel is installed and sees the directory:
popmodel check --sums "$raw" -- {words}
"""
_JOBS = {"slurm": "SLURM_JOB_ID", "pbs": "PBS_JOBID"}


def _print_lines(command: TracedCommand, system: str) -> None:
    """Print what to put around a program in a job script."""
    from popmodel.base import shell
    from popmodel.cli.trace import tracer
    from popmodel.tracer.commands import Settings
    from popmodel.tracer.run import TracedJob, job_command

    if system == "pbs" and not command.is_launcher:
        raise UsageError(
            f"--script pbs: {command.words[0]} is no launcher",
            "popmodel check --script pbs -- mpiexec -n 64 ./app",
        )
    library = tracer(command)
    program = "the program" if command.program is None else command.program.name
    settings = Settings(summary=True, call_sites=False)
    line = job_command(TracedJob(command, settings=settings), library.path)
    text = _LINES.format(
        program=shell.plain(program, "the name of the program"),
        job=_JOBS[system],
        command=line,
        words=shell.join(command.words if command.is_launcher else ("srun", *command.words)),
    )
    write_out(text)
    remark(f"all nodes must see the tracer: {library.path}")
