"""What makes a signature of the traces of a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from popmodel.campaign.found import Extracted
from popmodel.errors import UsageError

__all__ = ["extract"]


def extract(traces: Mapping[Path, Mapping[str, float]], name: str) -> Extracted:
    """Return the signature of a program, found in its traces; see `popmodel.campaign.found`."""
    raise UsageError(
        f"--signature is missing: {name} needs one to be predicted from {len(traces)} traces",
        "describe the program: popmodel docs signatures",
    )
