"""The runtime as a sum: useful time, and what each leaf of the additive hybrid family loses.

Losses of that family add up, so its leaves times the runtime are seconds that add up to it
(popmodel/efficiency/families/hybrid-additive.toml). Useful time holds arithmetic and memory traffic
alike: times alone do not tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.expressions.elementary import Value
from popmodel.values import dataclass

FAMILY = "hybrid-additive"
"""The family whose losses they are."""


@dataclass(frozen=True)
class FamilyTerm:
    """A part of the runtime."""

    name: str  # Its key in documents
    label: str  # What people call it
    metric: str  # The efficiency of `FAMILY` that it follows from


USEFUL = FamilyTerm("useful", "useful (computing, memory)", "parallel_efficiency")
COMMUNICATION = FamilyTerm("communication", "communication", "process_communication_efficiency")
TRANSFER = FamilyTerm("transfer", "transfer", "process_transfer_efficiency")
SERIALISATION = FamilyTerm("serialisation", "serialisation", "process_serialisation_efficiency")
TERMS = (
    USEFUL,
    FamilyTerm("imbalance", "process imbalance", "process_load_balance"),
    COMMUNICATION,
    TRANSFER,
    SERIALISATION,
    FamilyTerm("regions", "OpenMP regions", "openmp_region_efficiency"),
    FamilyTerm("serial", "OpenMP threads idle", "serial_region_efficiency"),
)
"""All of them; communication is transfer and serialisation together, where no replay parts it."""


def terms(runtime: Value, metrics: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parts of a runtime, s."""
    found: dict[str, Value] = {}
    for term in TERMS:
        if term.metric in metrics:
            share = metrics[term.metric]
            found[term.name] = runtime * (share if term is USEFUL else 1 - share)
    return found


def leaves(known: Mapping[str, object]) -> list[FamilyTerm]:
    """Return the terms among those known that add up: communication in parts where it has them."""
    parted = TRANSFER.name in known and SERIALISATION.name in known
    without = {COMMUNICATION} if parted else {TRANSFER, SERIALISATION}
    return [term for term in TERMS if term.name in known and term not in without]
