"""What would help a run, with the gain of each: changes of the program's parts, and of the machine.

Changes of the program follow from what its parts lose: a serial part can be shared by the threads,
a halo that the master packs can be packed in parallel, a critical section can go. Each is modelled
by the same terms as the run itself; replayed delays are scaled alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from popmodel.errors import PopmodelError
from popmodel.expressions import parse
from popmodel.model import changes
from popmodel.model.changes import PROGRAM_REMEDIES, REMEDIES
from popmodel.model.kinds.halo import Halo
from popmodel.model.kinds.item import Item
from popmodel.model.kinds.loop import Loop
from popmodel.model.kinds.parallel import Parallel
from popmodel.model.kinds.pipeline import Pipeline
from popmodel.model.kinds.serial import Serial
from popmodel.model.replayed.agreement import Agreement
from popmodel.model.run.placement import Placement
from popmodel.model.signature.program import Signature, items
from popmodel.model.study import Study, expand
from popmodel.model.uncertainty import nominal

NEGLIGIBLE = 0.0005
"""Part of the runtime: a remedy that brings less is not worth a line."""

_ONE = parse("1")


def remedies(
    study: Study,
    placement: Placement,
    causes: Mapping[str, Mapping[str, float]],
    agreement: Agreement | None = None,
) -> dict[str, float]:
    """Return the relative change of the runtime under each remedy that helps, the best first.

    Parameters
    ----------
    study : Study
        Program and machine.
    placement : Placement
        P and T, which stay as they are.
    causes : mapping of str to mapping of str to float
        Seconds lost to each part of the program, by metric (`popmodel.model.causes.causes`): parts
        that lose nothing are left alone.
    agreement : Agreement, optional
        A replay of this placement.

    Returns
    -------
    dict of str to float
        A change that cannot be modelled, because the profile lacks what it would cost, is left out.
    """

    def runtime(of: Study, factors: Mapping[str, float]) -> float:
        drawn = of.sources(expand(factors, of.quantities), draws=0)
        return nominal(of.run(placement, drawn, agreement=agreement).modelled.runtime)

    before = runtime(study, {})
    found = {
        label: runtime(study, changes.factors(groups, factor)) / before - 1
        for label, (factor, groups) in REMEDIES.items()
    }
    losing = {name for by_item in causes.values() for name in by_item}
    for label, signature in _programs(study.signature, losing, placement.threads):
        try:
            found[label] = runtime(study.with_signature(signature), {}) / before - 1
        except PopmodelError:
            continue
    helpful = {label: change for label, change in found.items() if change < -NEGLIGIBLE}
    return dict(sorted(helpful.items(), key=lambda item: item[1]))


def _programs(
    signature: Signature, losing: set[str], threads: int
) -> Iterator[tuple[str, Signature]]:
    """The program with one change each; parts of one name change together."""
    by_label: dict[str, dict[int, Item]] = defaultdict(dict)
    for item in items(signature.program):
        if not isinstance(item, Loop) and item.name in losing:
            for label, changed in _edits(item, threads):
                by_label[label][id(item)] = changed
    for label, changed_items in by_label.items():
        yield label, replace(signature, program=_replaced(signature.program, changed_items))


def _edits(item: Item, threads: int) -> Iterator[tuple[str, Item]]:
    """What may make a part faster: what to do, and the part then."""
    match item:
        case Serial() if threads > 1:
            yield _label("share", item), _shared(item)
        case Halo():
            if item.pack == "serial" and threads > 1:
                yield _label("pack", item), replace(item, pack="parallel")
            if item.overlap != _ONE:
                yield _label("overlap", item), replace(item, overlap=_ONE)
        case Parallel():
            if item.critical is not None:
                yield _label("critical", item), replace(item, critical=None)
            if item.shared_writes is not None:
                yield _label("lines", item), replace(item, shared_writes=None)
            if item.schedule == "static" and threads > 1:
                for kind in ("dynamic", "guided"):
                    yield _label(kind, item), replace(item, schedule=kind, chunk=None)
        case Pipeline():
            blocks = parse(f"2*({item.blocks.text})")
            yield _label("blocks", item), replace(item, blocks=blocks)


def _label(remedy: str, item: Item) -> str:
    return PROGRAM_REMEDIES[remedy][0].format(item.name)


def _shared(item: Serial) -> Parallel:
    """A serial loop as a parallel one."""
    return Parallel(
        item.name,
        item.every,
        item.trip,
        _ONE,
        item.costs,
        {"parallel_for": _ONE},
        iteration_cv=parse("0"),
    )


def _replaced(program: tuple[Item, ...], changed: Mapping[int, Item]) -> tuple[Item, ...]:
    """The program with some items in place of others, by ``id``."""
    return tuple(
        replace(item, body=_replaced(item.body, changed))
        if isinstance(item, Loop)
        else changed.get(id(item), item)
        for item in program
    )
