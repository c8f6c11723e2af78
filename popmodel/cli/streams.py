"""Standard output and standard error: writing to them, and what to do when that fails."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from popmodel.base.errors import PopmodelError
from popmodel.base.shell import visible

if TYPE_CHECKING:
    from popmodel.machines.host.toolchain import Mpi


def write_out(text: str) -> None:
    """Write to standard output; characters that its encoding lacks are written as escapes."""
    if sys.stdout is None:
        raise PopmodelError("standard output is closed", "use -o FILE")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        sys.stdout.write(shown)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _incomplete(error) from error


def write_err(text: str) -> None:
    """Write to standard error, where standard output is another program's."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def flush_out() -> None:
    """Write what is buffered while an error can still be reported; raises as `write_out`."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _incomplete(error) from error


def finish_out() -> None:
    """Write what is buffered as far as somebody reads it; another error is reported already."""
    try:
        flush_out()
    except (BrokenPipeError, PopmodelError):
        discard_out()


def discard_out() -> None:
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


def complain(message: str, hint: str | None = None) -> None:
    """Write an error to standard error: one line, and one for the hint."""
    print(f"popmodel: error: {_one_line(message)}", file=sys.stderr)
    if hint:
        suggest(hint)


def suggest(hint: str) -> None:
    """Write to standard error what to do about the line before."""
    print(f"hint: {_one_line(hint)}", file=sys.stderr, flush=True)


def remark(text: str) -> None:
    """Write what is no error to standard error, on one line."""
    print(f"popmodel: {_one_line(text)}", file=sys.stderr, flush=True)


def warn_of_packaged(mpi: Mpi | None) -> None:
    """Say that a batch system may not know an MPI that is a Python package."""
    if mpi is not None and mpi.origin == "wheel":
        remark(
            "warning: this MPI is a Python package; srun may not be able to start its programs: "
            "load the cluster's MPI module"
        )


def _one_line(text: str) -> str:
    """Text without line ends and other control characters; names in it come from anywhere."""
    # Blanks stay as they are: a command that is shown can be pasted.
    line = re.sub(r"\s*[\r\n]\s*", " ", text).strip()
    shown = "".join(each if each.isprintable() else "?" for each in visible(line))
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _incomplete(error: OSError) -> PopmodelError:
    discard_out()
    return PopmodelError(
        f"standard output: {error.strerror}",
        "the result is incomplete; choose another path with -o FILE",
    )
