"""``popmodel trace``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.app import Verb
from popmodel.cli.options import (
    FORMATS,
    ForceOption,
    choice,
    format_option,
    output_option,
    size,
    whole_number,
)

EXAMPLES = (
    "popmodel trace -- mpirun -n 4 ./app",
    "popmodel trace --counters -o run.prv.gz -- ./openmp_app 100",
    "popmodel trace --script slurm --nodes 2 --ranks 64 -- ./app",
    "popmodel trace merge app.raw -o app.prv.gz",
)

MERGE = "merge"


class TraceCommand(Verb):
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


VERB = TraceCommand


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--] COMMAND... | merge DIR",
            help="The command to run, as without popmodel; everything after it is passed on. "
            "merge: make a "
            "trace from the raw files in a directory.",
            show_default=False,
        ),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help="Also record hardware counters (instructions, cycles), where permitted.",
        ),
    ] = False,
    openmp: Annotated[
        str,
        typer.Option(
            metavar="auto|ompt|gomp|off",
            help="How to observe OpenMP: through the tools interface of the runtime (ompt), by "
            "intercepting calls of libgomp (gomp), or not at all (off).",
        ),
    ] = "auto",
    locks: Annotated[
        str,
        typer.Option(
            metavar="sum|each",
            help="How to record locks, critical sections and atomics: totals per thread and region "
            "(sum), or one by one (each), which can slow a program down tenfold.",
        ),
    ] = "sum",
    window: Annotated[
        str | None,
        typer.Option(
            metavar="FROM:TO",
            help="Record only this interval, counted from the end of MPI_Init (without MPI: from "
            "the first parallel region): 10s:20s, or 10s: to record to the end. A parallel region "
            "is recorded if it begins in the interval.",
            show_default=False,
        ),
    ] = None,
    after_init: Annotated[
        bool, typer.Option("--after-init", help="Start recording at the end of MPI_Init.")
    ] = False,
    max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Stop recording when the raw files of all processes reach SIZE, such as 1GiB. The "
            "trace marks what is missing.",
            show_default=False,
        ),
    ] = None,
    max_rate: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="When a thread makes more than N records per second, stop recording its most "
            "frequent kind (see --leave-out).",
            show_default=False,
        ),
    ] = None,
    leave_out: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Do not record these kinds of calls, separated by commas; their time counts as "
            "user code: tests (MPI_Test and probes that find nothing), chunks (of loops), singles, "
            "rma, io.",
            show_default=False,
        ),
    ] = None,
    no_call_sites: Annotated[
        bool,
        typer.Option(
            "--no-call-sites",
            help="Do not record the call sites of MPI calls; this saves some ns per call.",
        ),
    ] = False,
    output: Annotated[
        str | None,
        output_option(
            "Write the trace to FILE (.prv or .prv.gz), with a .pcf and a .row file beside it. "
            "Default: named after the program, in the current directory."
        ),
    ] = None,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the raw files that the trace is made from.")
    ] = False,
    build_only: Annotated[
        bool, typer.Option("--build-only", help="Build the tracer and print its path.")
    ] = False,
    print_env: Annotated[
        bool,
        typer.Option(
            "--print-env",
            help="Print the environment variables that enable tracing, for a script of your own.",
        ),
    ] = False,
    script: Annotated[
        str | None,
        typer.Option(
            metavar="slurm", help="Write a job script instead of running. It is not submitted."
        ),
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="N", help="Number of nodes in the job script.")
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(metavar="N", help="Number of MPI ranks on all nodes in the job script."),
    ] = None,
    threads: Annotated[
        str | None, typer.Option(metavar="N", help="Threads per rank in the job script.")
    ] = None,
    format: Annotated[
        str | None,
        format_option(FORMATS, "Output format of merge and --build-only. Default: table."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Run a program and record a trace.

    The program (MPI, OpenMP or both) must be linked dynamically; it need not be changed. Its output
    and exit status are passed through. A summary goes to standard error.
    """
    from popmodel.cli.trace_merge import merge
    from popmodel.cli.trace_prepare import build, print_environment, write_script
    from popmodel.cli.trace_run import trace
    from popmodel.tracer.commands import LOCKS, OPENMP, Settings

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
                "--format: not valid for a run, whose summary goes to standard error",
                f"run with --keep-raw, then popmodel trace merge DIR --format {format}",
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
        raise UsageError(
            f"{asked[0]} and {asked[1]} are mutually exclusive", "leave one of them out"
        )
    if merges and asked:
        raise UsageError(
            f"{asked[0]}: not valid with merge",
            "popmodel trace merge DIR -o app.prv.gz",
        )
    for option, value in sizes.items():
        if value is not None and script is None:
            raise UsageError(
                f"{option}: only valid with --script",
                "otherwise the command sets it, for example mpirun -n 4 ./app",
            )
    if words and "--print-env" in asked:
        raise UsageError(
            f"--print-env: takes no command, not '{words[0]}'",
            "leave the command out; run it in your script with the printed variables",
        )


def _recorded_window(text: str | None, *, after_init: bool) -> str | None:
    """The window as the library takes it: seconds, either of which may be left out."""
    from popmodel.base.units import parse_time

    if text is None:
        return "0:" if after_init else None
    if after_init:
        raise UsageError(
            "--after-init and --window are mutually exclusive: a window begins after MPI_Init",
            "leave --after-init out",
        )
    example = "try --window 10s:20s, or --window 10s: to record to the end"
    begin, colon, end = text.partition(":")
    if not colon:
        raise UsageError(f"--window {text}: must be FROM:TO", example)
    try:
        first, last = (parse_time(each) if each.strip() else None for each in (begin, end))
    except UsageError as error:
        raise UsageError(f"--window: {error.message}", error.hint) from None
    if last is not None and not (first or 0.0) < last:
        raise UsageError(f"--window {text}: must begin before it ends", example)
    return ":".join("" if each is None else f"{each:.9f}" for each in (first, last))


def _kinds(text: str | None) -> tuple[str, ...]:
    from popmodel.tracer.commands import LEAVE_OUT

    given = [] if text is None else [each.strip() for each in text.split(",")]
    return tuple(dict.fromkeys(choice("--leave-out", each, LEAVE_OUT) for each in given))


_LEAST_SIZE = 1 << 20


def _recorded_size(text: str | None) -> int | None:
    if text is None:
        return None
    most = size("--max-size", text)
    if not _LEAST_SIZE <= most < 2**63:
        raise UsageError(f"--max-size {text}: must be at least 1MiB", "try --max-size 1GiB")
    return int(most)
