"""Batch logs: what ``sacct -P`` of Slurm prints of jobs and their steps.

A step that ``srun`` started is a run: its tasks are processes. A job without such steps is one if
its number of tasks is told; else ``FILE:processes=N`` says it. Times are whole seconds.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from popmodel.base.documents import shown
from popmodel.base.units import plural
from popmodel.runs.column_names import quotient, seconds_of
from popmodel.runs.measurement import COLUMNS
from popmodel.runs.table import RunTimes, read_rows
from popmodel.runs.text_tables import Place, Row, is_number

_LAUNCHERS = re.compile(r"(orted|prted|prte|hydra_\w+|pmi_proxy|mpiexec|mpirun)")
"""Steps in which a launcher of MPI starts processes that Slurm does not know."""
_CPUS, _NODES = ("AllocCPUS", "NCPUS", "ReqCPUS"), ("NNodes", "AllocNodes")
_RAW = "JobIDRaw"
_COARSE = 50.0
"""Runtime, s, below which half a second is more than runs usually differ by: 1 %."""


def is_sacct(heads: Collection[str]) -> bool:
    """Whether the columns of a table are those of ``sacct``."""
    return _RAW in heads or "JobID" in heads


def read_sacct(
    top: Place,
    heads: Sequence[str],
    rows: Sequence[Row],
    parameters: Iterable[str] | None,
    said: Mapping[str, str] | None,
) -> RunTimes:
    """Read runs from the rows that ``sacct`` prints.

    Columns that are needed: JobID, Elapsed or ElapsedRaw, NTasks (unless ``processes=N`` is said),
    and CPUsPerTask, AllocCPUS or NCPUS (unless ``threads=N`` is said).
    """
    given = dict(said or {})
    if "JobID" not in heads:
        rows = [row._replace(values={**row.values, "JobID": row.values[_RAW]}) for row in rows]
        heads = [*heads, "JobID"]
    _check_heads(heads, given, top)
    left_out: dict[str, list[str]] = defaultdict(list)
    chosen: list[Row] = []
    for _, lines in groupby(rows, key=lambda row: re.split(r"[.]", row.values["JobID"])[0]):
        for row in _runs_of_job(list(lines), given):
            why = _not_a_run(row, given)
            if why is None:
                chosen.append(_row(row, given))
            else:
                left_out[why].append(row.values["JobID"])
    notes = [
        f"left out: {plural(len(names), 'run')} ({', '.join(names[:3])}"
        f"{', ...' if len(names) > 3 else ''}): {why}"
        for why, names in left_out.items()
    ]
    if not chosen:
        why = f": {notes[0]}" if notes else ""
        raise Place(top.path).error(
            f"has no completed run{why}",
            "print steps with sacct -P -o JobID,NTasks,AllocCPUS,NNodes,ElapsedRaw,State",
        )
    own = [name for name in given if is_number(given[name]) and name not in COLUMNS]
    named = [text for text in given.values() if not is_number(text)]
    columns = dict.fromkeys(name for row in chosen for name in row.values)
    given = {name: text for name, text in given.items() if name not in COLUMNS[:2]}
    others = [name for name in heads if name in columns and name not in named]
    read = read_rows(
        list(columns), chosen, parameters, Place(top.path), given, own=own, others=others
    )
    shortest = min(run.runtime for run in read.runs)
    if shortest.is_integer() and shortest < _COARSE:
        notes.append(
            f"times are whole seconds: the shortest, {shortest:g} s, may be off by "
            f"{50 / shortest:.2g} %"
        )
    return read._replace(ignored=(), notes=(*notes, *read.notes))


def _check_heads(heads: Sequence[str], given: Mapping[str, str], top: Place) -> None:
    needed = {"": ("JobID",), "runtime": ("ElapsedRaw", "Elapsed")}
    needed |= {"processes": ("NTasks",), "threads": ("CPUsPerTask", *_CPUS)}
    for quantity, names in needed.items():
        if quantity not in given and not any(name in heads for name in names):
            raise top.error(
                f"has no column {' or '.join(names)}",
                "print it with sacct -P -o JobID,NTasks,AllocCPUS,NNodes,ElapsedRaw,State",
            )


def _runs_of_job(lines: Sequence[Row], given: Mapping[str, str]) -> Sequence[Row]:
    """The steps of a job that are runs; without any, the job itself."""
    steps = [row for row in lines if re.search(r"[.]\d+$", row.values["JobID"])]
    steps = [row for row in steps if not _LAUNCHERS.fullmatch(row.values.get("JobName", ""))]
    jobs = [row for row in lines if "." not in row.values["JobID"]]
    return steps or jobs or (lines if "processes" in given else lines[:1])


def _not_a_run(row: Row, given: Mapping[str, str]) -> str | None:
    """Why a line is not taken; None of a run."""
    state = row.values.get("State", "COMPLETED").split(" ")[0].rstrip("+")
    if state != "COMPLETED":
        return f"state {state}" if state else "no state"
    if "processes" not in given and not row.values.get("NTasks"):
        return (
            "their number of processes is not told (a launcher other than srun): "
            f"{row.place.path}:processes=N says it"
        )
    if _seconds(row) == 0:
        return "they took less than a second, and sacct counts whole ones"
    return None


def _row(row: Row, given: Mapping[str, str]) -> Row:
    """A line of sacct as a row of a table."""
    row = row._replace(place=row.place._replace(entry=f"job {row.values['JobID']}"))
    processes = given.get("processes") or row.values["NTasks"]
    threads = given.get("threads") or row.values.get("CPUsPerTask")
    if not threads:
        cpus = next((name for name in _CPUS if row.values.get(name)), _CPUS[0])
        of = row._replace(values={**row.values, "NTasks": processes})
        threads = quotient(of, cpus, "NTasks", "threads")
    nodes = next((row.values[name] for name in _NODES if row.values.get(name)), None)
    values = {"processes": processes, "threads": threads, "runtime": _seconds(row)}
    return row._replace(values=row.values | values | ({} if nodes is None else {"nodes": nodes}))


def _seconds(row: Row) -> float:
    """Elapsed time of a line, s."""
    text = row.values.get("ElapsedRaw") or row.values.get("Elapsed", "")
    seconds = seconds_of(text, None)
    if not math.isfinite(seconds):
        must = "must be a time such as 01:02:03 or 2-00:00:00"
        raise row.place.error(f"Elapsed {must}, not {shown(text)}")
    return seconds
