"""Machine profiles of the platforms on which SMPI replayed its traces.

Built from latency and bandwidth of a platform and the settings of SMPI: 16 bytes more in every
message, sends that wait from 65536 bytes on, and collectives that take as long as the messages that
SMPI sends for them: a linear reduction and barrier and a binomial broadcast, or (``rdb``) recursive
doubling.
"""

from __future__ import annotations

import math
from typing import Any

from oracle import smpi

from popmodel.machines.profile import Profile, from_document

HOSTS = 64


def exact(value: float) -> dict[str, Any]:
    return {"value": value, "origin": "user"}


def machine(network: str, collectives: str) -> Profile:
    """A platform without contention, one core per host, with ``default`` or ``rdb`` collectives."""
    latency, bandwidth = smpi.NETWORKS[network]

    def message(size: float) -> float:
        return latency + (size + smpi.HEADER) / bandwidth

    def seconds(op: str, processes: int, size: int) -> float:
        tree = math.ceil(math.log2(processes))
        rounds = {"bcast": tree, "reduce": 1, "allreduce": 1 + tree, "barrier": 2}
        if collectives == "rdb":
            rounds |= {"allreduce": tree, "barrier": tree}
        return rounds[op] * message(size)

    def rows(op: str, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
        return [
            {
                "P": processes,
                "ppn": 1,
                "bytes": size,
                "seconds": exact(seconds(op, processes, size)),
            }
            for processes in (2, 4, 8, 16)
            for size in sizes
        ]

    tier = {
        "classes": [{"alpha": exact(message(0)), "beta": exact(1 / bandwidth)}],
        "eager_threshold": exact(smpi.EAGER - 1),
    }
    return from_document(
        {
            "schema": "popmodel/machine/1",
            "name": f"{network} {collectives}",
            "topology": {"nodes": HOSTS, "cores_per_node": 1},
            "core": {
                "freq": {"1": exact(smpi.FLOPS)},
                "flop_per_cycle": exact(1),
                "overlap": "none",
            },
            "net": {"inter": tier, "reduce_gamma": exact(0)},
            "coll": {
                "barrier": rows("barrier", (0,)),
                **{op: rows(op, (4, 8, 16, 4096)) for op in ("bcast", "reduce", "allreduce")},
            },
        }
    )
