"""A replay beside the closed form of the same run.

The closed form assumes that in every step all processes wait for the slowest. The replay follows
the messages one by one. Predictions show the replay wherever there is one; the gap between the two
tells how much the assumption matters.
"""

from __future__ import annotations

from typing import Any

from popmodel.model.run.course import Correction, RunCourse
from popmodel.plain import fields_of
from popmodel.values import dataclass

CLOSED_FORM, REPLAY = "closed form", "replay"
"""Where the numbers of a predicted run come from."""


@dataclass(frozen=True)
class ReplayAgreement:
    """Replay and closed form of one run, both for the best estimate."""

    # Useful time of an average thread, of the closed form and of the replay, s.
    useful: float
    useful_replayed: float
    # Numbers.
    closed_form: RunCourse
    replay: RunCourse
    correction: Correction  # How the replay changes the delays of the closed form
    processes: int  # Processes that were replayed: fewer than those of the run if that is too large
    part: float  # Part of the program that was replayed, 0 to 1
    repeats: int  # Number of random programs; `replay` is their mean
    operations: int  # MPI operations replayed, over all processes
    seed: int  # Seed of the imbalance: which processes were slow, and when

    @property
    def gap(self) -> float:
        """Parallel efficiency of the replay less that of the closed form."""
        return float(
            self.useful_replayed / self.replay.runtime - self.useful / self.closed_form.runtime
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON types."""

        def side(course: RunCourse, useful: float) -> dict[str, Any]:
            return {
                "runtime": course.runtime,
                "ideal_runtime": course.ideal,
                "parallel_efficiency": useful / course.runtime,
            }

        return {
            "replay": side(self.replay, self.useful_replayed),
            "closed_form": side(self.closed_form, self.useful),
            "gap": self.gap,
            **fields_of(self, "processes", "part", "repeats", "operations", "seed"),
        }
