"""``popmodel bench``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import ForceOption, FormatOption, choice, output_option, whole_number

if TYPE_CHECKING:
    from popmodel.cli.output import OutputTarget
    from popmodel.machines.bench.bench_plan import MeasurementRequest, Tools
    from popmodel.machines.bench.run_directory import StoredMeasurement
    from popmodel.machines.bench.suite import Failure

EXAMPLES = (
    "popmodel bench -o machine.json",
    "popmodel bench --only core,memory,loops,openmp,noise",
    "popmodel bench --full --launcher 'srun --mpi=pmix' -o machine.json",
    "popmodel bench --script slurm --nodes 2 -o cluster.json",
    "popmodel bench collect cluster.samples -o cluster.json",
)

COLLECT = "collect"


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[collect DIR...]",
            help="Make a profile from the samples in directories instead of measuring.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Measure for about a minute (the default).", show_default=False
        ),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Measure more launches and sizes: 3 to 20 minutes.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PARTS",
            help="Parts to measure, separated by commas: core, memory, loops, openmp, p2p, "
            "collectives, overlap, threads, noise. Default: all. With --force, FILE keeps its "
            "other parts.",
            show_default=False,
        ),
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that starts MPI ranks, such as 'srun --mpi=pmix'. Default: detected "
            "automatically.",
            show_default=False,
        ),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(metavar="N", help="Number of MPI ranks on all nodes. Default: one per core."),
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="N", help="Number of nodes in the job script. Default: 1.")
    ] = None,
    script: Annotated[
        str | None,
        typer.Option(
            metavar="slurm",
            help="Write a job script and its programs beside FILE instead of measuring. It is not "
            "submitted.",
        ),
    ] = None,
    build_only: Annotated[
        bool,
        typer.Option("--build-only", help="Build the benchmark programs and print their paths."),
    ] = False,
    format: FormatOption = None,
    output: Annotated[
        str | None,
        output_option(
            "Write the profile to FILE (.json), or to standard output (-) instead of the summary. "
            "The samples are kept beside it, in FILE with the suffix .samples."
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Measure this machine and write its profile.

    Measures cores, memory, OpenMP and MPI as applications use them. An interrupted measurement
    resumes when the same command is run again.
    """
    from popmodel.machines.bench import bench_plan
    from popmodel.machines.bench.bench_plan import MeasurementRequest
    from popmodel.machines.parameter import PARTS

    page, profile = _targets(ctx.obj, format, output, force=force)
    if words:
        _refuse_with_collect(quick, full, only, launcher, ranks, nodes, script, build_only)
        _collect(ctx.obj, _folders(words), page, profile)
        return
    if quick and full:
        raise UsageError("--quick and --full are mutually exclusive", "leave one of them out")
    if nodes is not None and script is None:
        raise UsageError(
            "--nodes: only valid with --script",
            "several nodes are measured in a batch job: popmodel bench --script slurm --nodes 2",
        )
    if build_only and script is not None:
        raise UsageError(
            "--build-only and --script are mutually exclusive",
            "leave --build-only out: --script builds the programs",
        )
    request = MeasurementRequest(
        mode="full" if full else "quick",
        parts=PARTS if only is None else bench_plan.parts(only),
        ranks=None if ranks is None else whole_number("--ranks", ranks),
        nodes=1 if nodes is None else whole_number("--nodes", nodes),
        launcher=launcher,
    )
    if build_only:
        _build(request, page)
    elif script is not None:
        _write_script(request, script, profile, partly=only is not None, force=force)
    else:
        _measure(ctx.obj, request, page, profile, partly=only is not None)


def _targets(
    arguments: Sequence[str], format: str | None, output: str | None, *, force: bool
) -> tuple[OutputTarget | None, OutputTarget | None]:
    """Where the readable page goes, and where the profile; either may go nowhere."""
    from popmodel.cli.output import target
    from popmodel.reports.formats import JSON

    to = partial(target, arguments, force=force)
    if output is None:
        return to(None, format), None
    if output == "-":
        if format not in (None, JSON.name):
            raise UsageError(f"-o -: a profile is JSON, not {format}", "leave -o - out")
        return None, to("-", JSON.name)
    if Path(output).suffix.lower() != ".json":
        raise UsageError(
            f"-o {output}: a profile must be a .json file",
            "for other formats: popmodel machine show FILE.json -o FILE.md",
        )
    return to(None, format), to(output, None)


