"""Over which links messages go from node to node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Routes:
    """Over which links messages go, and what those carry."""

    # int32[R]: Nodes of each route, by number from 0, ascending by sender, then receiver.
    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    offsets: NDArray[np.int64]  # int64[R + 1]: Rows of each route in `link`
    link: NDArray[np.int32]  # int32[K]: Links of a route
    latency: NDArray[np.float64]  # float64[R]: Time on the way beside that of any message, s
    capacity: NDArray[np.float64]  # float64[L]: What each link carries, B/s
    # What the links of each process inside its node carry, each way, B/s; 0: as much as needed.
    within: float = 0.0

    def __len__(self) -> int:
        return len(self.sender)


_NONE = np.empty(0, np.int32)

NO_ROUTES = Routes(_NONE, _NONE, np.zeros(1, np.int64), _NONE, np.empty(0), np.empty(0))
"""Where no message shares a link with another."""


def of_hops(
    routes: int, hops: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Put hops together that were found side by side."""
    empty = np.empty(0, np.int64)
    route = np.concatenate([empty, *(which for which, _ in hops)])
    link = np.concatenate([empty, *(over for _, over in hops)])
    order = np.argsort(route, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(route, minlength=routes))])
    return offsets.astype(np.int64), link[order].astype(np.int32)
