"""The signature of the example trace, as ``popmodel signature from`` writes it."""

from __future__ import annotations

from console import ROOT

import popmodel

TRACE = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
FILE = TRACE.with_name("stencil3d.2x2.toml")


def text() -> str:
    """What the file has to hold."""
    return popmodel.signature(TRACE).text
