"""``popmodel trace``: run a program and record a trace."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.values import document, fields_of
from popmodel.cli.app import Verb
from popmodel.cli.command import OfCommand, argument, flag, option, verb
from popmodel.cli.options import choice, one_of, size, whole_number
from popmodel.cli.streams import remark, warn_of_packaged, write_out
from popmodel.reports.result import ResultValue

if TYPE_CHECKING:
    from popmodel.tracer.commands import Settings, TracedCommand
    from popmodel.tracer.conversion import Merged
    from popmodel.tracer.library import Library

EXAMPLES = (
    "popmodel trace -- mpirun -n 4 ./app",
    "popmodel trace --counters -o run.prv.gz -- ./openmp_app 100",
    "popmodel trace --script slurm --nodes 2 --ranks 64 -- ./app",
    "popmodel trace merge app.raw -o app.prv.gz",
)
CONDITIONS = True
RENAMED = {"--after-init": "--window 0:", "--build-only": "--print-env, which builds as well"}
MERGE = "merge"
DEFAULT_FILE = "trace.prv.gz"


class TraceCommand(Verb):
    """The verb, whose options end where the command begins, which has options of its own.

    ``merge DIR`` in place of a command is ``--merge DIR``, and may have options behind it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options."""
        merges = args[:1] == [MERGE]
        ctx.allow_interspersed_args = merges
        given = list(args)
        rest: list[str] = super().parse_args(ctx, args)
        words = list(ctx.params.get("command") or ())
        before = given[: len(given) - len(words)]
        # After -- everything is the command's, even if it is called merge.
        if merges or (words[:1] == [MERGE] and before[-1:] != ["--"]):
            if len(words) != 2:
                raise UsageError(
                    f"merge: takes one directory, not {len(words) - 1}",
                    "popmodel trace merge app.raw -o app.prv.gz",
                )
            ctx.params |= {"command": None, "merge": words[1]}
        return rest


VERB = TraceCommand


class Recording(OfCommand):
    """What was recorded, as returned by `trace`."""

    def values(self) -> list[ResultValue]:
        """What tracing cost, and how much was recorded."""
        numbers = {name: self.found[name] for name in ("records", "size", "duration")}
        numbers["overhead"] = self.found["overhead"]["share"]
        return [ResultValue(name, float(number)) for name, number in numbers.items()]


def _window(name: str, text: str) -> str:
    """The window as the library takes it: seconds, either of which may be left out."""
    from popmodel.base.units import parse_time

    example = f"try {name} 10s:20s, or {name} 10s: to record to the end"
    begin, colon, end = text.partition(":")
    if not colon:
        raise UsageError(f"{name} {text}: must be FROM:TO", example)
    try:
        first, last = (parse_time(each) if each.strip() else None for each in (begin, end))
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from None
    if last is not None and not (first or 0.0) < last:
        raise UsageError(f"{name} {text}: must begin before it ends", example)
    return ":".join("" if each is None else f"{each:.9f}" for each in (first, last))


_LEAST_SIZE = 1 << 20


def _size(name: str, text: str) -> int:
    most = size(name, text)
    if not _LEAST_SIZE <= most < 2**63:
        raise UsageError(f"{name} {text}: must be at least 1MiB", f"try {name} 1GiB")
    return int(most)


def _kinds(name: str, text: str) -> tuple[str, ...]:
    from popmodel.tracer.commands import LEAVE_OUT

    given = [each.strip() for each in text.split(",")]
    return tuple(dict.fromkeys(choice(name, each, LEAVE_OUT) for each in given))


@verb
def trace(
    command: Annotated[
        Sequence[str] | str,
        argument(
            "[[--] COMMAND... | merge DIR]",
            "The command to run, as without popmodel; everything after it is passed on. merge: "
            "make a trace from the raw files in a directory.",
            several=True,
        ),
    ] = (),
    *,
    counters: Annotated[
        bool, flag("Also record hardware counters (instructions, cycles), where permitted.")
    ] = False,
    openmp: Annotated[
        str,
        option(
            "auto|ompt|gomp|off",
            "How to observe OpenMP: through the tools interface of the runtime (ompt), by "
            "intercepting calls of libgomp (gomp), or not at all (off).",
            one_of(("auto", "ompt", "gomp", "off")),
        ),
    ] = "auto",
    locks: Annotated[
        str,
        option(
            "sum|each",
            "How to record locks, critical sections and atomics: totals per thread and region "
            "(sum), or one by one (each), which can slow a program down tenfold.",
            one_of(("sum", "each")),
        ),
    ] = "sum",
    window: Annotated[
        str | None,
        option(
            "FROM:TO",
            "Record only this interval, counted from the end of MPI_Init (without MPI: from the "
            "first parallel region): 10s:20s, 10s: to record to the end, 0: to leave out MPI_Init. "
            "A parallel region is recorded if it begins in the interval.",
            _window,
        ),
    ] = None,
    max_size: Annotated[
        int | None,
        option(
            "SIZE",
            "Stop recording when the raw files of all processes reach SIZE, such as 1GiB. The "
            "trace marks what is missing.",
            _size,
        ),
    ] = None,
    max_rate: Annotated[
        int | None,
        option(
            "N",
            "When a thread makes more than N records per second, stop recording its most frequent "
            "kind (see --leave-out).",
            whole_number,
        ),
    ] = None,
    leave_out: Annotated[
        Sequence[str],
        option(
            "KINDS",
            "Do not record these kinds of calls, separated by commas; their time counts as user "
            "code: tests (MPI_Test and probes that find nothing), chunks (of loops), singles, rma, "
            "io.",
            _kinds,
            complete=("tests", "chunks", "singles", "rma", "io"),
        ),
    ] = (),
    io: Annotated[
        bool,
        flag(
            "Also record calls of POSIX and C that open, read or write files, with their bytes; "
            "calls of MPI-IO are always recorded."
        ),
    ] = False,
    no_call_sites: Annotated[
        bool,
        flag("Do not record the call sites of MPI calls; this saves some ns per call."),
    ] = False,
    output: Annotated[
        str | os.PathLike[str] | None,
        option(
            "FILE",
            "Write the trace to FILE (.prv or .prv.gz), with a .pcf and a .row file beside it. "
            "Default: named after the program, in the current directory.",
            short="-o",
            complete=(".prv", ".prv.gz"),
        ),
    ] = None,
    force: Annotated[bool, flag("Overwrite FILE if it exists.")] = False,
    keep_raw: Annotated[bool, flag("Keep the raw files that the trace is made from.")] = False,
    print_env: Annotated[
        bool,
        flag("Print the environment variables that enable tracing, for a script of your own."),
    ] = False,
    script: Annotated[
        str | None,
        option(
            "slurm",
            "Write a job script instead of running. It is not submitted.",
            one_of(("slurm",)),
        ),
    ] = None,
    nodes: Annotated[
        int | None, option("N", "Number of nodes in the job script.", whole_number)
    ] = None,
    ranks: Annotated[
        int | None, option("N", "Number of MPI ranks on all nodes in the job script.", whole_number)
    ] = None,
    threads: Annotated[
        int | None, option("N", "Threads per rank in the job script.", whole_number)
    ] = None,
    merge: Annotated[
        str | os.PathLike[str] | None,
        option("DIR", "Make a trace from the raw files in a directory.", hidden=True),
    ] = None,
    arguments: Sequence[str] = (),
) -> Recording | None:
    """Run a program and record a trace.

    The program (MPI, OpenMP or both) must be linked dynamically; it need not be changed. Its output
    and exit status are passed through. A summary goes to standard error.

    Parameters
    ----------
    command : sequence of str, or str
        The command to run, as without popmodel; a text is split as by a shell.
    counters, openmp, locks, io, leave_out, no_call_sites
        What is recorded, and how.
    window : str, optional
        Seconds ``"FROM:TO"`` from the end of MPI_Init that are recorded.
    max_size, max_rate : int, optional
        Bytes of raw files at which recording stops; records per second of a thread above which its
        most frequent kind is left out.
    output, force, keep_raw
        The trace, ``.prv`` or ``.prv.gz``, by default named after the program; whether it may
        replace files; whether the raw files stay.
    print_env, script : optional
        Print the variables that enable tracing, or write a job script of `nodes`, `ranks` and
        `threads`, instead of running; the result is None.
    merge : path, optional
        Make a trace from the raw files in this directory instead of running.
    arguments : sequence of str
        The command line.

    Raises
    ------
    PopmodelError
        If nothing can be recorded: with the reason. Its ``exit_status`` is the program's if that
        failed.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.trace(["mpirun", "-n", "4", "./app"], output="app.prv.gz")  # doctest: +SKIP
    """
    from popmodel.tracer.commands import LOCKS, OPENMP, Settings

    settings = Settings(
        counters=counters,
        openmp=OPENMP[openmp],
        call_sites=not no_call_sites,
        locks=LOCKS[locks],
        window=window,
        max_size=max_size,
        max_rate=max_rate,
        leave_out=tuple(leave_out),
        files=io,
    )
    sizes = {"--nodes": nodes, "--ranks": ranks, "--threads": threads}
    for name, number in sizes.items():
        if number is not None and script is None:
            raise UsageError(
                f"{name}: only valid with --script",
                "otherwise the command sets it, for example mpirun -n 4 ./app",
            )
    if print_env and script is not None:
        raise UsageError("--print-env and --script are mutually exclusive", "leave one of them out")
    if merge is not None and (print_env or script):
        raise UsageError(
            f"{'--print-env' if print_env else '--script'}: not valid with merge",
            "popmodel trace merge DIR -o app.prv.gz",
        )
    path = None if output is None else os.fspath(output)
    words = shlex.split(command) if isinstance(command, str) else command
    if merge is not None:
        return _merge(Path(merge), path, force=force)
    if print_env:
        if words:
            raise UsageError(
                f"--print-env: takes no command, not '{words[0]}'",
                "leave the command out; run it in your script with the printed variables",
            )
        _print_environment(arguments, path, settings, force=force)
        return None
    if script is not None:
        _write_script(words, sizes, path, settings, force=force)
        return None
    return _run(words, path, settings, keep_raw=keep_raw, force=force)


# -- where a trace goes, and what records it


def trace_file(name: str, *, force: bool, option: str = "-o") -> Path:
    """Where a trace goes; refused before the run what would be refused after it."""
    from popmodel.base.files import expect_writable
    from popmodel.base.shell import plain
    from popmodel.tracer.raw_directory import SUFFIXES, stem

    path = Path(plain(name, option))
    if not name.endswith(SUFFIXES) or path.name in SUFFIXES:
        raise UsageError(
            f"{option} {name}: must end in .prv or .prv.gz", f"try {option} app.prv.gz"
        )
    try:
        for suffix in (path.name.removeprefix(stem(path)), ".pcf", ".row"):
            there = path.with_name(f"{stem(path)}{suffix}")
            if there.is_dir():
                raise UsageError(f"{option} {name}: {there} is a directory", "choose another file")
            if there.exists() and not force:
                raise UsageError(f"{option} {name}: {there} exists", "use --force to overwrite it")
        expect_writable(path)
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint=f"choose another path with {option}") from error
    return path


def _target(output: str | None, command: TracedCommand, *, force: bool) -> Path:
    """Where the trace of a command goes: what the user names, else after its program."""
    named = DEFAULT_FILE if command.program is None else f"{command.program.name}.prv.gz"
    return trace_file(output or named, force=force)


def tracer(command: TracedCommand | None) -> Library:
    """The library for a command; refuses a program that it cannot be loaded into."""
    from popmodel.cli.progress import ProgressLine
    from popmodel.tracer.commands import refuse_untraceable
    from popmodel.tracer.library import find_or_build

    if command is not None and command.program is not None:
        refuse_untraceable(command.program)
    line = ProgressLine()

    def draw(name: str) -> None:
        line.draw(lambda width: f"building the tracer for {name} (once)"[:width])

    try:
        return find_or_build(command, on_build=draw)
    finally:
        line.clear()


def _merging(raw: Path, target: Path) -> str:
    """The command that makes a trace of records."""
    from popmodel.base.shell import join

    return join(["popmodel", "trace", "merge", _shown(raw), "-o", str(target)])


def _shown(path: Path) -> str:
    """A path as short as it can be pasted here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


