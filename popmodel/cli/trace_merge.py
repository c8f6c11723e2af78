"""``popmodel trace merge``: from records to a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.cli.trace_target import checked, merging

if TYPE_CHECKING:
    from popmodel.tracer.conversion import Merged


def merge(
    arguments: Sequence[str],
    words: Sequence[str],
    output: str | None,
    format: str | None,
    *,
    force: bool,
) -> None:
    """Make a trace of the records in a directory, and say what it is."""
    from popmodel.api.trace import traced
    from popmodel.base.files import as_exits
    from popmodel.cli.output import target
    from popmodel.reports.trace import VIEWS
    from popmodel.tracer import raw_directory

    if len(words) != 1:
        raise UsageError(
            f"merge: takes one directory, not {len(words)}",
            "popmodel trace merge app.raw -o app.prv.gz",
        )
    goal = target(arguments, None, format, force=force)
    raw = Path(words[0])
    name = output or f"{raw.absolute().name.removesuffix(raw_directory.SUFFIX)}.prv.gz"
    with as_exits():
        runs, notes = merged(raw, checked(name, force=force), force=force)
    goal.write(traced(runs, raw=str(raw), notes=notes), VIEWS)


def merged(
    raw: Path, target: Path, *, force: bool, after_the_run: bool = False
) -> tuple[tuple[Merged, ...], tuple[str, ...]]:
    """Merge, with a line of progress; gives the traces, and what could not be found out.

    Says how to go on if that does not succeed; where only a merge was asked for, if a signal or the
    user has ended it.
    """
    from popmodel.cli.progress import ProgressLine
    from popmodel.cli.streams import remark
    from popmodel.tracer.conversion import merge_runs
    from popmodel.tracer.symbol_table import SourceLines

    line, lines = ProgressLine(), SourceLines()

    def draw(done: float) -> None:
        line.draw(lambda width: f"merging {100 * done:3.0f} %"[:width])

    try:
        runs = merge_runs(
            raw,
            target,
            locate=lines,
            progress=draw,
            check=lambda path: checked(str(path), force=force),
        )
        return runs, () if lines.problem is None else (lines.problem,)
    except BaseException as error:
        line.clear()
        if after_the_run or not isinstance(error, PopmodelError):
            remark(f"the raw files are kept; to merge them: {merging(raw, target)}")
        raise
    finally:
        line.clear()
