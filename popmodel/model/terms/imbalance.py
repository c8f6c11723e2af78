"""Processes with unequal work: what the slowest costs, and which loss it appears as.

The spread of work has a persistent part (the same process is slow in every step), which is a lack
of load balance, and a transient part (another one in every step), which is serialisation, because
in each step all wait for the slowest.
"""

from __future__ import annotations

import math
from functools import lru_cache

from popmodel.expressions.elementary import Value, sqrt
from popmodel.expressions.traced import named

_REACH = 12.0  # standard deviations; the distribution function beyond differs from 0 or 1 by 1e-32
_STEP = 0.02


def expected_maximum(n: Value) -> Value:
    """Return q(n), the expected maximum of n independent standard normal values.

    ``E = b - integral of Phi(x)**n from -b to b``, by the trapezoidal rule, which converges faster
    than any power of the step for this integrand.

    Parameters
    ----------
    n : int or Traced
        At least 1; q(1) = 0, q(2) = 1/sqrt(pi).
    """
    if n < 1:
        raise ValueError(f"the maximum of {n} values does not exist")
    found: Value = named("q", _quadrature, n)
    return found


@lru_cache(maxsize=256)
def _quadrature(n: int) -> float:
    if n == 1:
        return 0.0
    count = round(2 * _REACH / _STEP)
    inner = sum(
        (0.5 * math.erfc((_REACH - i * _STEP) / math.sqrt(2))) ** n for i in range(1, count)
    )
    return _REACH - _STEP * (inner + 0.5)  # half of Phi(b)**n = 1 at the upper end


def spread_at(cv: Value, processes: Value, reference_processes: Value, exponent: Value) -> Value:
    """Return the coefficient of variation of the work of a process, ``cv (P/P_ref)**H``.

    Parameters
    ----------
    cv : value
        Coefficient of variation at ``reference_processes``.
    processes : value
        P.
    reference_processes, exponent : value
        P_ref and H: 0 for a smooth map of costs, 1/2 for independent cells.
    """
    return cv * (processes / reference_processes) ** exponent


def slowest_overall(persistent: Value, transient: Value, steps: Value, processes: Value) -> Value:
    """Return the largest work of a process in the whole run over the average, minus 1.

    ``sqrt(sigma_p**2 + sigma_t**2/n) q(P)``: transient differences average out over n steps.
    """
    return sqrt(persistent**2 + transient**2 / steps) * expected_maximum(processes)


def slowest_per_step(persistent: Value, transient: Value, processes: Value) -> Value:
    """Return the time of a step that all processes end together over the average, minus 1.

    ``sqrt(sigma_p**2 + sigma_t**2) q(P)``; exact for steps that end in a global synchronisation,
    an upper bound when a process waits for its neighbours only.
    """
    return sqrt(persistent**2 + transient**2) * expected_maximum(processes)
