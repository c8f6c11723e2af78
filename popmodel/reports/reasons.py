"""Why a value is missing: a number in its place and the reason below."""

from __future__ import annotations

from popmodel.reports.blocks import Role, Section, notes


class Reasons:
    """Numbers the reasons for missing values in the order in which a screen meets them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str) -> str:
        """What stands in place of a value."""
        return f"-[{self._numbers.setdefault(reason, len(self._numbers) + 1)}]"

    def texts(self) -> list[str]:
        """The reasons, each behind its number."""
        return [f"[{number}] {reason}" for reason, number in self._numbers.items()]

    def section(self) -> Section:
        """The reasons as notes; empty if no value was missing."""
        return notes(self.texts(), Role.HANGING)
