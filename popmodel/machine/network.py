"""A machine profile as the network of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.machine.profile import in_unit
from popmodel.network.network import Network
from popmodel.network.point_to_point import SizeClass, eager_threshold
from popmodel.network.tiers import Tier, Tiers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.machine.profile import Profile


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
