"""A machine with round figures and small programs, for the tests of the model."""

import copy
from collections.abc import Mapping
from typing import Any

from popmodel.machines import profile
from popmodel.machines.profile import Profile, from_document
from popmodel.model import signatures as signature
from popmodel.model.predictor import Study
from popmodel.model.replayed_run import Whole
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import GROUPS, explain

ALPHA, BETA, GAMMA = 1e-6, 1e-9, 1e-10
"""Costs of the machine `flat`."""


def exact(value: float) -> dict[str, Any]:
    return {"value": value, "origin": "user"}


def machine(**changes: float) -> Profile:
    """Two nodes with round figures; ``changes`` by path with __ for a dot, such as memory__b1."""
    document: dict[str, Any] = {
        "schema": "popmodel/machine/1",
        "name": "round",
        "topology": {
            "nodes": 8,
            "cores_per_node": 8,
            "domains": 2,
            "caches": [{"level": "L3", "bytes": 2**20, "shared_by": 4}],
            "memory_per_node": 2**34,
        },
        "core": {
            "freq": {"1": exact(2e9)},
            "flop_per_cycle": exact(2),
            "load_per_cycle": exact(2),
            "store_per_cycle": exact(1),
            "loop_cycles": exact(1),
            "overlap": "none",
        },
        "memory": {
            "b1": exact(1e10),
            "bsat": exact(2e10),
            "q": exact(8),
            "kappa": exact(0.5),
            "cache_bw": {"L3": exact(4e10)},
        },
        "openmp": {
            "parallel_for": {"T": [1, 8], "seconds": [exact(1e-7), exact(4e-7)]},
            "barrier": {"T": [1, 8], "seconds": [exact(5e-8), exact(2e-7)]},
        },
        "net": {
            "intra": {
                "classes": [{"alpha": exact(5e-7), "beta": exact(1e-10)}],
                "eager_threshold": exact(65536),
            },
            "inter": {
                "classes": [{"alpha": exact(2e-6), "beta": exact(2e-10)}],
                "eager_threshold": exact(16384),
            },
            "nic_G": exact(1.5e-10),
            "shm_k": exact(4),
            "reduce_gamma": exact(1e-10),
        },
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        entry: Any = document
        for key in parents:
            entry = entry[int(key)] if isinstance(entry, list) else entry[key]
        entry[int(last) if isinstance(entry, list) else last] = exact(value)
    return profile.from_document(document)


def round_machine(**net: Any) -> Profile:
    """The round machine with further entries of its section ``net``; None takes one out."""
    document = copy.deepcopy(dict(machine().document))
    document["net"] |= {name: exact(value) for name, value in net.items() if value is not None}
    for name, value in net.items():
        if value is None:
            del document["net"][name]
    return from_document(document)


def flat(cores: int = 64, **net: Any) -> Profile:
    """Large nodes, the same cost inside and between them, and no crowding."""
    document = copy.deepcopy(dict(machine().document))
    document["topology"] |= {"cores_per_node": cores, "nodes": 64}
    for tier in ("intra", "inter"):
        document["net"][tier] |= {"classes": [{"alpha": exact(ALPHA), "beta": exact(BETA)}]}
    del document["net"]["shm_k"], document["net"]["nic_G"]
    document["net"] |= {name: exact(value) for name, value in net.items()}
    return from_document(document)


def point(
    profile: Profile,
    processes: int = 1,
    threads: int = 1,
    extent: tuple[int, ...] = (),
    *,
    periodic: bool = False,
    overlap: str | None = None,
) -> ModelPoint:
    """Where items with numbers are evaluated: processes on a machine, in a grid."""
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    placement = place(processes, threads, profile.topology)
    values = {"P": float(processes), "T": float(threads)}
    wraps = (periodic,) * len(extent)
    return ModelPoint("demo", placement, parameters, values, extent, wraps, overlap)


def program(body: str, **sections: str) -> Signature:
    """Read a signature from its program and further sections of TOML."""
    head = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
    extra = "".join(f"[{name}]\n{text}\n" for name, text in sections.items())
    return signature.from_text(head + extra + body, "demo.toml")


PIPELINE = """
[[program]]
loop = { name = "iteration", count = 10 }
  [[program.body]]
  [program.body.pipeline]
  name = "sweep"
  dims = [0]
  blocks = "blocks"
  seconds = "t/P"
  bytes = "8e4/blocks"
"""
LINE = {"decomp": 'grid = ["P"]'}

SOLITARY = """
[[program]]
serial = { trip = 1e6, flops = 2 }
[[program]]
parallel = { trip = 1e9, flops = 2, constructs = { parallel_for = 1 } }
"""


def degrees(group: str) -> set[int]:
    """1 for times, -1 for rates, 0 for neither, of the quantities that change together."""
    units = {"s": 1, "s/B": 1, "B/s": -1, "Hz": -1}
    powers = GROUPS[group].powers.items()
    symbols = ((explain(path), power) for path, power in powers)
    return {units.get(one.unit, 0) * power for one, power in symbols if one is not None} or {0}


def whole(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    settings: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Whole:
    """Every step of a program."""
    return Study(signature, profile, settings or {}, 0, seed).whole(processes, threads)
