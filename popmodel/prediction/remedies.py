"""What would help a run, with the gain of each: changes of the program's parts, and of the machine.

Changes of the program follow from what its parts lose: a serial part can be shared by the threads,
a halo that the master packs can be packed in parallel, a critical section can go. Each is modelled
by the same terms as the run itself; replayed delays are scaled alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from popmodel.errors import PopmodelError
from popmodel.model import changes
from popmodel.model.changes import REMEDIES
from popmodel.model.evaluation import Evaluation
from popmodel.model.kinds.item import Item
from popmodel.model.performance import Known
from popmodel.model.replayed.agreement import Agreement
from popmodel.model.run.placement import Placement
from popmodel.model.signature.program import Signature, items, mapped
from popmodel.model.study import Study, expand
from popmodel.model.uncertainty import nominal

NEGLIGIBLE = 0.0005
"""Part of the runtime: a remedy that brings less is not worth a line."""


def remedies(
    study: Study,
    placement: Placement,
    causes: Mapping[str, Mapping[str, float]],
    agreement: Agreement | None = None,
) -> dict[str, float]:
    """Return the relative change of the runtime under each remedy that helps, the best first."""
    same: Known = {}  # items that no change of the program touches

    def changed(of: Study, factors: Mapping[str, float]) -> Evaluation:
        drawn = of.sources(expand(factors, of.quantities), draws=0)
        known = None if factors else same
        return of.run(placement, drawn, agreement=agreement, known=known)

    now = changed(study, {})
    before = nominal(now.modelled.runtime)
    found = {
        label: nominal(changed(study, changes.factors(groups, factor)).modelled.runtime) / before
        - 1
        for label, (factor, groups) in REMEDIES.items()
    }
    losing = {name for by_item in causes.values() for name in by_item}
    for label, signature in _programs(study.signature, losing, placement.threads):
        try:
            run = changed(study.with_signature(signature), {})
        except PopmodelError:
            continue
        if run.machine.lacking <= now.machine.lacking:  # what is assumed costs nobody knows what
            found[label] = nominal(run.modelled.runtime) / before - 1
    helpful = {label: change for label, change in found.items() if change < -NEGLIGIBLE}
    return dict(sorted(helpful.items(), key=lambda item: item[1]))


def _programs(
    signature: Signature, losing: set[str], threads: int
) -> Iterator[tuple[str, Signature]]:
    """The program with one change each; parts of one name change together."""

    def faster(item: Item) -> dict[str, Item]:
        """The item by what makes it faster; nothing if it loses nothing."""
        found = item.faster(threads) if item.name in losing else ()
        return {item.remedies[remedy][0].format(item.name): one for remedy, one in found}

    def changed(label: str, item: Item) -> Item:
        return faster(item).get(label, item)

    labels = dict.fromkeys(label for item in items(signature.program) for label in faster(item))
    for label in labels:
        program = mapped(signature.program, partial(changed, label))
        yield label, replace(signature, program=program)
