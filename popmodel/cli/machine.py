"""``popmodel machine``: measure this machine; show, compare and check profiles."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.plain import document, plain
from popmodel.base.values import dataclass
from popmodel.cli.command import argument, flag, option
from popmodel.cli.completion import machine_presets
from popmodel.cli.options import whole_number
from popmodel.cli.parameters import one_of
from popmodel.cli.streams import remark, suggest, warn_of_packaged, write_out
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from popmodel.api.inputs import ProfileLike
    from popmodel.machines.bench.bench_plan import MeasurementRequest, Tools
    from popmodel.machines.bench.run_directory import StoredMeasurement
    from popmodel.machines.bench.suite import Failure
    from popmodel.machines.profile import Profile
    from popmodel.reports.views import Views

SUMMARY = "Measure this machine; show, compare or check profiles."
EXAMPLES = (
    "popmodel machine check",
    "popmodel machine measure -o machine.json",
    "popmodel machine measure --only memory -o machine.json --force",
    "popmodel machine measure --script slurm --nodes 2 -o cluster.json",
    "popmodel machine measure --samples cluster.samples -o cluster.json",
    "popmodel machine show machine.json",
    "popmodel machine compare before.json after.json",
    "popmodel machine check machine.json",
)
CONDITIONS = True
RENAMED = {"--quick": "the default: leave it out"}


@dataclass(frozen=True)
class MachineProfile(Result):
    """A machine profile, as returned by `machine`."""

    profile: Profile
    files: tuple[str, ...] = ()  # The samples, or the profile

    def __repr__(self) -> str:
        return repr(self.profile)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile, schema ``popmodel/machine/1``."""
        return dict(self.profile.document)

    def shown_document(self) -> dict[str, Any]:
        """What screens show, with where they come from rather than the profile."""
        return {name: value for name, value in self.to_dict().items() if name != "provenance"}

    def document_for(self, format_name: str) -> dict[str, Any]:
        """The profile as JSON; what else shows it says where it comes from itself."""
        return self.to_dict() if format_name == "json" else self.shown_document()

    @property
    def views(self) -> Views:
        """How the profile is shown."""
        from popmodel.reports.machine_tables import views

        return views(self.profile)

    def values(self) -> list[ResultValue]:
        """The quantities by their paths, such as ``memory.bsat``."""
        return [ResultValue(path, one.value) for path, one in self.profile.quantities.items()]


@dataclass(frozen=True)
class MachineCheck(Result):
    """What is doubtful in a profile, or whether this machine can be measured."""

    found: Mapping[str, Any]  # The document
    files: tuple[str, ...]
    problem: PopmodelError | None  # Why the profile, or the machine, is of no use

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/machine-check/1`` or ``popmodel/host-check/1``."""
        return dict(self.found)

    @property
    def views(self) -> Views:
        """How the document is shown."""
        from popmodel.reports.profile_tables import CHECKED, HOST

        return HOST if "checks" in self.found else CHECKED

    def values(self) -> list[ResultValue]:
        """How many findings there are."""
        found = self.found.get("findings", ())
        return [ResultValue("findings", sum(one["kind"] != "unused" for one in found))]

    def failure(self) -> PopmodelError | None:
        """Why the profile, or the machine, is of no use."""
        return self.problem


@dataclass(frozen=True)
class MachineComparison(Result):
    """How two profiles differ."""

    found: Mapping[str, Any]  # The document
    files: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/machine-compare/1``, without provenance."""
        return dict(self.found)

    @property
    def views(self) -> Views:
        """How the document is shown."""
        from popmodel.reports.profile_tables import COMPARED

        return COMPARED


# -- measure


def _parts(_: Any) -> Sequence[str]:
    from popmodel.machines.parameter import PARTS

    return PARTS


