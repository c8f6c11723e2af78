"""Where a result goes: standard output or a file, in which format."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from popmodel.base.errors import FileError, UsageError
from popmodel.base.files import expect_writable, refuse_planted, write_bytes
from popmodel.base.provenance import stamped
from popmodel.base.values import dataclass
from popmodel.cli.fail_if import FailCondition, check, expect_known
from popmodel.cli.options import choice
from popmodel.cli.streams import discard_out, flush_out, write_err, write_out
from popmodel.reports import formats
from popmodel.reports.formats import OutputFormat
from popmodel.reports.palette import depth_of
from popmodel.reports.registry import SHOWN
from popmodel.reports.renderers.text import Style
from popmodel.reports.views import Document, Views

if TYPE_CHECKING:
    from popmodel.reports.result import Result


@dataclass(frozen=True)
class OutputTarget:
    """Where and how one result is written; `path` is None for standard output.

    `arguments` is the command line, which a result states.
    """

    arguments: tuple[str, ...]
    format: OutputFormat
    path: Path | None
    force: bool
    whole: bool = False  # --all
    to_stderr: bool = False  # Where standard output is the program's that was run
    screen: OutputFormat = formats.TABLE  # What standard output shows beside a signature's file

    def write(
        self,
        document: Document,
        views: Views,
        inputs: Iterable[str | os.PathLike[str]] = (),
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Render a document with its provenance and write it."""
        if "provenance" not in document:
            document = stamped(document, self.arguments, inputs)
        text = self.format.render(document, views, self._style())
        if self.to_stderr:
            write_err(text)
        elif self.path is None:
            if views.is_text and self.format is formats.TABLE and _paged(text):
                return
            try:
                write_out(text)
                flush_out()
            except BrokenPipeError:
                discard_out()
                then()
                raise
        else:
            write_file(self.path, text, force=self.force, read=self._reader(document))
        then()

    def show(self, result: Result, conditions: Sequence[FailCondition] = ()) -> None:
        """Write a result, then say what is wrong with it, and hold it against conditions."""
        for condition in conditions:
            expect_known(condition, result)  # wrong usage is said before the result

        def then() -> None:
            if (failure := result.failure()) is not None:
                raise failure
            check(conditions, result)

        document = result.document_for(self.format.name)
        if result.on_stderr:
            if self.path is not None:  # the screen says what the file holds
                self.write(document, result.views, result.files)
                document = result.document_for(self.screen.name)
            own = replace(self, format=self.screen if self.path else self.format, path=None)
            replace(own, to_stderr=True).write(document, result.views, result.files, then)
            return
        if self.format is formats.TOML and self.path is not None:  # the screen says what it is
            self.write(document, result.views, result.files)
            shown = replace(self, format=self.screen, path=None)
            document = {**result.document_for(self.screen.name), "path": os.fspath(self.path)}
            shown.write(document, result.views, result.files, then)
            return
        self.write(document, result.views, result.files, then)

    def _reader(self, document: Document) -> Callable[[Path], object] | None:
        """What reads such a file again, if anything does: profiles, and what reports show."""
        kind = str(document.get("schema")).partition("/")[2].partition("/")[0]
        if self.format is formats.JSON and kind == "machine":
            from popmodel.machines.profile import load

            return load
        if self.format is formats.TOML:
            from popmodel.model import signatures

            return signatures.load
        if self.format is formats.HTML or (self.format is formats.JSON and kind in SHOWN):
            from popmodel.reports.saved_reports import saved_report

            return lambda path: saved_report(os.fspath(path))
        return None

    def _style(self) -> Style:
        if self.path is not None:
            return Style(whole=True)
        stream = sys.stderr if self.to_stderr else sys.stdout
        return replace(terminal_style(stream), whole=self.whole)