def _refuse_with_collect(*options: object) -> None:
    if any(options):
        raise UsageError(
            "collect: only --format, -o and --force are valid with it",
            "popmodel bench collect DIR... -o machine.json",
        )


def _folders(words: Sequence[str]) -> list[Path]:
    if words[0] != COLLECT:
        raise UsageError(
            f"bench: unexpected argument '{words[0]}'",
            "to measure: popmodel bench; to make a profile from samples: popmodel bench collect "
            "DIR...",
        )
    if len(words) == 1:
        raise UsageError("collect: no directory given", "popmodel bench collect machine.samples")
    return [Path(word) for word in words[1:]]


def _build(request: MeasurementRequest, page: OutputTarget | None) -> None:
    from popmodel.api.bench import built
    from popmodel.machines.bench.bench_plan import tools
    from popmodel.machines.host import hardware
    from popmodel.reports.bench import BUILT

    if page is None:
        raise UsageError("-o -: not valid with --build-only", "leave -o out")
    made = tools(request, hardware.here().usable_cores)
    page.write(built(made), BUILT)


def _write_script(
    request: MeasurementRequest,
    system: str,
    profile: OutputTarget | None,
    *,
    partly: bool,
    force: bool,
) -> None:
    from popmodel.base.shell import join, quote, visible
    from popmodel.cli.streams import remark, warn_of_packaged, write_out
    from popmodel.machines.bench import run_directory, suite
    from popmodel.machines.bench.bench_plan import make_plan, tools
    from popmodel.machines.host import hardware

    choice("--script", system, suite.SYSTEMS)
    output = Path("machine.json") if profile is None or profile.path is None else profile.path
    machine = hardware.here()
    made = make_plan(request, machine)
    using = tools(request, machine.usable_cores * request.nodes)
    warn_of_packaged(using.mpi)
    folder = run_directory.beside(output, request.parts if partly else ())
    with run_directory.held(folder):
        run = run_directory.open_run(folder, made, using.identity, force=force, keep=False)
        path = suite.write_script(
            run, using.programs, output=str(output), launcher=request.launcher or "srun"
        )
    write_out(f"{visible(str(path))}\n")
    remark(f"to submit: cd {quote(str(folder))} && sbatch {quote(path.name)}")
    collect = ["popmodel", "bench", "collect", str(folder), "-o", str(output)]
    remark(f"after the job: {join(collect)}")


def _measure(
    arguments: Sequence[str],
    request: MeasurementRequest,
    page: OutputTarget | None,
    profile: OutputTarget | None,
    *,
    partly: bool,
) -> None:
    from popmodel.cli.streams import remark
    from popmodel.machines import profile as profiles
    from popmodel.machines.bench import bench_plan, collect, run_directory
    from popmodel.machines.host import hardware

    file = None if profile is None else profile.path
    force = any(target is not None and target.force for target in (page, profile))
    kept = profiles.load(file).document if partly and file is not None and file.exists() else None
    machine = hardware.here()
    made = bench_plan.make_plan(request, machine)
    using = bench_plan.tools(request, machine.usable_cores)
    parts = request.parts if partly else ()
    folder = run_directory.default_folder(parts)
    if file is not None:
        folder = run_directory.beside(file, parts)
    with run_directory.held(folder):
        if file is None and not force:
            _keep_earlier(folder)
        run = run_directory.open_run(
            folder,
            made,
            using.identity,
            force=force,
            keep=file is not None and not file.exists(),
        )
        failures = _finish(run, using)
        document, paths = collect.collect([run.folder], failures)
        if not collect.has_any(document, request.parts):
            _warn(failures[1:])  # the first is in the error
            remark(f"samples are kept in {folder}: run the same command to resume")
            raise collect.nothing_of(request.parts, document, failures)
        run_directory.complete(run)
    _warn(failures)
    _warn_of_shortfalls(document)
    if kept is not None:
        document = collect.replace_parts(kept, document, request.parts)
    _show(arguments, document, paths, page, profile)
    if profile is None:
        remark(f"to save this profile: popmodel bench collect {folder} -o machine.json")


def _keep_earlier(folder: Path) -> None:
    """Make way for a new measurement where nobody named a place, without losing the last one."""
    from popmodel.cli.streams import remark
    from popmodel.machines.bench import run_directory

    found = run_directory.find(folder)
    if found is not None and found.is_completed:
        remark(
            f"the samples of the previous measurement are now in {run_directory.put_aside(found)}"
        )


