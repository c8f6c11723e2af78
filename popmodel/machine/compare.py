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
    a, b : Quantity
        Of the first and of the second profile.
    """

    path: str
    a: Quantity
    b: Quantity

    @property
    def ratio(self) -> float | None:
        """Second over first; None if the first is 0."""
        return self.b.value / self.a.value if self.a.value else None

    @property
    def within(self) -> bool:
        """Whether they differ by no more than both 90 % intervals together allow.

        The half widths towards each other add up as independent errors do.
        """
        low, high = sorted((self.a, self.b), key=lambda quantity: quantity.value)
        up = 0.0 if low.high is None else low.high - low.value
        down = 0.0 if high.low is None else high.value - high.low
        return high.value - low.value <= math.hypot(up, down) * (1 + 1e-12)


def diff(first: Profile, second: Profile) -> list[Difference]:
    """Compare every quantity that both profiles have, in the order of the first."""
    return [
        Difference(path, quantity, second.quantities[path])
        for path, quantity in first.quantities.items()
        if path in second.quantities
    ]
