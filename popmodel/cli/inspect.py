"""``popmodel inspect``: what a run does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import PartError, PopmodelError, UsageError
from popmodel.base.values import document
from popmodel.cli.command import OfCommand, option, verb
from popmodel.cli.options import (
    APPLICATION,
    FLOP_RATE,
    FOA,
    FROM_START,
    REGION,
    TRACE,
    WINDOW,
    one_of,
)
from popmodel.reports.formats import DRAWN
from popmodel.reports.result import ResultValue

if TYPE_CHECKING:
    from popmodel.cli.inputs import TraceLike
    from popmodel.traces import Trace
    from popmodel.traces.selection import Foa, TracePart, Window

EXAMPLES = (
    "popmodel inspect run.prv",
    "popmodel inspect run.prv --show phases --foa auto",
    "popmodel inspect run.prv --show structure --all",
    "popmodel inspect run.prv --show communication -o matrix.svg",
    "popmodel inspect run.prv --format json | jq .structure.period",
)
FORMATS = DRAWN
CONDITIONS = True
RESOURCES = True
PARTS = ("info", "structure", "phases", "communication")


class Inspection(OfCommand):
    """What a run does, as returned by `inspect`."""

    def values(self) -> list[ResultValue]:
        """The numbers that have a name."""
        info, structure, phases, talk = (self.found.get(name) for name in PARTS)
        found: dict[str, float | None] = {}
        if info:
            found |= {"processes": info["processes"], "runtime": info["runtime"]}
        if structure:
            iterations = structure["iterations"]
            found["iterations"] = len(iterations["begins"]) - 1 if iterations else 0
            found |= {name: structure[name] for name in ("period", "confidence")}
        if phases:
            found |= {"phases": len(phases["phases"]), "computing": phases["computing"]}
            found["load_balance"] = (phases["load_balance"] or {}).get("value")
        if talk:
            found |= {name: talk[name] for name in ("messages", "bytes")}
            found["patterns"] = len(talk["patterns"])
        return [ResultValue(id, value) for id, value in found.items()]


@verb
def inspect(
    trace: Annotated[TraceLike, TRACE],
    *,
    show: Annotated[
        str | None,
        option(
            "PART",
            "Show one part whole: what the trace holds (info), its iterations (structure), where "
            "it computes (phases), who talks to whom (communication). Default: what "
            "matters of all.",
            one_of(PARTS),
            complete=PARTS,
        ),
    ] = None,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    application: Annotated[int, APPLICATION] = 1,
    flop_rate: Annotated[float | None, FLOP_RATE] = None,
) -> Inspection:
    """Show what a run does: iterations, phases, communication.

    Shows what the trace holds and what is wrong with it; the iterations, and a few that are like
    the others (--foa auto takes them in other commands); the phases that take the time, told apart
    by where they stand in the program, and why processes differ in them; who talks to whom and the
    patterns of it: halo, shift, pipeline, butterfly, transpose, ring, all pairs, root, collectives.

    Iterations are those of the whole run. Phases are those from MPI_Init to MPI_Finalize, records
    and messages those of the whole trace, unless a part is selected.

    Parameters
    ----------
    trace : path or Trace
        The run.
    show : {"info", "structure", "phases", "communication"}, optional
        One part only; default: all. A part that cannot be had is None, and ``absent`` says why.
    window, region, from_start, foa, application
        As for `popmodel.metrics`. The structure is that of the whole run; `foa` is its focus.
    flop_rate : float, optional
        As for `popmodel.read`.

    Raises
    ------
    FileError
        If the trace cannot be read, or has no iterations where these are asked for.
    PartError
        If the trace has no such window, region or iteration.
    ReplayError
        If communication alone is asked for and messages or collectives cannot be matched.
    UsageError
        If options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.inspect("tests/data/ft.S.4.prv.gz")
    >>> found["iterations"], found["messages"]
    (6, 0)
    >>> [part["kind"] for part in found.to_dict()["structure"]["parts"]]
    ['initialisation', 'iterations', 'finalisation']
    """
    from popmodel.cli.inputs import path_of, require_flop_rate, trace_of
    from popmodel.structure.focus import part_of_run
    from popmodel.traces.selection import TracePart

    asked = TracePart.of(window, region, from_start, foa)
    if show == "structure":
        _refuse_part(window, region)
    rated = show in _RATED
    read = trace_of(trace, application=application, flop_rate=flop_rate, rated=rated)
    part = part_of_run(asked, read)
    found: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for name in PARTS if show is None else (show,):
        try:
            if name in _RATED and not rated:
                require_flop_rate(trace, flop_rate)
            found[name] = _part(name, read, part, asked)
        except PopmodelError as error:
            # What is not in the trace, or a trace that says nothing, leaves nothing to show.
            if show is not None or name == "info" or isinstance(error, PartError):
                raise
            why = f"{error.message}: {error.hint}" if error.hint else error.message
            found[name], absent[name] = None, why
    more = {"absent": absent} if show is None else {}
    path = path_of(trace)
    told = document("popmodel/inspect/1", trace=path, **found, **more)
    return Inspection(told, files=(path,))


_RATED = ("structure", "phases")
"""Parts that tell times of computing."""


def _part(name: str, trace: Trace, part: TracePart, asked: TracePart) -> dict[str, Any]:
    from popmodel.traces.selection import PROGRAM

    if name == "info":
        from popmodel.efficiency.region_efficiencies import function_efficiencies
        from popmodel.traces.info import info
        from popmodel.traces.selection import focused

        functions = function_efficiencies(trace if part == PROGRAM else focused(trace, part)[0])
        return info(trace, part) | ({"functions": functions} if functions else {})
    from popmodel.structure import descriptions

    makers = {
        "structure": descriptions.structure_facts,
        "phases": descriptions.phase_facts,
        "communication": descriptions.communication_facts,
    }
    return makers[name](trace, asked)


def _refuse_part(window: Window | None, region: str | None) -> None:
    from popmodel.base import shell

    for name, value in (("region", region), ("window", window)):
        if value is not None:
            raise UsageError(
                f"--{name}: structure shows whole runs, whose iterations --foa counts",
                f"popmodel inspect TRACE --show phases --{name} {shell.quote(str(value))} shows "
                f"what a {name} computes",
            )
