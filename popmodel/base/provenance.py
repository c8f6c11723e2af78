"""Where a result comes from: what was run, where, when, and on which inputs.

Every result carries this, so that a number found in a report a year later can be traced to the
version and the files that gave it. Apart from the host's name and the command as it was typed
nothing about the person is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from popmodel._version import __version__
from popmodel.base import shell
from popmodel.base.errors import FileError
from popmodel.base.values import dataclass, plain

HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class ProvenanceInput:
    """One input file.

    `head_sha256` covers the first 64 KiB only: enough, with the size, to tell files apart without
    reading a trace of many gigabytes a second time. Of a directory it covers names and sizes of its
    files.
    """

    path: str
    size: int
    head_sha256: str


@dataclass(frozen=True)
class Provenance:
    """What is stamped on a result."""

    popmodel: str  # Version of the program
    command: str  # The command as it can be typed into a shell again
    host: str  # Name of the machine that popmodel ran on (not of the one that was measured)
    time: str  # When, in UTC, ISO 8601 with seconds
    inputs: tuple[
        ProvenanceInput, ...
    ]  # The files that were read, in the order of the command line


def collect(
    arguments: Sequence[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    *,
    now: datetime | None = None,
) -> Provenance:
    """Describe this run of popmodel."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return Provenance(
        popmodel=__version__,
        command=shell.join(["popmodel", *arguments]),
        host=os.uname().nodename,
        time=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        inputs=tuple(describe_input(path) for path in inputs),
    )


def stamped(
    document: Mapping[str, Any],
    arguments: Sequence[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> dict[str, Any]:
    """Return the document of a result with its provenance; arguments and errors of `collect`."""
    return {**document, "provenance": plain(collect(arguments, inputs))}


def describe_input(path: str | os.PathLike[str]) -> ProvenanceInput:
    """Size and fingerprint of one input file."""
    import hashlib

    try:
        if (folder := Path(path)).is_dir():
            sizes = {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}
            head, size = repr(sorted(sizes.items())).encode(), sum(sizes.values())
        else:
            with Path(path).open("rb") as file:
                head = file.read(HEAD_BYTES)
                size = os.fstat(file.fileno()).st_size
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise FileError(
            path, problem, hint="results list their input files with a checksum"
        ) from error
    return ProvenanceInput(os.fspath(path), size, hashlib.sha256(head).hexdigest())
