"""What the measuring programs wrote: launches with the raw batches of every job.

A samples file has JSON lines: a header that says where and how, a line per job, and a last line
that says how the launch ended. A launch that was killed has no last line, and its very last line
may be cut; everything before counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.documents import read_text
from popmodel.errors import FileError

SCHEMA = "popmodel/samples/1"
PROGRAMS = ("node", "mpi")

_DAMAGED = "remove the line, or measure again: popmodel bench"

Array = NDArray[np.float64]


class SamplesError(FileError):
    """A samples file is damaged, or none at all."""


@dataclass(frozen=True)
class Result:
    """What one job of one launch gave.

    Attributes
    ----------
    job : str
        Name of the job.
    params : mapping of str to int, float or str
        What it was asked to measure.
    seconds : ndarray of float64, shape (n,)
        Time per operation of every batch, s; empty if the job is absent.
    reference : ndarray of float64, shape (n,), or None
        The same work without what is measured, s.
    facts : mapping of str to value
        What else the line says: ``inner``, ``moved`` (bytes per operation), ``work``, ``compute``
        (s), ``nodes``, ``stopped``, ``at`` (Unix time), ``wall`` (s), ``involuntary``, ``steal``
        (s), ``foreign`` (0..1).
    absent : str or None
        Why it could not be measured.
    launch : hashable
        What tells its launch from others; None as long as nothing needs it.
    """

    job: str
    params: Mapping[str, Any]
    seconds: Array = field(repr=False)
    reference: Array | None = field(default=None, repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict)
    absent: str | None = None
    launch: Hashable = None

    @property
    def key(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        """What was measured, the same in every launch."""
        return self.job, tuple(sorted(self.params.items()))

    @property
    def converged(self) -> bool:
        """Whether the job ended because its interval was narrow enough."""
        return self.facts.get("stopped") == "converged"


@dataclass(frozen=True)
class Launch:
    """One start of a measuring program.

    Attributes
    ----------
    path : str
        Samples file.
    header : mapping
        Its first line.
    results : tuple of Result
        In the order in which they were measured.
    end : str or None
        ``complete``, or ``limit`` if time ran out; None if the launch was cut short.
    foreign : float or None
        Share of the processors' time that others used meanwhile, 0..1; None if not known.
    """

    path: str
    header: Mapping[str, Any] = field(repr=False)
    results: tuple[Result, ...] = field(repr=False)
    end: str | None = None
    foreign: float | None = None

    @property
    def program(self) -> str:
        """``node`` or ``mpi``."""
        return str(self.header["program"])

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of their ranks."""
        places = self.header.get("ranks_at", ())
        return tuple(dict.fromkeys(str(place["host"]) for place in places)) or (
            str(self.header.get("host", "")),
        )


def read(paths: Iterable[str | os.PathLike[str]]) -> list[Launch]:
    """Read samples files.

    Raises
    ------
    SamplesError
        If one cannot be read or a line other than the last is damaged; names the line.
    """
    return [read_one(path) for path in paths]


def read_one(path: str | os.PathLike[str]) -> Launch:
    """Read a samples file; raises as `read`."""
    path = Path(path)
    lines = read_text(path, SamplesError).splitlines(keepends=True)
    entries = list(_entries(lines, path))
    if not entries:
        raise SamplesError(
            path, "is empty: the launch ended before it began", hint="measure again: popmodel bench"
        )
    _, header = entries[0]
    if header.get("schema") != SCHEMA or header.get("program") not in PROGRAMS:
        raise SamplesError(
            path,
            f"is no samples file: schema is {header.get('schema')!r}, not {SCHEMA!r}",
            line=1,
            hint="samples are written by popmodel bench",
        )
    results: list[Result] = []
    end: str | None = None
    foreign: float | None = None
    for number, entry in entries[1:]:
        if "end" in entry:
            end = str(entry["end"])
            foreign = entry.get("foreign")
        elif "schema" not in entry:  # a resumed launch has another header
            results.append(_result(entry, path, number))
    return Launch(os.fspath(path), header, tuple(results), end, foreign)


def _entries(lines: list[str], path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError
        except ValueError:
            if number == len(lines) and not line.endswith("\n"):
                return  # the launch was killed while it wrote this line
            raise SamplesError(
                path,
                "is not a JSON object",
                line=number,
                hint=_DAMAGED,
            ) from None
        yield number, entry


def _result(entry: Mapping[str, Any], path: Path, number: int) -> Result:
    try:
        facts = {
            key: value
            for key, value in entry.items()
            if key not in ("job", "params", "seconds", "reference", "absent")
        }
        reference = entry.get("reference")
        result = Result(
            str(entry["job"]),
            dict(entry["params"]),
            np.asarray(entry.get("seconds", []), dtype=np.float64),
            None if reference is None else np.asarray(reference, dtype=np.float64),
            facts,
            entry.get("absent"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SamplesError(
            path, f"is no result of a job: {error}", line=number, hint=_DAMAGED
        ) from None
    measured = result.seconds
    if result.absent is None and not (measured.ndim == 1 and measured.size):
        problem = "has neither seconds nor a reason for their absence"
        raise SamplesError(path, problem, line=number, hint=_DAMAGED)
    if not np.isfinite(measured).all():
        raise SamplesError(path, "has a time that is no number", line=number, hint=_DAMAGED)
    return result
