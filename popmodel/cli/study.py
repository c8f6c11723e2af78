"""``popmodel study``: from a program to the best split."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.units import parse_time
from popmodel.base.values import dataclass
from popmodel.cli.app import Verb
from popmodel.cli.command import OfCommand, argument, flag, option, verb
from popmodel.cli.inputs import several
from popmodel.cli.options import (
    CORES,
    assignments,
    example,
    number_of,
    one_of,
    quantity,
    settings,
    whole_number,
)
from popmodel.reports import formats
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from popmodel.cli.progress import ProgressLine
    from popmodel.machines.bench.suite import Progress
    from popmodel.reports.views import Document
    from popmodel.studies.plan import Prepared, StudyRequest
    from popmodel.studies.steps import Watch

EXAMPLES = (
    "popmodel study --cores 64 -- mpirun -n {P} ./app",
    "popmodel study --cores 64 --dry-run -- mpirun -n {P} ./app",
    "popmodel study --cores 64 --set N=64,128 -- mpirun -n {P} ./app {N}",
    "popmodel study --cores 256 --script slurm --max-cores 16 -- ./app",
)
FORMATS = (*formats.NAMES, formats.HTML.name)
CONDITIONS = True
REPORT = "report.html"
SUFFIX = ".study"
WAIT = "10min"
"""How long ``--wait`` without a time waits."""


class StudyCommand(Verb):
    """The verb, whose options end where the command begins, which has options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options up to the command; ``--wait`` may have no time."""
        ctx.allow_interspersed_args = False
        end = args.index("--") if "--" in args else len(args)
        for at in (n for n, word in enumerate(args[:end]) if word == "--wait"):
            if not args[at + 1 : at + 2] or args[at + 1].startswith("-"):
                args = [*args[: at + 1], WAIT, *args[at + 1 :]]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


VERB = StudyCommand


@dataclass(frozen=True)
class StudyResult(Result):
    """The splits that a study predicts, and what they rest on, as returned by `study`."""

    document: Document  # Schema ``popmodel/splits/1`` with the key ``study``, with provenance
    folder: Path  # Where everything is kept

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/splits/1``, without provenance."""
        return {key: value for key, value in self.document.items() if key != "provenance"}

    @property
    def files(self) -> tuple[str, ...]:
        """The manifest, which knows all files."""
        return (str(self.folder / "manifest.json"),)

    def values(self) -> list[ResultValue]:
        """Runtime and efficiency of the best split, and the error of the run left out."""
        from popmodel.cli.predict import best_splits, split_values

        checked = self.document["study"]["validation"]
        error = (
            ResultValue("error", None, "", "no run was predicted from the others")
            if checked is None
            else ResultValue("error", abs(checked["runtime"]["error"]))
        )
        splits = (split_values(one) for one in best_splits(self.document))
        return [*(value for values in splits for value in values), error]


class StudyPlan(OfCommand):
    """What a study would do, as returned by `study` with ``dry_run`` or ``script``."""


def _time(option: str, given: Any) -> float:
    """Read a time above 0."""
    seconds: float = quantity(parse_time)(option, given)
    if not seconds > 0:
        raise UsageError(f"{option} {given}: must be above 0", f"try {example(option, '5min')}")
    return seconds


def _values(option: str, given: Any) -> dict[str, tuple[float, ...]]:
    """Read the values that ``--set`` gives, several for a name."""
    found = {}
    for name, values, where in assignments(option, given, "N=128,256"):
        listed = values.split(",") if isinstance(values, str) else several(values)
        numbers = [number_of(value) for value in listed]
        if not all(abs(number) < 1e15 for number in numbers):
            raise UsageError(f"{where}: must be NAME=VALUE,VALUE,...", "try --set N=128,256")
        found[name] = tuple(dict.fromkeys(numbers))
    return found