def _finish(run: StoredMeasurement, using: Tools) -> list[Failure]:
    """Do what is left of a measurement, which may be nothing; give the launches given up."""
    from popmodel.cli.streams import remark
    from popmodel.machines.bench import suite

    if run.is_completed:
        remark(f"already measured, samples in {run.folder}: use --force to measure again")
        return []
    return _follow(run, suite.starter(using.programs, using.mpi))


def _follow(run: StoredMeasurement, begin: Any) -> list[Failure]:
    """Do what is left of a measurement, drawing how far it is."""
    from popmodel.base.units import format_time
    from popmodel.cli.progress import ProgressLine
    from popmodel.cli.streams import remark
    from popmodel.machines.bench import run_directory, suite
    from popmodel.reports.bench import progress_line

    launches = run.plan.launches
    left = sum(len(run_directory.missing(run, launch)) for launch in launches)
    total = sum(len(launch.jobs) for launch in launches)
    jobs = f"resuming, {left} of {total} jobs left" if left < total else f"{total} jobs"
    remark(f"{jobs} in {len(launches)} launches; samples go to {run.folder}")
    if run.plan.is_longer_than_meant:
        seconds = format_time(run.plan.seconds, digits=2)
        remark(f"this may take up to {seconds} on so many cores; --only measures fewer parts")
    line = ProgressLine()

    def draw(at: suite.Progress) -> None:
        line.draw(lambda width: progress_line(at.part, at.done, at.all, at.left, width))

    with _kept_when_interrupted(run, line):
        failures = suite.measure(run, begin, draw)
    line.clear()
    if failures and not any(
        run_directory.done_in(path)[0] for path in run_directory.all_samples(run.folder)
    ):
        raise suite.nothing_measured(failures)
    return failures


def _warn(failures: Sequence[Failure]) -> None:
    """Say which launches were given up, and once each what to do about it."""
    from popmodel.cli.streams import remark, suggest

    said: set[str | None] = {None}
    for failure in failures:
        remark(f"warning: {failure.text}")
        hint = failure.error.hint
        if hint is not None and hint not in said:
            suggest(hint)
        said.add(hint)


def _warn_of_shortfalls(document: Mapping[str, Any]) -> None:
    """Say in what the measurements of a profile are not what was asked for."""
    from popmodel.cli.streams import remark

    for measurement in document["provenance"]["measurements"]:
        for text in measurement.get("shortfalls", ()):
            remark(f"warning: {measurement['samples']}: {text}")


@contextlib.contextmanager
def _kept_when_interrupted(run: StoredMeasurement, line: Any) -> Iterator[None]:
    """Say how to go on when the user or the batch system ends the measurement."""
    from popmodel.cli.streams import remark

    try:
        yield
    except BaseException as reason:
        line.clear()
        if isinstance(reason, KeyboardInterrupt | SystemExit):
            remark(f"samples are kept in {run.folder}: run the same command to resume")
            remark(f"for a profile of what was measured: popmodel bench collect {run.folder}")
        raise


def _collect(
    arguments: Sequence[str],
    folders: Sequence[Path],
    page: OutputTarget | None,
    profile: OutputTarget | None,
) -> None:
    from popmodel.machines.bench import collect

    document, paths = collect.collect(folders)
    _warn_of_shortfalls(document)
    _show(arguments, document, paths, page, profile)


def _show(
    arguments: Sequence[str],
    document: dict[str, Any],
    samples: Sequence[Path],
    page: OutputTarget | None,
    profile: OutputTarget | None,
) -> None:
    """Write the profile to its file, and the page that shows it."""
    from popmodel.api.machine import show
    from popmodel.base import provenance
    from popmodel.base.plain import plain
    from popmodel.machines import profile as profiles
    from popmodel.reports.formats import JSON
    from popmodel.reports.machine import SHOWN

    stamp = plain(provenance.collect(arguments, samples))
    document["provenance"] = {**document.get("provenance", {}), **stamp}
    path = str(profile.path) if profile is not None and profile.path is not None else ""
    # Checked before it is written: a good profile is not replaced by one that cannot be read.
    checked = profiles.from_document(document, path or "this machine")
    if profile is not None:
        profile.write(document, SHOWN)
    if page is None:
        return
    if page.format is JSON:
        page.write(document, SHOWN)
        return
    page.write({**show(checked), "provenance": stamp}, SHOWN)
