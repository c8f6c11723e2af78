"""Cost of a collective as a fan-in and a fan-out, the model of Dimemas.

Each of the two stages takes ``(latency + size / bandwidth)`` times a factor of the number of
members. The sizes are those with which Dimemas' simulated times come out (shown in
``tests/simulator/test_dimemas.py``): Bcast pays no size on its way in; the others pay the mean of
what is sent and received. Reduce has one stage and no factor: every member pays for what it sends,
and the root leaves when all have. Where members have different sizes and nobody is the root
(Alltoallv), those of the member that arrives last count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["collective_time", "factor"]


def factor(model: str, members: ArrayLike) -> NDArray[np.float64]:
    """How often a collective of `members` pays each stage; 0 for one member.

    Parameters
    ----------
    model : str
        One of `popmodel.network.network.COST_FACTORS`.
    members : array_like of int
        Number of members.
    """
    n = np.asarray(members, dtype=np.float64)
    if model == "constant":
        return np.where(n > 1, 1.0, 0.0)
    if model == "linear":
        return np.maximum(n - 1, 0)
    return np.ceil(np.log2(np.maximum(n, 1)))


def collective_time(
    kind: str,
    members: ArrayLike,
    sent: ArrayLike,
    received: ArrayLike,
    message: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    model: str,
) -> NDArray[np.float64]:
    """Time from the last arrival to the end of a collective, s.

    Parameters
    ----------
    kind : str
        One of `popmodel.simulator.program.COLLECTIVES`.
    members, sent, received : array_like
        Number of members, and the largest number of bytes that one sends and receives.
    message : callable
        From sizes in bytes to the times of messages, s; of an empty one it is the latency.
    model : str
        One of `popmodel.network.network.COST_FACTORS`.
    """
    sent, received = np.asarray(sent, np.float64), np.asarray(received, np.float64)
    latency = message(np.zeros_like(sent))
    times = factor(model, members)
    time: NDArray[np.float64]
    if kind in ("init", "barrier"):
        time = 2 * latency * times
    elif kind == "bcast":
        time = (latency + message(np.maximum(sent, received))) * times
    elif kind == "reduce":
        time = np.where(times > 0, message(sent), 0.0)
    else:
        time = 2 * message((sent + received) / 2) * times
    return time
