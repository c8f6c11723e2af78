"""Two profiles side by side; a profile as the network of a replay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.values import dataclass
from popmodel.machines.profile import Profile, in_unit, named_quantities
from popmodel.machines.quantity import Quantity
from popmodel.network.network import Network
from popmodel.network.point_to_point import SizeClass, Tier, Tiers, eager_threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Two profiles side by side.


@dataclass(frozen=True)
class ProfileDifference:
    """One quantity of two profiles."""

    path: str  # Such as ``memory.b1``
    # None where a profile does not have it.
    first: Quantity | None
    second: Quantity | None

    @property
    def ratio(self) -> float | None:
        """Second over first; None if one is missing, the first is 0, or one alone is below 0."""
        if self.first is None or self.second is None or self.first.value == 0:
            return None
        ratio = self.second.value / self.first.value
        return ratio if ratio >= 0 else None

    @property
    def within(self) -> bool | None:
        """Whether they differ by no more than both 90 % intervals together allow.

        The half widths towards each other add up as independent errors do. None if one is missing.
        """
        if self.first is None or self.second is None:
            return None
        low, high = sorted((self.first, self.second), key=lambda quantity: quantity.value)
        gap = high.value - low.value
        up = (low.value if low.high is None else low.high) - low.value
        down = high.value - (high.value if high.low is None else high.low)
        return gap <= math.hypot(up, down) * (1 + 1e-12)


def diff(first: Profile, second: Profile) -> list[ProfileDifference]:
    """Compare every quantity of two profiles; rows of lists are matched by what they are about."""
    ours, theirs = named_quantities(first), named_quantities(second)
    return [
        ProfileDifference(path, ours.get(path), theirs.get(path))
        for path in dict.fromkeys([*ours, *theirs])
    ]


# A machine profile as the network of a replay.


def network_of(profile: Profile, nodes: NDArray[np.int32]) -> Network:
    """Return the network of a machine to processes on some nodes.

    Messages cost what the profile says of one message alone, inside a node (``net.intra``) or
    between nodes (``net.inter``): best estimates, without the crowding of shared links
    (``net.nic_G``, ``net.shm_k``). The overheads of sender and receiver (``os``, ``or``) are part
    of the measured time of a message (``alpha``), so that the latency is what remains of it, at
    least 0: a message alone takes what was measured, and further ones their overhead more, as in
    the closed form of a halo.
    """
    within = _tier(profile, "intra")  # a process may send to itself
    between = _tier(profile, "inter") if len(set(nodes.tolist())) > 1 else None
    tiers = Tiers(within, between)
    slowest = tiers.slowest
    return Network(
        name=profile.name,
        latency=slowest.latency,
        bandwidth=slowest.bandwidth,
        eager_threshold=slowest.eager_threshold,
        tiers=tiers,
    )


def network_lacks(profile: Profile, nodes: NDArray[np.int32]) -> list[str]:
    """Say what the profile lacks of the network between processes on some nodes."""
    used = np.bincount(nodes)
    within, between = bool((used > 1).any()), bool(np.count_nonzero(used) > 1)
    return [
        f"{profile.lacks(path)}; replayed with {in_unit(path, profile.get(path).value)}"
        for path in profile.assumed_network(intra=within, inter=between)
    ]


def _tier(profile: Profile, name: str) -> Tier:
    send, receive = (_overhead(profile, f"net.{name}.{key}") for key in ("os", "or"))
    classes = []
    for index, upto in enumerate(profile.class_bounds(name)):
        path = f"net.{name}.classes[{index}]"
        alpha, beta = profile.get(f"{path}.alpha").value, profile.get(f"{path}.beta").value
        latency = max(alpha - send - receive, 0.0)
        classes.append(SizeClass(None if upto is None else float(upto), latency, beta))
    largest = profile.get(f"net.{name}.eager_threshold").value
    return Tier(tuple(classes), float(eager_threshold(largest)), send, receive)


def _overhead(profile: Profile, path: str) -> float:
    return profile.get(path).value if path in profile.quantities else 0.0
