"""A pattern of communication that was found in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.values import dataclass


@dataclass(frozen=True)
class Pattern:
    """What the calls at some places do together."""

    # halo, shift, pipeline, butterfly, transpose, ring, pairwise, root, collective or list.
    kind: str
    places: tuple[int, ...]  # Where, in order
    executions: int  # How often
    # Of all executions.
    messages: int
    bytes: int
    # What generates the messages, in plain values; by kind. ``also`` names the other kinds that
    # generate the same ones.
    facts: Mapping[str, Any]
    # Whether generating the pattern gives the same messages (sender, receiver, bytes) at every
    # execution.
    exact: bool
    why: str = ""  # Why it is not exact
