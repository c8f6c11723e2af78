"""What recording costs, measured where it is asked for."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path

from popmodel.machine.build import build
from popmodel.machine.processes import output_of
from popmodel.machine.toolchain import Compiler
from popmodel.tracer.environment import DIRECTORY, PRELOAD

_PATIENCE = 60.0


def of_a_record(compiler: Compiler, folder: Path, environment: Mapping[str, str]) -> float | None:
    """Seconds that a record costs the thread that writes it; None if that cannot be measured.

    Parameters
    ----------
    compiler : Compiler
        Builds what measures.
    folder : Path
        Where records are written to: file systems differ.
    environment : mapping of str to str
        Of the run.

    Raises
    ------
    BuildError, FileError
        What measures cannot be built or kept.
    """
    program = build("trace-cost", compiler, environment)
    with tempfile.TemporaryDirectory(prefix=".popmodel-cost-", dir=folder) as scratch:
        own = {name: value for name, value in environment.items() if name != PRELOAD}
        done = output_of([str(program)], timeout=_PATIENCE, environment={**own, DIRECTORY: scratch})
    try:
        cost = float(done.text) if done.status == 0 else math.nan
    except ValueError:
        cost = math.nan
    return cost * 1e-9 if 0 < cost < 1e6 else None
