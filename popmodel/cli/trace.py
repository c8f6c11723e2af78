"""``popmodel trace``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popmodel.cli.app import Verb
from popmodel.cli.options import FORMATS, ForceOption, choice, whole_number
from popmodel.errors import FileError, PopmodelError, UsageError

if TYPE_CHECKING:
    from popmodel.tracer.commands import Command
    from popmodel.tracer.cost import Costs
    from popmodel.tracer.environment import Settings
    from popmodel.tracer.library import Library
    from popmodel.tracer.merge import Merged

EXAMPLES = (
    "popmodel trace -- mpirun -n 4 ./app",
    "popmodel trace --counters -o run.prv.gz -- ./openmp_app 100",
    "popmodel trace --script slurm --nodes 2 --ranks 64 -- ./app",
    "popmodel trace merge app.raw -o app.prv.gz",
)

MERGE = "merge"
DEFAULT = "trace.prv.gz"


class Traced(Verb):
    """The verb, whose options end where the command begins, which has options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; ``merge`` is no command and may have them behind it."""
        merges = args[:1] == [MERGE]
        ctx.allow_interspersed_args = merges
        given = list(args)
        rest: list[str] = super().parse_args(ctx, args)
        words = ctx.params.get("words") or ()
        before = given[: len(given) - len(words)]
        # After -- everything is the command's, even if it is called merge.
        ctx.meta[MERGE] = merges or (tuple(words[:1]) == (MERGE,) and before[-1:] != ["--"])
        return rest


VERB = Traced


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--] COMMAND... | merge DIR",
            help="The command, as you would give it without popmodel; all behind it is its own. "
            "merge: make a trace of the records in a directory.",
            show_default=False,
        ),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters", help="Read instructions and cycles as well, where that is permitted."
        ),
    ] = False,
    openmp: Annotated[
        str,
        typer.Option(
            metavar="auto|ompt|gomp|off",
            help="How OpenMP is observed: by the tools interface of its runtime (ompt) or by the "
            "calls of libgomp (gomp).",
        ),
    ] = "auto",
    locks: Annotated[
        str,
        typer.Option(
            metavar="sum|each",
            help="Locks, critical sections and atomic operations: counted and timed by thread and "
            "region (sum), or recorded one by one (each), which can slow a program down tenfold.",
        ),
    ] = "sum",
    window: Annotated[
        str | None,
        typer.Option(
            metavar="FROM:TO",
            help="Record this time only, counted from the end of MPI_Init (without MPI: from the "
            "first parallel region): 10s:20s, or 10s: for all that follows. A parallel region "
            "counts if it begins in it.",
            show_default=False,
        ),
    ] = None,
    after_init: Annotated[
        bool, typer.Option("--after-init", help="Record nothing before MPI_Init has ended.")
    ] = False,
    max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Stop recording where records reach this size (1GiB), shared by all processes; "
            "what is left out is marked in the trace.",
            show_default=False,
        ),
    ] = None,
    max_rate: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Where a thread makes more records per second, leave out the kind (see "
            "--leave-out) that most of them are of.",
            show_default=False,
        ),
    ] = None,
    leave_out: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Do not record calls of these kinds; their time counts as the program's: tests "
            "(MPI_Test and probes that find nothing), chunks (of loops), singles, rma, io.",
            show_default=False,
        ),
    ] = None,
    no_call_sites: Annotated[
        bool,
        typer.Option(
            "--no-call-sites",
            help="Do not record where in the program MPI is called, which costs some ns a call.",
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The trace (.prv or .prv.gz), in this folder and named after the program by "
            "default; a .pcf and a .row file come beside it.",
            show_default=False,
        ),
    ] = None,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the records that the trace is made from.")
    ] = False,
    build_only: Annotated[
        bool, typer.Option("--build-only", help="Build the tracer and say where it is.")
    ] = False,
    print_env: Annotated[
        bool,
        typer.Option(
            "--print-env",
            help="Print the variables that a program needs to be traced, for a script of your own.",
        ),
    ] = False,
    script: Annotated[
        str | None,
        typer.Option(metavar="slurm", help="Write a job script instead; it is not submitted."),
    ] = None,
    nodes: Annotated[str | None, typer.Option(metavar="N", help="Nodes of a job script.")] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="N", help="MPI ranks of a job script, on all nodes.")
    ] = None,
    threads: Annotated[
        str | None, typer.Option(metavar="N", help="Threads of each rank of a job script.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="How merge and --build-only write what they tell.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Run a program and record a trace of it.

    An MPI, OpenMP or hybrid program that is linked dynamically; nothing in it has to be changed.
    Its output and its exit status are its own. What was traced is told on standard error.
    """
    from popmodel.tracer.environment import LOCKS, OPENMP, Settings

    settings = Settings(
        counters=counters,
        openmp=OPENMP[choice("--openmp", openmp, tuple(OPENMP))],
        call_sites=not no_call_sites,
        locks=LOCKS[choice("--locks", locks, tuple(LOCKS))],
        window=_recorded_window(window, after_init=after_init),
        max_size=_recorded_size(max_size),
        max_rate=None if max_rate is None else whole_number("--max-rate", max_rate),
        leave_out=_kinds(leave_out),
    )
    given = list(words or ())
    sizes = {"--nodes": nodes, "--ranks": ranks, "--threads": threads}
    actions = {"--build-only": build_only, "--print-env": print_env, "--script": script is not None}
    _refuse_contradictions(actions, sizes, script, given, merges=ctx.meta[MERGE])
    if ctx.meta[MERGE]:
        _merge(ctx.obj, given[1:], output, format, force=force)
    elif build_only:
        _build(ctx.obj, given, output, format)
    elif print_env:
        _print_environment(ctx.obj, output, settings, force=force)
    elif script is not None:
        numbers = {
            option: None if text is None else whole_number(option, text)
            for option, text in sizes.items()
        }
        _write_script(given, script, numbers, output, settings, force=force)
    else:
        if format is not None:
            raise UsageError(
                "--format: a traced run is told on standard error, beside what the program says",
                f"make the trace with --keep-raw, then popmodel trace merge DIR --format {format}",
            )
        _trace(ctx.obj, given, output, settings, keep_raw=keep_raw, force=force)


