"""Formats of other tools that popmodel does not read: their names, and what to do instead.

A file is known by how it begins, else by its name; a folder by the names of the files in it.
"""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import NamedTuple

HEAD = 1 << 12
"""Bytes from the beginning of a file that tell."""
_ENTRIES = 2000
"""Entries of a folder that are looked at."""

_AGAIN = "record the run with popmodel trace -- COMMAND"
_TABLE = "give its runtime in a table of runs (popmodel docs tables)"


class Foreign(NamedTuple):
    """A format that is not read."""

    name: str  # What the file is, with its article
    names: tuple[str, ...]  # Patterns of names of files, also in a folder of that format
    advice: str  # What to do
    magic: tuple[bytes, ...] = ()  # How such a file begins
    words: tuple[bytes, ...] = ()  # What stands in the beginning of such a text


FOREIGN = (
    Foreign(
        "a trace in OTF2, such as Score-P writes",
        ("*.otf2", "traces.def", "*.evt"),
        _AGAIN,
        (b"\x03BOTF2", b"\x03B\x01"),
    ),
    Foreign(
        "a profile in Cube's format, such as Score-P and Scalasca write",
        ("*.cubex", "*.cube", "*.cube.gz"),
        f"a profile has no course of time: {_AGAIN}, or {_TABLE}",
        (b"anchor.xml",),
    ),
    Foreign("a measurement of Score-P", ("scorep.cfg", "scorep-*"), _AGAIN),
    Foreign(
        "an experiment of Extra-P",
        ("*.extra-p",),
        "save it as text or JSON lines: popmodel project and popmodel calibrate read these",
    ),
    Foreign(
        "a database of HPCToolkit",
        ("*.hpcrun", "*.hpctrace", "experiment.xml", "experiment.mt", "cct.db", "hpctoolkit-*"),
        f"its samples tell no messages: {_AGAIN}",
        (b"HPCTOOLKIT", b"HPCRUN-"),
    ),
    Foreign(
        "a profile of Caliper",
        ("*.cali",),
        f"its records tell no messages: {_AGAIN}, or {_TABLE}",
        (b"__rec=",),
    ),
    Foreign(
        "a report of TALP",
        (),
        f"it has no course of time: {_AGAIN} (popmodel metrics --family talp), or {_TABLE}",
        words=(b'"dlbVersion"', b'"popMetrics"'),
    ),
    Foreign(
        "a report of Nsight Systems",
        ("*.nsys-rep", "*.qdrep", "*.qdstrm"),
        "nsys2prv makes a Paraver trace of it",
    ),
    Foreign(
        "an SQLite database, such as Nsight Systems exports",
        ("*.sqlite", "*.sqlite3"),
        "nsys2prv makes a Paraver trace of the .nsys-rep file",
        (b"SQLite format 3\0",),
    ),
    Foreign(
        "a trace of Charm++'s Projections",
        ("*.sts", "*.projrc"),
        f"{_AGAIN}, if it is an MPI program",
        (b"PROJECTIONS",),
    ),
    Foreign(
        "a trace of TAU",
        ("tautrace.*", "*.trc", "*.edf"),
        f"tau_convert -paraver makes a Paraver trace of it; else {_AGAIN}",
    ),
    Foreign(
        "a profile of TAU",
        ("profile.*.*.*", "MULTI__*", "*.ppk"),
        f"a profile has no course of time: {_AGAIN}, or {_TABLE}",
        words=(b"templated_functions",),
    ),
    Foreign("a trace of Intel Trace Collector", ("*.stf", "*.stf.*"), _AGAIN),
    Foreign("a trace in OTF", ("*.otf", "*.events.z"), _AGAIN),
    Foreign("a trace of MPE (Jumpshot)", ("*.clog2", "*.slog2", "*.clog"), _AGAIN),
    Foreign("a trace in Paje's format", ("*.paje",), _AGAIN, (b"%EventDef",)),
    Foreign(
        "a profile of Linux perf",
        ("perf.data", "perf.data.old"),
        f"its samples tell no messages: {_AGAIN}",
        (b"PERFILE2", b"2ELIFREP"),
    ),
    Foreign(
        "a trace for Perfetto or Chrome",
        ("*.perfetto-trace", "*.pftrace", "*.perfetto.json", "*.perfetto.json.gz"),
        f"popmodel writes such files and reads none: give the trace it was made of, or {_AGAIN}",
        words=(b'"traceEvents"', b'"ph":'),
    ),
    Foreign(
        "a recording of popmodel that is not merged",
        ("*.[0-9]*.meta",),
        "popmodel trace merge RAW -o run.prv.gz merges it",
    ),
    Foreign(
        "a trace of Extrae that is not merged",
        ("*.mpits", "*.mpit", "set-[0-9]*"),
        "mpi2prv -f TRACE.mpits -o run.prv merges it",
    ),
    Foreign(
        "a configuration of Paraver",
        (),
        "give the .prv trace that it is for",
        (b"#ParaverCFG",),
    ),
    Foreign(
        "what belongs to a Paraver trace, not the trace",
        ("*.pcf", "*.row"),
        "give the .prv or .prv.gz file of the same name",
    ),
    Foreign("a file compressed by bzip2", (), "unpack it: bunzip2 FILE", (b"BZh",)),
    Foreign("a file compressed by xz", (), "unpack it: unxz FILE", (b"\xfd7zXZ\0",)),
    Foreign("a file compressed by zstd", (), "unpack it: unzstd FILE", (b"\x28\xb5\x2f\xfd",)),
)
"""All that are known by name."""


def foreign_file(path: Path, head: bytes) -> Foreign | None:
    """Return the format of a file that begins so; None for one that nobody knows."""
    by_content = (
        each
        for each in FOREIGN
        if head.startswith(each.magic) or any(word in head for word in each.words)
    )
    return next(by_content, None) or _by_name([path.name])


def foreign_folder(path: Path) -> Foreign | None:
    """Return the format of a folder of another tool; None for any other."""
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_ENTRIES), strict=False)]
    except OSError:
        return None  # that it is a folder is said in any case
    if any(name.endswith((".prv", ".prv.gz")) for name in names):
        return None
    return _by_name([*names, path.resolve().name])


def _by_name(names: list[str]) -> Foreign | None:
    found = (
        each for each in FOREIGN if any(fnmatch.filter(names, pattern) for pattern in each.names)
    )
    return next(found, None)
