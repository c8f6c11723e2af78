"""The command line.

`main` is the only place that turns an error into lines on standard error and an exit status:
0 done, 1 failed, 2 wrong usage, 3 a threshold was missed, 130 interrupted, 141 the reader of the
output went away. Each verb is one module, listed in `popmodel.cli.app`.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from itertools import pairwise, takewhile
from pathlib import Path

from popmodel.base.errors import PopmodelError
from popmodel.cli.streams import complain, discard_out, finish_out, flush_out, suggest

INTERRUPTED = 130  # as a shell reports a program that SIGINT ended
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_FOLDER = "no usable temporary directory"
READER_GONE = 141  # and one that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    # On import NumPy starts a pool of BLAS threads, of which nothing here makes use: on a node with
    # many cores that costs more than most commands.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What imports make stays: looking through it for garbage is a tenth of a short command.
    gc.set_threshold(20_000)
    arguments = list(sys.argv[1:] if argv is None else argv)
    before = _output_file(arguments)

    def fail(message: str, hint: str | None) -> None:
        complain(message, hint)
        if before and before == _output_file(arguments) and not message.startswith(before[0]):
            suggest(f"{before[0]} was not written: it is what an earlier command left")

    try:
        # Imported here so that Ctrl-C during the import ends as quietly as later.
        from popmodel.cli.app import run

        status = run(arguments)
        flush_out()
    except PopmodelError as error:
        _show_traceback_if_asked()
        # Python would end with a status of its own if this failed later.
        finish_out()
        fail(error.message, error.hint)
        return error.exit_status
    except BrokenPipeError:
        discard_out()
        return READER_GONE
    except KeyboardInterrupt:
        discard_out()
        print("popmodel: interrupted", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        _show_traceback_if_asked()
        fail("not enough memory", "use a machine with more memory, or analyse part of the run")
        return 1
    except Exception as error:  # a defect of popmodel: say so in one line, keep the details near
        _show_traceback_if_asked()
        if isinstance(error, OSError) and (why := _no_room(error)):
            fail(
                f"temporary files: {why}", "free some space, or set TMPDIR to a directory with room"
            )
            return 1
        fail(
            f"unexpected {type(error).__name__}: {error}",
            "this is a bug in popmodel: set POPMODEL_DEBUG=1 for a traceback",
        )
        return 1
    return status


def _no_room(error: OSError) -> str:
    """Why temporary files cannot be written, where that is what went wrong."""
    if _NO_FOLDER in str(error).lower():
        return _NO_FOLDER
    return os.strerror(error.errno).lower() if error.errno in _NO_ROOM else ""


def _output_file(arguments: Sequence[str]) -> tuple[str, int, int] | None:
    """The file that ``-o`` and ``--force`` may replace, if it is there: name, inode and time."""
    own = list(takewhile(lambda word: word != "--", arguments))  # what follows is a program's
    named = [value for word, value in pairwise(own) if word in ("-o", "--output")]
    named += [word.partition("=")[2] for word in own if word.startswith("--output=")]
    if "--force" not in own or not named:
        return None
    try:
        found = Path(named[-1]).stat()
    except (OSError, ValueError):
        return None
    return named[-1], found.st_ino, found.st_mtime_ns


def _show_traceback_if_asked() -> None:
    if os.environ.get("POPMODEL_DEBUG"):
        import traceback

        traceback.print_exc()
