"""The directory of a measurement: its plan, and the jobs, samples and words of every launch.

::

    machine.samples/
        plan.json            what was to be measured, with what, and whether that is done
        launch-001.jobs      jobs of the first launch, one a line
        launch-001.jsonl     its samples
        launch-001.log       what the program and its launcher wrote
        launch-001-2.jsonl   samples of the jobs that an interrupted first launch still lacked
        .lock                held by the command that measures into the directory

What is done is told by the samples alone, so that no record of it can be wrong.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from popmodel.base import shell
from popmodel.base.documents import (
    DocumentKind,
    Flag,
    NamedShape,
    Text,
    parse_json,
    read_text,
    record,
)
from popmodel.base.errors import FileError, UsageError
from popmodel.base.files import LOCK, locked_folder, refuse_planted, write_text
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.bench import bench_plan, sample_files
from popmodel.machines.bench.bench_plan import BenchPlan, PlannedLaunch
from popmodel.machines.bench.jobs import BenchJob, from_params

SCHEMA = "popmodel/plan/1"
KIND = DocumentKind(
    SCHEMA,
    "measurement plan",
    record(
        {"schema": Text(), "made_with": NamedShape(Text()), "completed": Flag(), **bench_plan.KEYS}
    ),
    "measurement plans are written by popmodel machine measure",
)
SUFFIX = ".samples"
PLAN = "plan.json"

_OURS = re.compile(r"launch-\d{3,}(-\d+)?\.(jobs|jsonl|log)")
_SAMPLES = re.compile(r"launch-(\d{3,})(?:-(\d+))?\.jsonl")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class StoredMeasurement:
    """A measurement and where it is kept."""

    folder: Path  # The run directory
    plan: BenchPlan  # What is measured
    # Host, compiler and MPI: samples of others do not belong to the same measurement.
    made_with: Mapping[str, str]
    is_completed: bool = False  # Whether all that could be measured has been


class Files(NamedTuple):
    """The files of one start of a program."""

    jobs: Path
    samples: Path
    log: Path


def beside(output: Path, parts: Sequence[str] = ()) -> Path:
    """The run directory that belongs to a profile: ``machine.samples`` for ``machine.json``.

    A measurement of some parts only has its own, ``machine.core-p2p.samples``: a profile that it
    completes keeps the samples of its other parts.
    """
    return output.with_suffix(f".{'-'.join(parts)}{SUFFIX}" if parts else SUFFIX)


def open_run(
    folder: Path, made: BenchPlan, made_with: Mapping[str, str], *, force: bool, keep: bool
) -> StoredMeasurement:
    """Go on with an interrupted measurement, or begin a new one."""
    try:
        found = find(folder)
    except FileError:
        if not force:
            raise
        found = None
    if found is None or (found.is_completed and not keep):
        return begin(folder, made, made_with)
    other = difference(found, made, made_with)
    if other is None:
        return found
    if not force:
        raise UsageError(
            f"{folder}: contains samples of a different measurement ({other})",
            "finish that one with its own options, choose another file with -o, or discard it "
            "with --force",
        )
    return begin(folder, made, made_with)


def find(folder: Path) -> StoredMeasurement | None:
    """The measurement in a directory, or None if there is none."""
    path = folder / PLAN
    if not path.exists():
        return None
    collect = shell.join(["popmodel", "machine", "measure", "--samples", str(folder)])
    hint = f"restart with --force, or collect the samples: {collect}"
    try:
        table, plan = _read_plan(path)
    except FileError as error:
        error.hint = hint
        raise
    return StoredMeasurement(folder, plan, table["made_with"], table["completed"])


def _read_plan(path: Path) -> tuple[dict[str, Any], BenchPlan]:
    """What a file with a plan says, and the plan."""
    table: dict[str, Any] = KIND.read(parse_json(read_text(path), path), path)
    return table, bench_plan.from_dict(table)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a directory from other commands while one measures into it.

    Errors as of `files.locked_folder`.
    """
    refuse_planted(folder, "choose another file with -o: samples are kept in a directory beside it")
    with locked_folder(
        folder,
        "popmodel machine measure",
        "choose another file with -o",
        refuse_foreign=_refuse_foreign,
        unwritable=unwritable,
    ):
        yield


def _refuse_foreign(folder: Path) -> None:
    """Raise a FileError if a directory holds files, none of which is a plan."""
    present = [path for path in folder.iterdir() if path.name not in (PLAN, LOCK)]
    if present and not (folder / PLAN).exists():
        raise FileError(
            folder,
            "contains files that popmodel machine measure did not write, such as "
            f"{present[0].name}",
            hint="choose another file with -o: samples are kept in a directory beside it",
        )


