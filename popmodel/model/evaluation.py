"""What an evaluation of the model gives: one run, by the closed form or as a replay says it."""

from __future__ import annotations

from popmodel.model.form import ModelForm
from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY, ReplayAgreement
from popmodel.model.run.course import RunCourse
from popmodel.model.run.observe import ModelledObservables
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.work import RunWork
from popmodel.model.tree import ItemTree
from popmodel.values import dataclass


@dataclass(frozen=True)
class ModelEvaluation:
    """One evaluation of the model."""

    tree: ItemTree  # The works of the program's items, as the laws give them
    form: ModelForm  # Factors of the laws: how far they may be off here
    work: RunWork  # What an average process does, with these factors
    course: RunCourse  # How long the run takes
    modelled: ModelledObservables  # What the metrics need of it
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
class EvaluationOutcome:
    """A run as every prediction shows it: replayed where that is possible."""

    run: ModelEvaluation  # The replay's delays in every draw, or the closed form without a replay
    agreement: ReplayAgreement | None  # The replay beside the closed form; None without a replay
    why_not: str | None  # Why there is no replay

    @property
    def source(self) -> str:
        """`REPLAY` or `CLOSED_FORM`."""
        return CLOSED_FORM if self.agreement is None else REPLAY
