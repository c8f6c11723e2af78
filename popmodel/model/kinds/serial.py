"""A loop that only the master thread of each process executes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from popmodel.expressions import parse
from popmodel.expressions.elementary import Value
from popmodel.model.grammar.keys import NOT_NEGATIVE, POSITIVE, GrammarKey
from popmodel.model.kinds import words
from popmodel.model.kinds.costs import ItemCosts
from popmodel.model.kinds.item import Amount, Item, ItemTable
from popmodel.model.kinds.parallel import Parallel
from popmodel.model.kinds.spread import ItemSpread
from popmodel.model.kinds.varied import Varied
from popmodel.model.run.work import RunWork
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.point import ModelPoint


@dataclass(frozen=True)
class Serial(Varied):
    """A loop of ``trip`` iterations that only the master thread executes."""

    kind: ClassVar[str] = "serial"
    about: ClassVar[str] = "a loop that the master thread of each process executes alone"
    own: ClassVar[tuple[GrammarKey, ...]] = (
        GrammarKey(
            "trip", "1", None, "iterations, executed by the master thread", NOT_NEGATIVE, POSITIVE
        ),
    )
    parts: ClassVar[Mapping[str, type[ItemTable]]] = {"costs": ItemCosts, "spread": ItemSpread}
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "share": ("parallelise {}", "The threads share the serial part as a parallel loop.")
    }

    trip: Amount
    costs: ItemCosts
    spread: ItemSpread = ItemSpread()

    def at(self, point: ModelPoint, of: str, inside: str = "") -> Self:
        """Return the loop with numbers; its data are not divided among the threads."""
        return super().at(replace(point, master_alone=True), of, inside)

    def work(self, point: ModelPoint) -> RunWork:
        """Return the work of one execution."""
        own, frequency = self.costs.alone(point, self.trip)
        stated = 0.0 if self.costs.seconds is None else own
        time = own + self.costs.taking_over(point, self.trip)
        one = RunWork(serial=time, stated=stated, serial_cycles=time * frequency)
        return one.plus(self.costs.total(self.trip))

    def crowding(self, point: ModelPoint) -> Value:
        """Return the part of its computation that other processes of a memory domain cost, s."""
        return self.costs.crowding(point, self.trip, point.placement.per_node)

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:
        """Let the threads share the loop."""
        if threads > 1:
            one, nothing = parse("1"), parse("0")
            yield (
                "share",
                Parallel(
                    self.name,
                    self.every,
                    self.trip,
                    one,
                    self.costs,
                    {"parallel_for": one},
                    iteration_cv=nothing,
                    spread=self.spread,
                ),
            )

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say how many iterations there are, and what each does."""
        iterations = words.many(entry["trip"], "iteration")
        text = f"the master thread executes {iterations}; {ItemCosts.sentence(entry)}"
        return text + ItemSpread.sentence(entry)
