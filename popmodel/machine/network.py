"""A machine profile as the network of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.network.network import Network
from popmodel.network.point_to_point import SizeClass, eager_threshold
from popmodel.network.tiers import Tier, Tiers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.machine.profile import Profile

__all__ = ["network_of"]


def network_of(profile: Profile, nodes: NDArray[np.int32]) -> Network:
    """Return the network of a machine to processes on some nodes.

    Messages cost what the profile says of one message alone, inside a node (``net.intra``) or
    between nodes (``net.inter``): best estimates, without the crowding of shared links
    (``net.nic_G``, ``net.shm_k``). The overheads of sender and receiver (``os``, ``or``) are part
    of the measured time of a message (``alpha``), so that the latency is what remains of it, at
    least 0: a message alone takes what was measured, and further ones their overhead more, as in
    the closed form of a halo.

    Parameters
    ----------
    profile : Profile
        The machine.
    nodes : int32[P]
        Node of each process.

    Raises
    ------
    MissingQuantity
        If the profile does not know a distance that some messages can go.
    """
    used = np.bincount(nodes)
    within = _tier(profile, "intra") if (used > 1).any() or len(nodes) == 1 else None
    between = _tier(profile, "inter") if np.count_nonzero(used) > 1 else None
    tiers = Tiers(within, between)
    slowest = tiers.slowest
    return Network(
        name=profile.name,
        latency=slowest.latency,
        bandwidth=slowest.bandwidth,
        eager_threshold=slowest.eager_threshold,
        tiers=tiers,
    )


def _tier(profile: Profile, name: str) -> Tier:
    send, receive = (_overhead(profile, f"net.{name}.{key}") for key in ("os", "or"))
    classes = []
    for index in range(profile.class_count(name)):
        path = f"net.{name}.classes[{index}]"
        upto = profile.document["net"][name]["classes"][index].get("upto")
        alpha, beta = profile.get(f"{path}.alpha").value, profile.get(f"{path}.beta").value
        latency = max(alpha - send - receive, 0.0)
        classes.append(SizeClass(None if upto is None else float(upto), latency, beta))
    largest = profile.get(f"net.{name}.eager_threshold").value
    return Tier(tuple(classes), float(eager_threshold(largest)), send, receive)


def _overhead(profile: Profile, path: str) -> float:
    return profile.get(path).value if path in profile.quantities else 0.0
