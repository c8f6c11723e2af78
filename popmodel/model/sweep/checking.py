"""The closed form of a sweep checked by replays.

The best splits and the usual default are replayed. If the closed form is wrong for one of them by
more than `popmodel.model.replayed.agreement.GAP`, all splits are replayed and compared as the
replay says. One yardstick has to measure all: where some are too large to be replayed, the closed
form does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.model.replayed.agreement import Agreement
from popmodel.model.replayed.exchange import NotUnrolled
from popmodel.model.study import Study
from popmodel.model.sweep.choice import CLOSED_FORM, REPLAY, Evaluated, judge
from popmodel.model.sweep.splits import evaluated
from popmodel.model.uncertainty import Draws
from popmodel.values import dataclass

CHECKED = 5
"""So many splits are replayed, the best first; the one without threads comes on top."""

Split = tuple[int, int]


@dataclass(frozen=True)
class Check:
    """What replays say of the splits of one number of cores.

    Attributes
    ----------
    gaps : mapping of (int, int) to float
        Parallel efficiency of the replay less that of the closed form, by split.
    not_replayed : mapping of (int, int) to str
        Why a split that should be replayed was not.
    trusted : str
        What the splits are compared by.
    """

    gaps: Mapping[Split, float]
    not_replayed: Mapping[Split, str]
    trusted: str

    def to_dict(self) -> dict[str, Any]:
        """Give JSON types."""
        largest = max(self.gaps, key=lambda split: abs(self.gaps[split]), default=None)
        return {
            "replayed": [list(split) for split in self.gaps],
            "largest_gap": None
            if largest is None
            else {"split": list(largest), "parallel_efficiency": self.gaps[largest]},
            "not_replayed": [
                {"split": list(split), "why": why} for split, why in self.not_replayed.items()
            ],
            "trusted": self.trusted,
        }


def check(study: Study, drawn: Draws, found: Sequence[Evaluated]) -> tuple[list[Evaluated], Check]:
    """Replay the best splits, and all of them if the closed form does not hold.

    Parameters
    ----------
    study, drawn : Study, Draws
        What the splits were evaluated with.
    found : sequence of Evaluated
        All possible splits of one number of cores.

    Returns
    -------
    list of Evaluated
        The same splits, by the replay if that is to be trusted and there is one of each.
    Check
        What was replayed.
    """
    ranked = sorted(judge(found), key=lambda one: (one.regret, one.placement.threads))
    first = [one.split for one in ranked[:CHECKED]]
    first += [_split(one) for one in found if one.placement.threads == 1]
    agreements: dict[Split, Agreement] = {}
    reasons: dict[Split, str] = {}

    def replay(one: Evaluated) -> None:
        try:
            agreements[_split(one)] = study.replay(one.placement)
        except NotUnrolled as reason:
            reasons[_split(one)] = str(reason)

    for one in found:
        if _split(one) in first:
            replay(one)
    trusts_replay = any(agreement.trusts_replay for agreement in agreements.values())
    if not trusts_replay:
        return list(found), Check(_gaps(agreements), reasons, CLOSED_FORM)
    for one in found:
        if _split(one) not in first:
            replay(one)
    if any(split not in agreements for split in map(_split, found) if split[0] > 1):
        return list(found), Check(_gaps(agreements), reasons, CLOSED_FORM)
    shown = [  # one process waits for nobody: nothing of it is to be replayed
        _as_replayed(study, drawn, one, agreements[_split(one)])
        if _split(one) in agreements
        else one
        for one in found
    ]
    return shown, Check(_gaps(agreements), reasons, REPLAY)


def _split(one: Evaluated) -> Split:
    return one.placement.processes, one.placement.threads


def _gaps(agreements: Mapping[Split, Agreement]) -> dict[Split, float]:
    return {split: agreement.gap for split, agreement in agreements.items()}


def _as_replayed(study: Study, drawn: Draws, one: Evaluated, agreement: Agreement) -> Evaluated:
    run = study.as_replayed(one.placement, study.run(one.placement, drawn), agreement)
    return evaluated(study, one.placement, run, REPLAY)
