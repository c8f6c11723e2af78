"""Every symbol of the model: what it means, its unit, where its values come from.

Equations never see a bare number: what a term needs it takes from the machine profile by its path,
from the signature, or from the placement, under the names listed here. Those of machines are in the
register (`popmodel.machine.parameters`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from popmodel.machine import register
from popmodel.machine.parameter import TIERS, Parameter
from popmodel.machine.parameters import REGISTER
from popmodel.model.laws import LAWS, PROGRAM
from popmodel.values import dataclass


@dataclass(frozen=True)
class ModelSymbol:
    """One symbol."""

    name: str  # Name in formulas, or path in the machine profile
    meaning: str  # What it is
    unit: str  # SI unit
    source: str  # Where its value comes from


def _of_machine(parameter: Parameter) -> ModelSymbol:
    return ModelSymbol(parameter.name, parameter.meaning, parameter.unit, "machine")


_IMBALANCE = {
    "persistent_cv": ("cv_p", "persistent imbalance: spread of the work, the same in every step"),
    "transient_cv": ("cv_t", "transient imbalance: spread of the work, new in every step"),
    "reference_processes": ("P_ref", "processes at which the imbalance was given"),
    "growth_exponent": ("H", "growth of the imbalance with P"),
    "largest": ("w_max", "part of all work that one process has, whatever P is"),
}

_TABLE = (
    ModelSymbol("P", "number of processes", "1", "request"),
    ModelSymbol("T", "threads per process", "1", "request"),
    ModelSymbol("rank", "rank of a process", "1", "placement"),
    ModelSymbol("ppn", "processes per node", "1", "placement"),
    ModelSymbol("nodes", "nodes used", "1", "placement"),
    ModelSymbol("A", "active cores of the fullest memory domain", "1", "placement"),
    *(
        ModelSymbol(f"{letter}{dim}", f"{what} along the {nth} grid dimension", "1", "signature")
        for letter, what in (("P", "processes"), ("n", "local cells"))
        for dim, nth in enumerate(("first", "second", "third"))
    ),
    *map(_of_machine, REGISTER),
    *(
        ModelSymbol(f"imbalance.{name}", meaning, "1", "signature")
        for name, (_, meaning) in _IMBALANCE.items()
    ),
    *(ModelSymbol(law.path, law.meaning, "1", "model") for law in LAWS.values()),
    ModelSymbol(
        "law.collectives",
        "what a measured collective may be off by when its formula carries it over one doubling",
        "1",
        "model",
    ),
    ModelSymbol(
        "law.unbound",
        "share of its local memory that a thread loses if nothing binds it to cores",
        "1",
        "model",
    ),
    ModelSymbol("lambda_T", "stretch of a parallel loop by uneven shares", "1", "model"),
    ModelSymbol("q(n)", "expected maximum of n standard normal values", "1", "model"),
)

SYMBOLS: Mapping[str, ModelSymbol] = {
    name: next(symbol for symbol in _TABLE if symbol.name == name)
    for name in dict.fromkeys(symbol.name for symbol in _TABLE)
}
"""All symbols by name; of a table whose entries differ, the first."""

SHORT: Mapping[str, str] = {
    **{one.name: one.short for one in REGISTER if one.short},
    **{f"imbalance.{name}": short for name, (short, _) in _IMBALANCE.items()},
}
"""How formulas write a quantity that is used under a path; others by the last part of it."""

RESERVED: Mapping[str, str] = {
    symbol.name: f"the {symbol.meaning}"
    for symbol in _TABLE
    if symbol.name.isidentifier() and symbol.source in ("request", "placement", "signature")
}
"""Names that a signature may use in formulas, or must not define: name -> meaning."""


def explain(path: str) -> ModelSymbol | None:
    """Return the symbol that a quantity is a value of."""
    parameter = register.find(path)
    return SYMBOLS.get(path) if parameter is None else _of_machine(parameter)


def label(path: str) -> str:
    """Name an input for people, with its path: ``saturated memory bandwidth (memory.bsat)``."""
    if path.startswith("params."):
        return f"parameter {path.removeprefix('params.')} of the application"
    if path.startswith("constants."):
        return f"constant {path.removeprefix('constants.')} of the application"
    if path in PROGRAM:
        return f"{PROGRAM[path]} ({path})"
    construct = re.match(r"openmp\.(\w+)", path)
    known = explain(path)
    if construct:
        meaning = f"overhead of OpenMP {construct[1]}"
    elif known is None:
        return path
    else:
        tier = re.match(r"net\.(\w+)\.", path)
        meaning = known.meaning.removesuffix(" of a domain").partition(":")[0]
        meaning += f" {TIERS[tier[1]]}" if tier else ""
    return f"{meaning} ({path})"


def not_modelled(paths: Iterable[str]) -> str:
    """Say which effects a prediction lacks because the profile has no value for them."""
    effects = {path: label(path).removesuffix(f" ({path})") for path in sorted(paths)}
    named = ", ".join(f"{path} ({effect})" for path, effect in effects.items())
    return f"not modelled, no value in the profile: {named}"


def short_name(path: str) -> str:
    """Return the name of a quantity in formulas: ``b_sat``, ``f_16``, ``alpha_inter``,
    ``O_for``.
    """
    parameter = register.find(path)
    if parameter is None:
        return SHORT.get(path) or re.sub(r"\W+", "_", path.rpartition(".")[2])
    own = parameter.short or parameter.stem.rpartition(".")[2]
    if parameter.has_tiers:
        tier, size = path.split(".")[1], re.search(r"classes\[(\d+)\]", path)
        return f"{own}_{tier}" + (f"_{int(size[1]) + 1}" if size else "")
    entry = re.sub(r"\.seconds|\.fit", "", path.removeprefix(parameter.stem))
    return "_".join([own, *re.findall(r"[0-9A-Za-z]+", entry)])
