"""The command line.

`main` is the only place that turns an error into lines on standard error and an exit status:
0 done, 1 failed, 2 wrong usage, 3 a threshold was missed, 130 interrupted, 141 the reader of the
output went away. Each verb is one module, listed in `popmodel.cli.app`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from popmodel.errors import PopmodelError

INTERRUPTED = 130  # as a shell reports a program that SIGINT ended
READER_GONE = 141  # and one that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        The exit status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        # Imported here so that Ctrl-C during the import ends as quietly as later.
        from popmodel.cli.app import run

        status = run(arguments)
        _flush()
    except PopmodelError as error:
        _show_traceback_if_asked()
        _complain(error.message, error.hint)
        return error.exit_status
    except BrokenPipeError:
        _discard_output()
        return READER_GONE
    except KeyboardInterrupt:
        _discard_output()
        print("popmodel: interrupted", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        _show_traceback_if_asked()
        _complain("there is not enough memory for this", "use a machine with more, or a part")
        return 1
    except Exception as error:  # a defect of popmodel: say so in one line, keep the details near
        _show_traceback_if_asked()
        _complain(
            f"unexpected {type(error).__name__}: {error}",
            "this is a defect of popmodel; POPMODEL_DEBUG=1 shows where it happened",
        )
        return 1
    return status


def _flush() -> None:
    """Write what is buffered while an error can still be reported."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise PopmodelError(
            f"standard output: {error.strerror}", "the result is incomplete; use -o FILE elsewhere"
        ) from error


def _discard_output() -> None:
    """Send what is still buffered nowhere: Python would complain about it at its end."""
    if sys.stdout is None:
        return
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # replaced by an object without a descriptor: nothing to do
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _complain(message: str, hint: str | None) -> None:
    print(f"popmodel: error: {_one_line(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {_one_line(hint)}", file=sys.stderr)


def _one_line(text: str) -> str:
    """Text without line ends and other control characters; names in it come from anywhere."""
    words = " ".join(text.split())
    shown = "".join(character if character.isprintable() else "?" for character in words)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _show_traceback_if_asked() -> None:
    if os.environ.get("POPMODEL_DEBUG"):
        import traceback

        traceback.print_exc()
