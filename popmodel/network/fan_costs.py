"""Cost of a collective as a fan-in and a fan-out, the model of Dimemas.

Each of the two stages takes ``(latency + size / bandwidth)`` times a factor of the number of
members. The sizes are those with which Dimemas' simulated times come out (shown in
``tests/simulator/test_dimemas.py``): Bcast pays no size on its way in; the others pay the mean of
what is sent and received. Reduce has one stage and no factor: every member pays for what it
sends, and the root leaves when all have. Where members have different sizes and nobody is the
root (Alltoallv), those of the member that arrives last count.

Dimemas reads other factors and sizes from a file of collective operations; `Fans` are these.
Reduce does not follow them there, nor here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import FileError
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Times = Callable[[NDArray[np.float64]], NDArray[np.float64]]


FACTORS = {"0": "none", "CTE": "constant", "LIN": "linear", "LOG": "logarithmic"}
"""How often a stage is paid, by the word of Dimemas."""
SIZES = ("MIN", "MAX", "MEAN", "2MAX", "S+R")
"""What size a stage pays, of the bytes that a member sends (S) and receives (R)."""

# by number in the file; those with counts of their own are as those without
_DIMEMAS_OPERATIONS = {
    0: "barrier",
    1: "bcast",
    2: "gather",
    4: "scatter",
    6: "allgather",
    8: "alltoall",
    11: "allreduce",
    12: "reduce_scatter",
    14: "scan",
}
_LAST_OPERATION = 31


@dataclass(frozen=True)
class Fan:
    """The two stages of an operation."""

    operation: str  # One of `popmodel.simulator.program.COLLECTIVES`
    # Words of `FACTORS` (the values) and of `SIZES`.
    factor_in: str
    size_in: str
    factor_out: str
    size_out: str

    def time(
        self,
        members: ArrayLike,
        sent: NDArray[np.float64],
        received: NDArray[np.float64],
        message: Times,
    ) -> NDArray[np.float64]:
        """Time from the last arrival to the end, s; parameters as of `collective_time`."""
        if self.operation == "bcast":
            received = np.zeros_like(received)  # a member sends or receives
        time = np.zeros_like(sent)
        for model, size in ((self.factor_in, self.size_in), (self.factor_out, self.size_out)):
            if model != "none":
                time = time + factor(model, members) * message(_paid_size(size, sent, received))
        return time


@dataclass(frozen=True)
class Fans:
    """Stages by operation."""

    name: str  # Where they are from
    fans: tuple[Fan, ...]  # One for each operation that is configured
    # Factor of the others: one of `popmodel.network.network.COST_FACTORS`.
    otherwise: str = "constant"

    def of(self, kind: str) -> Fan | None:
        """Return the stages of an operation if they are configured."""
        kind = "barrier" if kind == "init" else kind
        return next((fan for fan in self.fans if fan.operation == kind), None)


def read_fans(name: str, text: str) -> Fans:
    """Read the collective operations of Dimemas' file of communication.

    A line has the number of an operation, factor and size of the fan-in, factor and size of the
    fan-out, and a number that has no meaning: ``11 LOG MAX LOG MAX 1``. ``Machine globalop: 0`` may
    stand before the number. What concerns other machines, networks between machines and scheduling
    is left out, as are operations with counts of their own, which are as those without.
    """
    fans: dict[str, Fan] = {}
    operations = 0
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if words[:2] == ["Machine", "globalop:"]:
            words = words[3:] if words[2:3] == ["0"] else []
        if not words or not words[0].isdecimal():
            continue
        operations += 1
        if len(words) < 5 or int(words[0]) > _LAST_OPERATION or not _is_fan(words[1:5]):
            raise FileError(
                name,
                f"{line.strip()!r} is no collective operation",
                line=number,
                hint="write NUMBER FACTOR SIZE FACTOR SIZE 1, with factors "
                f"{', '.join(FACTORS)} and sizes {', '.join(SIZES)}",
            )
        operation = _DIMEMAS_OPERATIONS.get(int(words[0]))
        if operation is not None:
            model_in, size_in, model_out, size_out = words[1:5]
            fans[operation] = Fan(
                operation, FACTORS[model_in], size_in, FACTORS[model_out], size_out
            )
    if not operations:
        raise FileError(
            name, "describes no collective operation", hint="write 11 LOG MAX LOG MAX 1"
        )
    return Fans(name, tuple(fans.values()))


def _is_fan(words: list[str]) -> bool:
    return {words[0], words[2]} <= FACTORS.keys() and {words[1], words[3]} <= set(SIZES)


def _paid_size(
    name: str, sent: NDArray[np.float64], received: NDArray[np.float64]
) -> NDArray[np.float64]:
    largest = np.maximum(sent, received)
    return {
        "MIN": np.minimum(sent, received),
        "MAX": largest,
        "MEAN": np.floor((sent + received) / 2),
        "2MAX": 2 * largest,
        "S+R": sent + received,
    }[name]


def factor(model: str, members: ArrayLike) -> NDArray[np.float64]:
    """How often a collective of `members` pays each stage; 0 for one member."""
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
    message: Times,
    model: str | Fans,
) -> NDArray[np.float64]:
    """Time from the last arrival to the end of a collective, s."""
    sent, received = np.asarray(sent, np.float64), np.asarray(received, np.float64)
    if isinstance(model, Fans):
        fan = model.of(kind)
        if fan is not None and kind != "reduce":
            return fan.time(members, sent, received, message)
        model = model.otherwise
    times = factor(model, members)
    time: NDArray[np.float64]
    if kind in ("init", "barrier"):
        time = 2 * message(np.zeros_like(sent)) * times
    elif kind == "bcast":
        time = (message(np.zeros_like(sent)) + message(np.maximum(sent, received))) * times
    elif kind == "reduce":
        time = np.where(times > 0, message(sent), 0.0)
    else:
        time = 2 * message((sent + received) / 2) * times
    return time