def _refuse_contradictions(
    actions: Mapping[str, bool],
    sizes: Mapping[str, str | None],
    script: str | None,
    words: Sequence[str],
    *,
    merges: bool,
) -> None:
    asked = [name for name, wanted in actions.items() if wanted]
    if len(asked) > 1:
        raise UsageError(f"{asked[0]} and {asked[1]} exclude each other", "leave one of them out")
    if merges and asked:
        raise UsageError(
            f"merge runs nothing: {asked[0]} does not go with it",
            "popmodel trace merge DIR -o app.prv.gz",
        )
    for option, value in sizes.items():
        if value is not None and script is None:
            raise UsageError(
                f"{option}: goes with --script",
                "a command says itself how many ranks it starts, for example mpirun -n 4 ./app",
            )
    if words and "--print-env" in asked:
        raise UsageError(
            f"--print-env runs nothing: '{words[0]}' does not go with it",
            "leave the command out, and give it the variables in your script",
        )


def _recorded_window(text: str | None, *, after_init: bool) -> str | None:
    """The window as the library takes it: seconds, either of which may be left out."""
    from popmodel.units import parse_time

    if text is None:
        return "0:" if after_init else None
    if after_init:
        raise UsageError(
            "--after-init and --window exclude each other: a window begins after MPI_Init",
            "leave --after-init out",
        )
    example = "write for example --window 10s:20s, or --window 10s: for all that follows"
    begin, colon, end = text.partition(":")
    if not colon:
        raise UsageError(f"--window {text}: is not FROM:TO", example)
    try:
        first, last = (parse_time(each) if each.strip() else None for each in (begin, end))
    except UsageError as error:
        raise UsageError(f"--window: {error.message}", error.hint) from None
    if last is not None and not (first or 0.0) < last:
        raise UsageError(f"--window {text}: it ends before it begins", example)
    return ":".join("" if each is None else f"{each:.9f}" for each in (first, last))


def _kinds(text: str | None) -> tuple[str, ...]:
    from popmodel.tracer.environment import LEAVE_OUT

    given = [] if text is None else [each.strip() for each in text.split(",")]
    return tuple(dict.fromkeys(choice("--leave-out", each, LEAVE_OUT) for each in given))


_LEAST_SIZE = 1 << 20


