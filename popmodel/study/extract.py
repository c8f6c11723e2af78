"""What makes a signature of the traces of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from popmodel.signature import Run, signature_from
from popmodel.study.found import Extracted
from popmodel.trace import read
from popmodel.trace.focus import focused


def extract(
    traces: Mapping[Path, Mapping[str, float]],
    name: str,
    made: Sequence[Mapping[str, float]],
    refused: Sequence[Mapping[str, float]],
) -> Extracted:
    """Return the signature of a program, found in its traces; see `popmodel.study.found`."""
    runs = [Run(focused(read(path))[0], dict(values)) for path, values in traces.items()]
    found = signature_from(runs, name=name, made=made, refused=refused)
    return Extracted(found.text, tuple(found.notes))
