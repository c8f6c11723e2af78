"""What a machine profile may contain: every key with its shape and unit, as one table."""

from __future__ import annotations

import re
from typing import Any

from popmodel.documents import Kind
from popmodel.machine.quantity import Quantity, read_quantity
from popmodel.shapes import (
    Flag,
    Items,
    Named,
    OneOf,
    Optional,
    Plain,
    Real,
    ShapeError,
    Table,
    Text,
    Whole,
)


class Number:
    """A quantity with an interval, in `unit`; `zero` tells whether it may be 0."""

    def __init__(self, unit: str, zero: bool = False) -> None:
        self.unit = unit
        self.zero = zero

    def read(self, value: Any) -> Quantity:
        """Return the quantity; see `Shape`."""
        try:
            return read_quantity(value, self.unit, zero=self.zero)
        except ShapeError:
            raise
        except ValueError as error:
            raise ShapeError(str(error)) from None


class _Words(Named):
    """A table whose keys are words: what has a dot or a bracket could not be found by its path."""

    def read(self, value: Any) -> dict[str, Any]:
        """Return the table; see `Shape`."""
        found = super().read(value)
        for name in found:
            if not re.fullmatch(r"[\w -]+", name):
                raise ShapeError("must be named by a word", name)
        return found


_COUNT = Whole(1, 10**9)
_BYTES = Real(least=0)  # of a message: plain numbers without an interval

TIERS = ("socket", "intra", "inter")
"""Distances between processes: one socket of several, one node, two nodes."""

_TIER = Table(
    {
        "classes": Items(
            Table(
                {
                    "upto": Optional(Real(above=0)),
                    "alpha": Number("s"),
                    "beta": Number("s/B", True),
                },
                required=("alpha", "beta"),
            ),
            1,
        ),
        "eager_threshold": Number("B", True),
        "os": Number("s", True),
        "or": Number("s", True),
        "o_ctl": Number("s", True),
        "g": Number("s", True),
        "G": Number("s/B", True),
        "bidirectional": Number("1"),
        "table": Items(
            Table({"bytes": _BYTES, "seconds": Number("s")}, required=("bytes", "seconds")),
            1,
        ),
        "pairs": Items(
            Table(
                {"pairs": _COUNT, "bytes": Real(above=0), "bandwidth": Number("B/s")},
                required=("pairs", "bytes", "bandwidth"),
            ),
            1,
        ),
    },
    required=("classes",),
)

_CONSTRUCT = Table(
    {
        "T": Items(_COUNT, 1),
        "seconds": Items(Number("s", True), 1),
        "fit": Table(
            {key: Number("s", True) for key in ("a", "b", "d", "s")} | {"v": Number("s/B", True)}
        ),
    },
    required=("T", "seconds"),
)

_PLAIN_QUANTITY = Table({"value": Real()}, ("value",), others=Plain())

_QUALITY = Table(
    {
        "launches": Whole(0),
        "jobs": Whole(0),
        "converged": Real(least=0),
        "noisy": Flag(),
        "why": OneOf("text or a list of texts", Text(), Items(Text())),
    },
    others=Plain(),
)

_MEASUREMENT = Table(
    {
        "samples": Text(),
        "started": Text(),
        "parts": Items(Text()),
        "failures": Items(Text()),
        "shortfalls": Items(Text()),
    },
    others=Plain(),
)

_PROVENANCE = Table({"measurements": Items(_MEASUREMENT)}, others=Plain())

PROFILE = Table(
    {
        "schema": Text(("popmodel/machine/1",)),
        "name": Text(),
        "description": Text(),
        "host": Table({"load": Real(least=0), "measured": Text()}, others=Plain()),
        "topology": Table(
            {
                "nodes": _COUNT,
                "cores_per_node": _COUNT,
                "sockets": _COUNT,
                "domains": _COUNT,
                "caches": Items(
                    Table(
                        {"level": Text(), "bytes": Whole(1), "shared_by": _COUNT},
                        required=("level", "bytes", "shared_by"),
                    ),
                    1,
                ),
                "memory_per_node": Whole(1),
            },
            required=("cores_per_node",),
        ),
        "core": Table(
            {
                "freq": Named(Number("Hz")),
                "flop_per_cycle": Number("1/cycle"),
                "load_per_cycle": Number("1/cycle"),
                "store_per_cycle": Number("1/cycle"),
                "loop_cycles": Number("cycle", True),
                "smt_factor": Number("1"),
                "overlap": Text(("none", "ecm", "full")),
            },
        ),
        "memory": Table(
            {
                "b1": Number("B/s"),
                "bsat": Number("B/s"),
                "q": Number("1"),
                "by_cores": Named(Number("B/s")),
                "cache_bw": _Words(Number("B/s")),
                "latency": _Words(Number("s")),
                "line": Whole(1, 10**6),
                "copy_bw": Number("B/s"),
                "line_transfer": _Words(Number("s")),
                "kappa": Number("1"),
                "kappa_fs": Number("1", True),
            },
        ),
        "openmp": _Words(_CONSTRUCT),
        "net": Table(
            {
                **dict.fromkeys(TIERS, _TIER),
                "nic_G": Number("s/B", True),
                "shm_k": Number("1"),
                "thread_factor": Number("1", True),
                "multiple_overhead": Number("s", True),
                "overlap": Number("1", True),
                "reduce_gamma": Number("s/B", True),
            },
        ),
        "coll": _Words(
            Items(
                Table(
                    {
                        "P": _COUNT,
                        "ppn": _COUNT,
                        "bytes": _BYTES,
                        "seconds": Number("s", True),
                        "algorithm": Text(),
                    },
                    required=("P", "ppn", "bytes", "seconds"),
                ),
                1,
            )
        ),
        "noise": Named(OneOf("a number or text", Real(), Text(), _PLAIN_QUANTITY)),
        "quality": Named(OneOf("a table or text", Text(), _QUALITY)),
        "absent": Named(Text()),
        "provenance": OneOf("a table or text", Text(), _PROVENANCE),
    },
    required=("schema", "topology"),
)

KIND = Kind(
    "popmodel/machine/1",
    "machine profile",
    PROFILE,
    "correct it, or measure again: popmodel bench",
)
