"""The form of the model as draws: factors of its laws on the work of a process, noise of a profile.

Every law has a factor in every draw (`popmodel.model.laws`). A part of its error is the same in all
splits and cancels where they are compared; the rest is drawn anew for each split, by its name, so
that a difference between splits is never surer than the laws are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from math import sqrt

import numpy as np

from popmodel.expressions.elementary import Value, maximum, numbers
from popmodel.machine.quantity import Quantity
from popmodel.model.laws import LAWS, LOOPS, MESSAGES, OPENMP, SERIAL, WAITING
from popmodel.model.run.reach import MEASURED, Reach
from popmodel.model.run.work import Work
from popmodel.model.uncertainty import Array, Draws, spread, widened
from popmodel.values import dataclass

DISTURBED = 0.15
"""Standard deviation that noise adds to the logarithm of a measured value: launches that differ by
more than this are what the measurement calls noisy (`popmodel.bench.calibration.noise`)."""


_TINY = 1e-300  # s; keeps a ratio of times of nothing defined


@dataclass(frozen=True)
class Form:
    """The factors of the laws in one split.

    Attributes
    ----------
    quantities : mapping of str to Quantity
        Factor of every law that gives a part of this run, wider the farther it is extrapolated.
    scores : mapping of str to array of shape (FIRST + n,)
        Standard normal scores of these; empty without draws.
    common : mapping of str to array of shape (FIRST + n,)
        Those of the part of the error that all splits have in common, with its own variance.
    """

    quantities: Mapping[str, Quantity]
    scores: Mapping[str, Array] = field(default_factory=dict)
    common: Mapping[str, Array] = field(default_factory=dict)

    def factor(self, path: str) -> Value:
        """Return the factor of a law; 1 without draws, and where it gives nothing."""
        return self._at(path, self.scores)

    def applied(self, work: Work) -> Work:
        """Return the work of a process with the factors of the laws of its parts."""
        if not self.scores:
            return work
        loops, serial = self.factor(LOOPS.path), self.factor(SERIAL.path)
        openmp = self.factor(OPENMP.path)
        # a stated time is carried from where it was measured to here, as that of a loop is
        master = (work.serial - work.stated) * serial + work.stated * loops
        return replace(
            work,
            serial=master,
            stated=work.stated * loops,
            serial_cycles=work.serial_cycles * master / maximum(work.serial, _TINY),
            share=work.share * loops,
            stretched=work.stretched * loops,
            region_cycles=work.region_cycles * loops,
            # one thread is another split: only the common part of the error is the same there
            single_thread=work.single_thread * self._at(LOOPS.path, self.common),
            overhead=work.overhead * openmp,
            synchronising=work.synchronising * openmp,
            waiting=work.waiting * self.factor(WAITING.path),
            # what is carried far from a measured collective has a factor of its own
            transfer=work.measured + (work.transfer - work.measured) * self.factor(MESSAGES.path),
        )

    def _at(self, path: str, scores: Mapping[str, Array]) -> Value:
        return spread(self.quantities[path], scores[path]) if path in scores else 1.0


def form(
    split: str, work: Work, imbalance: Iterable[Value], reach: Iterable[Reach], drawn: Draws
) -> Form:
    """Return the factors of the laws in one split.

    Parameters
    ----------
    split : str
        Its name, on which its own part of the errors depends, and nothing else of it.
    work : Work
        Of an average process, as the laws give it.
    imbalance : iterable of value
        Spreads of the work; processes wait for each other where one is not 0.
    reach : iterable of Reach
        How far the run goes beyond what was measured.
    drawn : Draws
        The inputs.
    """
    parts = {
        LOOPS: (work.stretched, work.stated),
        SERIAL: (work.serial - work.stated,),
        OPENMP: (work.overhead,),
        WAITING: (work.waiting, *imbalance),
        MESSAGES: (work.transfer - work.measured,),
    }
    reach = list(reach)
    quantities, scores, common = {}, {}, {}
    for law, values in parts.items():
        if not any(numbers(value).any() for value in values):
            continue
        far = max((one.distance for one in reach if one.section in law.sections), default=0.0)
        quantities[law.path] = law.at(far)
        if drawn.count:
            common[law.path] = sqrt(1 - law.own) * drawn.scores(law.path)
            own = drawn.scores(f"{law.path} of {split}")
            scores[law.path] = common[law.path] + sqrt(law.own) * own
    return Form(quantities, scores, common)


def contrast(first: Mapping[str, Array], second: Mapping[str, Array]) -> dict[str, Array]:
    """Return the scores of laws by which one split differs from another."""
    nothing = np.zeros(1)
    return {
        path: second.get(path, nothing) - first.get(path, nothing)
        for path in LAWS
        if path in first or path in second
    }


def disturbed(quantities: Mapping[str, Quantity], sections: Iterable[str]) -> dict[str, Quantity]:
    """Return quantities, wider where their section of the profile was measured beside noise.

    Parameters
    ----------
    quantities : mapping of str to Quantity
        Of a profile, by path.
    sections : iterable of str
        `Profile.noisy`.
    """
    noisy = set(sections)
    return {
        path: replace(widened(one, DISTURBED), source=f"{one.source}; wider: measured beside noise")
        if path.partition(".")[0] in noisy and one.origin == MEASURED
        else one
        for path, one in quantities.items()
    }
