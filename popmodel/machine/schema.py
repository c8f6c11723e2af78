"""What a machine profile may contain: every key with its type and unit, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Number:
    """A quantity with an interval, in ``unit``; ``zero`` tells whether it may be 0."""

    unit: str
    zero: bool = False


@dataclass(frozen=True)
class Exact:
    """A plain number without an interval; ``zero`` tells whether it may be 0."""

    zero: bool = False


@dataclass(frozen=True)
class Count:
    """A whole number of at least 1."""


@dataclass(frozen=True)
class Text:
    """Free text, or one of ``choices``."""

    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plain:
    """Any JSON value: informative, never used in a computation."""


@dataclass(frozen=True)
class Optional:
    """The entry may be null."""

    of: Entry


@dataclass(frozen=True)
class Sequence:
    """A list of equal entries, at least one."""

    of: Entry


@dataclass(frozen=True)
class Named:
    """A table whose keys are free: construct names, cache levels, distances."""

    of: Entry


@dataclass(frozen=True)
class Table:
    """A table with known keys; those in ``required`` must be there."""

    keys: Mapping[str, Entry]
    required: tuple[str, ...] = ()


Entry: TypeAlias = Number | Exact | Count | Text | Plain | Optional | Sequence | Named | Table

TIERS = ("socket", "intra", "inter")
"""Distances between processes: one socket of several, one node, two nodes."""

_TIER = Table(
    {
        "classes": Sequence(
            Table(
                {"upto": Optional(Exact()), "alpha": Number("s"), "beta": Number("s/B", True)},
                required=("alpha", "beta"),
            )
        ),
        "eager_threshold": Number("B", True),
        "os": Number("s", True),
        "or": Number("s", True),
        "o_ctl": Number("s", True),
        "g": Number("s", True),
        "G": Number("s/B", True),
        "bidirectional": Number("1"),
        "table": Sequence(
            Table(
                {"bytes": Exact(zero=True), "seconds": Number("s")}, required=("bytes", "seconds")
            )
        ),
        "pairs": Sequence(
            Table(
                {"pairs": Count(), "bytes": Exact(), "bandwidth": Number("B/s")},
                required=("pairs", "bytes", "bandwidth"),
            )
        ),
    },
    required=("classes",),
)

_CONSTRUCT = Table(
    {
        "T": Sequence(Count()),
        "seconds": Sequence(Number("s", True)),
        "fit": Table(
            {key: Number("s", True) for key in ("a", "b", "d", "s")} | {"v": Number("s/B", True)}
        ),
    },
    required=("T", "seconds"),
)

PROFILE = Table(
    {
        "schema": Text(("popmodel/machine/1",)),
        "name": Text(),
        "description": Text(),
        "host": Named(Plain()),
        "topology": Table(
            {
                "nodes": Count(),
                "cores_per_node": Count(),
                "sockets": Count(),
                "domains": Count(),
                "caches": Sequence(
                    Table(
                        {"level": Text(), "bytes": Count(), "shared_by": Count()},
                        required=("level", "bytes", "shared_by"),
                    )
                ),
                "memory_per_node": Count(),
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
                "cache_bw": Named(Number("B/s")),
                "latency": Named(Number("s")),
                "line": Count(),
                "copy_bw": Number("B/s"),
                "line_transfer": Named(Number("s")),
                "kappa": Number("1"),
                "kappa_fs": Number("1", True),
            },
        ),
        "openmp": Named(_CONSTRUCT),
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
        "coll": Named(
            Sequence(
                Table(
                    {
                        "P": Count(),
                        "ppn": Count(),
                        "bytes": Exact(zero=True),
                        "seconds": Number("s", True),
                        "algorithm": Text(),
                    },
                    required=("P", "ppn", "bytes", "seconds"),
                )
            )
        ),
        "noise": Named(Plain()),
        "quality": Named(Plain()),
        "absent": Named(Text()),
        "provenance": Plain(),
    },
    required=("schema", "topology"),
)