# -- runs that others start


def _print_environment(
    arguments: Sequence[str], output: str | None, settings: Settings, *, force: bool
) -> None:
    """Print the variables that a program needs to be traced."""
    from popmodel.base.shell import join, quote
    from popmodel.tracer import raw_directory
    from popmodel.tracer.commands import variables

    target = trace_file(output or DEFAULT_FILE, force=force)
    library = tracer(None)
    raw = raw_directory.of_output(target)
    raw_directory.create(raw, force=force, reuse=True)
    given = variables(library.path, raw, settings)
    write_out("".join(f"{name}={quote(value)}\n" for name, value in given.items()))
    line = f"mpirun -n 4 env $({join(('popmodel', *arguments))}) ./app"
    if any(quote(value) != value for value in given.values()):
        line = f"eval {line}"  # what a command prints is split at blanks, quoted or not
    remark(f"set them for the program only: {line}")
    remark(f"after the run: {_merging(raw, target)}")


def _write_script(
    words: Sequence[str],
    sizes: dict[str, int | None],
    output: str | None,
    settings: Settings,
    *,
    force: bool,
) -> None:
    """Write a job script."""
    from popmodel.base.shell import join, visible
    from popmodel.tracer import run as job_script
    from popmodel.tracer.commands import understand

    command = understand(words)
    target = _target(output, command, force=force)
    library = tracer(command)
    warn_of_packaged(library.mpi)
    job = job_script.TracedJob(
        command,
        nodes=sizes["--nodes"] or 1,
        ranks=sizes["--ranks"],
        threads=sizes["--threads"],
        settings=settings,
    )
    made_for = None if library.mpi is None else library.mpi.name
    path = job_script.write(job, library.path, target, mpi=made_for, force=force)
    write_out(f"{visible(str(path))}\n")
    remark(f"to submit: {join(['sbatch', str(path)])}")
    remark("after the job: the end of its output shows the command that merges the trace")


