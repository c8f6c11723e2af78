"""What the measuring programs wrote: launches with the raw batches of every job.

A samples file has JSON lines: a header that says where and how, a line per job, and a last line
that says how the launch ended. A launch that was killed has no last line, and its very last line
may be cut; everything before counts.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.documents import (
    SMALLEST,
    DocumentKind,
    Items,
    NamedShape,
    OneOf,
    Optional,
    Plain,
    Real,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    parse_json,
    read_shape,
    read_text,
    shown,
)
from popmodel.base.errors import FileError
from popmodel.base.values import dataclass

SCHEMA = "popmodel/samples/1"
PROGRAMS = ("node", "mpi")

_NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("clock", "fma", "loads", "stores", "instructions", "smt"), ("work",)),
    "line_takeover": ("work",),
    "row": ("params.turns",),
    "issue": ("reference", "arithmetic", "moved", "params.bytes"),
    "dependent": ("work", "params.operation"),
    "in_flight": ("reference", "work"),
    **dict.fromkeys(
        ("triad", "load", "update", "narrow_update", "copy", "window", "remote_triad"), ("moved",)
    ),
    "mixed": (
        *("reference", "arithmetic", "work", "moved"),
        *("params.threads", "params.bytes", "params.arithmetic"),
    ),
    "construct": ("reference",),
    "overlap": ("reference", "compute"),
    "late_receiver": ("params.delay",),
    "reduce_local": ("params.bytes",),
}
"""What the result of a job has to say, beside its seconds."""

_POSITIVE = frozenset(
    job for job, needed in _NEEDED.items() if "work" in needed or "moved" in needed
) | {"chase", "remote_chase", "line_transfer", "quantum", "ping_pong"}
"""Jobs that are timed as they are: others take a time off, and what is left may be negative."""

_MORE = ("reference", "arithmetic", "pace", "arithmetic_pace")
"""Arrays that a result may have beside its seconds."""

_BESIDE = {"reference": "seconds", "pace": "seconds", "arithmetic_pace": "arithmetic"}
"""Arrays with a value for every batch of another."""

_DAMAGED = "remove the line, or measure again: popmodel machine measure"

Array = NDArray[np.float64]

_LONGEST = 1e9  # s of an operation
_LAST_DATE = 253402300799.0  # s since 1970: the end of the year 9999


class _Duration:
    """Seconds above 0, which the programs write as text where they are not a whole number."""

    def read(self, value: Any) -> float | str:
        """Return the seconds as they stand, for a job is told by its words; see `Shape`."""
        try:
            Real(above=0).read(float(value) if isinstance(value, str) else value)
        except ValueError:
            raise ShapeError(f"must be seconds above 0, not {shown(value)}") from None
        return value  # type: ignore[no-any-return]


_HEADER = TableShape(
    {
        "program": Text(PROGRAMS),
        "launch": WholeShape(0),
        "started": Real(least=0, most=_LAST_DATE),
        "host": Text(),
        "kernel": Text(),
        "compiler": Text(),
        "ranks": WholeShape(1),
        "openmp": TableShape(
            {"runtime": Optional(Text()), "version": WholeShape(), "max_threads": WholeShape(1)},
            others=Plain(),
        ),
        "load": Optional(Real(least=0)),
        "mpi": TableShape({"library": Optional(Text()), "thread_level": Text()}, others=Plain()),
        "ranks_at": Items(
            TableShape(
                {"host": Text(), "cpus": Optional(Text())}, required=("host",), others=Plain()
            )
        ),
        "files": NamedShape(Text()),
    },
    required=("program",),
    others=Plain(),
)

HEADER = DocumentKind(
    SCHEMA, "samples file", _HEADER, "samples files are written by popmodel machine measure"
)

_RESUMED = TableShape({"schema": Text((SCHEMA,))}, others=Plain())

RESULT = TableShape(
    {
        "job": Text(),
        "params": TableShape(
            {
                **dict.fromkeys(("bytes", "chunk", "shared", "padded", "progress"), WholeShape(0)),
                **dict.fromkeys(("on", "data"), WholeShape(0)),
                "arithmetic": WholeShape(1),
                **dict.fromkeys(
                    ("threads", "turns", "ranks", "pairs", "count"), WholeShape(1, 10**9)
                ),
                **dict.fromkeys(("op", "tier", "name", "distance", "direction"), Text()),
                "delay": _Duration(),
            },
            others=OneOf("a number or text", WholeShape(), Real(), Text()),
        ),
        "seconds": Items(Real(most=_LONGEST)),
        "reference": Optional(Items(Real(most=_LONGEST))),
        "arithmetic": Items(Real(most=_LONGEST), 1),
        **dict.fromkeys(("pace", "arithmetic_pace"), Items(Real(above=0, most=_LONGEST))),
        "absent": Optional(Text()),
        "moved": Real(above=0),
        "work": Real(above=0),
        "compute": Real(above=0),
        "nodes": Real(least=1, most=1e9),
        "stopped": Text(),
        "wall": Real(least=0),
        "at": Real(least=0, most=_LAST_DATE),
        "involuntary": Optional(Real(least=0)),
        "steal": Optional(Real(least=0)),
        "foreign": Optional(Real(least=0)),
    },
    required=("job", "params"),
    others=Plain(),
)

END = TableShape({"end": Text(), "foreign": Optional(Real(least=0))}, others=Plain())


class SamplesError(FileError):
    """A samples file is damaged, or none at all."""


@dataclass(frozen=True)
class SampleResult:
    """What one job of one launch gave."""

    job: str  # Name of the job
    params: Mapping[str, Any]  # What it was asked to measure
    # Time per operation of every batch, s; empty if the job is absent.
    seconds: Array = field(repr=False)
    # The same work without what is measured, s.
    reference: Array | None = field(default=None, repr=False)
    # What else the line says: ``inner``, ``moved`` (bytes per operation), ``work``, ``compute``
    # (s), ``nodes``, ``stopped``, ``at`` (Unix time), ``wall`` (s), ``involuntary``, ``steal`` (s),
    # ``foreign`` (0..1).
    facts: Mapping[str, Any] = field(default_factory=dict)
    absent: str | None = None  # Why it could not be measured
    launch: Hashable = None  # What tells its launch from others; None as long as nothing needs it
    # The arithmetic of an operation alone, s; batches of their own.
    arithmetic: Array | None = field(default=None, repr=False)
    # Turn of an empty loop on the slowest of the cores right before or after a batch, s.
    pace: Array | None = field(default=None, repr=False)
    arithmetic_pace: Array | None = field(default=None, repr=False)
    # Share of the batches in which the cores were left to them, 0 if in too few; None as long as
    # nobody has looked.
    alone: float | None = None

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
    """One start of a measuring program."""

    path: str  # Samples file
    header: Mapping[str, Any] = field(repr=False)  # Its first line
    results: tuple[SampleResult, ...] = field(
        repr=False
    )  # In the order in which they were measured
    # ``complete``, or ``limit`` if time ran out; None if the launch was cut short.
    end: str | None = None
    # Share of the processors' time that others used meanwhile, 0..1; None if not known.
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
    """Read samples files."""
    return [read_one(path) for path in paths]


def read_one(path: str | os.PathLike[str]) -> Launch:
    """Read a samples file; raises as `read`."""
    path = Path(path)
    lines = read_text(path, SamplesError).splitlines(keepends=True)
    entries = list(_entries(lines, path))
    if not entries:
        raise SamplesError(
            path,
            "is empty: the launch ended before it wrote anything",
            hint="measure again: popmodel machine measure",
        )
    header = HEADER.read(entries[0][1], path, SamplesError, line=1)
    results: list[SampleResult] = []
    end: str | None = None
    foreign: float | None = None
    for number, entry in entries[1:]:
        read = _checked(entry, path, number)
        if "end" in read:
            end, foreign = read["end"], read.get("foreign")
        elif "schema" not in read:  # a resumed launch has another header
            results.append(_result(read, path, number))
    return Launch(os.fspath(path), header, tuple(results), end, foreign)


def done_in(path: Path) -> tuple[list[tuple[str, Mapping[str, Any]]], bool]:
    """Name and parameters of the jobs in a samples file, and whether its program came to its end.

    What is damaged, such as a line that was cut by the end of its program, is not a job done.
    """
    jobs: list[tuple[str, Mapping[str, Any]]] = []
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return jobs, False
    for number, line in enumerate(text.splitlines(), 1):
        try:
            entry = _checked(parse_json(line, path), path, number)
        except FileError:
            continue
        if "end" in entry:
            return jobs, True
        if "job" in entry:
            jobs.append((entry["job"], entry["params"]))
    return jobs, False


def _entries(lines: list[str], path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = parse_json(line, path, SamplesError, line=number, hint=_DAMAGED)
        except SamplesError:
            if number == len(lines) and not line.endswith("\n"):
                return  # the launch was killed while it wrote this line
            raise
        if not isinstance(entry, dict):
            raise SamplesError(path, "is not a JSON object", line=number, hint=_DAMAGED)
        yield number, entry


def _checked(entry: Any, path: Path, number: int) -> dict[str, Any]:
    """What a line says: a result, the end, or a further header."""
    table = entry if isinstance(entry, dict) else {}
    shape: Shape = END if "end" in table else _RESUMED if "schema" in table else RESULT
    read: dict[str, Any] = read_shape(entry, shape, path, SamplesError, line=number, hint=_DAMAGED)
    return read


def _result(entry: Mapping[str, Any], path: Path, number: int) -> SampleResult:
    known = ("job", "params", "seconds", *_MORE, "absent")
    facts = {key: value for key, value in entry.items() if key not in known}
    more: dict[str, Any] = {
        name: np.array(entry[name], dtype=np.float64)
        for name in _MORE
        if entry.get(name) is not None
    }
    seconds = np.array(entry.get("seconds", []), dtype=np.float64)
    result = SampleResult(
        entry["job"], entry["params"], seconds, facts=facts, absent=entry.get("absent"), **more
    )
    if result.absent is None and (problem := _problem(result)):
        raise SamplesError(path, problem, line=number, hint=_DAMAGED)
    return result


def _problem(result: SampleResult) -> str | None:
    """What a shape does not say: what belongs together in the result of a job."""
    if not result.seconds.size:
        return "has neither seconds nor a reason in absent"
    for one, other in _BESIDE.items():
        batches, beside = getattr(result, one), getattr(result, other)
        if batches is not None and (beside is None or batches.size != beside.size):
            return f"{one} and {other} must have the same number of entries"
    said = {"reference": result.reference, "arithmetic": result.arithmetic, **result.facts}
    said |= {f"params.{key}": value for key, value in result.params.items()}
    for name in _NEEDED.get(result.job, ()):
        if said.get(name) is None:
            return f"{name} is missing"
    if result.job in _POSITIVE:
        for name in ("seconds", "reference", "arithmetic"):
            batches = getattr(result, name)
            if batches is not None and batches.min() < SMALLEST:
                return f"{name} must be above 0, not {batches.min():g}"
    return None
