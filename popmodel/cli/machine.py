"""``popmodel machine``: measure this machine; show, compare and check profiles."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.values import dataclass, document, plain
from popmodel.cli.command import OfCommand, argument, flag, option, verb
from popmodel.cli.completion import machine_presets
from popmodel.cli.options import one_of, whole_number
from popmodel.cli.streams import remark, suggest, warn_of_packaged, write_out
from popmodel.reports import formats
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from popmodel.cli.inputs import ProfileLike
    from popmodel.machines.bench.bench_plan import MeasurementRequest
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
FORMATS = (*formats.NAMES, formats.HTML.name)
CONDITIONS = True
DEFAULT_FILE = "machine.json"
RENAMED = {"--quick": "the default: leave it out"}


@dataclass(frozen=True)
class MachineProfile(Result):
    """A machine profile, as returned by `machine`."""

    profile: Profile
    files: tuple[str, ...] = ()  # The samples, or the profile

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
        """How the profile is shown; one that was read knows more than its document."""
        from popmodel.reports.machine_tables import views

        return views(self.profile)

    def values(self) -> list[ResultValue]:
        """The quantities by their paths, such as ``memory.bsat``."""
        return [ResultValue(path, one.value) for path, one in self.profile.quantities.items()]


class MachineFindings(OfCommand):
    """What is doubtful in a profile, how two differ, or whether this machine can be measured."""

    def values(self) -> list[ResultValue]:
        """How many findings there are, or what part of two profiles is equal within intervals."""
        if "summary" in self.found:
            summary = self.found["summary"]
            equal = summary["within"] / summary["compared"] if summary["compared"] else None
            return [ResultValue("equal", equal, why="no common parameters")]
        findings = self.found.get("findings", ())
        return [ResultValue("findings", sum(one["kind"] != "unused" for one in findings))]


# -- measure


def _parts(_: Any) -> Sequence[str]:
    from popmodel.machines.register import PARTS

    return PARTS


@verb
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
        str | os.PathLike[str],
        option(
            "FILE",
            "Write the profile to FILE (.json); - only shows it. The samples are kept beside it, "
            "in FILE with the suffix .samples.",
            short="-o",
        ),
    ] = DEFAULT_FILE,
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
    output : path
        The profile's file, ``.json``; samples are kept beside it. ``"-"``: no file.
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
    from popmodel.machines.register import PARTS

    file = None if output == "-" else Path(output or DEFAULT_FILE)
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
        _write_script(request, file or Path(DEFAULT_FILE), partly=only is not None, force=force)
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
    from popmodel.cli.progress import ProgressLine, progress_line
    from popmodel.machines import profile as profiles
    from popmodel.machines.bench import collect, run_directory

    there = file is not None and file.exists()
    kept = profiles.load(file).document if partly and there and file is not None else None
    folder = run_directory.beside(file or Path(DEFAULT_FILE), request.parts if partly else ())
    line = ProgressLine()

    @contextlib.contextmanager
    def watch(run: StoredMeasurement) -> Iterator[None]:
        _tell(run)
        try:
            yield
        except (KeyboardInterrupt, SystemExit):  # of the user, or of a batch system
            line.clear()
            remark(f"samples are kept in {folder}: run the same command to resume")
            words = f"popmodel machine measure --samples {folder}"
            remark(f"for a profile of what was measured: {words}")
            raise
        finally:
            line.clear()

    document, paths, failures = collect.measure(
        request,
        folder,
        force=force,
        keep=not (there or force),
        progress=lambda at: line.draw(
            lambda width: progress_line(at.part, at.done, at.all, at.left, width)
        ),
        watch=watch,
    )
    _warn(failures)
    if kept is not None:
        document = collect.replace_parts(kept, document, request.parts)
    return _written(document, paths, file, arguments, force=force)


def _tell(run: StoredMeasurement) -> None:
    """Say what will be done."""
    from popmodel.base.units import format_time
    from popmodel.machines.bench import run_directory

    if run.is_completed:
        remark(f"already measured, samples in {run.folder}: use --force to measure again")
        return
    launches = run.plan.launches
    left = sum(len(run_directory.missing(run, launch)) for launch in launches)
    total = sum(len(launch.jobs) for launch in launches)
    jobs = f"resuming, {left} of {total} jobs left" if left < total else f"{total} jobs"
    remark(f"{jobs} in {len(launches)} launches; samples go to {run.folder}")
    if run.plan.is_longer_than_meant:
        seconds = format_time(run.plan.seconds, digits=2)
        remark(f"this may take up to {seconds} on so many cores; --only measures fewer parts")


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
    from popmodel.reports.renderers.text import Style

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
    from popmodel.cli.inputs import profile_of

    found = profile_of(profile)
    return MachineProfile(found, (found.path,))


def compare(
    first: Annotated[ProfileLike, argument("A", _PROFILE, complete=(machine_presets, ".json"))],
    second: Annotated[ProfileLike, argument("B", "Another.", complete=(machine_presets, ".json"))],
) -> MachineFindings:
    """Compare two profiles, taking their intervals into account.

    What differs most comes first. What differs in hardware and software may explain the rest.
    """
    from popmodel.cli.inputs import profile_of
    from popmodel.machines.profile_comparison import diff
    from popmodel.reports.machine_tables import unit_of

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
    return MachineFindings(found, files=tuple(each.path for each in profiles))


_OF_THE_MOMENT = frozenset({"load", "measured"})  # differs from run to run


def _differing(*profiles: Profile) -> list[dict[str, str | None]]:
    """Processor, compiler, MPI, OpenMP and the like, where two profiles name others."""
    from popmodel.reports.machine_tables import host_text

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
) -> MachineFindings:
    """Check a profile, or whether this machine can be measured.

    Of a profile: what is missing, uncertain or unused. Without a profile: compiler, OpenMP, MPI,
    hardware counters, cores, noise and cache of this machine, and how to fix what does not work.
    Exits with status 1 if the profile is of no use, or the machine cannot be measured.
    """
    if profile is None:
        return _check_host(launcher)
    from popmodel.cli.inputs import profile_of
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
    return MachineFindings(found, files=(given.path,), problem=None if usable else problem)


def _check_host(launcher: str | None) -> MachineFindings:
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
    return MachineFindings(found, problem=None if measurable(checks) else problem)


ACTIONS = {"measure": machine, "show": show, "compare": compare, "check": check}
