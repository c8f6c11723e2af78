"""Jobs of the measuring programs: what to measure, as data and as a line of text.

A line is the name and ``key=value`` words, such as ``ping_pong bytes=8 tier=node``. The C programs
in ``microbench/`` say what each job means; here is only which part of the suite it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.errors import UsageError
from popmodel.machine.parameter import PARTS
from popmodel.machine.register import filled_by
from popmodel.values import dataclass

PART_OF: Mapping[str, str] = {
    "clock": "core",
    "fma": "core",
    "loads": "core",
    "stores": "core",
    "loop": "core",
    "instructions": "core",
    "dependent": "core",
    "in_flight": "core",
    "row": "core",
    "smt": "core",
    "mixed": "loops",
    "issue": "loops",
    "triad": "memory",
    "load": "memory",
    "update": "memory",
    "narrow_update": "memory",
    "copy": "memory",
    "chase": "memory",
    "remote_triad": "memory",
    "remote_chase": "memory",
    "line_transfer": "memory",
    "line_takeover": "memory",
    "false_sharing": "memory",
    "construct": "openmp",
    "quantum": "noise",
    "ping_pong": "p2p",
    "send_overhead": "p2p",
    "receive_overhead": "p2p",
    "train": "p2p",
    "window": "p2p",
    "late_receiver": "p2p",
    "collective": "collectives",
    "reduce_local": "collectives",
    "overlap": "overlap",
    "threaded": "threads",
}
"""Part of the suite that each job belongs to."""

PATHS: Mapping[str, tuple[str, ...]] = {part: filled_by(part) for part in PARTS}
"""What each part of the suite fills in a profile; a path stands for all that is below it."""

Value = int | str

_DIGITS = 18  # of a whole number: the programs read 64 bits


@dataclass(frozen=True)
class Job:
    """One thing to measure."""

    name: str  # Such as ``ping_pong``
    # Keys and values in alphabetical order, so that equal jobs are equal.
    params: tuple[tuple[str, Value], ...] = ()

    @property
    def line(self) -> str:
        """The job as the programs read it."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.params)])

    def get(self, key: str, default: Value = 0) -> Value:
        """Value of a key, or `default` where the job does not have it."""
        return dict(self.params).get(key, default)


def job(name: str, /, **params: Value) -> Job:
    """Make a job; the order of the keys does not matter."""
    return from_params(name, params)


def from_params(name: str, params: Mapping[str, object]) -> Job:
    """Make a job from the name and parameters of a result.

    Whole numbers are integers, whether they come as number or as text.
    """
    return Job(name, tuple(sorted((key, _value(value)) for key, value in params.items())))


def parse(line: str) -> Job:
    """Read a job from its line."""
    name, *words = line.split() or [""]
    if not name:
        raise UsageError("job without a name", "write NAME key=value ...")
    params: dict[str, object] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not (key and sign and value):
            raise UsageError(
                f"job '{line}': '{word}' must be key=value", "write NAME key=value ..."
            )
        params[key] = value
    return from_params(name, params)


def _value(value: object) -> Value:
    text = str(value)
    return int(text) if len(text) <= _DIGITS and text.isdecimal() else text
