"""``popmodel study``: from a program to the best split."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.plain import document as document_of
from popmodel.base.plain import plain
from popmodel.base.units import parse_time
from popmodel.base.values import cut, dataclass
from popmodel.cli.app import Verb
from popmodel.cli.command import argument, flag, option
from popmodel.cli.options import number_of, settings, whole_number
from popmodel.cli.parameters import CORES, one_of
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from popmodel.cli.progress import ProgressLine
    from popmodel.cli.validate import Validation
    from popmodel.machines.bench.suite import Progress
    from popmodel.machines.profile import Profile
    from popmodel.model.signature.program import Signature
    from popmodel.reports.views import Document, Views
    from popmodel.studies.machine import TargetMachine
    from popmodel.studies.manifest import Manifest, StudyStep
    from popmodel.studies.plan import PlannedRun, Prepared, StudyRequest
    from popmodel.studies.steps import StudySteps, Watch

EXAMPLES = (
    "popmodel study --cores 64 -- mpirun -n {P} ./app",
    "popmodel study --cores 64 --dry-run -- mpirun -n {P} ./app",
    "popmodel study --cores 64 --set N=64,128 -- mpirun -n {P} ./app {N}",
    "popmodel study --cores 256 --script slurm --max-cores 16 -- ./app",
)
CONDITIONS = True
SPLITS, VALIDATION, REPORT = "splits.json", "validation.json", "report.html"
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

    def __repr__(self) -> str:
        from popmodel.cli.predict import figures

        doubts = "" if self.document["trust"]["ok"] else "not to be trusted yet: "
        told = self.document["study"]
        return cut(
            f"<Study of {told['program']} by {len(told['runs'])} runs: {doubts}"
            f"{'; '.join(figures(self.document))}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/splits/1``, without provenance."""
        return {key: value for key, value in self.document.items() if key != "provenance"}

    @property
    def views(self) -> Views:
        from popmodel.reports.study_tables import VIEWS

        return VIEWS

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


@dataclass(frozen=True)
class StudyPlan(Result):
    """What a study would do, as returned by `study` with ``dry_run`` or ``script``."""

    document: Document  # Schema ``popmodel/study-plan/1``
    files: tuple[str, ...] = ()

    def __repr__(self) -> str:
        runs = ", ".join(run["name"] for run in self.document["runs"])
        return cut(f"<StudyPlan of {self.document['program']}: {runs}>")

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/study-plan/1``, without provenance."""
        return dict(self.document)

    @property
    def views(self) -> Views:
        from popmodel.reports.study_tables import PLAN

        return PLAN


def _time(name: str, text: str | float) -> float:
    """Read a time above 0."""
    try:
        seconds = parse_time(text) if isinstance(text, str) else float(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from None
    if not seconds > 0:
        raise UsageError(f"{name} {text}: must be above 0", f"try {name} 5min")
    return seconds


def _values(name: str, texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Read the values that ``--set`` gives, several for a name."""
    found: dict[str, tuple[float, ...]] = {}
    for text in texts:
        parameter, sign, values = (part.strip() for part in text.partition("="))
        numbers = [number_of(value) for value in values.split(",")]
        if not sign or not parameter or not all(abs(number) < 1e15 for number in numbers):
            raise UsageError(f"{name} {text}: must be NAME=VALUE,VALUE,...", "try --set N=128,256")
        if parameter in found:
            raise UsageError(
                f"{name} {text}: {parameter} is set twice",
                f"write --set {parameter}=VALUE,VALUE",
            )
        found[parameter] = tuple(dict.fromkeys(numbers))
    return found


