"""A pattern of communication that was found in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.values import dataclass

__all__ = ["Pattern"]


@dataclass(frozen=True)
class Pattern:
    """What the calls at some places do together.

    Attributes
    ----------
    kind : str
        halo, shift, pipeline, butterfly, transpose, ring, pairwise, root, collective or list.
    places : tuple of int
        Where, in order.
    executions : int
        How often.
    messages, bytes : int
        Of all executions.
    facts : mapping
        What generates the messages, in plain values; by kind. ``also`` names the other kinds that
        generate the same ones.
    exact : bool
        Whether generating the pattern gives the same messages (sender, receiver, bytes) at every
        execution.
    why : str
        Why it is not exact.
    """

    kind: str
    places: tuple[int, ...]
    executions: int
    messages: int
    bytes: int
    facts: Mapping[str, Any]
    exact: bool
    why: str = ""
