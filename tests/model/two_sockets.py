"""Machines with several memory domains."""

from typing import Any

from popmodel.machines import profile


def machine(sockets: int, domains: int, pairs: dict[str, Any] | None = None) -> profile.Profile:
    """16 cores; a domain reaches 40 GB/s with 20 GB/s per core."""
    document = {
        "schema": "popmodel/machine/1",
        "topology": {"cores_per_node": 16, "sockets": sockets, "domains": domains},
        "memory": {
            "b1": {"value": 2e10, "origin": "user"},
            "bsat": {"value": 4e10, "origin": "user"},
            "q": {"value": 50.0, "origin": "user"},
            **({} if pairs is None else {"remote": pairs}),
        },
    }
    return profile.from_document(document)


def ratios(one: float, all_: float) -> dict[str, Any]:
    return {
        "bandwidth": {"value": one, "origin": "user"},
        "saturated": {"value": all_, "origin": "user"},
    }