@verb
def study(
    command: Annotated[
        str | Sequence[str],
        argument(
            "[--] COMMAND...",
            "The command to run, with {P} for the number of processes, and where the program "
            "needs them {T} for threads and {NAME} for a parameter (--set). Threads are also given "
            "as OMP_NUM_THREADS. Everything after it is passed on.",
            several=True,
        ),
    ] = (),
    *,
    cores: Annotated[int | Iterable[int] | None, CORES] = None,
    settings: Annotated[
        Mapping[str, float | Iterable[float]] | None,
        option(
            "NAME=V[,V...]",
            "Values of a parameter in the small runs, the smallest first. Can be repeated.",
            _values,
            name="--set",
            several=True,
        ),
    ] = None,
    target: Annotated[
        Mapping[str, float] | None,
        option(
            "NAME=VALUE",
            "Value of a parameter to predict. Default: the last one of --set. Can be repeated.",
            settings,
            several=True,
        ),
    ] = None,
    budget: Annotated[
        float | str, option("TIME", "Time for all runs together, with their repeats.", _time)
    ] = "5min",
    runs: Annotated[
        str | None,
        option(
            "PxT[,PxT...]",
            "The small runs. Default: a handful of splits of the cores of this machine.",
        ),
    ] = None,
    wait: Annotated[
        float | str | None,
        option(
            "[TIME]",
            "Wait until the machine is quiet before the first run, at most so long (10min where "
            "no time is given).",
            _time,
        ),
    ] = None,
    max_cores: Annotated[
        int | None,
        option("N", "Cores that a run may use. Default: those of this machine.", whole_number),
    ] = None,
    machine: Annotated[
        str | None,
        option(
            "FILE",
            "Profile of the machine that the runs are made on. Default: it is measured, which "
            "takes about a minute. May be given when the study goes on.",
        ),
    ] = None,
    target_machine: Annotated[
        str | None,
        option(
            "FILE",
            "Profile of the machine to find the best split for. Default: as many nodes like this "
            "one as are needed.",
        ),
    ] = None,
    signature: Annotated[
        str | None, option("FILE", "Use this signature. Default: it is found in the traces.")
    ] = None,
    dry_run: Annotated[bool, flag("Show the planned runs and exit.")] = False,
    script: Annotated[
        str | None,
        option(
            "slurm",
            "Write the runs as a job instead of running. It is not submitted; after it has ended, "
            "the same command goes on.",
            one_of(("slurm",)),
        ),
    ] = None,
    output: Annotated[
        str | os.PathLike[str] | None,
        option(
            "FOLDER",
            "Keep everything in this folder. Default: named after the program, in the current one.",
            short="-o",
        ),
    ] = None,
    force: Annotated[bool, flag("Begin anew in place of another study in the folder.")] = False,
) -> StudyResult | StudyPlan:
    """Find the best split for a program by a few small runs.

    Runs the program on few cores of this machine, each split several times, traces it, finds its
    signature in the traces, measures the machine, checks the prediction with a split that it left
    out, and predicts every split of the cores that you ask for. An interrupted study goes on when
    the same command is run again.

    Ids for --fail-if: runtime and parallel_efficiency (of the best split), error (of the runtime
    of the split that was left out).

    Parameters
    ----------
    command : str or sequence of str
        The command with its placeholders, as a text or as words.
    cores : int or several
        Cores to find the best split for.
    settings : mapping, optional
        For each parameter (``--set``) its values in the small runs, the smallest first.
    target : mapping of str to float, optional
        Values of parameters to predict; default: the last ones of `settings`.
    budget : float or str, optional
        Time for all runs together: seconds, or a text such as ``"5min"``.
    runs : str, optional
        The small runs, such as ``"1x1,2x1,1x2"``.
    wait : float or str, optional
        Wait until the machine is quiet before the first run, at most so long.
    max_cores : int, optional
        Cores that a run may use.
    machine, target_machine, signature : str, optional
        Files: the profile of this machine, that of the machine to predict, and the signature; by
        default they are made.
    dry_run : bool
        Only plan.
    script : {"slurm"}, optional
        Write a job that makes the runs.
    output : path, optional
        The folder; default: named after the program.
    force : bool
        Begin anew in place of another study in the folder.

    Returns
    -------
    StudyResult or StudyPlan
        The splits with what they rest on; the plan with `dry_run`, and where a job was written.

    Raises
    ------
    UsageError
        If the command or an option cannot be used.
    PopmodelError
        If no run can be made.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.study(["/bin/true", "{P}"], cores=64, max_cores=2, dry_run=True)
    <StudyPlan: plan of a study of true>
    """
    from popmodel.base.shell import plain as plain_name
    from popmodel.base.shell import split
    from popmodel.studies.plan import StudyRequest, prepared
    from popmodel.studies.study_documents import planned

    if cores is None:
        raise UsageError("--cores is missing", "try --cores 64")
    request = StudyRequest(
        command=split(command) if isinstance(command, str) else tuple(command),
        cores=tuple(several(cores)),
        settings=_values("settings", settings or {}),
        at=target or {},
        runs=runs,
        budget=_time("--budget", budget),
        max_cores=max_cores,
        machine=machine,
        target_machine=target_machine,
        signature=signature,
        script=script is not None,
    )
    about = prepared(request)
    folder = Path(plain_name(os.fspath(output or f"{about.name}{SUFFIX}"), "-o"))
    if dry_run:
        return StudyPlan(planned(request, about, folder))
    line, watch = _watch()
    with _kept_when_interrupted(folder, line):
        if request.script and (job := _job(request, about, folder, watch, force=force)):
            return StudyPlan(planned(request, about, folder, job))
        patience = None if wait is None else _time("--wait", wait)
        return StudyResult(_study(request, about, folder, watch, patience, force=force), folder)