def _target(name: str, texts: Sequence[str]) -> dict[str, float]:
    return settings(texts, name)


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
            _target,
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
    """
    from popmodel.base.shell import plain as plain_name
    from popmodel.base.shell import split
    from popmodel.studies.plan import StudyRequest, prepared

    if cores is None:
        raise UsageError("--cores is missing", "try --cores 64")
    from popmodel.api.inputs import several

    request = StudyRequest(
        command=split(command) if isinstance(command, str) else tuple(command),
        cores=tuple(several(cores)),
        settings={name: tuple(several(given)) for name, given in (settings or {}).items()},
        at=dict(target or {}),
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
        return StudyPlan(_plan(request, about, folder))
    line, watch = _watch()
    patience = None if wait is None else _time("--wait", wait)
    with _kept_when_interrupted(folder, line):
        if request.script and (job := _job(request, about, folder, watch, force=force)):
            return StudyPlan(_plan(request, about, folder, job))
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


def _plan(
    request: StudyRequest, about: Prepared, folder: Path, job: Path | None = None
) -> dict[str, Any]:
    """The document of what would be done, ``popmodel/study-plan/1``."""
    from popmodel.studies.executor import command_of, submit_command
    from popmodel.studies.plan import left_out

    out = left_out(list(dict.fromkeys(run.configuration for run in about.runs)))
    return document_of(
        "popmodel/study-plan/1",
        folder=folder,
        program=about.name,
        cores=request.cores,
        cores_of_runs=about.cores,
        budget=request.budget,
        runs=[
            {
                "name": run.name,
                **run.to_dict(),
                "role": _role(run, out),
                "command": command_of(folder, about, run),
            }
            for run in about.runs
        ],
        target=request.target,
        machine=request.machine,
        target_machine=request.target_machine,
        job=job,
        submit=None if job is None else submit_command(folder),
    )


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
    from popmodel.studies import manifest, steps

    steps.check_given(request)
    with manifest.held(folder):
        state = steps.begun(folder, request, about, force=force)
        state = steps.runs_made(state, request, about, watch, patience)
        found = steps.learnt(state, request, about, watch)
        rests = steps.rests(found, request)
        if (
            not manifest.is_done(found.state, "result")
            or found.state.steps["result"].facts != rests
        ):

            def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
                return _results(found, request, about, watch), rests

            again = request.again(folder)
            manifest.carried_out(found.state, "result", again, work)
        return _kept(folder / SPLITS)


def _results(found: StudySteps, request: StudyRequest, about: Prepared, watch: Watch) -> list[Path]:
    """Write the splits, the check of the prediction, and the page of both."""
    folder = found.state.folder
    documents = _documents(found, request, about)
    for name, content in documents.items():
        _keep(folder / name, content)
    paths = [folder / name for name in documents]
    try:
        from popmodel.cli.report import report

        report(paths).save(folder / REPORT)
    except PopmodelError as error:  # what it shows is there
        watch.tell(f"warning: no {REPORT}: {error.message}")
        return paths
    return [*paths, folder / REPORT]


def _kept(path: Path) -> Document:
    """Read a document that was kept."""
    from popmodel.base.document_schemas import check
    from popmodel.base.documents import parse_json, read_text

    kept: dict[str, Any] = parse_json(read_text(path), path)
    check(kept, path)
    return kept


def _keep(path: Path, content: Mapping[str, Any]) -> None:
    from popmodel.base.files import write_text
    from popmodel.studies.manifest import unwritable

    try:
        text = json.dumps(content, indent=1, allow_nan=False)
        write_text(path, f"{text}\n", read=_kept)
    except OSError as error:
        raise unwritable(path, error) from error


# -- documents


def _documents(found: StudySteps, request: StudyRequest, about: Prepared) -> dict[str, Any]:
    """The splits and the check, by the names of their files."""
    from popmodel.base import shell
    from popmodel.machines import profile
    from popmodel.machines.profile import MissingQuantity
    from popmodel.model import signatures
    from popmodel.prediction.prediction import trust
    from popmodel.prediction.split_sweep import sweep
    from popmodel.studies import learning, machine

    state, made, out = found
    folder = state.folder
    signature = signatures.load(folder / learning.SIGNATURE)
    if signature.command == (f"./{signature.name}",):  # found anew or written by hand without it
        signature = replace(signature, command=about.own_words)
    here = profile.load(request.machine or folder / machine.PROFILE)
    checked = _checked(found, request, here)
    validated = checked.to_dict() if isinstance(checked, Result) else None
    (split,) = validated["splits"][:1] if validated else (None,)
    compared = split["runtime"] if split else checked if isinstance(checked, str) else None
    doubts = [*learning.without_structure(state), *learning.doubts(made, out, compared)]
    try:
        there = _target_machine(request, here, folder)
        swept = sweep(signature, there.profile, request.cores, request.target, trusted=not doubts)
    except MissingQuantity as error:
        here = machine.unknown(folder / machine.UNKNOWN)
        assumed = f"all of the machine but its shape, because {error.message}"
        there = _target_machine(request, here, folder)._replace(assumed=assumed)
        swept = sweep(signature, there.profile, request.cores, request.target, trusted=not doubts)
    content = swept.to_dict()
    if doubts:
        learnt = content.get("learnt") or {"next_run": _larger(made, signature), "runs": []}
        # what says of each run that its threads waited is said of all of them
        others = [one for one in learnt.get("doubts", ()) if "waited for CPUs" not in one]
        every = [*doubts, *others]
        content |= {"learnt": {**learnt, "doubts": every}, "trust": trust(every)}
    predicting = ["popmodel", "predict", str(folder / learning.SIGNATURE), "--machine", there.file]
    predicting += ["--cores", ",".join(map(str, request.cores)), *_set(request.target)]
    commands = [*_commands(state, made), {"step": "splits", "command": shell.join(predicting)}]
    documents: dict[str, Any] = {}
    if validated is not None:
        validating = _validate_command(found, request, here)
        commands.append({"step": "validation", "command": validating})
        documents[VALIDATION] = _stamped(validated, validating)
    told = {
        **_told(found, request, about),
        "validation": None
        if split is None or validated is None
        else {
            **{key: split[key] for key in ("processes", "threads", "parameters", "runtime")},
            "verdict": validated["verdict"],
        },
        "machine": {"path": there.file, "assumed": there.assumed},
        "next": _next(content, found, request, about),
        "commands": commands,
    }
    documents[SPLITS] = _stamped({**content, "study": plain(told)}, request.again(folder))
    return documents


def _stamped(content: Mapping[str, Any], command: str) -> dict[str, Any]:
    from popmodel.base import provenance

    return {**content, "provenance": {**plain(provenance.collect(())), "command": command}}


def _target_machine(request: StudyRequest, here: Profile, folder: Path) -> TargetMachine:
    from popmodel.machines import profile
    from popmodel.studies import machine

    if request.target_machine is not None:
        given = profile.load(request.target_machine)
        return machine.TargetMachine(given, machine.word(given))
    return machine.target(here, request.cores, folder / machine.TARGET)


def _checking(found: StudySteps, request: StudyRequest) -> tuple[Path, list[Path]]:
    """The signature that has not seen the configuration that was left out, and its traces."""
    from popmodel.studies import learning
    from popmodel.studies.executor import trace_of, undisturbed

    folder = found.state.folder
    name = learning.SIGNATURE if request.signature else learning.CHECK
    runs = [run for run in undisturbed(found.made) if run.configuration == found.out]
    return folder / name, [trace_of(folder, run) for run in runs]


def _checked(found: StudySteps, request: StudyRequest, here: Profile) -> Validation | str | None:
    """The configuration that was left out beside its prediction; a text says why there is none."""
    from popmodel.cli.validate import validate

    if found.out is None:
        return None
    signature, traces = _checking(found, request)
    settings = dict(found.out.settings)
    try:
        return validate(signature, traces, machine=here, settings=settings, all_runs=True)
    except PopmodelError as error:
        return error.message


def _validate_command(found: StudySteps, request: StudyRequest, here: Profile) -> str:
    from popmodel.base import shell
    from popmodel.studies import machine

    assert found.out is not None
    signature, traces = _checking(found, request)
    words = ["popmodel", "validate", str(signature), *map(str, traces)]
    words += ["--machine", machine.word(here), "--all-runs", *_set(dict(found.out.settings))]
    return shell.join(words)


def _set(values: Mapping[str, float]) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value:.15g}")]


def _larger(made: Iterable[PlannedRun], signature: Signature) -> dict[str, int]:
    """A run of more processes than those that were made, which the program takes."""
    from popmodel.studies.plan import refusal

    largest = max(made, key=lambda run: run.cores)
    larger = [replace(largest, processes=n * largest.processes) for n in range(2, 17)]
    advised = next((run for run in larger if refusal(signature, run) is None), larger[0])
    return {"processes": advised.processes, "threads": advised.threads}


def _next(
    content: Document, found: StudySteps, request: StudyRequest, about: Prepared
) -> dict[str, Any] | None:
    """What to run next: what makes the answer trustworthy, else what decides the choice."""
    from popmodel.studies import executor

    if content["trust"]["ok"]:
        doubt = content["choices"][-1]["doubt"]
        if doubt is None or doubt["command"] is None:
            return None
        name = next(iter(doubt["inputs"]))
        return {"why": f"measure what the choice depends on ({name})", "command": doubt["command"]}
    folder, splits = found.state.folder, executor.by_configuration(found.made)
    busy = [
        run.name
        for run, repeats in splits.items()
        if all(step.facts["waited"] > executor.DISTURBED for step in repeats)
    ]
    if busy:
        again = request.again(folder, "--force", "--wait", WAIT)
        return {"why": "run all again while nothing else runs on this machine", "command": again}
    advised = content["learnt"]["next_run"]
    processes, threads = advised["processes"], advised["threads"]
    why = f"a run of {processes} x {threads} would tell most"
    if processes * threads > max(request.cores):
        longer = replace(request, budget=2 * request.budget).again(folder)
        return {"why": "take more time for repeats", "command": longer}
    if processes * threads > about.cores:
        return {"why": f"{why}: repeat the study on a machine of more cores", "command": None}
    names = [f"{run.processes}x{run.threads}" for run in splits]
    runs = ",".join(dict.fromkeys([*names, f"{processes}x{threads}"]))
    return {"why": why, "command": replace(request, runs=runs).again(folder)}


def _told(found: StudySteps, request: StudyRequest, about: Prepared) -> dict[str, Any]:
    """What was done."""
    from popmodel.studies import executor, learning

    state, made, out = found
    folder = state.folder
    signature, load = state.steps["signature"], state.steps.get("load")
    return {
        "folder": folder,
        "program": about.name,
        "words": request.command,
        "load": None if load is None else load.facts,
        "runs": [
            {
                "name": run.name,
                **run.to_dict(),
                "role": _role(run, out),
                "seconds": step.facts["seconds"],
                "runtime": step.facts["runtime"],
                "waited": step.facts["waited"],
                "disturbed": step.facts["waited"] > executor.DISTURBED,
                "trace": executor.trace_of(folder, run),
            }
            for run, step in made.items()
        ],
        "budget": request.budget,
        "not_run": _not_run(state, about, made),
        "signature": {
            "path": folder / learning.SIGNATURE,
            "given": signature.facts["given"],
            "notes": signature.facts["notes"],
        },
        "target": request.target,
    }


def _role(run: PlannedRun, out: PlannedRun | None) -> str:
    return "predicted" if run.configuration == out else "learnt from"


def _not_run(
    state: Manifest, about: Prepared, made: Mapping[PlannedRun, StudyStep]
) -> list[dict[str, str]]:
    """Configurations that were planned and are not used, and why."""
    from popmodel.studies import executor

    single = executor.without_threads(about.words, executor.done_runs(state, about.runs))
    known = {run.configuration for run in made}
    found = []
    for run in dict.fromkeys(run.configuration for run in about.runs):
        if run in known:
            continue
        failed = executor.failure(state, run)
        if single is not None and run.threads > 1:
            why = single
        else:
            why = "the budget" if failed is None else failed.removeprefix(f"run {run.split} ")
        found.append({"name": run.name, "why": why})
    return found


def _commands(state: Manifest, made: Mapping[PlannedRun, StudyStep]) -> list[dict[str, str]]:
    """What does each step of the study by itself, in order; repeats are alike."""
    from popmodel.studies.executor import step_of

    steps = [step_of(run) for run in made if run.repeat == 1]
    steps += [name for name in ("machine", "check", "signature") if name in state.steps]
    return [{"step": name, "command": state.steps[name].command} for name in steps]
