"""Timelines: what they cost, and how near the estimates of windows are to replays of them.

``python tests/benchmarks/windows.py [TRACE...]`` lays each trace out over time (by default the
bundled ones, and EPOCH where ``shared/traces`` is) and compares the ideal runtime that the page
estimates for windows of some shares of the run, taken at random, with a replay of each window
alone: the difference in points of the window's runtime, as a transfer efficiency would show it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import process_time

import numpy as np

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from timeline.window import Window  # noqa: E402

from popmodel.efficiency.measure import analyse  # noqa: E402
from popmodel.reports.html.contents import Contents  # noqa: E402
from popmodel.reports.html.packing import pack  # noqa: E402
from popmodel.reports.html.page_timeline import section  # noqa: E402
from popmodel.timeline.timeline import timeline  # noqa: E402
from popmodel.traces import Trace, read  # noqa: E402
from popmodel.traces.selection import TracePart, focused  # noqa: E402

SHARED = Path(os.environ.get("POPMODEL_SHARED", ROOT.parent / "shared" / "traces"))
SHARES = (0.02, 0.1, 0.3)
WINDOWS = 15


def given() -> list[Path]:
    """Traces of runs with MPI that are at hand."""
    epoch = SHARED / "paraver" / "epoch_16proc.prv.gz"
    return [
        *sorted((ROOT / "tests" / "data").glob("*.prv.gz")),
        ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz",
        *([epoch] if epoch.is_file() else []),
    ]


def errors(trace: Trace, share: float, told: Window, edges: int) -> list[float]:
    """Differences of estimates from replays, in points of the runtime, absolute."""
    found = []
    steps = max(1, round(share * edges))
    for number in range(WINDOWS):
        first = int(np.random.default_rng(number).integers(0, edges - steps + 1))
        window = told.at(first, first + steps)
        run = analyse(trace, part=TracePart(begin=window.begin, end=window.end)).observables
        estimate = window.metrics("mpi").get("transfer_efficiency")
        if (
            estimate is not None
            and run.ideal_runtime is not None
            and "ideal_runtime" not in run.absent
        ):
            found.append(100 * abs(estimate - run.ideal_runtime / run.runtime))
    return found


def main(arguments: list[str]) -> None:
    """Print a line for each trace, and one for all of them."""
    columns = " ".join(f"{f'windows of {100 * share:g} %':>22}" for share in SHARES)
    print(f"{'':24} {'CPU, s':>7} {'kB':>6} {columns}")
    print(f"{'trace':24} {'':7} {'':6} {'   median   90 % below' * len(SHARES)}")
    every: dict[float, list[float]] = {share: [] for share in SHARES}
    for path in [Path(one) for one in arguments] or given():
        trace, _ = focused(read(path))
        before = process_time()
        found = timeline(trace)
        seconds = process_time() - before
        made = section(Contents({"title": "", "documents": []}, (found,)))
        assert made is not None
        size = sum(len(pack(values).text) for values in made.packed.values())
        run = made.data["runs"][0]
        span = run["begin"], run["step"], run["end"]
        edges = len(run["window"]["edges"]) - 1
        told = Window(run["window"], made.packed, span, 0, edges)
        shown = []
        for share in SHARES:
            mine = errors(trace, share, told, edges)
            every[share] += mine
            shown.append(_told(mine))
        name = path.name.partition(".prv")[0]
        print(f"{name:24} {seconds:7.2f} {size / 1000:6.0f} {' '.join(shown)}")
    print(f"{'all':24} {'':7} {'':6} {' '.join(_told(mine) for mine in every.values())}")


def _told(found: list[float]) -> str:
    if not found:
        return f"{'-':>9} {'-':>12}"
    return f"{np.median(found):9.1f} {np.percentile(found, 90):12.1f}"


if __name__ == "__main__":
    main(sys.argv[1:])
