"""``popmodel signature from``: the signature of a program that was traced, and how good it is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base.errors import ThresholdError, UsageError
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from popmodel.api.extraction import Found
    from popmodel.api.from_source import SourceSignature
    from popmodel.cli.output import OutputTarget
    from popmodel.reports.views import Views

__all__ = ["Called", "SignatureSource", "check_against", "run_of", "signature_from"]

_TOML = ".toml"


@dataclass(frozen=True)
class SignatureSource:
    """What of the traces is meant: as `popmodel.signature_from` takes it."""

    flop_rate: float | None
    application: int
    window: str | None
    region: str | None
    from_start: bool
    foa: str | None = None
    compiler_options: str = ""  # Of source files


@dataclass(frozen=True)
class Called:
    """What a signature is called, and how its program is assumed to scale."""

    name: str | None
    scaling: str


def run_of(text: str) -> tuple[str, dict[str, float]]:
    """Split a trace and the problem parameters of its run: ``run.prv.gz:N=128,steps=10``."""
    from popmodel.runs.table import numbers_of, split

    path, said = split(text)
    return path, numbers_of(text, said)


def signature_from(
    arguments: Sequence[str],
    texts: Sequence[str],
    source: SignatureSource,
    called: Called,
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
    from popmodel.api.from_source import is_source, signature_from_source
    from popmodel.cli.output import refuse_existing, target
    from popmodel.reports.extraction import VIEWS
    from popmodel.reports.source_signature import VIEWS as SOURCE

    if not texts:
        raise UsageError(
            "signature from: no trace", "name a trace, such as run.prv.gz, or the source files"
        )
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
    part = {key: value for key, value in vars(source).items() if key != "compiler_options"}
    if source.compiler_options or any(map(is_source, texts)):
        if not all(map(is_source, texts)):
            other = next(text for text in texts if not is_source(text))
            raise UsageError(
                f"signature from: {other} is no source file, others are",
                "give the source files of a program alone, or traces of its runs alone",
            )
        read = signature_from_source(
            texts, name=called.name, compiler_options=shlex.split(source.compiler_options)
        )
        _write(read, SOURCE, texts, goal, format, output, force=force)
        return
    runs = [run_of(text) for text in texts]
    found = signature_from(
        [path for path, _ in runs],
        parameters=[{**common, **values} for _, values in runs],
        **vars(called),
        **part,
    )
    _write(found, VIEWS, [path for path, _ in runs], goal, format, output, force=force)


def _write(
    found: Found | SourceSignature,
    views: Views,
    inputs: Sequence[str],
    goal: OutputTarget,
    format: str | None,
    output: str | None,
    *,
    force: bool,
) -> None:
    """Write a signature, and a summary of one that goes to a file."""
    from popmodel.cli.output import write_file
    from popmodel.cli.streams import write_out
    from popmodel.model import signatures

    if output is not None and output.endswith(_TOML):
        write_file(Path(output), found.text, force=force, read=signatures.load)
        goal.write({**found.to_dict(), "path": output}, views, inputs)
    elif format is None and output in (None, "-"):
        write_out(found.text)
    else:
        goal.write(found.to_dict(), views, inputs)


def check_against(
    arguments: Sequence[str],
    pair: tuple[str, str],
    source: SignatureSource,
    values: Mapping[str, float],
    most: float | None,
    format: str | None,
    output: str | None,
    *,
    force: bool,
) -> None:
    """Compare a signature with a trace."""
    import math

    from popmodel.api.extraction import check_against
    from popmodel.cli.output import target
    from popmodel.reports.agreement import VIEWS

    if most is not None and not 0 <= most < math.inf:
        raise UsageError("--fail-above: must be a number, at least 0", "try --fail-above 2%")
    goal = target(arguments, output, format, force=force)
    signature, trace = pair
    own = {key: value for key, value in vars(source).items() if key != "compiler_options"}
    found = check_against(
        signature,
        trace,
        settings=values,
        trace_application=own.pop("application"),
        **own,
    )
    worst = found.agreement.worst

    def judge() -> None:
        if most is not None and worst > most:
            raise ThresholdError(
                f"{signature}: off by {100 * worst:.2g} %, --fail-above is {100 * most:g} %"
            )

    goal.write(found.to_dict(), VIEWS, found.files, judge)


_KNOWN = (".json", ".csv", ".md", ".txt")
