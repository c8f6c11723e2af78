"""Runs that ``popmodel check -o FILE.json`` has summed up, as measured runs without a trace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from popmodel.base.document_schemas import check
from popmodel.base.documents import parse_json, read_text
from popmodel.efficiency.evidence import Evidence
from popmodel.efficiency.measure import MeasuredRun
from popmodel.efficiency.observables import Observables

SCHEMA = "popmodel/check/1"
_HEAD = 256  # bytes of a file, among which it says what it is


def is_checked_run(path: str | os.PathLike[str]) -> bool:
    """Whether a file is what ``popmodel check`` has written, by its name and how it begins."""
    if not os.fspath(path).lower().endswith(".json"):
        return False
    try:
        with Path(path).open("rb") as file:
            return SCHEMA.encode() in file.read(_HEAD)
    except OSError:
        return False  # who reads it says so


def read_checked_run(path: str | os.PathLike[str]) -> MeasuredRun:
    """Read a run; raises `FileError` where the file is damaged."""
    summary = parse_json(read_text(path), path)
    check(summary, path)
    quantities = {
        name: value
        for name, value in summary["observables"].items()
        if value is not None and name != "regions"
    }
    threads = [thread for entry in summary["placement"] for thread in entry["threads"]]
    waited = sum(thread["waited"] for thread in threads)
    ready = waited + sum(thread["cpu_time"] for thread in threads)
    share = waited / ready if ready else 0.0
    wrong: list[dict[str, Any]] = summary["findings"]
    return MeasuredRun(
        os.fspath(path),
        Observables(**quantities),
        tuple(summary["notes"]),
        tuple(finding["text"] for finding in wrong),
        evidence=Evidence(
            calls=int(sum(calls["calls"] for calls in summary["calls"].values())),
            delayed=share > _NOTEWORTHY,
            waited=share,
        ),
    )


_NOTEWORTHY = 0.02  # of the time that threads were ready to run
