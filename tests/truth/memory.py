"""How cores of a memory domain slow each other down: several laws.

Each gives the time of a unit of work on each of n cores, from its time on one core alone and from
the time that the full memory needs for the data of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def power(n: int, alone: float, service: float, sharpness: float) -> float:
    """A sum of powers, as the package has it."""
    return float(
        (alone**sharpness - service**sharpness + (n * service) ** sharpness) ** (1 / sharpness)
    )


def queue(n: int, alone: float, service: float) -> float:
    """Cores as customers of one server, by mean value analysis."""
    waiting, think = 0.0, alone - service
    time = alone
    for customers in range(1, n + 1):
        time = think + service * (1 + waiting)
        waiting = customers / time * (time - think)
    return time


def requests(n: int, alone: float, service: float) -> float:
    """Utilisation by a recursion: who finds the memory busy comes back later."""
    used = 0.0
    for customers in range(1, n + 1):
        used = min(1.0, customers / (alone / service + used * (customers - 1) / 2))
    return n * service / used


OTHERS: Mapping[str, Callable[[int, float, float], float]] = {"queue": queue, "requests": requests}
"""Those that the package does not have."""
