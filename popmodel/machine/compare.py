"""Two profiles side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity


@dataclass(frozen=True)
class Difference:
    """One quantity of two profiles.

    Attributes
    ----------
    path : str
        Such as ``memory.b1``.
    first, second : Quantity or None
        None where a profile does not have it.
    """

    path: str
    first: Quantity | None
    second: Quantity | None

    @property
    def ratio(self) -> float | None:
        """Second over first; None if one is missing or the first is 0."""
        if self.first is None or self.second is None or self.first.value == 0:
            return None
        return self.second.value / self.first.value

    @property
    def within(self) -> bool | None:
        """Whether they differ by no more than both 90 % intervals together allow.

        The half widths towards each other add up as independent errors do. None if one is missing.
        """
        if self.first is None or self.second is None:
            return None
        low, high = sorted((self.first, self.second), key=lambda quantity: quantity.value)
        gap = high.value - low.value
        up = (low.value if low.high is None else low.high) - low.value
        down = high.value - (high.value if high.low is None else high.low)
        return gap <= math.hypot(up, down) * (1 + 1e-12)


def diff(first: Profile, second: Profile) -> list[Difference]:
    """Compare every quantity of two profiles.

    Returns
    -------
    list of Difference
        In the order of the first profile, then what only the second has.
    """
    paths = dict.fromkeys([*first.quantities, *second.quantities])
    return [
        Difference(path, first.quantities.get(path), second.quantities.get(path)) for path in paths
    ]