def machine(
    *,
    full: Annotated[
        bool,
        flag("Measure more launches and sizes: 3 to 20 minutes. Default: about a minute."),
    ] = False,
    only: Annotated[
        str | None,
        option(
            "PARTS",
            "Parts to measure, separated by commas: core, memory, loops, openmp, p2p, collectives, "
            "overlap, threads, noise. Default: all. With --force, FILE keeps its other parts.",
            complete=(_parts,),
        ),
    ] = None,
    launcher: Annotated[
        str | None,
        option(
            "COMMAND",
            "Command that starts MPI ranks, such as 'srun --mpi=pmix'. Default: detected "
            "automatically.",
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        option("N", "Number of MPI ranks on all nodes. Default: one per core.", whole_number),
    ] = None,
    script: Annotated[
        str | None,
        option(
            "slurm",
            "Write a job script and its programs beside FILE instead of measuring. It is not "
            "submitted.",
            one_of(("slurm",)),
        ),
    ] = None,
    nodes: Annotated[
        int | None, option("N", "Number of nodes in the job script. Default: 1.", whole_number)
    ] = None,
    samples: Annotated[
        Sequence[str],
        option(
            "DIR",
            "Make the profile from the samples in DIR, of a job or an earlier measurement, instead "
            "of measuring. Can be repeated.",
            several=True,
            complete=(".samples",),
        ),
    ] = (),
    output: Annotated[
        str | None,
        option(
            "FILE",
            "Write the profile to FILE (.json). The samples are kept beside it, in FILE with the "
            "suffix .samples.",
            short="-o",
        ),
    ] = None,
    force: Annotated[bool, flag("Overwrite FILE if it exists, and its samples.")] = False,
    arguments: Sequence[str] = (),
) -> MachineProfile | None:
    """Measure this machine and write its profile.

    Measures cores, memory, OpenMP and MPI as applications use them. An interrupted measurement
    resumes when the same command is run again.

    Parameters
    ----------
    full : bool
        Measure more launches and sizes: 3 to 20 minutes; default: about a minute.
    only : str, optional
        Parts to measure, separated by commas; a file that is there keeps its others with `force`.
    launcher : str, optional
        The command that starts MPI ranks; default: detected.
    ranks : int, optional
        MPI ranks on all nodes; default: one per core.
    script : {"slurm"}, optional
        Write a job script instead of measuring; the result is None.
    nodes : int, optional
        Nodes in the job script.
    samples : sequence of path
        Directories of samples to make the profile from, instead of measuring.
    output : path, optional
        The profile's file, ``.json``; samples are kept beside it.
    force : bool
        Replace the file, and its samples.
    arguments : sequence of str
        The command line that the profile states.

    Raises
    ------
    PopmodelError
        If nothing can be measured: with what to do.

    Examples
    --------
    >>> import popmodel
    >>> machine = popmodel.machine(only="memory", output="m.json")  # doctest: +SKIP
    >>> machine["memory.bsat"]  # doctest: +SKIP
    39400000000.0
    """
    from popmodel.cli.output import refuse_existing
    from popmodel.machines.bench import bench_plan
    from popmodel.machines.parameter import PARTS

    file = None if output in (None, "-") else Path(str(output))
    if file is not None:
        if file.suffix.lower() != ".json":
            raise UsageError(
                f"-o {output}: a profile must be a .json file",
                "for other formats: popmodel machine show FILE.json -o FILE.md",
            )
        refuse_existing(file, force=force)
    if samples:
        if full or only or launcher or ranks or nodes or script:
            raise UsageError(
                "--samples: only --format, -o and --force are valid with it",
                "popmodel machine measure --samples DIR -o machine.json",
            )
        from popmodel.machines.bench.collect import collect

        made, paths = collect([Path(folder) for folder in samples])
        return _written(made, paths, file, arguments, force=force)
    if nodes is not None and script is None:
        raise UsageError(
            "--nodes: only valid with --script",
            "several nodes are measured in a batch job: popmodel machine measure --script slurm "
            "--nodes 2",
        )
    request = bench_plan.MeasurementRequest(
        mode="full" if full else "quick",
        parts=PARTS if only is None else bench_plan.parts(only),
        ranks=ranks,
        nodes=nodes or 1,
        launcher=launcher,
    )
    if script is not None:
        _write_script(request, file or Path("machine.json"), partly=only is not None, force=force)
        return None
    return _measure(request, file, arguments, partly=only is not None, force=force)


def _write_script(request: MeasurementRequest, output: Path, *, partly: bool, force: bool) -> None:
    from popmodel.base.shell import join, quote, visible
    from popmodel.machines.bench import run_directory, suite
    from popmodel.machines.bench.bench_plan import make_plan, tools
    from popmodel.machines.host import hardware

    here = hardware.here()
    made = make_plan(request, here)
    using = tools(request, here.usable_cores * request.nodes)
    warn_of_packaged(using.mpi)
    folder = run_directory.beside(output, request.parts if partly else ())
    with run_directory.held(folder):
        run = run_directory.open_run(folder, made, using.identity, force=force, keep=False)
        path = suite.write_script(
            run, using.programs, output=str(output), launcher=request.launcher or "srun"
        )
    write_out(f"{visible(str(path))}\n")
    remark(f"to submit: cd {quote(str(folder))} && sbatch {quote(path.name)}")
    collect = ["popmodel", "machine", "measure", "--samples", str(folder), "-o", str(output)]
    remark(f"after the job: {join(collect)}")


def _measure(
    request: MeasurementRequest,
    file: Path | None,
    arguments: Sequence[str],
    *,
    partly: bool,
    force: bool,
) -> MachineProfile:
    from popmodel.machines import profile as profiles
    from popmodel.machines.bench import bench_plan, collect, run_directory
    from popmodel.machines.host import hardware

    kept = profiles.load(file).document if partly and file is not None and file.exists() else None
    here = hardware.here()
    made = bench_plan.make_plan(request, here)
    using = bench_plan.tools(request, here.usable_cores)
    parts = request.parts if partly else ()
    folder = run_directory.default_folder(parts)
    if file is not None:
        folder = run_directory.beside(file, parts)
    with run_directory.held(folder):
        if file is None and not force:
            _keep_earlier(folder)
        keep = file is not None and not file.exists()
        run = run_directory.open_run(folder, made, using.identity, force=force, keep=keep)
        failures = _finish(run, using)
        document, paths = collect.collect([run.folder], failures)
        if not collect.has_any(document, request.parts):
            _warn(failures[1:])  # the first is in the error
            remark(f"samples are kept in {folder}: run the same command to resume")
            raise collect.nothing_of(request.parts, document, failures)
        run_directory.complete(run)
    _warn(failures)
    if kept is not None:
        document = collect.replace_parts(kept, document, request.parts)
    found = _written(document, paths, file, arguments, force=force)
    if file is None:
        words = f"popmodel machine measure --samples {folder} -o machine.json"
        remark(f"to save this profile: {words}")
    return found


def _keep_earlier(folder: Path) -> None:
    """Make way for a new measurement where nobody named a place, without losing the last one."""
    from popmodel.machines.bench import run_directory

    found = run_directory.find(folder)
    if found is not None and found.is_completed:
        aside = run_directory.put_aside(found)
        remark(f"the samples of the previous measurement are now in {aside}")


def _finish(run: StoredMeasurement, using: Tools) -> list[Failure]:
    """Do what is left of a measurement, which may be nothing; give the launches given up."""
    from popmodel.base.units import format_time
    from popmodel.cli.progress import ProgressLine, progress_line
    from popmodel.machines.bench import run_directory, suite

    if run.is_completed:
        remark(f"already measured, samples in {run.folder}: use --force to measure again")
        return []
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

    with _kept_when_interrupted(run, line.clear):
        failures = suite.measure(run, suite.starter(using.programs, using.mpi), draw)
    line.clear()
    if failures and not any(
        run_directory.done_in(path)[0] for path in run_directory.all_samples(run.folder)
    ):
        raise suite.nothing_measured(failures)
    return failures


@contextlib.contextmanager
def _kept_when_interrupted(run: StoredMeasurement, clear: Callable[[], None]) -> Iterator[None]:
    """Say how to go on when the user or the batch system ends the measurement."""
    try:
        yield
    except BaseException as reason:
        clear()
        if isinstance(reason, KeyboardInterrupt | SystemExit):
            remark(f"samples are kept in {run.folder}: run the same command to resume")
            collect = f"popmodel machine measure --samples {run.folder}"
            remark(f"for a profile of what was measured: {collect}")
        raise


def _warn(failures: Sequence[Failure]) -> None:
    """Say which launches were given up, and once each what to do about it."""
    said: set[str | None] = {None}
    for failure in failures:
        remark(f"warning: {failure.text}")
        hint = failure.error.hint
        if hint is not None and hint not in said:
            suggest(hint)
        said.add(hint)


def _written(
    document: dict[str, Any],
    samples: Sequence[Path],
    file: Path | None,
    arguments: Sequence[str],
    *,
    force: bool,
) -> MachineProfile:
    """The profile, in its file if there is one; says in what it is not what was asked for."""
    from popmodel.base import provenance
    from popmodel.cli.output import write_file
    from popmodel.machines import profile as profiles
    from popmodel.reports.formats import JSON
    from popmodel.reports.renderers.tables import Style

    for measurement in document["provenance"]["measurements"]:
        for text in measurement.get("shortfalls", ()):
            remark(f"warning: {measurement['samples']}: {text}")
    stamp = plain(provenance.collect(arguments, samples))
    document["provenance"] = {**document["provenance"], **stamp}
    # Checked before it is written: a good profile is not replaced by one that cannot be read.
    checked = profiles.from_document(document, "this machine" if file is None else str(file))
    found = MachineProfile(checked, tuple(map(str, samples)))
    if file is not None:
        text = JSON.render(found.to_dict(), found.views, Style())
        write_file(file, text, force=force, read=profiles.load)
    return found


# -- show, compare, check


_PROFILE = "A profile (.json) or the name of a preset."
_GIVEN = argument(
    "[PROFILE]", f"{_PROFILE} Default: sandybridge-fdr.", complete=(machine_presets, ".json")
)


def show(profile: Annotated[ProfileLike | None, _GIVEN] = None) -> MachineProfile:
    """Print a profile.

    The JSON of a preset is a profile to be changed: popmodel machine show NAME -o mine.json.
    """
    from popmodel.api.inputs import profile_of

    found = profile_of(profile)
    return MachineProfile(found, (found.path,))


def compare(
    first: Annotated[ProfileLike, argument("A", _PROFILE, complete=(machine_presets, ".json"))],
    second: Annotated[ProfileLike, argument("B", "Another.", complete=(machine_presets, ".json"))],
) -> MachineComparison:
    """Compare two profiles, taking their intervals into account.

    What differs most comes first. What differs in hardware and software may explain the rest.
    """
    from popmodel.api.inputs import profile_of
    from popmodel.machines.profile_comparison import diff
    from popmodel.reports.machine_values import unit_of

    profiles = profile_of(first), profile_of(second)
    differences = diff(*profiles)
    rows = [
        {
            "path": row.path,
            "unit": unit_of(row.path),
            "a": row.first,
            "b": row.second,
            "ratio": row.ratio,
            "within": row.within,
        }
        for row in differences
        if row.first is not None and row.second is not None
    ]
    # How far a ratio is from 1, whichever way; none at all is the farthest.
    rows.sort(
        key=lambda row: (
            row["within"],
            -abs(math.log(float(row["ratio"]))) if row["ratio"] else -math.inf,  # type: ignore[arg-type]
        )
    )
    found = document(
        "popmodel/machine-compare/1",
        machines=[{"machine": each.name, "path": each.path} for each in profiles],
        host=_differing(*profiles),
        rows=rows,
        only_a=[row.path for row in differences if row.second is None],
        only_b=[row.path for row in differences if row.first is None],
        summary={
            "compared": len(rows),
            "within": sum(row.within is True for row in differences),
        },
    )
    return MachineComparison(found, tuple(each.path for each in profiles))


_OF_THE_MOMENT = frozenset({"load", "measured"})  # differs from run to run


def _differing(*profiles: Profile) -> list[dict[str, str | None]]:
    """Processor, compiler, MPI, OpenMP and the like, where two profiles name others."""
    from popmodel.reports.machine_values import host_text

    first, second = (
        {
            key: host_text(value)
            for key, value in profile.document.get("host", {}).items()
            if isinstance(value, str | int | float) and key not in _OF_THE_MOMENT
        }
        for profile in profiles
    )
    return [
        {"key": key, "a": first.get(key), "b": second.get(key)}
        for key in dict.fromkeys([*first, *second])
        if first.get(key) != second.get(key)
    ]


def check(
    profile: Annotated[
        ProfileLike | None,
        argument(
            "[PROFILE]", f"{_PROFILE} Default: this machine.", complete=(machine_presets, ".json")
        ),
    ] = None,
    *,
    launcher: Annotated[
        str | None,
        option(
            "COMMAND",
            "Command that starts MPI ranks of this machine, with its options. Default: detected "
            "automatically.",
        ),
    ] = None,
) -> MachineCheck:
    """Check a profile, or whether this machine can be measured.

    Of a profile: what is missing, uncertain or unused. Without a profile: compiler, OpenMP, MPI,
    hardware counters, cores, noise and cache of this machine, and how to fix what does not work.
    Exits with status 1 if the profile is of no use, or the machine cannot be measured.
    """
    if profile is None:
        return _check_host(launcher)
    from popmodel.api.inputs import profile_of
    from popmodel.machines import profile_findings as findings
    from popmodel.machines.profile_schema import ProfileError

    if launcher is not None:
        raise UsageError(
            "--launcher: is of this machine, not of a profile", "leave one of them out"
        )
    given = profile_of(profile)
    usable = bool(given.quantities)  # noise alone predicts nothing
    found = document(
        "popmodel/machine-check/1",
        machine=given.name,
        path=given.path,
        usable=usable,
        quantities=len(given.quantities),
        findings=findings.inspect(given),
    )
    problem = ProfileError(
        given.path, "contains no parameters", hint="measure them: popmodel machine measure"
    )
    return MachineCheck(found, (given.path,), None if usable else problem)


def _check_host(launcher: str | None) -> MachineCheck:
    from popmodel.machines.bench.doctor_checks import examine, measurable
    from popmodel.machines.host import hardware

    here = hardware.here()
    checks = examine(here, launcher)
    found = document(
        "popmodel/host-check/1",
        measurable=measurable(checks),
        machine={**here.host(), **here.topology()},
        checks=checks,
    )
    failed = [one.name for one in checks if one.status == "fail"]
    problem = PopmodelError(
        f"this machine cannot be measured yet, failed: {', '.join(failed)}",
        "what to do stands behind each",
    )
    if failed == ["MPI"]:
        without = "popmodel machine measure --only core,memory,loops,openmp,noise"
        problem = PopmodelError("only a part can be measured without MPI", without)
    return MachineCheck(found, (), None if measurable(checks) else problem)


ACTIONS = {"measure": machine, "show": show, "compare": compare, "check": check}
