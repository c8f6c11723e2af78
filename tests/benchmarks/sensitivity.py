"""Cost of sensitivities: ``python tests/benchmarks/sensitivity.py [TRACE...]``.

Of a ring of 64 processes with a million operations and random computing, and of given traces: CPU
seconds of a replay, of a critical path, of finding all breakpoints over 0 to 100 us of latency, and
of the planes over latency, bandwidth (from 100 MB/s) and computing (a quarter to four times as
fast) within 0.1 %, with how many there are. The random ring has far more breakpoints than programs
do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from replay import ring  # of the benchmark beside this one

import popmodel
from popmodel.network.network import PRESETS
from popmodel.sensitivity.piecewise_linear import pieces
from popmodel.sensitivity.runtime_planes import RuntimeCurve, Runtimes, runtime_planes
from popmodel.simulator import Program
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.replayer import Replayer


def spent(call: Callable[[], object]) -> float:
    """CPU seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def show(name: str, program: Program) -> None:
    """Print a line of the table."""
    network = PRESETS["alpha-beta"]
    replayer = Replayer(program)
    replayer.run(network)
    once = spent(lambda: replayer.run(network))
    path = spent(lambda: replayer.path(network))
    found = []
    curve = RuntimeCurve(Runtimes(replayer, network), "latency", 1 / network.bandwidth)
    seconds = spent(lambda: found.append(pieces(curve, 0.0, 100e-6)))
    number = len(found[0].breakpoints)
    made = []
    ranges = (0.0, 100e-6), (0.0, 1e-8), (0.25, 4.0)
    runtimes = Runtimes(replayer, network)
    planes = spent(lambda: made.append(runtime_planes(runtimes, *ranges, error=1e-3)))
    print(
        f"{name:<28}{program.operations:>12}{once:>11.4f}{path:>11.4f}{seconds:>15.2f}{number:>13}"
        f"{planes:>11.2f}{len(made[0].planes):>8}"
    )


def main() -> None:
    """Print the table."""
    print(
        f"{'program':<28}{'operations':>12}{'replay, s':>11}{'path, s':>11}"
        f"{'all pieces, s':>15}{'breakpoints':>13}{'planes, s':>11}{'planes':>8}"
    )
    show("ring", ring(10, steps=2000))
    for path in sys.argv[1:]:
        show(Path(path).name, from_trace(popmodel.read(path)))


if __name__ == "__main__":
    main()
