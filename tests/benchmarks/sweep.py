"""Cost of a sweep beside that of a prediction: ``python tests/benchmarks/sweep.py``.

CPU time in one process of one prediction and of a sweep over 64 splits, each with 500 draws, and
the ratio of both; medians over rounds, after one that is not counted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from popmodel.machines import profile
from popmodel.model import signatures as signature
from popmodel.prediction.prediction import predict
from popmodel.prediction.split_sweep import sweep

ROUNDS, DRAWS, SPLITS = 7, 500, 64
CORES = (16, 32, 48, 64, 96, 128, 160, 192, 256, 768)


def cpu(action: Callable[[], object]) -> float:
    """Median of the CPU time of an action, s."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return statistics.median(times[1:])


def main() -> None:
    """Print a table of medians."""
    application, machine = signature.load("stencil3d"), profile.load(profile.DEFAULT_PRESET)
    splits = len(sweep(application, machine, CORES, draws=0).candidates)
    assert splits == SPLITS, splits
    one = cpu(lambda: predict(application, machine, 16, 4, draws=DRAWS))
    all_ = cpu(lambda: sweep(application, machine, CORES, draws=DRAWS))
    print(f"{'':<22}{'CPU s':>8}{'ratio':>8}")
    print(f"{'one prediction':<22}{one:>8.3f}{1:>8.2f}")
    print(f"{f'sweep of {splits} splits':<22}{all_:>8.3f}{all_ / one:>8.2f}")


if __name__ == "__main__":
    main()