def begin(folder: Path, plan: BenchPlan, made_with: Mapping[str, str]) -> StoredMeasurement:
    """Start a measurement in a directory; samples of an earlier one in it are removed."""
    run = StoredMeasurement(folder, plan, made_with)
    refuse_planted(folder, "choose another file with -o: samples are kept in a directory beside it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(folder)
        for path in folder.iterdir():
            if _OURS.fullmatch(path.name):
                path.unlink()
    except OSError as error:
        raise unwritable(folder, error) from error
    _write_plan(run)
    return run


def complete(run: StoredMeasurement) -> StoredMeasurement:
    """Note that all that could be measured has been."""
    done = replace(run, is_completed=True)
    _write_plan(done)
    return done


def difference(run: StoredMeasurement, plan: BenchPlan, made_with: Mapping[str, str]) -> str | None:
    """In words why a measurement cannot go on as another one; None if it can."""
    asked: Mapping[str, Any] = {
        "mode": plan.mode,
        "parts": ",".join(plan.parts),
        "ranks": plan.ranks,
        "nodes": plan.nodes,
        **made_with,
    }
    began: Mapping[str, Any] = {
        "mode": run.plan.mode,
        "parts": ",".join(run.plan.parts),
        "ranks": run.plan.ranks,
        "nodes": run.plan.nodes,
        **run.made_with,
    }
    for name, value in asked.items():
        if began.get(name) != value:
            return f"{name} {began.get(name, 'none')}, not {value}"
    return None


def missing(run: StoredMeasurement, launch: PlannedLaunch) -> list[BenchJob]:
    """Jobs of a launch that have no sample yet; none if it ended by itself."""
    done, ended = _done(run.folder, launch.number)
    return [] if ended else [job for job in launch.jobs if job not in done]


def _done(folder: Path, number: int) -> tuple[set[BenchJob], bool]:
    """Jobs of a launch that have a sample, and whether it came to its end."""
    done: set[BenchJob] = set()
    ended = False
    for path in _samples_of(folder, number):
        jobs, at_end = done_in(path)
        done |= set(jobs)
        ended = ended or at_end
    return done, ended


def without_sample(run: StoredMeasurement) -> int:
    """Number of jobs, over all launches, that have no sample, for whatever reason."""
    return sum(
        len(set(launch.jobs) - _done(run.folder, launch.number)[0]) for launch in run.plan.launches
    )


def done_in(path: Path) -> tuple[list[BenchJob], bool]:
    """The jobs of a samples file in order, and whether its program came to its end.

    A line that was cut by the end of its program is not a job that is done.
    """
    done, ended = sample_files.done_in(path)
    return [from_params(*job) for job in done], ended


def files(run: StoredMeasurement, launch: PlannedLaunch, jobs: Sequence[BenchJob]) -> Files:
    """Files for a start of a launch; its jobs are written."""
    earlier = len(list(_samples_of(run.folder, launch.number)))
    stem = f"launch-{launch.number:03d}" + (f"-{earlier + 1}" if earlier else "")
    made = Files(*(run.folder / f"{stem}.{suffix}" for suffix in ("jobs", "jsonl", "log")))
    try:
        write_text(made.jobs, "".join(f"{job.line}\n" for job in jobs))
    except OSError as error:
        raise unwritable(made.jobs, error) from error
    return made


def all_samples(folder: Path) -> list[Path]:
    """All samples files of a directory, whoever made them, in the order of their names."""
    return sorted(path for path in folder.glob("*.jsonl") if path.is_file())


def unwritable(path: Path, error: OSError) -> FileError:
    """The error for a place in a run directory that cannot be written."""
    hint = "choose another path with -o"
    if error.errno in _FULL:
        hint = "free some space, then run the same command again: finished jobs are kept"
    return FileError(path, f"cannot be written: {error.strerror}", hint=hint)


def _samples_of(folder: Path, number: int) -> Iterator[Path]:
    for path in all_samples(folder):
        match = _SAMPLES.fullmatch(path.name)
        if match and int(match[1]) == number:
            yield path


def _write_plan(run: StoredMeasurement) -> None:
    """Write the plan as a whole or not at all: a half one would make the samples worthless."""
    table = {
        "schema": SCHEMA,
        "made_with": dict(run.made_with),
        "completed": run.is_completed,
        **run.plan.to_dict(),
    }
    try:
        text = json.dumps(table, indent=1, allow_nan=False)
        write_text(run.folder / PLAN, text, read=_read_plan)
    except OSError as error:
        raise unwritable(run.folder / PLAN, error) from error
