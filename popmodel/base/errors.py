"""The errors that popmodel raises on purpose.

A `PopmodelError` is something a user can act on: the command line prints its message and its
hint, each on one line and without a traceback, and ends with its exit status. Any other exception
is a defect of popmodel.
"""

from __future__ import annotations

import os
from collections.abc import Iterable


class PopmodelError(Exception):
    """An error that the user can act on.

    Parameters
    ----------
    message : str
        One line: what went wrong and where.
    hint : str, optional
        One line: what to do about it. Python shows it below the message.

    Examples
    --------
    >>> import popmodel
    >>> try:
    ...     popmodel.load_machine("sandybridge")
    ... except popmodel.PopmodelError as error:
    ...     print(error.hint)
    did you mean sandybridge-fdr?
    """

    exit_status = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")

    def __reduce__(self) -> tuple[object, ...]:  # as it comes back from another process
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[PopmodelError], args: tuple[object, ...], state: object) -> PopmodelError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)  # type: ignore[call-overload]
    return error


class UsageError(PopmodelError):
    """Wrong usage: invalid or contradictory arguments."""

    exit_status = 2


class ThresholdError(PopmodelError):
    """A condition of ``--fail-if`` was met."""

    exit_status = 3


class FileError(PopmodelError):
    """A file cannot be used; the message begins with its name and, where known, the line."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = [os.fspath(path), *(str(at) for at in (line, column) if at is not None)]
        super().__init__(f"{':'.join(place)}: {problem}", hint)
        self.path = os.fspath(path)
        self.problem = problem
        self.line = line
        self.column = column


class TraceError(FileError):
    """A trace is damaged, truncated or not a trace."""


class PartError(FileError, UsageError):
    """The requested part is not in the trace."""


class ReplayError(PopmodelError):
    """A run cannot be replayed: deadlock, unmatched messages, calls that are not modelled."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint: the known name that is nearest to an unknown one, or something else."""
    from difflib import get_close_matches  # only where there is an error

    near = get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]}?" if near else otherwise
