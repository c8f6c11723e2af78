"""Why a launch failed, told from its exit status and from what the launcher wrote."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from popmodel import shell
from popmodel.errors import PopmodelError
from popmodel.host.processes import NOT_STARTED, describe_status
from popmodel.units import plural
from popmodel.values import dataclass

_SHOWN = 200  # characters of a launcher's words that a message quotes

OUT_OF_TOUCH = (
    "the ranks may not reach each other (network interface, firewall): "
    "try other launcher options with --launcher"
)
"""What to do about ranks that do not come on."""


class LaunchError(PopmodelError):
    """A program could not be started, did not end, or failed.

    Attributes
    ----------
    words : tuple of str
        The last lines that it or its launcher wrote, without rules and empty ones.
    is_hang : bool
        Whether it was ended because it did not come on.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        words: Sequence[str] = (),
        *,
        is_hang: bool = False,
    ) -> None:
        super().__init__(message, hint)
        self.words = tuple(words)
        self.is_hang = is_hang


@dataclass(frozen=True)
class _Reason:
    """What a launcher's words mean."""

    pattern: str  # Regular expression that finds them; its groups are named in `problem`
    problem: str  # What to say before the words themselves; empty if they say it all
    hint: str | None = None  # What to do; None where only all the words can tell


# Words of this project's programs, Open MPI 4 and 5 (PRRTE), MPICH and its kin (Hydra), and Slurm.
# The first that is found tells: causes stand before what follows from them.
_REASONS = (
    _Reason(
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free some space, or choose another path with -o; the same command resumes from here",
    ),
    _Reason(
        r"attempt to run as root|allow-run-as-root",
        "{name} refuses to run as root",
        "use another account, or add the launcher's option for root: --launcher '{name} OPTION'",
    ),
    _Reason(
        r"not enough slots|More processors requested than permitted|"
        r"Requested node configuration is not available",
        "{name} does not have enough slots for {ranks}",
        "use fewer with --ranks, or request more from the batch system",
    ),
    _Reason(r"^popmodel(-\w+)?: ", ""),
    _Reason(
        r"rank (?P<rank>\d{1,9})\b[^.]{0,200}?exited\s+on\s+signal\s+(?P<signal>\d{1,3})",
        "rank {rank} was killed by {signal}",
    ),
    _Reason(
        r"EXIT STRING: .{0,200}\(signal (?P<signal>\d{1,3})\)", "a rank was killed by {signal}"
    ),
    _Reason(
        r"task (?P<rank>\d{1,9}): (Segmentation|Killed|Aborted|Bus error)", "rank {rank} crashed"
    ),
    _Reason(r"MPI_ABORT was invoked on rank (?P<rank>\d{1,9})", "rank {rank} called MPI_Abort"),
    _Reason(
        r"\(rank (?P<rank>\d{1,9}) in comm \d{1,9}\): .{0,200}MPI_Abort",
        "rank {rank} called MPI_Abort",
    ),
    # Open MPI 4 says this first, and on a busy machine nothing else.
    _Reason(r"process(es)? returned\s+a non-zero exit code", "a rank {ended}"),
    _Reason(r"exited with non-zero status|BAD TERMINATION|task \d+: Exited", "a rank failed"),
)

_OF_A_SIGNAL = 128  # added by launchers and shells to the number of a signal that ended a process

# What Hydra says at the end of everything.
_ADVICE = re.compile(r"This typically refers to a problem|Please see the FAQ page").match


def explain(
    status: int, text: str, command: Sequence[str], ranks: int, log: Path | None = None
) -> LaunchError:
    """Tell from a launcher's words why a launch failed."""
    name = Path(command[0]).name
    words = meaningful(text)
    see = f"full output: {log}" if log else f"run it by hand: {shell.join(command)}"
    if status == NOT_STARTED and len(words) == 1:
        return not_started(words[0])
    for reason in _REASONS:
        match = re.search(reason.pattern, text, re.IGNORECASE | re.MULTILINE)
        if match is None:
            continue
        values = {"name": name, "ranks": plural(ranks, "rank"), "ended": "failed"}
        if 0 < status - _OF_A_SIGNAL <= signal.SIGRTMAX:
            values["ended"] = f"was killed by {describe_status(_OF_A_SIGNAL - status)}"
        values |= match.groupdict()
        if "signal" in values:
            values["signal"] = describe_status(-int(values["signal"]))
        quoted = _paragraph(text, match.start())
        problem = reason.problem.format_map(values)
        hint = see if reason.hint is None else reason.hint.format_map(values)
        return LaunchError(f"{problem}: {quoted}" if problem else quoted, hint, words)
    said = f": {quote(words)}" if words else " and no output"
    return LaunchError(f"{name} failed with {describe_status(status)}{said}", see, words)


def not_started(said: str) -> LaunchError:
    """Make the error for a program that the system did not start; `said` is why."""
    hint = "check that it exists on this machine"
    if "permission denied" in said.lower():
        hint = "its directory may be mounted noexec: set POPMODEL_CACHE_DIR to another one"
    return LaunchError(f"cannot start {said}", hint, (said,))


def meaningful(text: str, most: int = 12) -> tuple[str, ...]:
    """Return the last lines that say something: no rules, no empty ones, no general advice."""
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if re.search(r"\w", line) and not _ADVICE(line))[-most:]


def quote(words: Sequence[str]) -> str:
    """Return the last line of a launcher's words, not too long."""
    return _shortened(words[-1]) if words else ""


def _paragraph(text: str, position: int) -> str:
    """The lines around a place, up to rules and empty lines, as one line that is not too long.

    What this project's own programs say is one line, whatever others wrote around it.
    """
    start = text.rfind("\n", 0, position) + 1
    if text.startswith("popmodel", start):
        return _shortened(text[start:].splitlines()[0])
    lines: list[str] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        offset += len(line)
        if re.search(r"[A-Za-z]{2}", line) and not _ADVICE(line):
            lines.append(line.strip().strip("= "))
        elif offset > position:
            break
        else:
            lines.clear()
    return _shortened(" ".join(lines))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 3].rsplit(" ", 1)[0] + "..."
