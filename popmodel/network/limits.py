"""How many links and buses a network has, and how messages share them."""

from __future__ import annotations

from popmodel.errors import UsageError, did_you_mean

#: How messages share a link.
#:
#: ``fifo``
#:     A message holds an output link of its sender's node, an input link of its receiver's and a
#:     bus for as long as its bytes take; others wait for them in order (Dimemas).
#: ``fair``
#:     Messages that use a link at the same time share its bandwidth, max-min fairly: each gets as
#:     much as it can without taking from one that has less (flow level, as in SimGrid).
SHARING = ("fifo", "fair")


def check_count(value: int, what: str) -> None:
    """Refuse a number of resources that is not a whole number from 0 (as many as needed)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(
            f"{what} must be a whole number of at least 0, not {value!r}",
            "0 means as many as are needed",
        )


def check_sharing(value: str) -> None:
    """Refuse a way to share links that is not known."""
    if value not in SHARING:
        raise UsageError(
            f"unknown sharing of links {value!r}",
            did_you_mean(value, SHARING, f"choose one of {', '.join(SHARING)}"),
        )
