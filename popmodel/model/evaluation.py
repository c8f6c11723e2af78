"""What an evaluation of the model gives: one run, by the closed form or as a replay says it."""

from __future__ import annotations

from popmodel.model.form import Form
from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY, Agreement
from popmodel.model.run.course import Course
from popmodel.model.run.observe import Modelled
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.work import Work
from popmodel.model.tree import Tree
from popmodel.values import dataclass


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of the model."""

    tree: Tree  # The works of the program's items, as the laws give them
    form: Form  # Factors of the laws: how far they may be off here
    work: Work  # What an average process does, with these factors
    course: Course  # How long the run takes
    modelled: Modelled  # What the metrics need of it
    memory: float | None  # Memory of a process, bytes; None if the signature does not say it

    @property
    def extent(self) -> tuple[int, ...]:
        """Processes along each grid dimension."""
        return self.tree.point.extent

    @property
    def machine(self) -> Parameters:
        """The machine, with what was asked of it and what it lacks."""
        return self.tree.point.parameters


@dataclass(frozen=True)
class Outcome:
    """A run as every prediction shows it: replayed where that is possible."""

    run: Evaluation  # The replay's delays in every draw, or the closed form without a replay
    agreement: Agreement | None  # The replay beside the closed form; None without a replay
    why_not: str | None  # Why there is no replay

    @property
    def source(self) -> str:
        """`REPLAY` or `CLOSED_FORM`."""
        return CLOSED_FORM if self.agreement is None else REPLAY
