"""Every split of a sweep as `popmodel.model.predict` shows it: replayed where that is possible.

A split's numbers depend on the split alone, never on the others it is compared with: a sweep and a
prediction agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY
from popmodel.model.study import Study
from popmodel.model.sweep.candidate import Evaluated
from popmodel.model.sweep.splits import evaluated
from popmodel.model.uncertainty import Draws
from popmodel.values import dataclass

Split = tuple[int, int]


@dataclass(frozen=True)
class Check:
    """Which splits of one number of cores were replayed, and by how much that changed them.

    Attributes
    ----------
    gaps : mapping of (int, int) to float
        Parallel efficiency of the replay less that of the closed form, by split.
    not_replayed : mapping of (int, int) to str
        Why a split was not replayed.
    """

    gaps: Mapping[Split, float]
    not_replayed: Mapping[Split, str]

    @property
    def source(self) -> str:
        """What the splits are compared by, `REPLAY` or `CLOSED_FORM` (`choice.judge`)."""
        return REPLAY if self.gaps else CLOSED_FORM

    def to_dict(self) -> dict[str, Any]:
        """Return JSON types."""
        largest = max(self.gaps, key=lambda split: abs(self.gaps[split]), default=None)
        return {
            "replayed": [list(split) for split in self.gaps],
            "largest_gap": None
            if largest is None
            else {"split": list(largest), "parallel_efficiency": self.gaps[largest]},
            "not_replayed": [
                {"split": list(split), "why": why} for split, why in self.not_replayed.items()
            ],
            "source": self.source,
        }


def check(study: Study, drawn: Draws, found: Sequence[Evaluated]) -> tuple[list[Evaluated], Check]:
    """Replay the splits of one number of cores.

    Parameters
    ----------
    study, drawn : Study, Draws
        What the splits were evaluated with.
    found : sequence of Evaluated
        All possible splits, by the closed form.

    Returns
    -------
    list of Evaluated
        The same splits as predictions show them.
    Check
        What was replayed.
    """
    shown: list[Evaluated] = []
    gaps: dict[Split, float] = {}
    reasons: dict[Split, str] = {}
    for one in found:
        split = one.placement.processes, one.placement.threads
        outcome = study.outcome(one.placement, drawn)
        if outcome.agreement is None:
            reasons[split] = outcome.why_not or ""
        else:
            gaps[split] = outcome.agreement.gap
        shown.append(evaluated(study, one.placement, outcome.run, outcome.source))
    return shown, Check(gaps, reasons)
