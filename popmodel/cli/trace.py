"""``popmodel trace``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from popmodel.cli.app import Verb
from popmodel.cli.options import FORMATS, ForceOption, choice, whole_number
from popmodel.errors import UsageError

EXAMPLES = (
    "popmodel trace -- mpirun -n 4 ./app",
    "popmodel trace --counters -o run.prv.gz -- ./openmp_app 100",
    "popmodel trace --script slurm --nodes 2 --ranks 64 -- ./app",
    "popmodel trace merge app.raw -o app.prv.gz",
)

MERGE = "merge"


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
    from popmodel.cli.trace_merge import merge
    from popmodel.cli.trace_prepare import build, print_environment, write_script
    from popmodel.cli.trace_run import trace
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
        merge(ctx.obj, given[1:], output, format, force=force)
    elif build_only:
        build(ctx.obj, given, output, format)
    elif print_env:
        print_environment(ctx.obj, output, settings, force=force)
    elif script is not None:
        numbers = {
            option: None if text is None else whole_number(option, text)
            for option, text in sizes.items()
        }
        write_script(given, script, numbers, output, settings, force=force)
    else:
        if format is not None:
            raise UsageError(
                "--format: a traced run is told on standard error, beside what the program says",
                f"make the trace with --keep-raw, then popmodel trace merge DIR --format {format}",
            )
        trace(ctx.obj, given, output, settings, keep_raw=keep_raw, force=force)


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
