"""The main uncertainty of a prediction or a choice, and the command that reduces it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from popmodel.machines.profile import measured_file
from popmodel.machines.register import part_of
from popmodel.model.model_error import RESIDUALS
from popmodel.model.symbols import LAWS, label
from popmodel.reports.blocks import CommandBlock, NoteBlock, Role, Section
from popmodel.reports.figures import percent

INCLUDED = "intervals include the uncertainty of parameters and of the model's laws"
TO_COMPARE = "no benchmark measures a law: compare with measured runs (popmodel validate)"


def named(path: str, share: float, origins: Iterable[str] = ()) -> str:
    """An uncertain input and its part: ``saturated memory bandwidth (memory.bsat, preset), 82
    %``.
    """
    inside = ", ".join([path, *sorted(set(origins))])
    name = f"{RESIDUALS[path].meaning} ({path})" if path in RESIDUALS else label(path)
    text = f"{name} ({inside})" if name == path else name.replace(f"({path})", f"({inside})")
    return f"{text}, {percent(share, 0)} % of the variance"


def main_inputs(shares: Mapping[str, float]) -> tuple[str, str | None]:
    """The input with the largest share, and the largest that a benchmark measures if that
    differs.
    """
    first = next(iter(shares))
    measured = next((path for path in shares if part_of(path)), first)
    return first, measured if measured != first else None


def about(path: str) -> list[str]:
    """What can be done about a law; nothing for other inputs."""
    return [TO_COMPARE] if path in LAWS else []


def how_to(command: str, machine: Mapping[str, Any]) -> str:
    """What stands above the command that measures an input of a machine."""
    return (
        f"measure, then add --machine {measured_file(command)}:"
        if machine["preset"]
        else "measure:"
    )


def measuring(command: str | None, machine: Mapping[str, Any]) -> Section:
    """The command with what stands above it, or nothing without one."""
    if command is None:
        return ()
    return (NoteBlock(how_to(command, machine), Role.REMARK), CommandBlock((command,), depth=1))
