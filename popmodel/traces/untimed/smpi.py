"""Reads time-independent traces of SimGrid SMPI: what processes compute and call, without times.

Each line is an action of a process: ``0 compute 7.3e+06``, ``0 isend 2 0 1024 0``. Computing takes
the time of its amount at a given rate, MPI calls take none: what they take is for a replay to say.
One file holds the lines of all processes, in any order that keeps those of each, or each process
has a file and a further one lists their names, as SimGrid writes them. The compiled core scans the
text (``popmodel/kernel/smpi.cpp``).

Source: SimGrid's documentation, "Replaying MPI traces" (``smpirun -trace-ti``), and the actions
that its replay registers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base.errors import TraceError
from popmodel.kernel import _kernel
from popmodel.traces.source import lines, listed_file
from popmodel.traces.tables import TraceWarning
from popmodel.traces.untimed.untimed_trace import errors_of, feed_file, one_application, trace_of

if TYPE_CHECKING:
    from popmodel.traces.recorded_run import Trace

FLOPS = 1e9
"""Flop per second that a process computes where nobody says."""
_DIGITS = 9  # of the largest rank
_SAID = "no measured times: computation is taken from its amount at {} flop/s, MPI calls take none"
_TEST = 1e5  # ns, smpi/test
_TESTS = (
    "tests (whether they found anything is not recorded: as in SMPI each takes 100 us, and more "
    "after others that found nothing)"
)
_TESTS_OF_MANY = "tests of several requests (ignored: what they are about is not recorded)"
_MATCHED = (
    "receives from any process or with any tag (which message they got is not recorded: the first "
    "that comes if messages take no time)"
)
_MOVED = "put the files where the list says, seen from its folder or from one above it"
_ADVICE = (
    "give one file with the actions of all processes, or the file that lists one for each, as "
    "smpirun -trace-ti writes them"
)
_HINTS = {
    "cannot be replayed": (
        "SimGrid's replay does not know it either: trace the program with popmodel trace, or leave "
        "these lines out"
    ),
    "of a derived datatype": "write the number of bytes, and datatype 6 (MPI_BYTE)",
    "gets no message": "write into these lines who sent the message, and with which tag",
}
"""What to do about some errors."""


def read(
    path: str | os.PathLike[str],
    application: int = 1,
    flop_rate: float | None = None,
) -> Trace:
    rate = FLOPS if flop_rate is None else flop_rate
    one_application(path, application, "trace")
    files = files_of(Path(path))
    ranks = _kernel.SmpiRanks()  # collectives need to know how many before all lines are read
    count = 0
    for file in files:
        with errors_of(file, _ADVICE):
            feed_file(file, ranks)
            count = ranks.finish()
    scanner = _kernel.SmpiScanner(rate, count, _TEST)
    for file in files:
        with errors_of(file, _ADVICE, _HINTS):
            feed_file(file, scanner)
            scanner.end_file()
    with errors_of(path, _ADVICE, _HINTS):
        scanner.finish()
        columns = scanner.columns()
    told = (
        (_TESTS, scanner.tests),
        (_TESTS_OF_MANY, scanner.tests_of_many),
        (_MATCHED, scanner.matched),
    )
    warnings = [TraceWarning(text, number) for text, number in told if number]
    said = TraceWarning(_SAID.format(f"{rate:.3g}"))
    return trace_of(path, columns, {}, (said, *warnings), _ADVICE)


def files_of(path: Path) -> list[Path]:
    """Return the files with actions: the given one, or those that it lists."""
    listed: list[Path] = []
    for number, line in lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        if _is_action(line):
            break  # a line of a list has one word
        file = listed_file(path, line.strip())
        if file is None:
            if listed or line.strip().endswith(".txt"):
                missing = path.parent / line.strip()
                raise TraceError(path, f"no such file: {missing}", line=number, hint=_MOVED)
            break  # neither a list nor an action: the reader says so
        listed.append(file)
    return listed or [path]


def _is_action(line: str) -> bool:
    words = line.split(maxsplit=2)
    rank = words[0].removeprefix("p").removeprefix("rank-")
    return len(words) > 1 and rank.isdecimal() and len(rank) <= _DIGITS