def _recorded_size(text: str | None) -> int | None:
    from popmodel.units import parse_size

    if text is None:
        return None
    try:
        size = parse_size(text)
    except UsageError as error:
        raise UsageError(f"--max-size: {error.message}", error.hint) from None
    if not _LEAST_SIZE <= size < 2**63:
        raise UsageError(f"--max-size {text}: must be at least 1MiB", "--max-size 1GiB")
    return int(size)


def _trace(
    arguments: Sequence[str],
    words: Sequence[str],
    output: str | None,
    settings: Settings,
    *,
    keep_raw: bool,
    force: bool,
) -> None:
    from popmodel.signals import as_exits
    from popmodel.tracer import raw_directory
    from popmodel.tracer.commands import refuse_as_rank, understand
    from popmodel.tracer.environment import place, variables
    from popmodel.tracer.run import run

    refuse_as_rank()
    command = understand(words)
    target = _target(output, command, force=force)
    library = _library(command)
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
                _finish(
                    arguments,
                    raw,
                    target,
                    library,
                    settings,
                    _nothing(command, status, settings),
                    keep_raw=keep_raw,
                    force=force,
                    built=_built_in(command),
                )
        except PopmodelError as error:
            if status == 0:
                raise
            # What the program said of its failure comes first, and its status is what counts.
            from popmodel.cli.streams import complain

            complain(error.message, error.hint)
    if status != 0:
        raise typer.Exit(status)


def _finish(
    arguments: Sequence[str],
    raw: Path,
    target: Path,
    library: Library,
    settings: Settings,
    nothing: PopmodelError,
    *,
    keep_raw: bool,
    force: bool,
    built: Sequence[str],
) -> None:
    """Make the trace of what was recorded, and say what it is; `nothing` if there is none."""
    from popmodel import provenance
    from popmodel.report.render import Format, render
    from popmodel.report.trace import VIEWS, documents
    from popmodel.tracer import raw_directory

    if not raw_directory.files(raw):
        raw_directory.clear(raw)
        raise nothing
    runs, notes = _merged(raw, target, force=force, after_the_run=True)
    if library.without_mpi is not None:
        notes += (f"MPI is not traced: {library.without_mpi}",)
    if settings.openmp in _NO_OPENMP and not any(run.openmp for run in runs):
        notes += (f"no OpenMP: {_NO_OPENMP[settings.openmp]} (--openmp {settings.openmp})",)
    if "OpenMP" in built and not any(run.openmp for run in runs):
        notes += ("no OpenMP: its runtime is linked statically into the program",)
    if not keep_raw:
        _remove(raw)
    result = documents(
        runs, raw=_shown(raw) if keep_raw else None, cost=_cost(library, target), notes=notes
    )
    stamp = provenance.collect(arguments).to_dict()
    _say(render({**result, "provenance": stamp}, VIEWS, Format.TABLE, _style()))


def _merge(
    arguments: Sequence[str],
    words: Sequence[str],
    output: str | None,
    format: str | None,
    *,
    force: bool,
) -> None:
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.report.trace import VIEWS, documents
    from popmodel.signals import as_exits
    from popmodel.tracer import raw_directory

    if len(words) != 1:
        raise UsageError(
            f"merge: takes one directory, not {len(words)}",
            "popmodel trace merge app.raw -o app.prv.gz",
        )
    goal = target(None, format, force=force)
    raw = Path(words[0])
    name = output or f"{raw.absolute().name.removesuffix(raw_directory.SUFFIX)}.prv.gz"
    with as_exits():
        runs, notes = _merged(raw, _checked(name, force=force), force=force)
    result = documents(runs, raw=str(raw), cost=None, notes=notes)
    goal.write({**result, "provenance": provenance.collect(arguments).to_dict()}, VIEWS)


