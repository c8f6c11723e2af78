"""The command that measures a quantity of a profile again, ready to be pasted.

In a profile that is a file, the command replaces the part with the quantity; it is to be run on
that machine. A preset stays as it is: the command measures a machine of the user's own. The network
between nodes needs a job on two nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

from popmodel import shell
from popmodel.machine.parameter import NODE_PARTS
from popmodel.machine.register import part_of

if TYPE_CHECKING:
    from popmodel.machine.profile import Profile

OWN = "machine.json"
"""Where the profile of the user's own machine is written."""

_BETWEEN_NODES = ("net.inter", "net.nic_G")


def command(profile: Profile, path: str) -> str | None:
    """Return the command that measures a quantity."""
    part = part_of(path)
    if part is None:
        return None
    beginning = re.compile(re.escape(path.partition(".classes")[0]) + r"(?!\w)")
    origins = {one.origin for name, one in profile.quantities.items() if beginning.match(name)}
    longer = ["--full"] if "measured" in origins else []  # quicker has been done
    between_nodes = part not in NODE_PARTS and (
        path.startswith(_BETWEEN_NODES) or "inter" in profile.tiers()
    )
    nodes = ["--script", "slurm", "--nodes", "2"] if between_nodes else []
    file = PurePath(profile.path)
    if profile.is_preset or file.suffix.lower() != ".json":
        return shell.join(["popmodel", "bench", *longer, *nodes, "-o", OWN])
    if between_nodes:  # a part of the profile only: the other nodes' would be lost
        new = file.with_name(f"{file.stem}-new.json")
        return shell.join(["popmodel", "bench", *longer, *nodes, "-o", _argument(new)])
    words = ["popmodel", "bench", *longer, "--only", part, "-o", _argument(file), "--force"]
    return shell.join(words)


def first_command(profile: Profile, paths: Iterable[str]) -> str | None:
    """Return the command for the first quantity that a benchmark measures, or None."""
    found = (command(profile, path) for path in paths)
    return next((one for one in found if one is not None), None)


def first(path: str) -> str | None:
    """Return the command that measures a quantity in a new profile of one's own, all parts at
    once.
    """
    if part_of(path) is None:
        return None
    nodes = ["--script", "slurm", "--nodes", "2"] if path.startswith(_BETWEEN_NODES) else []
    return shell.join(["popmodel", "bench", *nodes, "-o", OWN])


def file_of(command: str) -> str:
    """Return the file, as a word of a shell, that such a command writes."""
    return command.partition(" -o ")[2].removesuffix(" --force")


def _argument(path: PurePath) -> str:
    """The path in a form that is not read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