# -- the run, and the trace that is made of it


def _run(
    words: Sequence[str], output: str | None, settings: Settings, *, keep_raw: bool, force: bool
) -> Recording:
    """Run a command; its output and its exit status are its own."""
    from popmodel.base.files import as_exits
    from popmodel.tracer import raw_directory
    from popmodel.tracer.commands import place, refuse_as_rank, understand, variables
    from popmodel.tracer.run import not_traced, nothing_recorded, run

    refuse_as_rank()
    command = understand(words)
    target = _target(output, command, force=force)
    library = tracer(command)
    raw = raw_directory.of_output(target)
    raw_directory.create(raw, force=force)
    call = place(command, variables(library.path, raw, settings), os.environ)
    with raw_directory.held(raw):
        try:
            status = run(command.path, call.words, {**os.environ, **call.environment})
        except PopmodelError:
            raw_directory.clear(raw)
            raise
        try:
            with as_exits():
                if not raw_directory.files(raw):
                    raw_directory.clear(raw)
                    raise nothing_recorded(command, status, settings)
                runs, notes = _merged(raw, target, force=force, after_the_run=True)
                notes += tuple(
                    not_traced(command, library, settings, any(run.openmp for run in runs))
                )
                if not keep_raw:
                    _remove(raw)
        except PopmodelError as error:
            if status != 0:  # what the program said of its failure comes first, and its status
                error.exit_status = status
            raise
    found = recording_document(runs, raw=_shown(raw) if keep_raw else None, notes=notes)
    return Recording(found, on_stderr=True, exit_status=status)


