"""``popmodel study``: carrying one out, with lines of progress on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popmodel.api.study import Watch
    from popmodel.cli.output import OutputTarget
    from popmodel.cli.progress import ProgressLine
    from popmodel.machines.bench.suite import Progress
    from popmodel.studies.plan import StudyRequest


def carry_out(
    request: StudyRequest, folder: Path, goal: OutputTarget, patience: float | None, *, force: bool
) -> None:
    """Carry a study out, or go on with it, and show what came of it."""
    from popmodel.api.study import study
    from popmodel.base.files import as_exits
    from popmodel.cli.progress import ProgressLine
    from popmodel.reports.study import VIEWS

    line = ProgressLine()
    with _kept_when_interrupted(folder, line), as_exits():
        document = study(request, folder, _watch(line), patience=patience, force=force)
    goal.write(document, VIEWS, [folder / "manifest.json"])


def write_script(request: StudyRequest, folder: Path, *, force: bool) -> bool:
    """Write the runs as a job; False if that was done before."""
    from popmodel.api.study import job
    from popmodel.base.shell import visible
    from popmodel.cli.progress import ProgressLine
    from popmodel.cli.streams import remark, write_out
    from popmodel.studies.executor import submit_command

    line = ProgressLine()
    path = job(request, folder, _watch(line), force=force)
    line.clear()
    if path is None:
        return False
    write_out(f"{visible(str(path))}\n")
    remark(f"to submit: {submit_command(folder)}")
    remark("after the job: the same command goes on with its results")
    return True


def _watch(line: ProgressLine) -> Watch:
    from popmodel.api.study import Watch
    from popmodel.cli.progress import progress_line
    from popmodel.cli.streams import remark
    from popmodel.cli.trace_target import tracer

    def tell(text: str) -> None:
        line.clear()
        remark(text)

    def draw(at: Progress) -> None:
        line.draw(lambda width: progress_line(at.part, at.done, at.all, at.left, width))

    return Watch(tell, draw, tracer)


@contextmanager
def _kept_when_interrupted(folder: Path, line: ProgressLine) -> Iterator[None]:
    """Say how to go on when the user or the batch system ends the study."""
    from popmodel.base.errors import FileError, UsageError
    from popmodel.cli.streams import remark
    from popmodel.studies.manifest import MANIFEST

    try:
        yield
    except BaseException as reason:
        line.clear()
        unusable = isinstance(reason, FileError) and (
            reason.path in (str(folder), str(folder / MANIFEST))
        )
        if not unusable and not isinstance(reason, UsageError):
            remark(f"what is done is kept in {folder}: the same command goes on with it")
        raise
    finally:
        line.clear()