def _merged(
    raw: Path, target: Path, *, force: bool, after_the_run: bool = False
) -> tuple[tuple[Merged, ...], tuple[str, ...]]:
    """Merge, with a line of progress; gives the traces, and what could not be found out.

    Says how to go on if that does not succeed; where only a merge was asked for, if a signal or the
    user has ended it.
    """
    from popmodel.cli.progress import Line
    from popmodel.cli.streams import remark
    from popmodel.tracer.merge import merge_runs
    from popmodel.tracer.source_lines import SourceLines

    line, lines = Line(), SourceLines()

    def draw(done: float) -> None:
        line.draw(lambda width: f"merging {100 * done:3.0f} %"[:width])

    try:
        runs = merge_runs(
            raw,
            target,
            locate=lines,
            progress=draw,
            check=lambda path: _checked(str(path), force=force),
        )
        return runs, () if lines.problem is None else (lines.problem,)
    except BaseException as error:
        line.clear()
        if after_the_run or not isinstance(error, PopmodelError):
            remark(f"what was recorded is kept: {_merging(raw, target)}")
        raise
    finally:
        line.clear()


def _build(
    arguments: Sequence[str], words: Sequence[str], output: str | None, format: str | None
) -> None:
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.report.trace import BUILT, built
    from popmodel.tracer.commands import understand

    if output is not None:
        raise UsageError(f"-o {output}: nothing is traced with --build-only", "leave -o out")
    goal = target(None, format, force=False)
    library = _library(understand(words) if words else None)
    mpi = None if library.mpi is None else library.mpi.name
    result = built(str(library.path), library.compiler.version, mpi, library.without_mpi)
    goal.write({**result, "provenance": provenance.collect(arguments).to_dict()}, BUILT)


def _print_environment(
    arguments: Sequence[str], output: str | None, settings: Settings, *, force: bool
) -> None:
    from popmodel.cli.streams import remark, write_out
    from popmodel.shell import join, quote
    from popmodel.tracer import raw_directory
    from popmodel.tracer.environment import variables

    target = _checked(output or DEFAULT, force=force)
    library = _library(None)
    raw = raw_directory.of_output(target)
    raw_directory.create(raw, force=force, reuse=True)
    given = variables(library.path, raw, settings)
    write_out("".join(f"{name}={quote(value)}\n" for name, value in given.items()))
    line = f"mpirun -n 4 env $({join(('popmodel', *arguments))}) ./app"
    if any(quote(value) != value for value in given.values()):
        line = f"eval {line}"  # what a command prints is split at blanks, quoted or not
    remark(f"give them to the program alone: {line}")
    remark(f"when it has run: {_merging(raw, target)}")


def _write_script(
    words: Sequence[str],
    system: str,
    sizes: Mapping[str, int | None],
    output: str | None,
    settings: Settings,
    *,
    force: bool,
) -> None:
    from popmodel.cli.streams import remark, write_out
    from popmodel.shell import join, visible
    from popmodel.tracer import script
    from popmodel.tracer.commands import understand

    choice("--script", system, script.SYSTEMS)
    command = understand(words)
    target = _target(output, command, force=force)
    library = _library(command)
    if library.mpi is not None and library.mpi.origin == "wheel":
        remark(
            "the MPI is that of a Python package, which the cluster's srun may not be able to "
            "start: load the module of the cluster's own"
        )
    job = script.Job(
        command,
        nodes=sizes["--nodes"] or 1,
        ranks=sizes["--ranks"],
        threads=sizes["--threads"],
        settings=settings,
    )
    made_for = None if library.mpi is None else library.mpi.name
    path = script.write(job, library.path, target, mpi=made_for, force=force)
    write_out(f"{visible(str(path))}\n")
    remark(f"submit it: {join(['sbatch', str(path)])}")
    remark("when it has run it says how the trace is made, at the end of its output")


def _library(command: Command | None) -> Library:
    """The library for a command; refuses a program that it cannot be loaded into."""
    from popmodel.cli.progress import Line
    from popmodel.tracer.commands import refuse_untraceable
    from popmodel.tracer.library import find_or_build

    if command is not None and command.program is not None:
        refuse_untraceable(command.program)
    line = Line()

    def draw(name: str) -> None:
        line.draw(lambda width: f"building the tracer for {name}, this once"[:width])

    try:
        return find_or_build(command, on_build=draw)
    finally:
        line.clear()


def _target(output: str | None, command: Command, *, force: bool) -> Path:
    named = DEFAULT if command.program is None else f"{command.program.name}.prv.gz"
    return _checked(output or named, force=force)