def _merge(raw: Path, output: str | None, *, force: bool) -> Recording:
    """Make a trace of the records in a directory."""
    from popmodel.base.files import as_exits
    from popmodel.tracer import raw_directory

    name = output or f"{raw.absolute().name.removesuffix(raw_directory.SUFFIX)}.prv.gz"
    with as_exits():
        runs, notes = _merged(raw, trace_file(name, force=force), force=force)
    return Recording(recording_document(runs, raw=str(raw), notes=notes), on_stderr=False)


def _merged(
    raw: Path, target: Path, *, force: bool, after_the_run: bool = False
) -> tuple[tuple[Merged, ...], tuple[str, ...]]:
    """Merge, with a line of progress; gives the traces, and what could not be found out.

    Says how to go on if that does not succeed; where only a merge was asked for, if a signal or the
    user has ended it.
    """
    from popmodel.cli.progress import ProgressLine
    from popmodel.tracer.conversion import merge_runs
    from popmodel.tracer.symbol_table import SourceLines

    line, lines = ProgressLine(), SourceLines()

    def draw(done: float) -> None:
        line.draw(lambda width: f"merging {100 * done:3.0f} %"[:width])

    try:
        runs = merge_runs(
            raw,
            target,
            locate=lines,
            progress=draw,
            check=lambda path: trace_file(str(path), force=force),
        )
        return runs, () if lines.problem is None else (lines.problem,)
    except BaseException as error:
        line.clear()
        if after_the_run or not isinstance(error, PopmodelError):
            remark(f"the raw files are kept; to merge them: {_merging(raw, target)}")
        raise
    finally:
        line.clear()


def _remove(raw: Path) -> None:
    from popmodel.tracer import raw_directory

    try:
        raw_directory.clear(raw)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remark(f"the raw files in {_shown(raw)} could not be removed: {reason}")


# -- the document


_NS = 1e-9
_AS_MERGED = (
    *("size", "raw_size", "processes", "threads", "hosts", "records", "calls", "messages"),
    *("only_masters_call", "message_bytes", "library", "openmp", "spawned"),
)


def recording_document(
    runs: Sequence[Merged], *, raw: str | None, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """All runs of a command, ``popmodel/trace/1``: the first, with the others in it."""
    first, *others = (_recorded(run, raw, notes) for run in runs)
    return {**first, "others": others}


def _recorded(run: Merged, raw: str | None, notes: Sequence[str]) -> dict[str, Any]:
    from popmodel.studies.launch_check import bound_in_words
    from popmodel.tracer.conversion import RECORD_COST, not_seen, overhead

    cost = overhead(run)
    return document(
        "popmodel/trace/1",
        trace=run.path,
        raw=raw,
        duration=run.duration * _NS,
        counters=run.counters.get("", 0),
        clock_residual=None if run.clock_residual is None else run.clock_residual * _NS,
        overhead={
            "share": cost.middle,
            "low": cost.low,
            "high": cost.high,
            "per_record": RECORD_COST.middle,
        },
        caveats=run.crowding,
        placed=[list(line) for line in bound_in_words(run.metas)],
        not_seen=[*notes, *not_seen(run)],
        **fields_of(run, *_AS_MERGED),
    )
