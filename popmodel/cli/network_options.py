"""Options that say on which network a run is replayed, and readers of their texts.

They are the same wherever a run is replayed; where it is replayed on several networks at once, they
take several values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import typer

from popmodel.base.errors import UsageError
from popmodel.base.units import parse_values as read_values
from popmodel.network.network import PRESETS, READINGS, Network, describe, preset

_PRESETS = ", ".join(f"{name} ({describe(network)})" for name, network in PRESETS.items())
_OPTIONS = {
    "network": (
        "NAME",
        f"Network: {_PRESETS}; or a configuration of Dimemas (.cfg), with its machine and mapping.",
    ),
    "machine": (
        "PROFILE",
        "Replay on the network of a machine profile (.json) or preset, with the placement of "
        "processes on nodes as traced.",
    ),
    "latency": ("TIME", "Latency, for example 5us."),
    "bandwidth": ("RATE", "Bandwidth, for example 1GB/s, or inf."),
    "eager_threshold": (
        "SIZE",
        "A blocking send of at least this size waits for its receive. Default: 32KiB; smpi: 0.",
    ),
    "async_small_thresh": ("SIZE", "Of smpi: its name of --eager-threshold."),
    "send_is_detached_thresh": (
        "SIZE",
        "Of smpi: a sender does not wait for the receive of a smaller message, whose transfer "
        "does. Default: 64KiB.",
    ),
    "send_overhead": ("TIME", "CPU time to send a message, beside the latency."),
    "receive_overhead": ("TIME", "CPU time to receive a message, likewise."),
    "collectives": ("NAME", f"Which ranks wait for which in collectives: {', '.join(READINGS)}."),
    "algorithm": (
        "OPERATION=NAME",
        "Carry collectives out as messages, an operation by this algorithm: allreduce=ring; by "
        "size: allreduce=recursive_doubling:8KiB,ring. Repeat it for other operations.",
    ),
    "mapping": (
        "NAME",
        "Nodes of ranks: traced, block:4 (4 consecutive ranks on each node), cyclic:4 (dealt out "
        "in turn to nodes of 4), or a file with the node of one rank per line.",
    ),
    "cpu_factor": ("FACTOR", "CPU speed relative to the traced run."),
}


def network_option(name: str, more: str = "", *, several: bool = False) -> Any:
    """An option of the network: what it says, and `more` where a verb has something to add."""
    metavar, help = _OPTIONS[name]
    several = several and name != "algorithm"  # which is repeated instead
    return typer.Option(
        metavar=f"{metavar},..." if several else metavar,
        help=f"{help} {more}".rstrip(),
        show_default=False,
    )


def each(option: str, text: str | None, read: Callable[[str], Any]) -> list[Any] | None:
    """The values of an option that are separated by commas, if it is given."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise UsageError(f"{option} '{text}': a value is empty", "separate values by one comma")
    return [one(option, part, read) for part in parts]


def ranges(option: str, text: str | None, read: Callable[[str], float]) -> list[float] | None:
    """The values of an option of which ranges can be given; raises as `each`."""
    found = each(option, text, partial(read_values, read=read))
    return None if found is None else [value for values in found for value in values]


def one(option: str, text: str | None, read: Callable[[str], Any]) -> Any:
    """The value of an option, if it is given."""
    try:
        return None if text is None else read(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from error


def eager(threshold: Any, async_small_thresh: Any) -> Any:
    """The eager threshold, by one of the names of its option; `UsageError` for both."""
    if threshold is not None and async_small_thresh is not None:
        raise UsageError(
            "--async-small-thresh is --eager-threshold by the name that SMPI gives it",
            "give one of them",
        )
    return async_small_thresh if threshold is None else threshold


def base(text: str) -> str:
    """A preset, or the name of a configuration of Dimemas; `UsageError` for what is neither."""
    if not text.endswith(".cfg"):
        preset(text)
    return text


def reading(text: str) -> str:
    """Which ranks wait for which in collectives; `UsageError` for what is unknown."""
    return Network(collectives=text).collectives


def factor(text: str) -> float:
    """A speed; `UsageError` for what is none."""
    try:
        found = float(text)
    except ValueError:
        raise UsageError(
            f"must be a number, not '{text}'", "write a number such as 0.5 or 2"
        ) from None
    if not 0 < found < math.inf:
        raise UsageError(
            f"must be above 0 and finite, not '{text}'",
            "write 2 for CPUs twice as fast as in the trace",
        )
    return found
