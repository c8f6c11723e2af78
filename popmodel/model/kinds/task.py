"""Explicit OpenMP tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from popmodel.model.grammar.keys import NOT_NEGATIVE, POSITIVE, GrammarKey
from popmodel.model.kinds import words
from popmodel.model.kinds.item import Amount, Item
from popmodel.model.run.work import RunWork
from popmodel.model.terms import task
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.point import ModelPoint


@dataclass(frozen=True)
class Task(Item):
    """Explicit tasks in a parallel region; independent if ``span`` is None."""

    kind: ClassVar[str] = "task"
    about: ClassVar[str] = "explicit OpenMP tasks"
    own: ClassVar[tuple[GrammarKey, ...]] = (
        GrammarKey("count", "1", None, "tasks per process", POSITIVE),
        GrammarKey("seconds", "s", None, "time of one task", NOT_NEGATIVE),
        GrammarKey(
            "span", "s", "seconds", "time of the longest chain of dependent tasks", NOT_NEGATIVE
        ),
    )

    count: Amount
    seconds: Amount
    span: Amount | None = None

    def work(self, point: ModelPoint) -> RunWork:
        """Return the work of one execution."""
        threads, parameters = point.placement.threads, point.parameters
        span = self.seconds if self.span is None else self.span
        create = parameters.overhead("task", threads)
        useful = self.count * self.seconds
        whole = task.task_time(self.count, self.seconds, span, point.team, create)
        working = task.task_time(self.count, self.seconds, span, point.team)
        frequency = parameters.frequency(point.placement.per_node * threads)
        return RunWork(
            share=useful / point.team,
            stretched=working,
            overhead=whole - working + parameters.overhead("parallel", threads),
            single_thread=useful,
            region_cycles=useful / point.team * frequency,
            instructions=None,
        )

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say how many tasks there are, and what they wait for."""
        text = f"{words.many(entry['count'], 'task')} of {words.quantity(entry['seconds'])} each, "
        if entry["span"] is None:
            return text + "independent"
        return text + f"longest chain of dependent tasks {words.quantity(entry['span'])}"
