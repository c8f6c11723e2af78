"""Networks on which a message costs less inside a node than between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.network.point_to_point import SizeClass, by_size, waits_for_receiver
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Tier:
    """What messages over one distance cost."""

    # Latency and time per byte by size, by rising ``upto``; the last one has none. Without the
    # overheads.
    classes: tuple[SizeClass, ...]
    eager_threshold: float  # Bytes from which a blocking send waits for its receive to be posted
    # CPU time to send a message, before it leaves, and to receive it, after it has arrived, s.
    send_overhead: float = 0.0
    receive_overhead: float = 0.0

    def time(self, size: ArrayLike) -> NDArray[np.float64]:
        """Time of messages of some sizes (bytes) from their departure to their arrival, s."""
        return np.asarray(by_size(np.asarray(size, dtype=np.float64), self.classes), np.float64)

    @property
    def latency(self) -> float:
        """Time of an empty message, s."""
        return float(self.classes[0].alpha)

    @property
    def bandwidth(self) -> float:
        """What the longest messages approach, B/s; infinite if size costs nothing."""
        beta = float(self.classes[-1].beta)
        return 1 / beta if beta else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: times in seconds, per byte in s/B."""
        overheads = {
            name: value
            for name in ("send_overhead", "receive_overhead")
            if (value := getattr(self, name))
        }
        return {
            "eager_threshold": None if np.isinf(self.eager_threshold) else self.eager_threshold,
            **overheads,
            "classes": [
                {"upto": one.upto, "alpha": float(one.alpha), "beta": float(one.beta)}
                for one in self.classes
            ],
        }


@dataclass(frozen=True)
class Tiers:
    """What messages inside a node and between nodes cost; None of a distance that is not there."""

    within: Tier | None
    between: Tier | None

    @property
    def slowest(self) -> Tier:
        """The tier of the longest distance that is there."""
        tier = self.between or self.within
        if tier is None:
            raise ValueError("a network needs at least one tier")
        return tier

    def waits(self, size: NDArray[np.int64], apart: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether a blocking send of each message waits for its receive to be posted."""
        waits = np.zeros(size.shape, dtype=bool)
        for tier, messages in ((self.within, ~apart), (self.between, apart)):
            if messages.any():
                if tier is None:
                    raise ValueError("a message goes where the network has no tier")
                waits[messages] = waits_for_receiver(size[messages], tier.eager_threshold)
        return waits

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the tiers that are there."""
        return {
            name: tier.to_dict()
            for name, tier in (("within", self.within), ("between", self.between))
            if tier is not None
        }
