"""Every symbol of the model: meaning, unit and source; how far laws hold; what changes together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines import register
from popmodel.machines.quantity import Quantity, around
from popmodel.machines.register import REGISTER, TIERS, Parameter

# How far the laws of the model hold, beside the numbers that enter them.
#
# Right parameters in a law that simplifies give a wrong time. So every part of the time of a
# process has a factor whose best estimate is 1 and whose spread is the error of its law, from
# comparisons that a reader can look up. A split shares a part of that error with all others (an
# operation that the signature does not count is missing everywhere) and has the rest for itself
# (the shape of its blocks, where its messages go).


@dataclass(frozen=True)
class ModelLaw:
    """What gives a part of the time of a process."""

    path: str  # Of its factor among the inputs
    meaning: str  # For people
    spread: float  # Standard deviation of the logarithm of the factor, inside of what was measured
    own: float  # Part of the variance that every split has for itself
    sections: tuple[str, ...]  # Sections of the machine profile that it extrapolates
    source: str  # Where the spread comes from

    def deviation(self, distance: float) -> float:
        """Return the standard deviation of the factor's logarithm at a distance from measurements.

        ``sd(d) = sd0 sqrt(1 + (d/d0)**2)``, with d0 half of the way to where predictions have no
        interval any more.
        """
        return self.spread * math.sqrt(1 + (distance / _HALF_WAY) ** 2)

    def at(self, distance: float) -> Quantity:
        """Return the factor at a distance from what was measured, as of `deviation`."""
        ends = around(1.0, self.deviation(distance))
        return Quantity(1.0, *ends, origin=OF_MODEL, source=self.source)


PROGRAM = {
    "program.form": "which law the runtime of the whole program follows",
    "program.error": "what predictions of runs that are left out are off",
}
"""Scores behind predictions from learnt runs (`popmodel.prediction.learnt_study`), in words."""
OF_MODEL = "model"
"""Origin of the factors of laws."""
_HALF_WAY = 0.5

_OWN = 1 / 3
"""Of the variance: assumed, since what a signature does not count is missing in all splits."""

LOOPS = ModelLaw(
    "law.loops",
    "law of parallel loops",
    0.08,
    _OWN,
    ("core", "memory"),
    "average error of PPT-Multicore for OpenMP programs: 9 %, its parameters included (A. Barai et "
    "al., J. Supercomput. 78 (2022) 2354)",
)
SERIAL = ModelLaw(
    "law.serial",
    "law of serial code",
    0.42,
    _OWN,
    ("core", "memory"),
    "walls and packing of examples/stencil3d: single lines far apart take up to twice as long, "
    "which is the end of the interval",
)
SOURCE = ModelLaw(
    "law.source",
    "work counted in source code",
    0.91,
    0.03,
    (),
    "examples/validation: HPCCG, LULESH and LU took 1.4 to 3.8 times as long as predicted from "
    "their source alone; the root mean square",
)
OPENMP = ModelLaw(
    "law.openmp",
    "law of OpenMP overheads",
    0.25,
    _OWN,
    ("openmp",),
    "assumed, as for messages: measured in empty loops, unlike those of programs",
)
WAITING = ModelLaw(
    "law.waiting",
    "law of imbalance and waiting",
    0.25,
    _OWN,
    (),
    "half of the difference between closed form and replay of stencil3d, 4 to 256 processes",
)
MESSAGES = ModelLaw(
    "law.messages",
    "law of messages",
    0.25,
    _OWN,
    ("net", "topology"),
    "average errors of LogGP for CG and Sweep3D: 38 % and 9 % (W. Chen et al., Sci. China Ser. F "
    "52 (2009) 1785)",
)
LAWS: Mapping[str, ModelLaw] = {
    one.path: one for one in (LOOPS, SERIAL, SOURCE, OPENMP, WAITING, MESSAGES)
}
"""All laws by path."""


# Every symbol of the model: what it means, its unit, where its values come from.
#
# Equations never see a bare number: what a term needs it takes from the machine profile by its
# path, from the signature, or from the placement, under the names listed here. Those of machines
# are in the register (`popmodel.machines.register`).


class ModelSymbol(NamedTuple):
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


# What can be changed of a machine and a program: the quantities that change together, by name.
#
# What-if factors, remedies and elasticities all change quantities of the profile and the signature.
# They take from here which of them belong together, so that "memory bandwidth" means the same
# wherever it is printed.


class ChangeGroup(NamedTuple):
    """Quantities that change together."""

    name: str  # Short name
    label: str  # What grows if the factor is above 1
    # By the beginning of a path, the power of the factor on that quantity: -1 where the profile has
    # the inverse of what the label names, such as a time per byte for a bandwidth.
    powers: Mapping[str, int]


_LABELS: Mapping[str, str] = {
    "clock": "clock",
    "arithmetic": "arithmetic per cycle",
    "operations": "latency of arithmetic",
    "data": "loads and stores per cycle",
    "loops": "loop-control cycles",
    "memory": "memory bandwidth",
    "caches": "cache bandwidth",
    "write_backs": "time of write-backs",
    "copy": "copy bandwidth",
    "cache": "cache",
    "lines": "cache-line transfer time",
    "sharing": "exposed false sharing",
    "openmp": "OpenMP overhead",
    "latency": "network latency",
    "latency_intra": "latency within a node",
    "latency_socket": "latency within a socket",
    "bandwidth": "network bandwidth",
    "bandwidth_intra": "bandwidth within a node",
    "bandwidth_socket": "bandwidth within a socket",
    "adapter": "network adapter bandwidth",
    "crowding": "undisturbed messages per node",
    "sending": "CPU time per message",
    "threads_in_mpi": "cost of additional threads in MPI",
    "reduction": "reduction speed",
}
"""What grows in each group of parameters of a machine."""


def _groups() -> Iterator[ChangeGroup]:
    """The parameters of the register that change together."""
    powers: dict[str, dict[str, int]] = {name: {} for name in _LABELS}
    for one in REGISTER:
        for stem, name in zip(one.stems, one.groups, strict=True):
            if name:
                powers[name][stem] = -1 if one.unit == "s/B" else 1
    for name, label in _LABELS.items():
        yield ChangeGroup(name, label, powers[name])


_CHANGES = (
    *_groups(),
    ChangeGroup(
        "persistent",
        "persistent imbalance",
        {"imbalance.persistent_cv": 1, "imbalance.largest": 1},
    ),
    ChangeGroup("transient", "transient imbalance", {"imbalance.transient_cv": 1}),
)

GROUPS: Mapping[str, ChangeGroup] = {group.name: group for group in _CHANGES}
"""All groups by name. Quantities of no group are shapes and thresholds, which no factor suits."""

WHAT_IF: Mapping[str, tuple[str, ...]] = {
    "latency": ("latency_intra", "latency", "latency_socket"),
    "bandwidth": ("bandwidth_intra", "bandwidth", "bandwidth_socket", "adapter"),
    "memory": ("memory",),
    "clock": ("clock",),
    "openmp": ("openmp",),
    "imbalance": ("persistent", "transient"),
}
"""What a user may change by a factor: groups by the word on the command line."""

REMEDIES: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "+10 % memory bandwidth": (1.1, ("memory",)),
    "+10 % clock": (1.1, ("clock",)),
    "+10 % cache": (1.1, ("cache",)),
    "+10 % network bandwidth": (1.1, ("bandwidth", "adapter")),
    "half the network latency": (0.5, ("latency",)),
    "+10 % bandwidth within a node": (1.1, ("bandwidth_intra", "bandwidth_socket")),
    "half the latency within a node": (0.5, ("latency_intra", "latency_socket")),
    "half the OpenMP overhead": (0.5, ("openmp",)),
    "half the imbalance": (0.5, ("persistent", "transient")),
}
"""What may help a run: factor and groups by label."""


SPREADS: Mapping[str, str] = {"persistent": "persistent_cv", "transient": "transient_cv"}
"""The spreads of ``[imbalance]`` that a user may set for a prediction, by the word for each."""


@cache
def beginnings(path: str) -> tuple[str, ...]:
    """Return the paths whose factors change a quantity: its own, then those of what it is in."""
    ends = [index for index, letter in enumerate(path) if letter in ".["]
    return path, *(path[:end] for end in reversed(ends))


def factors(groups: Iterable[str], factor: float) -> dict[str, float]:
    """Return the factors on quantities, by the beginning of their path, if groups change by one."""
    return {path: factor**power for name in groups for path, power in GROUPS[name].powers.items()}


def factors_of(what_if: Mapping[str, float]) -> dict[str, float]:
    """Return the factors on quantities that what-if changes, by the words of `WHAT_IF`, mean."""
    return {
        path: part
        for word, factor in what_if.items()
        for path, part in factors(WHAT_IF[word], factor).items()
    }
