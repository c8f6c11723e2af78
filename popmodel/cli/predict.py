"""``popmodel predict``: a run, or all splits of some cores, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from popmodel.base.errors import PopmodelError, UsageError, did_you_mean
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.cli.command import argument, option, verb
from popmodel.cli.completion import (
    TABLES,
    TRACES,
    bundled_signatures,
    family_names,
    metric_ids,
    what_if_factors,
)
from popmodel.cli.options import (
    BIND,
    CORES,
    CORES_PER_NODE,
    FOA,
    FROM_START,
    IMBALANCE,
    MACHINE,
    MAX_MEMORY,
    NODES,
    REGION,
    SCALING,
    SET,
    WINDOW,
    assignments,
    example,
    fraction,
    number_of,
    one_of,
    settings,
    split_and_settings,
    whole_number,
)
from popmodel.reports.formats import DRAWN
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    from popmodel.cli.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.model.run.process_placement import Allocation
    from popmodel.model.signature.application import Signature
    from popmodel.prediction.derivation import Formula
    from popmodel.prediction.prediction import PredictedRun, ReferenceRun
    from popmodel.prediction.projected_runs import ProjectedRuns
    from popmodel.prediction.split_sweep import SplitSweep
    from popmodel.reports.views import Document
    from popmodel.traces.selection import Foa, Window

    Input: TypeAlias = SignatureLike | TraceLike
    Reference: TypeAlias = int | tuple[int, int] | tuple[int, int, Mapping[str, float]]

EXAMPLES = (
    "popmodel predict --procs 16 --threads 4",
    "popmodel predict cannon --cores 16,64 --set N=4096",
    "popmodel predict app.toml --machine m.json --efficiency 0.8",
    "popmodel predict --cores 64 --what-if latency=0.5x,bandwidth=2x",
    "popmodel predict run_4.prv run_8.prv --procs 64",
    "popmodel predict app.toml runs.csv --machine m.json --cores 128",
    "popmodel predict --procs 16 --threads 4 --formula runtime",
)
FORMATS = DRAWN
CONDITIONS = True
LAWS = ("auto", "structural", "amdahl", "pipe", "linear")
_OF_SIGNATURES = ("machine", "settings", "nodes", "cores_per_node", "imbalance", "formula")
_OF_SPLITS = ("what_if", "max_memory")
_OF_RUNS = ("window", "region", "from_start", "foa")


def from_output(output: str | None, format: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse a picture of a single run, of which there is none, before anything is computed."""
    is_picture = format == "svg" or str(output).lower().endswith(".svg")
    if is_picture and given["cores"] is None and given["efficiency"] is None:
        raise UsageError(
            "a single run has no picture", "say --cores for a picture of splits, or -o x.html"
        )
    return {}


