"""Efficiencies of measured runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from popmodel.api.breakdown import Breakdown, By, break_down
from popmodel.efficiency.family import Evaluation
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import Run, analyse
from popmodel.efficiency.observables import OutsideMPI
from popmodel.efficiency.scaling import Comparable, Mode, Scaling, scale
from popmodel.efficiency.workers import apart
from popmodel.errors import FileError, PopmodelError, UsageError
from popmodel.report.metrics_document import SCALING, document
from popmodel.report.names import run_names
from popmodel.trace import read
from popmodel.trace.info import as_data
from popmodel.trace.part import Part, Window
from popmodel.values import dataclass

__all__ = ["Metrics", "metrics"]


@dataclass(frozen=True)
class Metrics:
    """Efficiencies of one or several runs; made by `metrics`.

    Attributes
    ----------
    names : tuple of str
        A short name for each run.
    runs : tuple of Run
        What was measured of each.
    evaluations : tuple of mapping of str to Evaluation
        For each run every family by id.
    scaling : Scaling
        The runs against their reference run.
    warnings : tuple of list of dict
        For each run what is wrong with its trace.
    outside_mpi : {"everywhere", "not-in-mpi"}
        What was taken for time outside MPI.
    breakdowns : tuple of Breakdown
        For each run what it consists of by process or by region, as far as asked for.
    """

    names: tuple[str, ...]
    runs: tuple[Run, ...]
    evaluations: tuple[Mapping[str, Evaluation], ...]
    scaling: Scaling
    warnings: tuple[list[dict[str, Any]], ...]
    outside_mpi: OutsideMPI
    breakdowns: tuple[Breakdown, ...]

    @property
    def fitting(self) -> tuple[str, ...]:
        """The families that suit all runs: that of MPI alone, or two that count all threads."""
        if any(apart(run.observables) for run in self.runs):
            return ("hybrid-additive", "talp")
        if any(run.observables.has_openmp for run in self.runs):
            return ("hybrid-additive", "hybrid-multiplicative")
        return ("mpi",)

    def to_dict(self, families: Sequence[str] | None = None) -> dict[str, Any]:
        """Give the document, schema ``popmodel/metrics/1``, without provenance.

        Parameters
        ----------
        families : sequence of str, optional
            Families to give; all by default. The runs' scaling is always there.
        """
        chosen = dict.fromkeys([*(load_families() if families is None else families), SCALING])
        shown = [{name: run[name] for name in chosen} for run in self.evaluations]
        made = document(self.runs, shown, self.scaling, self.warnings, self.outside_mpi)
        for run, breakdown in zip(made["runs"], self.breakdowns, strict=True):
            run.update(breakdown.to_dict(chosen, run["caveats"]))
        return made


def metrics(
    traces: Sequence[str | os.PathLike[str]],
    *,
    scaling: Mode | None = None,
    reference: int | str | None = None,
    outside_mpi: OutsideMPI = "everywhere",
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    by: By | None = None,
    application: int = 1,
    cache: bool = True,
) -> Metrics:
    """Compute the POP efficiencies of measured runs.

    Parameters
    ----------
    traces : sequence of path
        One trace per run.
    scaling : {"strong", "weak"}, optional
        Whether the runs do the same work or work that grows; found out by default.
    reference : int or str, optional
        The run to compare with: its number from 1, its name or its path. By default the smallest.
    outside_mpi : {"everywhere", "not-in-mpi"}
        What time outside MPI is; acts on the family ``hybrid-multiplicative``.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an end that is left out, or None, is the trace's.
    region : str, optional
        Analyse the occurrences of a region, one after the other.
    from_start : bool
        Analyse the whole run. By default it is the part from the end of MPI_Init of the last rank
        to the begin of MPI_Finalize of the first.
    by : {"process", "region"}, optional
        Also sum up each run by process, or analyse each region that the program marks.
    application : int
        Which application of the traces, from 1.
    cache : bool
        Whether to keep parsed traces, and to use those that are kept.

    Raises
    ------
    FileError
        If a trace cannot be read or analysed; names it.
    UsageError
        If there is no such reference run.
    """
    part = Part.of(window, region, from_start)
    paths = [os.fspath(path) for path in traces]
    names = run_names(paths)
    compared_with = None if reference is None else _index(str(reference), paths, names)
    if by == "region" and region is not None:
        raise UsageError("--by region cannot be combined with --region", "leave one of them out")
    runs, warnings, breakdowns = [], [], []
    for path in paths:
        trace = read(path, application=application, cache=cache)
        with _named(path):
            runs.append(analyse(trace, part=part))
            breakdowns.append(break_down(by, trace, runs[-1], part, outside_mpi))
        warnings.append(as_data((*trace.warnings, *trace.calls().warnings)))
    comparable = [
        Comparable(name, run.observables.aggregates(outside_mpi), run.observables.absent)
        for name, run in zip(names, runs, strict=True)
    ]
    scaled = scale(comparable, mode=scaling, reference=compared_with)
    evaluations = []
    for index, (path, run) in enumerate(zip(paths, comparable, strict=True)):
        with _named(path):
            evaluations.append(_evaluated(run, scaled, index))
    return Metrics(
        tuple(names),
        tuple(runs),
        tuple(evaluations),
        scaled,
        tuple(warnings),
        outside_mpi,
        tuple(breakdowns),
    )


def _evaluated(run: Comparable, scaled: Scaling, index: int) -> dict[str, Evaluation]:
    values = {**run.aggregates, **scaled.aggregates(index)}
    absent = {**run.absent, **scaled.absent(index)}
    return {
        name: scaled.evaluations[index] if name == SCALING else family.evaluate(values, absent)
        for name, family in load_families().items()
    }


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Begin the message of an error with the trace that it is about."""
    try:
        yield
    except FileError:
        raise
    except PopmodelError as error:
        raise FileError(path, error.message, hint=error.hint) from error


def _index(text: str, traces: Sequence[str], names: Sequence[str]) -> int:
    """The run that is meant: a number from 1, a column's name or a path."""
    for known in (names, traces):
        if text in known:
            return list(known).index(text)
    if text.isdecimal() and 1 <= int(text) <= len(traces):
        return int(text) - 1
    raise UsageError(
        f"--reference {text}: no such run", f"use 1 to {len(traces)} or one of {', '.join(names)}"
    )
