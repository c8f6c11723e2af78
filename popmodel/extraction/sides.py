"""Whether runs divide a matrix into rows and columns of blocks, as their messages show.

On powers of two of processes a grid of two dimensions grows in steps: rows and columns double in
turns. What goes with a row of the matrix stays then, and halves with the next doubling, which no
smooth law of P does. Messages have exact sizes: one that stays and halves in turns tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.expressions import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.extraction.beside import Beside

SIDES = ("2**floor(log2(P)/2)", "2**ceiling(log2(P)/2)")
"""Rows and columns of a grid of P processes, for powers of two."""
_FEWEST = 3
_ROUNDED = 0.002
"""Relative difference of sizes that are whole numbers of cells of the same part."""


def likely_forms(runs: Sequence[Beside], shared: str) -> tuple[str, ...]:
    """Return the forms that the work of a process likely has."""
    sizes = {run.processes: float(run.sent.size.max(initial=0)) for run in runs}
    processes = np.array(sorted(sizes))
    alike = all((run.parameters, run.threads) == (runs[0].parameters, 1) for run in runs)
    if len(sizes) < _FEWEST or not alike or (processes & (processes - 1)).any():
        return (shared,)
    values = np.array([sizes[one] for one in processes.tolist()])
    if not any(_goes_with(side, processes, values) for side in SIDES):
        return (shared,)
    return (shared, *(f"{shared} + 1/{side}" for side in SIDES))


def _goes_with(side: str, processes: NDArray[np.int64], sizes: NDArray[np.float64]) -> bool:
    whole = sizes * np.asarray(parse(side).evaluate({"P": processes.astype(np.float64)}))
    steps = np.diff(sizes)
    return bool(
        sizes.min() > 0
        and np.ptp(whole) <= _ROUNDED * whole.max()
        and (steps == 0).any()
        and (steps < 0).any()
    )
