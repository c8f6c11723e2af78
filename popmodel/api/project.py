"""Measured efficiencies at other numbers of processes and threads, without a signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import TraceLike, several, whole_number
from popmodel.api.measured import MeasuredRuns, read_runs
from popmodel.api.project_document import described
from popmodel.base.errors import PopmodelError, UsageError, did_you_mean
from popmodel.base.units import format_time, plural
from popmodel.base.values import cut, dataclass
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import Comparable, Mode, Scaling, evaluate_all, scale
from popmodel.fit.efficiency_factors import completed
from popmodel.fit.efficiency_laws import LAWS
from popmodel.fit.projection import Projection
from popmodel.fit.projection import project as carry
from popmodel.reports.names import run_names
from popmodel.reports.project import views
from popmodel.reports.result import Result
from popmodel.runs.measurement import require_plausible
from popmodel.traces.selection import Foa, TracePart, Window

if TYPE_CHECKING:
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.reports.views import Views
    from popmodel.runs.measurement import MeasuredRow

AUTO = "auto"


@dataclass(frozen=True)
class Projected(Result):
    """Measured runs carried to other sizes, as returned by `project`."""

    measured: MeasuredRuns  # The runs, and what is doubtful about them
    evaluations: tuple[Mapping[str, FamilyEvaluation], ...]  # For each run, its families by id
    scaling: Scaling  # The runs against their reference run
    # The laws, the projected metrics, and plain extrapolations of the runtime.
    projection: Projection
    law: str  # The law that was asked for, or ``auto``
    # Families on the screen; None: the one that suits the runs.
    families: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        runtimes = [row for row in self.projection.rows if row.metric == "runtime"]
        shown = [
            f"{row.processes} x {row.threads} "
            + ("none" if row.value is None else format_time(row.value))
            for row in runtimes
        ]
        return cut(f"<Projected of {plural(len(self.measured.runs), 'run')}: {', '.join(shown)}>")

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/project/1``, without provenance."""
        return described(self.measured, self.evaluations, self.scaling, self.projection, self.law)

    @property
    def views(self) -> Views:
        return views(self.families)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the result rests on."""
        return self.measured.files


def project(
    runs: TraceLike | Iterable[TraceLike],
    procs: int | Sequence[int],
    threads: int | Sequence[int] | None = None,
    *,
    law: str = AUTO,
    family: str | Sequence[str] | None = None,
    scaling: Mode | None = None,
    reference: int | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
) -> Projected:
    """Carry measured efficiencies to other numbers of processes or threads.

    Each factor of the efficiency (load balance, serialisation, transfer, parallel regions,
    computation) has a law along the processes, or along the threads; metrics, runtime and speed-up
    at other sizes are computed from the projected factors.

    Parameters
    ----------
    runs : path or Trace, or several of them
        Traces, and tables of runs (``.csv``, ``.json``, ``.jsonl``, ``.txt``).
    procs : int or sequence of int
        Numbers of processes to project to.
    threads : int or sequence of int, optional
        Threads per process to project to; default: those of most runs.
    law : {"auto", "structural", "amdahl", "pipe", "linear"}
        The law of all factors; by default for each the one that foretells runs that are left out
        best, if there are three sizes or more, else the structural one.
    family : str or sequence of str, optional
        Families of metrics on the screen; default: the one that suits the runs. Documents have all.
    scaling : {"strong", "weak"}, optional
        Whether all runs do the same work (strong) or the work grows with the cores (weak); default:
        detected automatically.
    reference : int, optional
        The reference run of scaling, from 1; default: the run on the fewest cores.
    window, region, from_start, foa
        The part of each trace, as for `popmodel.metrics`.

    Raises
    ------
    FileError
        If a run cannot be read or analysed.
    UsageError
        If an argument is wrong, runs are of different problems, or none has the threads or the
        processes of a target.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.project(["tests/data/cg.S.2.prv.gz"], procs=[4, 8])
    >>> [row.processes for row in found.projection.rows if row.metric == "transfer_efficiency"]
    [4, 4, 8, 8]
    """
    if law not in (AUTO, *LAWS):
        hint = did_you_mean(str(law), (AUTO, *LAWS), f"choose one of {', '.join((AUTO, *LAWS))}")
        raise UsageError(f"law: unknown value {law!r}", hint)
    processes = _sizes("procs", procs)
    teams = None if threads is None else _sizes("threads", threads)
    asked = TracePart.of(window, region, from_start, foa)
    found = read_runs(runs, asked=asked)
    if scaling is None:
        _check_problem(found.runs)
    names = run_names([run.place for run in found.runs])
    if reference is not None and whole_number("reference", reference) > len(names):
        raise UsageError(f"reference {reference}: no such run", f"use 1 to {len(names)}")
    aggregates = [completed(run) for run in found.runs]
    comparable = [Comparable(*one) for one in zip(names, aggregates, strict=True)]
    scaled = scale(comparable, scaling, None if reference is None else reference - 1)
    evaluated = tuple(evaluate_all(one, scaled, index) for index, one in enumerate(comparable))
    for run, families in zip(found.runs, evaluated, strict=True):
        try:
            require_plausible({name: one.values for name, one in families.items()})
        except PopmodelError as reason:
            raise UsageError(
                f"{run.place}: against {found.runs[scaled.reference].place}, {reason}",
                "give runs of one program and one unit of time, or another --reference",
            ) from None
    chosen = teams or [_usual_team(found.runs)]
    targets = [(p, t) for t in chosen for p in processes]
    projection = carry(
        found.runs, targets, scaled.mode, scaled.reference, None if law == AUTO else law
    )
    return Projected(found, evaluated, scaled, projection, law, _families(family, projection))


def _sizes(name: str, given: int | Sequence[int]) -> list[int]:
    sizes = [whole_number(name, each) for each in several(given)]
    if not sizes:
        raise UsageError(f"{name}: no number given", f"try {name}=64")
    return sizes


def _check_problem(runs: Sequence[MeasuredRow]) -> None:
    """Refuse runs of several problems, unless it is said how these scale."""
    names = dict.fromkeys(name for run in runs for name in run.parameters)
    for name in names:
        values = list(dict.fromkeys(run.parameters.get(name) for run in runs))
        if len(values) > 1:
            shown = ", ".join("not known" if each is None else f"{each:g}" for each in values[:3])
            raise UsageError(
                f"runs of different problems: {name} is {shown}",
                "project runs of one problem size, or say --scaling weak if the work grows with "
                "the cores",
            )


def _usual_team(runs: Sequence[MeasuredRow]) -> int:
    """T of most different numbers of processes, the largest of several."""
    teams = {run.threads for run in runs}
    return max(teams, key=lambda t: (len({r.processes for r in runs if r.threads == t}), t))


def _families(family: str | Sequence[str] | None, projection: Projection) -> tuple[str, ...] | None:
    if family is None:
        return None
    known = tuple(dict.fromkeys(row.family for row in projection.rows if row.family))
    if family == "all":
        return known
    for name in several(family):
        if name not in known:
            projected = name in load_families()
            what = "is not projected from these runs" if projected else "is unknown"
            hint = did_you_mean(str(name), known, f"families: {', '.join(known)}")
            raise UsageError(f"family {name!r} {what}", hint)
    return tuple(several(family))
