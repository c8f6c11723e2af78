"""Every symbol of the model: what it means, its unit, what values it takes, where they come from.

Equations never see a bare number: what a term needs it takes from the machine profile by its path,
from the signature, or from the placement, under the names listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from popmodel.values import dataclass


@dataclass(frozen=True)
class Symbol:
    """One symbol.

    Attributes
    ----------
    name : str
        Name in formulas, or path in the machine profile.
    meaning : str
        What it is.
    unit : str
        SI unit.
    domain : str
        Values that it takes.
    source : {'request', 'signature', 'placement', 'machine', 'model'}
        Where its value comes from.
    """

    name: str
    meaning: str
    unit: str
    domain: str
    source: str


_TABLE = (
    Symbol("P", "number of processes", "1", ">= 1, whole", "request"),
    Symbol("T", "threads per process", "1", ">= 1, whole", "request"),
    Symbol("rank", "rank of a process", "1", "0..P-1", "placement"),
    Symbol("ppn", "processes per node", "1", "1..cores per node", "placement"),
    Symbol("nodes", "nodes used", "1", ">= 1, whole", "placement"),
    Symbol("A", "active cores of the fullest memory domain", "1", ">= 1", "placement"),
    Symbol("P0", "processes along the first grid dimension", "1", ">= 1", "signature"),
    Symbol("P1", "processes along the second grid dimension", "1", ">= 1", "signature"),
    Symbol("P2", "processes along the third grid dimension", "1", ">= 1", "signature"),
    Symbol("n0", "local cells along the first grid dimension", "1", "> 0", "signature"),
    Symbol("n1", "local cells along the second grid dimension", "1", "> 0", "signature"),
    Symbol("n2", "local cells along the third grid dimension", "1", "> 0", "signature"),
    Symbol("core.freq", "clock frequency by active cores of a node", "Hz", "> 0", "machine"),
    Symbol("core.flop_per_cycle", "peak floating-point rate", "1/cycle", "> 0", "machine"),
    Symbol("core.load_per_cycle", "peak rate of 8-byte loads", "1/cycle", "> 0", "machine"),
    Symbol("core.store_per_cycle", "peak rate of 8-byte stores", "1/cycle", "> 0", "machine"),
    Symbol("core.loop_cycles", "loop-control cycles per iteration", "cycle", ">= 0", "machine"),
    Symbol("memory.b1", "memory bandwidth of one core", "B/s", "> 0", "machine"),
    Symbol("memory.bsat", "saturated memory bandwidth of a domain", "B/s", ">= b1", "machine"),
    Symbol("memory.q", "sharpness of the bandwidth saturation", "1", ">= 1", "machine"),
    Symbol(
        "memory.by_cores", "memory bandwidth by active cores of a domain", "B/s", "> 0", "machine"
    ),
    Symbol("memory.copy_bw", "copy bandwidth of one core", "B/s", "> 0", "machine"),
    Symbol("memory.kappa", "usable fraction of a cache", "1", "0..1", "machine"),
    Symbol("memory.cache_bw", "cache bandwidth of one core", "B/s", "> 0", "machine"),
    Symbol("memory.line", "size of a cache line", "B", "whole, >= 1", "machine"),
    Symbol(
        "memory.line_transfer", "time to move a cache line between cores", "s", "> 0", "machine"
    ),
    Symbol("memory.kappa_fs", "exposed fraction of cache-line transfers", "1", "0..1", "machine"),
    Symbol("openmp", "overhead of an OpenMP construct at T threads", "s", ">= 0", "machine"),
    Symbol("alpha", "latency of a message", "s", "> 0", "machine"),
    Symbol("beta", "time per byte of a message", "s/B", ">= 0", "machine"),
    Symbol("os", "CPU time to send a message", "s", ">= 0", "machine"),
    Symbol("eager_threshold", "largest message sent eagerly", "B", ">= 0", "machine"),
    Symbol(
        "net.shm_k",
        "sharing of the memory channel by messages within a node",
        "1",
        "> 0",
        "machine",
    ),
    Symbol(
        "net.nic_G", "time per byte through the network adapter of a node", "s/B", ">= 0", "machine"
    ),
    Symbol(
        "net.thread_factor",
        "slowdown of a message per additional communicating thread",
        "1",
        ">= 0",
        "machine",
    ),
    Symbol(
        "net.multiple_overhead",
        "extra cost of MPI_THREAD_MULTIPLE per message",
        "s",
        ">= 0",
        "machine",
    ),
    Symbol("net.reduce_gamma", "time per byte of a reduction", "s/B", ">= 0", "machine"),
    Symbol(
        "imbalance.persistent_cv",
        "persistent imbalance: spread of the work, the same in every step",
        "1",
        ">= 0",
        "signature",
    ),
    Symbol(
        "imbalance.transient_cv",
        "transient imbalance: spread of the work, new in every step",
        "1",
        ">= 0",
        "signature",
    ),
    Symbol(
        "imbalance.reference_processes",
        "processes at which the imbalance was given",
        "1",
        ">= 1",
        "signature",
    ),
    Symbol(
        "imbalance.growth_exponent", "growth of the imbalance with P", "1", "0..0.5", "signature"
    ),
    Symbol("lambda_T", "stretch of a parallel loop by uneven shares", "1", ">= 0", "model"),
    Symbol("q(n)", "expected maximum of n standard normal values", "1", ">= 0", "model"),
)

SYMBOLS: Mapping[str, Symbol] = {symbol.name: symbol for symbol in _TABLE}
"""All symbols by name."""

SHORT: Mapping[str, str] = {
    "core.freq": "f",
    "core.flop_per_cycle": "r_flop",
    "core.load_per_cycle": "r_load",
    "core.store_per_cycle": "r_store",
    "core.loop_cycles": "c_loop",
    "memory.b1": "b_1",
    "memory.bsat": "b_sat",
    "memory.q": "q_sat",
    "memory.by_cores": "b",
    "memory.copy_bw": "b_copy",
    "memory.cache_bw": "b",
    "memory.line_transfer": "lambda",
    "openmp": "O",
    "os": "o",
    "eager_threshold": "eager",
    "net.nic_G": "G_nic",
    "net.reduce_gamma": "gamma",
    "net.thread_factor": "c_mt",
    "imbalance.persistent_cv": "cv_p",
    "imbalance.transient_cv": "cv_t",
    "imbalance.reference_processes": "P_ref",
    "imbalance.growth_exponent": "H",
}
"""How formulas write a quantity that is used under a path; others by the last part of it."""

RESERVED: Mapping[str, str] = {
    symbol.name: f"the {symbol.meaning}"
    for symbol in _TABLE
    if symbol.name.isidentifier() and symbol.source in ("request", "placement", "signature")
}
"""Names that a signature may use in formulas, or must not define: name -> meaning."""


def explain(path: str) -> Symbol | None:
    """Return the symbol that a quantity of the machine profile is a value of.

    Parameters
    ----------
    path : str
        Such as ``memory.b1``, ``net.inter.classes[0].alpha`` or ``core.freq.16``.

    Returns
    -------
    Symbol or None
        None if the model does not use it.
    """
    if path in SYMBOLS:
        return SYMBOLS[path]
    tables = ("core.freq", "memory.by_cores", "memory.cache_bw", "memory.line_transfer", "openmp")
    for table in tables:
        if path.startswith(f"{table}."):
            return SYMBOLS[table]
    last = path.rsplit(".", 1)[-1]
    return SYMBOLS.get(last) if path.startswith("net.") else None


_TIERS: Mapping[str, str] = {
    "inter": "between nodes",
    "intra": "within a node",
    "socket": "within a socket",
}


def label(path: str) -> str:
    """Name an input for people, with its path: ``saturated memory bandwidth (memory.bsat)``.

    Parameters
    ----------
    path : str
        Of a quantity or of a group of them (`popmodel.model.uncertainty.group`), such as
        ``net.inter.classes.beta``, ``openmp.parallel_for.seconds`` or ``params.N``.
    """
    if path.startswith("params."):
        return f"parameter {path.removeprefix('params.')} of the application"
    construct = re.match(r"openmp\.(\w+)", path)
    known = explain(path)
    if construct:
        meaning = f"overhead of OpenMP {construct[1]}"
    elif known is None:
        return path
    else:
        tier = re.match(r"net\.(\w+)\.", path)
        meaning = known.meaning.removesuffix(" of a domain").partition(":")[0]
        meaning += f" {_TIERS[tier[1]]}" if tier else ""
    return f"{meaning} ({path})"


def not_modelled(paths: Iterable[str]) -> str:
    """Say which effects a prediction lacks because the profile has no value for them."""
    named = ", ".join(f"{path} ({_effect(path)})" for path in sorted(paths))
    return f"not modelled, no value in the profile: {named}"


def _effect(path: str) -> str:
    return label(path).removesuffix(f" ({path})")


def short_name(path: str) -> str:
    """Return the name of a quantity in formulas: ``b_sat``, ``f_16``, ``alpha_inter``, ``O_for``.

    Parameters
    ----------
    path : str
        As in `explain`.

    Returns
    -------
    str
        An identifier; the part before the first ``_`` is the symbol, the rest its subscripts.
    """
    if path in SHORT:
        return SHORT[path]
    for table, short in SHORT.items():
        if path.startswith(f"{table}."):
            rest = re.sub(r"\.seconds|\.fit", "", path.removeprefix(f"{table}."))
            return f"{short}_{re.sub(r'[^0-9A-Za-z]+', '_', rest).strip('_')}"
    found = re.fullmatch(r"net\.(\w+)(?:\.classes\[(\d+)\])?\.(\w+)", path)
    if found:
        tier, size, last = found.groups()
        number = "" if size is None else f"_{int(size) + 1}"
        return f"{SHORT.get(last, last)}_{tier}{number}"
    return re.sub(r"\W+", "_", path.rpartition(".")[2])
