"""The signature of a study: found in its traces, or given by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from popmodel import files, shell
from popmodel.campaign.manifest import unwritable
from popmodel.campaign.plan import Run
from popmodel.model import signatures
from popmodel.values import dataclass

__all__ = ["SIGNATURE", "Extract", "Extracted", "command", "write"]

SIGNATURE = "signature.toml"


@dataclass(frozen=True)
class Extracted:
    """A signature, as text, and what could not be found out."""

    text: str
    notes: tuple[str, ...] = ()


Runs: TypeAlias = Sequence[Mapping[str, float]]
"""P, T and the parameters of runs."""
Extract: TypeAlias = Callable[[Mapping[Path, Mapping[str, float]], str, Runs, Runs], Extracted]
"""Makes a signature of traces, each with the values of the parameters of its run; of a name; and of
runs that the program made, and that it refused."""


def command(folder: Path, traces: Mapping[Path, Run]) -> str:
    """Return the command that finds the signature in some traces by itself."""
    words = [f"{path}{_parameters(run)}" for path, run in traces.items()]
    return shell.join(["popmodel", "signature", "from", *words, "-o", str(folder / SIGNATURE)])


def write(folder: Path, found: Extracted) -> Path:
    """Write a signature into the directory of a study."""
    path = folder / SIGNATURE
    try:
        files.write_text(path, found.text, read=signatures.load)
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def _parameters(run: Run) -> str:
    values: Sequence[str] = [f"{name}={value:.15g}" for name, value in run.settings]
    return f":{','.join(values)}" if values else ""
