"""Which splits of a sweep were replayed, and by how much that changed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY
from popmodel.splits.candidate import Evaluated
from popmodel.values import dataclass

Split = tuple[int, int]


@dataclass(frozen=True)
class Check:
    """Which splits of one number of cores were replayed, and by how much that changed them."""

    # Parallel efficiency of the replay less that of the closed form, by split.
    gaps: Mapping[Split, float]
    not_replayed: Mapping[Split, str]  # Why a split was not replayed

    @property
    def source(self) -> str:
        """What the splits are compared by, `REPLAY` or `CLOSED_FORM` (`choice.judge`)."""
        return REPLAY if self.gaps else CLOSED_FORM

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of documents."""
        largest = max(self.gaps, key=lambda split: abs(self.gaps[split]), default=None)
        return {
            "replayed": list(self.gaps),
            "largest_gap": None
            if largest is None
            else {"split": largest, "parallel_efficiency": self.gaps[largest]},
            "not_replayed": [
                {"split": split, "why": why} for split, why in self.not_replayed.items()
            ],
            "source": self.source,
        }


def check(found: Sequence[Evaluated]) -> Check:
    """Say which of the splits of one number of cores were replayed."""
    return Check(
        {one.split: one.gap for one in found if one.gap is not None},
        {one.split: one.not_replayed or "" for one in found if one.gap is None},
    )