@dataclass(frozen=True)
class Prediction(Result):
    """A predicted run, all splits of some cores, or a formula, as returned by `predict`.

    It has the attributes of what it holds, such as ``runtime`` and ``metrics`` of a run
    (`popmodel.prediction.prediction.PredictedRun`), or ``candidates`` and ``choices`` of splits
    (`popmodel.prediction.split_sweep.SplitSweep`).
    """

    predicted: PredictedRun | SplitSweep | ProjectedRuns | Formula
    files: tuple[str, ...]  # The files that the result rests on
    families: tuple[str, ...] | None = None  # On the screen; None: the one that fits the run
    allocation: Allocation | None = None  # Of the machine; None of measured runs and formulas

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "predicted":
            raise AttributeError(name)
        return getattr(self.predicted, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of the command (``--format json``) without provenance."""
        return dict(self._document)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self.predicted.to_dict()  # type: ignore[union-attr]

    def shown_document(self) -> dict[str, Any]:
        """The document as the screen and the drawing show it."""
        return dict(self._shown)

    @cached_property
    def _shown(self) -> dict[str, Any]:
        shown = getattr(self.predicted, "shown_document", None)
        return self._document if shown is None else shown()

    def document_for(self, format_name: str) -> dict[str, Any]:
        """The document that is written in a format: a page has other sizes beside this one."""
        if format_name != "html":
            return super().document_for(format_name)
        document = self.to_dict()
        if self.allocation is None:
            return document
        from popmodel.cli.progress import counted
        from popmodel.prediction.split_sweep import other_sizes

        with counted("other sizes") as step:
            sizes = other_sizes(self.predicted, self.allocation, step)  # type: ignore[arg-type]
        return {**document, "sizes": sizes}

    def values(self) -> list[ResultValue]:
        """Runtime and efficiencies of a run, or of the best split of each number of cores."""
        document = self.to_dict()
        if "candidates" in document:
            return [value for best in best_splits(document) for value in split_values(best)]
        if "metrics" not in document:
            return []
        found = [_value("runtime", document["runtime"])]
        order = sorted(document["metrics"], key=lambda name: name != "hybrid-additive")
        for family in order:
            values, absent = document["metrics"][family], document["absent"][family]
            found += [_value(f"{family}.{id}", estimate) for id, estimate in values.items()]
            found += [ResultValue(f"{family}.{id}", None, "", why) for id, why in absent.items()]
        return found

    def failure(self) -> PopmodelError | None:
        """Numbers of cores that have no split."""
        impossible = getattr(self.predicted, "impossible", ())
        if not impossible:
            return None
        first, *others = impossible
        more = f"; {', '.join(str(one.cores) for one in others)} cores are not possible either"
        return PopmodelError(first.why + (more if others else ""), first.hint)


def best_splits(document: Document) -> list[Document]:
    """The split to take of each number of cores: the first of those that are as good."""
    candidates = {(one["processes"], one["threads"]): one for one in document["candidates"]}
    first: dict[int, Document] = {}
    for processes, threads in document["best"]:
        first.setdefault(processes * threads, candidates[processes, threads])
    return list(first.values())


def split_values(one: Document) -> list[ResultValue]:
    where = plural(one["processes"] * one["threads"], "core")
    ids = ("runtime", "parallel_efficiency")
    return [_value(id, one[id], where) for id in ids]


def _value(id: str, estimate: Mapping[str, Any], where: str = "") -> ResultValue:
    return ResultValue(id, estimate["value"], where, estimate.get("why", ""))


def _one_count(option: str, given: Any) -> int:
    """Read one number; several are numbers of cores."""
    if isinstance(given, str) and "," in given:
        raise UsageError(f"{option}: must be one number, not '{given}'", f"try --cores {given}")
    return whole_number(option, given)


def _efficiency(option: str, given: Any) -> float:
    """Read a fraction above 0 and at most 1, or a percentage."""
    value = fraction(given) if isinstance(given, str) else number_of(given)
    if not 0 < value <= 1:
        raise UsageError(
            f"{option}: must be above 0 and at most 1, not {given!r}",
            f"try {example(option, 0.8)}",
        )
    return value


def _changes(option: str, given: Any) -> dict[str, float]:
    """Read the factors that ``--what-if`` gives."""
    from popmodel.model.symbols import WHAT_IF

    changes = {}
    for name, factor, where in assignments(option, given, "clock=2x"):
        if name not in WHAT_IF:
            hint = did_you_mean(name, WHAT_IF, f"known: {', '.join(WHAT_IF)}")
            raise UsageError(f"{where}: unknown name {name!r}", hint)
        changes[name] = number_of(str(factor).removesuffix("x"))
        if not 0 < changes[name] < math.inf:
            raise UsageError(f"{where}: must be a factor above 0", "0.5 halves, 2 doubles")
    return changes


def _reference(option: str, given: Any) -> int | ReferenceRun:
    """Read the number of a measured run, or ``PxT[,NAME=VALUE]``."""
    from popmodel.prediction.prediction import ReferenceRun

    if isinstance(given, int) or str(given).isdecimal():
        return whole_number(option, given)
    processes, threads, *rest = (
        split_and_settings(option, given) if isinstance(given, str) else given
    )
    size = (
        whole_number(f"{option} processes", processes),
        whole_number(f"{option} threads", threads),
    )
    return ReferenceRun(*size, settings(f"{option} settings", rest[0]) if rest else {})


@verb
def predict(
    inputs: Annotated[
        Input | Iterable[Input],
        argument(
            "[INPUT...]",
            "What is known: a signature (.toml) or the name of a bundled one; or measured runs: "
            "traces and tables (.csv, .md, .txt, .json, ...); or both. Default: stencil3d.",
            several=True,
            complete=(bundled_signatures, ".toml", *TRACES, *TABLES),
        ),
    ] = (),
    *,
    procs: Annotated[int | None, option("P", "Processes of the run.", _one_count)] = None,
    threads: Annotated[
        int | None,
        option("T", "Threads per process. Default: 1; of measured runs, as most have.", _one_count),
    ] = None,
    cores: Annotated[int | Iterable[int] | None, CORES] = None,
    efficiency: Annotated[
        float | None,
        option(
            "E",
            "Find the largest number of cores with at least this parallel efficiency, such as 0.8.",
            _efficiency,
        ),
    ] = None,
    machine: Annotated[ProfileLike | None, MACHINE] = None,
    nodes: Annotated[int | None, NODES] = None,
    cores_per_node: Annotated[int | None, CORES_PER_NODE] = None,
    bind: Annotated[str, BIND] = "close",
    settings: Annotated[Mapping[str, float] | None, SET] = None,
    imbalance: Annotated[Mapping[str, float] | None, IMBALANCE] = None,
    what_if: Annotated[
        Mapping[str, float] | None,
        option(
            "NAME=FACTORx,...",
            "With --cores or --efficiency: scale latency, bandwidth, memory (bandwidth), clock, "
            "openmp (overhead) or imbalance.",
            _changes,
            complete=(what_if_factors,),
        ),
    ] = None,
    max_memory: Annotated[float | str | None, MAX_MEMORY] = None,
    family: Annotated[
        str | Sequence[str] | None,
        option(
            "NAMES",
            "Families of metrics in the table, separated by commas, or all. Default: the one that "
            "fits; other formats contain all.",
            complete=(family_names,),
        ),
    ] = None,
    reference: Annotated[
        Reference | None,
        option(
            "PxT[,NAME=VALUE]|RUN",
            "Reference run of the family scaling, such as 1x4 or 1x4,N=256 (another problem size: "
            "weak scaling); of measured runs its number, from 1. Default: 1x1 or the smallest "
            "possible part of the run; the run on the fewest cores.",
            _reference,
        ),
    ] = None,
    formula: Annotated[
        str | None,
        option(
            "METRIC",
            "Print the formula of a metric, or of the runtime (METRIC = runtime), and the effect "
            "of each input on it; LaTeX with --format markdown.",
            complete=("runtime", metric_ids),
        ),
    ] = None,
    law: Annotated[
        str,
        option(
            "LAW",
            "Law of the efficiencies of measured runs: structural, amdahl, pipe or linear. auto: "
            "for each factor the one that best foretells runs left out, if there are three sizes "
            "or more; else structural.",
            one_of(LAWS),
            complete=LAWS,
        ),
    ] = "auto",
    scaling: Annotated[str, SCALING] = "auto",
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    draws: int | None = None,
    seed: int = 0,
) -> Prediction:
    """Predict a run, or all splits of some cores, with 90 % intervals.

    From a signature and the profile of a machine: runtime and efficiencies, where the time goes,
    what would help, and how to launch it. With measured runs, what the signature and the machine
    leave uncertain is fitted to them first. From measured runs alone: each factor of the efficiency
    is carried to other sizes by a law.

    --procs and --threads ask for a run; --cores for every split of so many cores into processes and
    threads, the best of them, and what the usual defaults would cost; --efficiency for the largest
    number of cores that is worth its cost. Numbers of cores that have no split are named; the exit
    status is then 1.

    Parameters
    ----------
    inputs : str, path, Signature or Trace, or several of them, optional
        A signature: a file, the name of a bundled one, or a loaded one; default: ``stencil3d``. Or
        measured runs: traces and tables. Or both: the signature is fitted to the runs first.
    procs, threads : int, optional
        Processes and threads per process of a run; default: one thread, of measured runs as many as
        most have.
    cores : int or iterable of int, optional
        Numbers of cores of which all splits are predicted.
    efficiency : float, optional
        Parallel efficiency that the largest number of cores is to keep.
    machine : str, path or Profile, optional
        A machine profile: a file, the name of a preset, or a loaded one; default:
        ``sandybridge-fdr``.
    nodes, cores_per_node : int, optional
        Nodes to use, and cores to use of each; default: as few nodes as possible, all their cores.
    bind : {'close', 'spread', 'none'}, optional
        Where the threads of a process are: next to each other, as far apart as the cores of the
        process allow, or wherever the system puts them.
    settings : mapping of str to float, optional
        Parameters of the application that replace those of the signature.
    imbalance : mapping of str to float, optional
        Spreads of the work of processes that replace those of the signature: ``persistent`` (the
        same process is slow in every step) and ``transient`` (another one in every step), as
        coefficients of variation.
    what_if : mapping of str to float, optional
        Factors on ``latency``, ``bandwidth``, ``memory``, ``clock``, ``openmp``, ``imbalance``, for
        splits.
    max_memory : float or str, optional
        Memory limit per process of splits: bytes, or text such as ``"2GiB"``.
    family : str or sequence of str, optional
        Families of metrics on the screen; documents have all.
    reference : (int, int), (int, int, mapping of str to float) or int, optional
        Processes and threads of the run that the scaling metrics compare with, and its parameters
        that differ (weak scaling); of measured runs its number from 1.
    formula : str, optional
        Derive the formula of this metric, or of ``"runtime"``, for a run.
    law : {"auto", "structural", "amdahl", "pipe", "linear"}
        The law of all factors of measured runs; by default for each the one that foretells runs
        that are left out best, if there are three sizes or more, else the structural one.
    scaling : {"auto", "strong", "weak"}
        Whether all measured runs do the same work.
    window, region, from_start, foa
        The part of each trace, as for `popmodel.metrics`.
    draws, seed : int, optional
        Number of Monte Carlo draws of the uncertain inputs, and their seed.

    Raises
    ------
    FileError
        If a file cannot be read.
    UsageError
        If a parameter is unknown, or the application, the machine or the measured runs do not allow
        this size; the hint names what is possible.
    MissingQuantity
        If the machine profile lacks a value that the application needs.

    Examples
    --------
    >>> import popmodel
    >>> run = popmodel.predict("stencil3d", procs=16, threads=4, settings={"N": 512})
    >>> run.runtime.low < run["runtime"] < run.runtime.high
    True
    >>> run["parallel_efficiency"] > 0.7
    True
    >>> splits = popmodel.predict("stencil3d", cores=64)
    >>> [one.split for one in splits.candidates]
    [(64, 1), (32, 2), (16, 4), (8, 8), (4, 16)]
    >>> table = splits.to_dataframe()[["processes", "threads", "runtime_value"]]
    >>> carried = popmodel.predict("tests/data/cg.S.2.prv.gz", procs=8)
    >>> carried.to_dict()["trust"]["ok"]
    False
    """
    given = {
        name: value for name, value in locals().items() if value is not None and value is not False
    }
    for name in ("draws", "seed"):
        if name in given:
            whole_number(name, given[name], 0)
    from popmodel.cli.inputs import (
        kind_of,
        refuse_options,
        refuse_profile,
        several,
        signature_of,
    )

    _check_size(given)
    signatures: list[Any] = []
    runs: list[Any] = []
    for one in several(inputs):
        refuse_profile(one)
        (signatures if kind_of(one) == "signature" else runs).append(one)
    if runs and not signatures:
        among = (*_OF_SIGNATURES, *_OF_SPLITS)
        refuse_options(given, "needs a signature", among=among)
        return _project(runs, given)
    if len(signatures) > 1:
        raise UsageError(f"{len(signatures)} signatures are given", "predict one at a time")
    if runs:
        return _fit(signatures[0], runs, given)
    hint = "leave it out, or name a trace"
    refuse_options(given, "there are no measured runs", hint, _OF_RUNS)
    program = signature_of(signatures[0] if signatures else None)
    return _predict(program, given, (program.path,))


def _check_size(given: Mapping[str, Any]) -> None:
    """Refuse a call without a size, and one with two."""
    asked = [name for name in ("procs", "cores", "efficiency") if name in given]
    if not asked:
        what = (
            "--procs is missing"
            if "threads" in given
            else "--procs, --cores or --efficiency is missing"
        )
        raise UsageError(
            what, "try --procs 16 --threads 4 for a run, or --cores 64 for all of its splits"
        )
    if len(asked) > 1:
        one, other = (f"--{name}" for name in asked[:2])
        raise UsageError(f"{one} and {other} cannot be combined", "leave one of them out")
    if asked != ["procs"]:
        for name in ("threads", "formula", "reference"):
            if name in given and not (name == "reference" and isinstance(given[name], int)):
                raise UsageError(f"--{name} is about one run", f"say --procs, not --{asked[0]}")


# -- from a signature


def _fit(signature: SignatureLike, runs: Sequence[Any], given: Mapping[str, Any]) -> Prediction:
    """Predict from a signature whose uncertain numbers were fitted to runs."""
    from popmodel.cli.signature import signature as fit

    options = {name: given[name] for name in ("machine", *_OF_RUNS) if name in given}
    fitted = fit([signature, *runs], **options)
    return _predict(fitted.signature, given, fitted.files)


def _predict(program: Signature, given: Mapping[str, Any], files: tuple[str, ...]) -> Prediction:
    from popmodel.cli.inputs import choices, profile_of, refuse_options
    from popmodel.cli.progress import counted
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.model.run.process_placement import Allocation
    from popmodel.model.uncertainty import DEFAULT_COUNT

    program = program.with_imbalance(given.get("imbalance", {}))
    profile = profile_of(given.get("machine"))
    files = (*files, profile.path)
    settings = given.get("settings", {})
    allocation = Allocation(given.get("nodes"), given.get("cores_per_node"), given["bind"])
    drawn = {"draws": given.get("draws", DEFAULT_COUNT), "seed": given["seed"]}
    if "procs" not in given:
        from popmodel.prediction.split_sweep import sweep

        with counted("splits") as step:
            splits = sweep(
                program,
                profile,
                given.get("cores"),
                settings,
                what_if=given.get("what_if", {}),
                allocation=allocation,
                max_memory=given.get("max_memory"),
                efficiency=given.get("efficiency"),
                step=step,
                **drawn,
            )
        return Prediction(splits, files, allocation=allocation)
    refuse_options(given, "is about splits", "say --cores, not --procs", _OF_SPLITS)
    size = given["procs"], given.get("threads", 1)
    if "formula" in given:
        for name in ("family", "reference"):
            if name in given:
                raise UsageError(f"--formula and --{name} cannot be combined", _ALONE[name])
        from popmodel.prediction import derivation

        derived = derivation.formula(
            program, profile, *size, given["formula"], settings, allocation=allocation
        )
        return Prediction(derived, files)
    known = tuple(name for name, family in load_families().items() if not family.requires)
    families = choices(given.get("family"), known)
    from popmodel.prediction import prediction

    reference = given.get("reference")
    if isinstance(reference, int):
        raise UsageError(
            f"--reference {reference}: must be PROCESSESxTHREADS",
            "try --reference 1x1, or --reference 1x1,N=256 (in Python reference=(1, 1))",
        )
    predicted = prediction.predict(
        program, profile, *size, settings, reference=reference, allocation=allocation, **drawn
    )
    return Prediction(predicted, files, families, allocation)


_ALONE = {
    "family": "write --formula FAMILY.METRIC",
    "reference": "a formula describes one run: leave one of them out",
}


# -- from measured runs


def _project(runs: Sequence[Any], given: Mapping[str, Any]) -> Prediction:
    from popmodel.cli.measured_runs import read_runs
    from popmodel.prediction.projected_runs import AUTO, RunComparison, ask_run, ask_splits
    from popmodel.reports.figures import run_names
    from popmodel.traces.selection import TracePart

    law, mode, reference = given["law"], given["scaling"], given.get("reference")
    if given["bind"] != "close":
        raise UsageError("--bind: needs a signature", "leave it out")
    window, region, from_start, foa = (given.get(name) for name in _OF_RUNS)
    asked = TracePart.of(window, region, bool(from_start), foa)
    measured = read_runs(runs, asked=asked)
    names = run_names([run.place for run in measured.runs])
    if reference is not None and not (isinstance(reference, int) and reference <= len(names)):
        raise UsageError(f"--reference {reference}: no such run", f"use 1 to {len(names)}")
    compared = RunComparison.of(
        measured.runs,
        measured.warnings,
        names,
        None if mode == AUTO else mode,
        None if reference is None else reference - 1,
    )
    projected: ProjectedRuns
    if "procs" in given:
        projected = ask_run(compared, given["procs"], given.get("threads"), law)
    else:
        projected = ask_splits(compared, given.get("cores"), given.get("efficiency"), law)
    return Prediction(projected, measured.files, _families(given.get("family"), projected))


def _families(
    family: str | Sequence[str] | None, projected: ProjectedRuns
) -> tuple[str, ...] | None:
    """The families that are shown, of those that are projected."""
    from popmodel.cli.inputs import choices
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.fit.projection import TIME

    rows = projected.projection.rows
    known = tuple(dict.fromkeys(row.family for row in rows if row.family not in ("", TIME)))
    if family == "all":
        return known
    chosen = choices(family, tuple(load_families()))
    for name in chosen or ():
        if name not in known:
            raise UsageError(
                f"family {name!r} is not projected from these runs", f"families: {', '.join(known)}"
            )
    return chosen
