"""Every symbol of the model: what it means, its unit, what values it takes, where they come from.

Equations never see a bare number: what a term needs it takes from the machine profile by its path,
from the signature, or from the placement, under the names listed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    Symbol("rank", "number of a process", "1", "0..P-1", "placement"),
    Symbol("ppn", "processes per node", "1", "1..cores per node", "placement"),
    Symbol("nodes", "nodes used", "1", ">= 1, whole", "placement"),
    Symbol("A", "active cores of the fullest memory domain", "1", ">= 1", "placement"),
    Symbol("P0", "processes along the first grid dimension", "1", ">= 1", "signature"),
    Symbol("P1", "processes along the second grid dimension", "1", ">= 1", "signature"),
    Symbol("P2", "processes along the third grid dimension", "1", ">= 1", "signature"),
    Symbol("n0", "local cells along the first grid dimension", "1", "> 0", "signature"),
    Symbol("n1", "local cells along the second grid dimension", "1", "> 0", "signature"),
    Symbol("n2", "local cells along the third grid dimension", "1", "> 0", "signature"),
    Symbol("core.freq", "clock at a number of active cores of a node", "Hz", "> 0", "machine"),
    Symbol("core.flop_per_cycle", "peak floating-point rate", "1/cycle", "> 0", "machine"),
    Symbol("core.load_per_cycle", "peak rate of 8-byte loads", "1/cycle", "> 0", "machine"),
    Symbol("core.store_per_cycle", "peak rate of 8-byte stores", "1/cycle", "> 0", "machine"),
    Symbol("core.loop_cycles", "cycles of loop control per iteration", "cycle", ">= 0", "machine"),
    Symbol("memory.b1", "memory bandwidth of one core", "B/s", "> 0", "machine"),
    Symbol("memory.bsat", "saturated bandwidth of a domain", "B/s", ">= b1", "machine"),
    Symbol("memory.q", "sharpness of the saturation", "1", ">= 1", "machine"),
    Symbol("memory.by_cores", "bandwidth of active cores of a domain", "B/s", "> 0", "machine"),
    Symbol("memory.copy_bw", "bytes that a core copies per second", "B/s", "> 0", "machine"),
    Symbol("memory.kappa", "usable fraction of a cache", "1", "0..1", "machine"),
    Symbol("memory.cache_bw", "bandwidth of a cache level for one core", "B/s", "> 0", "machine"),
    Symbol("memory.line", "bytes of a cache line", "B", "whole, >= 1", "machine"),
    Symbol("memory.line_transfer", "time of a cache line from core to core", "s", "> 0", "machine"),
    Symbol(
        "memory.kappa_fs", "share of these transfers that is not hidden", "1", "0..1", "machine"
    ),
    Symbol("openmp", "overhead of an OpenMP construct at T threads", "s", ">= 0", "machine"),
    Symbol("alpha", "time of an empty message", "s", "> 0", "machine"),
    Symbol("beta", "time per byte of a message", "s/B", ">= 0", "machine"),
    Symbol("os", "time of the processor to send a message", "s", ">= 0", "machine"),
    Symbol("eager_threshold", "largest message sent without a handshake", "B", ">= 0", "machine"),
    Symbol(
        "net.shm_k", "messages inside a node that do not slow each other", "1", "> 0", "machine"
    ),
    Symbol("net.nic_G", "time per byte through the adapter of a node", "s/B", ">= 0", "machine"),
    Symbol(
        "net.thread_factor",
        "growth of the time of a message by every further communicating thread",
        "1",
        ">= 0",
        "machine",
    ),
    Symbol(
        "net.multiple_overhead",
        "further time of a message where several threads may communicate",
        "s",
        ">= 0",
        "machine",
    ),
    Symbol("net.reduce_gamma", "time per byte of a reduction", "s/B", ">= 0", "machine"),
    Symbol("imbalance.persistent_cv", "spread of work, same every step", "1", ">= 0", "signature"),
    Symbol("imbalance.transient_cv", "spread of work, new every step", "1", ">= 0", "signature"),
    Symbol(
        "imbalance.reference_processes", "processes of the given spread", "1", ">= 1", "signature"
    ),
    Symbol("imbalance.growth_exponent", "growth of the spread with P", "1", "0..0.5", "signature"),
    Symbol("lambda_T", "stretch of a shared loop by uneven shares", "1", ">= 0", "model"),
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
    """Give the symbol that a quantity of the machine profile is a value of.

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


def short_name(path: str) -> str:
    """Give the name of a quantity in formulas: ``b_sat``, ``f_16``, ``alpha_inter``, ``O_for``.

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
