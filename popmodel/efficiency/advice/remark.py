"""What can be said about one loss of one run, and how numbers are written in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.efficiency.advice.costs import AdviceCost
    from popmodel.efficiency.measure import MeasuredRun


class Remark(NamedTuple):
    """Why time is lost, and what to do; whole sentences, empty where nothing is known."""

    why: str
    remedy: str


@dataclass(frozen=True)
class RemarkLoss:
    """One loss with all that may explain it."""

    run: MeasuredRun  # The run that loses
    cost: AdviceCost  # By which metric, and how much
    # The run that it is compared with; None where it is the reference itself.
    reference: MeasuredRun | None = None
    reference_name: str = ""  # Its short name

    @property
    def advice(self) -> str:
        """What the family says about the metric whatever the run."""
        return self.cost.evaluation.family.metrics[self.cost.metric].advice


def percent(share: float) -> str:
    """A share as people write it: ``61 %``; with a decimal below 10 %."""
    value = 100 * share
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"
