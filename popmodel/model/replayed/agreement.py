"""Closed form and replay side by side: which of them a prediction shows.

Both are worked out for the best estimate. Where their parallel efficiencies differ by more than
`GAP`, the assumptions of the closed form (everybody waits for the slowest in every step) do not
hold, and the prediction is that of the replay.
"""

from __future__ import annotations

from typing import Any

from popmodel.model.run.course import Course, Delays
from popmodel.values import dataclass

GAP = 0.02


@dataclass(frozen=True)
class Agreement:
    """What both say of one run.

    Attributes
    ----------
    useful : float
        Useful time of an average thread, s.
    closed_form, replay : Course
        Of the best estimate; numbers.
    closed_delays, replay_delays : Delays
        By what each of them is longer than the work of an average process; numbers.
    part : float
        Part of the program that the replay carried out, 0 to 1.
    repeats : int
        Random programs of which it is the mean.
    operations : int
        MPI operations that it carried out, over all processes.
    seed : int
        Decided which processes were slow, and when.
    """

    useful: float
    closed_form: Course
    replay: Course
    closed_delays: Delays
    replay_delays: Delays
    part: float
    repeats: int
    operations: int
    seed: int

    @property
    def gap(self) -> float:
        """Parallel efficiency of the replay less that of the closed form."""
        return float(self.useful / self.replay.runtime - self.useful / self.closed_form.runtime)

    @property
    def trusts_replay(self) -> bool:
        """Whether the replay is to be believed, and not the closed form."""
        return abs(self.gap) > GAP

    def to_dict(self) -> dict[str, Any]:
        """Give JSON types."""

        def side(course: Course) -> dict[str, float]:
            return {
                "runtime": course.runtime,
                "ideal_runtime": course.ideal,
                "parallel_efficiency": self.useful / course.runtime,
            }

        return {
            "replay": side(self.replay),
            "closed_form": side(self.closed_form),
            "gap": self.gap,
            "trusted": "replay" if self.trusts_replay else "closed form",
            "part": self.part,
            "repeats": self.repeats,
            "operations": self.operations,
            "seed": self.seed,
        }