def _paged(text: str) -> bool:
    """Show a text by the user's pager, if it is longer than the terminal; false if it is not."""
    if not sys.stdout.isatty() or text.count("\n") < shutil.get_terminal_size().lines:
        return False
    import subprocess

    pager = os.environ.get("PAGER", "less")
    # -R shows colours, -F and -X leave the text on the screen; as git calls less.
    environment = {"LESS": "FRX", **os.environ}
    ended = subprocess.run(["sh", "-c", pager], input=text, text=True, env=environment, check=False)
    return bool(pager.strip()) and ended.returncode not in _NOT_STARTED


_NOT_STARTED = (126, 127)  # what a shell returns for a command that cannot be run or is not there


def target(
    arguments: Sequence[str],
    output: str | None,
    format_name: str | None,
    *,
    force: bool,
    names: Sequence[str] = formats.NAMES,
    whole: bool = False,
) -> OutputTarget:
    """What ``-o``, ``--format`` and ``--force`` ask for together."""
    known = formats.FORMATS
    format = None
    if format_name == formats.HTML.name and formats.HTML.name not in names:
        problem = (
            "--format html: there is no page of what is written here, a few lines about a file"
        )
        raise UsageError(problem, f"choose one of {', '.join(names)}")
    if format_name is not None:
        format = known[choice("--format", format_name, names)]
    if output is None or output == "-":
        return OutputTarget(tuple(arguments), format or formats.TABLE, None, force, whole)
    path = Path(output)
    by_suffix = {known[name].suffix: known[name] for name in names}.get(path.suffix.lower())
    if by_suffix is None and format is None:
        raise UsageError(
            f"-o {output}: cannot tell the format from the suffix",
            f"use {formats.suffixes(names)}, or give --format",
        )
    screen = formats.TABLE
    if by_suffix is formats.TOML and format is not None:
        screen, format = format, by_suffix
    if by_suffix is not None and format is not None and by_suffix is not format:
        raise UsageError(
            f"-o {output} means {by_suffix.name}, --format says {format.name}",
            "leave one of them out",
        )
    refuse_existing(path, force=force)
    if formats.SVG in (format, by_suffix):
        from popmodel.reports.renderers.svg import expect_matplotlib

        expect_matplotlib()
    chosen = format or by_suffix or formats.TABLE
    return OutputTarget(tuple(arguments), chosen, path, force, whole, screen=screen)


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse a file before the work as well as after it: nobody waits an hour for this line."""
    try:
        _refuse_existing(path, force)
        if not _is_special(path):
            expect_writable(path)
    except OSError as error:
        raise _cannot_write(path, error) from error


def terminal_style(stream: TextIO | None) -> Style:
    """Width and colours of a stream; 80 columns where it is no terminal."""
    terminal = stream is not None and stream.isatty()
    columns = shutil.get_terminal_size((80, 24)).columns
    return Style(columns, depth_of(os.environ, terminal=terminal))


def write_file(
    path: Path, text: str, *, force: bool, read: Callable[[Path], object] | None = None
) -> None:
    """Write a file as a whole or not at all, and not if what reads such files refuses it.

    A device, a pipe or a stream that is open already (``/dev/stderr``, ``>(...)`` of a shell) is
    written to directly.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        _refuse_existing(path, force)
        if _is_special(path):
            with path.open("ab") as file:  # what a log behind /dev/stderr holds already stays
                file.write(data)
        else:
            write_bytes(os.path.realpath(path), data, read=read)  # a symbolic link stays one
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> FileError:
    problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
    return FileError(path, problem, hint="choose another path with -o")


def _is_special(path: Path) -> bool:
    """Whether a path is no file of its own, but something to write into."""
    if re.fullmatch(r"/dev/(stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+", str(path)):
        return path.exists()
    return path.exists() and not path.is_file() and not path.is_dir()


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise UsageError(f"-o {path}: is a directory", "name a file in it")
    refuse_planted(path, "choose another path with -o")
    # A link that leads nowhere yet is there as well: it may have been put there to be followed.
    if not force and (path.is_file() or path.is_symlink()) and not _is_special(path):
        raise UsageError(f"-o {path}: the file exists", "use --force to overwrite it")