def _checked(name: str, *, force: bool) -> Path:
    """Where a trace goes; refused before the run what would be refused after it.

    Raises
    ------
    UsageError
        It is no name of a trace, or there is one already.
    """
    from popmodel.shell import plain
    from popmodel.tracer.raw_directory import SUFFIXES, stem

    path = Path(plain(name, "-o"))
    if not name.endswith(SUFFIXES) or path.name in SUFFIXES:
        raise UsageError(f"-o {name}: a trace is written as .prv or .prv.gz", "-o app.prv.gz")
    try:
        for suffix in (path.name.removeprefix(stem(path)), ".pcf", ".row"):
            there = path.with_name(f"{stem(path)}{suffix}")
            if there.is_dir():
                raise UsageError(f"-o {name}: {there} is a directory", "name another file")
            if there.exists() and not force:
                raise UsageError(f"-o {name}: {there} exists", "use --force to replace it")
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint="choose another place with -o") from error
    return path


def _cost(library: Library, target: Path) -> Costs | None:
    from popmodel.cli.streams import remark
    from popmodel.tracer.cost import measured_by

    why = library.without_cost
    if library.cost is not None:
        try:
            return measured_by(library.cost, target.absolute().parent, os.environ)
        except (PopmodelError, OSError) as error:  # the trace is made, and is worth more than this
            why = str(error)
    remark(f"what recording costs was not measured: {why}")
    return None


def _remove(raw: Path) -> None:
    from popmodel.cli.streams import remark
    from popmodel.tracer import raw_directory

    try:
        raw_directory.clear(raw)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remark(f"the records in {_shown(raw)} are no longer needed, but stay there: {reason}")


_NO_OPENMP = {
    "off": "it was not to be observed",
    "ompt": "the program has none, or its runtime has no tools interface",
    "gomp": "the program has none, or its runtime is another than libgomp",
}


def _nothing(command: Command, status: int, settings: Settings) -> PopmodelError:
    """The error for a run of which nothing was recorded."""
    name = command.words[command.start] if command.program is None else command.program.name
    if built := _built_in(command):
        return PopmodelError(
            f"{name}: nothing was recorded: {' and '.join(built)} {_ARE[len(built) > 1]} linked "
            "into it statically, and the tracer cannot be put in front",
            "link the shared libraries: without -static, -static-libgomp or archives (.a) of MPI",
        )
    if status != 0:
        return PopmodelError(
            f"{name}: it ended with {_ending(status)}, and no process of it called MPI_Init or "
            "entered a parallel region with the tracer loaded: nothing was recorded",
            "run it without popmodel: if it fails as well, nothing is wrong with the tracing",
        )
    if settings.openmp in _NO_OPENMP:
        return PopmodelError(
            f"{name}: nothing was recorded: no process called MPI_Init, and no OpenMP: "
            f"{_NO_OPENMP[settings.openmp]} (--openmp {settings.openmp})",
            "leave --openmp out: popmodel then finds out how OpenMP can be observed",
        )
    return PopmodelError(
        f"{name}: nothing was recorded: no process called MPI_Init or entered a parallel region "
        "with the tracer loaded",
        "a program uses MPI or OpenMP and links their shared libraries (ldd shows them); a script "
        "that starts ranks elsewhere hands on what popmodel trace --print-env prints",
    )


def _merging(raw: Path, target: Path) -> str:
    """The command that makes a trace of records."""
    from popmodel.shell import join

    return join(["popmodel", "trace", "merge", _shown(raw), "-o", str(target)])


_ARE = {False: "is", True: "are"}


def _built_in(command: Command) -> list[str]:
    from popmodel.tracer.symbols import built_in

    return [] if command.program is None else built_in(str(command.program))


def _ending(status: int) -> str:
    """An exit status in words: shells make 128 + number of signals."""
    try:
        return f"signal {signal.Signals(status - 128).name}" if status > 128 else f"status {status}"
    except ValueError:
        return f"status {status}"


def _shown(path: Path) -> str:
    """A path as short as it can be pasted here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _style() -> Any:
    import shutil

    from popmodel.report.colour import depth_of
    from popmodel.report.terminal import Style

    terminal = sys.stderr is not None and sys.stderr.isatty()
    columns = shutil.get_terminal_size((80, 24)).columns
    return Style(columns, depth_of(os.environ, terminal=terminal), terminal)


def _say(text: str) -> None:
    """Write to standard error: standard output is the program's."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