def _watch() -> tuple[ProgressLine, Watch]:
    """What happens is told on standard error; how far a measurement is, on its last line."""
    from popmodel.cli.progress import ProgressLine, progress_line
    from popmodel.cli.streams import remark
    from popmodel.cli.trace import tracer
    from popmodel.studies.steps import Watch

    line = ProgressLine()

    def tell(text: str) -> None:
        line.clear()
        remark(text)

    def draw(at: Progress) -> None:
        line.draw(lambda width: progress_line(at.part, at.done, at.all, at.left, width))

    return line, Watch(tell, draw, tracer)


@contextmanager
def _kept_when_interrupted(folder: Path, line: ProgressLine) -> Iterator[None]:
    """Say how to go on when the user or the batch system ends the study."""
    from popmodel.base.files import as_exits
    from popmodel.cli.streams import remark
    from popmodel.studies.manifest import MANIFEST

    try:
        with as_exits():
            yield
    except BaseException as reason:
        line.clear()
        unusable = isinstance(reason, FileError) and (
            reason.path in (str(folder), str(folder / MANIFEST))
        )
        if not unusable and not isinstance(reason, UsageError):
            remark(f"what is done is kept in {folder}: the same command goes on with it")
        raise
    finally:
        line.clear()


# -- what is done


def _job(
    request: StudyRequest, about: Prepared, folder: Path, watch: Watch, *, force: bool
) -> Path | None:
    """Write the runs as a job; None if that was done before."""
    from popmodel.studies import executor, manifest, steps

    steps.check_given(request)
    with manifest.held(folder):
        steps.begun(folder, request, about, force=force)
        if executor.has_job(folder) and not force:
            return None
        library = watch.building(about.command)
        measure = request.machine is None
        return executor.write_job(folder, about, library, request.budget, measure=measure)


def _study(
    request: StudyRequest,
    about: Prepared,
    folder: Path,
    watch: Watch,
    patience: float | None,
    *,
    force: bool,
) -> Document:
    """Carry a study out, or go on with it."""
    from popmodel.studies import manifest, steps, study_documents

    steps.check_given(request)
    with manifest.held(folder):
        state = steps.begun(folder, request, about, force=force)
        state = steps.runs_made(state, request, about, watch, patience)
        found = steps.learnt(state, request, about, watch)
        state, rests = found.state, steps.rests(found, request)
        if not manifest.is_done(state, "result") or state.steps["result"].facts != rests:

            def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
                made = study_documents.documents(found, request, about)
                paths = [study_documents.keep(folder / name, made[name]) for name in made]
                return [*paths, *_page(folder / REPORT, paths, watch)], rests

            manifest.carried_out(state, "result", request.again(folder), work)
        return study_documents.kept(folder / study_documents.SPLITS)


def _page(path: Path, documents: Sequence[Path], watch: Watch) -> list[Path]:
    """Write the page of the splits and the check; the study is worth having without."""
    from popmodel.cli.report import report

    try:
        report(documents).save(path)
    except PopmodelError as error:
        watch.tell(f"warning: no {path.name}: {error.message}")
        return []
    return [path]
