"""``popmodel signature from``: the signature of a program that was traced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from popmodel.errors import UsageError
from popmodel.values import dataclass

__all__ = ["Source", "run_of", "signature_from"]

_TOML = ".toml"
_VALUES = re.compile(r":(?=[A-Za-z_][A-Za-z_0-9]*=[^/]*$)")


@dataclass(frozen=True)
class Source:
    """What of the traces is meant, and what to call it: as `popmodel.signature_from` takes it."""

    scaling: str
    name: str | None
    flop_rate: float | None
    cache: bool
    application: int
    window: str | None
    region: str | None
    from_start: bool


def run_of(text: str) -> tuple[str, dict[str, float]]:
    """Split a trace and the problem parameters of its run: ``run.prv.gz:N=128,steps=10``.

    Raises
    ------
    UsageError
        If a parameter has no value.
    """
    from popmodel.cli.options import numbered

    # a name of a file may hold colons: parameters begin behind the last one before a NAME=
    parts = _VALUES.split(text, maxsplit=1)
    if len(parts) == 1:
        return text, {}
    return parts[0], numbered(text, parts[1].split(","))


def signature_from(
    arguments: Sequence[str],
    texts: Sequence[str],
    source: Source,
    common: Mapping[str, float],
    format: str | None,
    output: str | None,
    *,
    force: bool,
) -> None:
    """Write the signature of a program to a file, or to standard output.

    With ``--format`` or a suffix of one what was found is written instead; behind a signature that
    goes to a file a summary of it is printed.
    """
    from popmodel.api.extraction import signature_from
    from popmodel.cli.output import refuse_existing, target, write_file
    from popmodel.cli.streams import write_out
    from popmodel.report.extraction import VIEWS

    if not texts:
        raise UsageError("signature from: no trace", "name a trace, such as run.prv.gz")
    to_file = output is not None and output.endswith(_TOML)
    if to_file and format not in (None, "table"):
        raise UsageError(
            f"-o {output} means a signature, --format says {format}",
            f"leave out one of them, or use -o {str(output).removesuffix(_TOML)}.{format}",
        )
    if output not in (None, "-") and not to_file and Path(str(output)).suffix not in _KNOWN:
        raise UsageError(f"-o {output}: must end in .toml", "or in .json, .csv, .md or .txt")
    goal = target(arguments, None if to_file else output, format, force=force)
    if to_file:
        refuse_existing(Path(str(output)), force=force)
    runs = [run_of(text) for text in texts]
    found = signature_from(
        [path for path, _ in runs],
        parameters=[{**common, **values} for _, values in runs],
        **vars(source),
    )
    inputs = [path for path, _ in runs]
    if to_file:
        write_file(Path(str(output)), found.text, force=force)
        goal.write({**found.to_dict(), "path": output}, VIEWS, inputs)
    elif format is None and output in (None, "-"):
        write_out(found.text)
    else:
        goal.write(found.to_dict(), VIEWS, inputs)


_KNOWN = (".json", ".csv", ".md", ".txt")
