"""A plain reader of traces of SimGrid SMPI, beside which that of the compiled core is put.

Each line is an action of a process: ``0 compute 7.3e+06``, ``0 isend 2 0 1024 0``. Computing takes
the time of its amount at a given rate, MPI calls take none: what they take is for a replay to say.
One file holds the lines of all processes, in any order that keeps those of each, or each process
has a file and a further one lists their names, as SimGrid writes them.

Source: SimGrid's documentation, "Replaying MPI traces" (``smpirun -trace-ti``), and the actions
that its replay registers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from oracle.untimed.sequence import (
    ANY_SOURCE,
    ANY_TAG,
    Actions,
    do_lines,
    match_receives,
    trace_of,
)
from popmodel.base.errors import TraceError
from popmodel.traces.source import MOST, LineError, Words, lines, listed_file
from popmodel.traces.tables import TraceWarning

if TYPE_CHECKING:
    from popmodel.traces.trace import Trace

FLOPS = 1e9
"""Flop per second that a process computes where nobody says."""
SIZES = dict(
    enumerate(
        (
            *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8),
            *(1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16),
        )
    )
)
"""Bytes of the datatypes by SimGrid's numbers, from MPI_DOUBLE (0) to MPI_REAL16 (41)."""
_BYTE = 6
_DIGITS = 9  # of the largest rank
_COLLECTIVES = {
    **{
        name: name.capitalize()
        for name in (
            *("barrier", "bcast", "reduce", "allreduce", "scan", "exscan", "gather", "scatter"),
            *("allgather", "alltoall", "gatherv", "scatterv", "allgatherv", "alltoallv"),
        )
    },
    "reducescatter": "Reduce_scatter",
}
"""Names of collectives by action."""
_MESSAGES = ("send", "isend", "recv", "irecv", "ssend", "issend", "bsend", "ibsend")
_COLLECTIVE = "a collective"  # key of the requests that nonblocking ones open
_ANY = ("-333", "-555", "-1")  # source, as smpirun writes it, and MPI_ANY_SOURCE of SimGrid
_ANY_TAGS = ("-444", "-1")
_NULL = "-666"  # MPI_PROC_NULL
_WHICH = "which request it is about is not recorded"
_UNREAD = {
    **dict.fromkeys(("start", "startall", "waitany", "waitsome"), _WHICH),
    "io": "files are not modelled",
    **dict.fromkeys(
        (
            *("put", "get", "accumulate", "get_accumulate", "compare_and_swap", "fetch_and_op"),
            *("win_fence", "win_start", "win_complete", "win_post", "win_wait", "win_lock"),
            *("win_lock_all", "win_unlock", "win_unlock_all", "win_flush", "win_flush_all"),
            *("win_flush_local", "win_flush_local_all"),
        ),
        "one-sided operations are not modelled",
    ),
}
"""Actions that smpirun writes and SimGrid's replay does not know either, and why."""
_UNKNOWN = (
    "SimGrid's replay does not know it either: trace the program with popmodel trace, or leave "
    "these lines out"
)
_LOCAL = ("location", "comm_size", "comm_split", "comm_dup")  # no part in the replay
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


def read(
    path: str | os.PathLike[str],
    application: int = 1,
    flop_rate: float | None = None,
) -> Trace:
    """Read a time-independent trace of SimGrid SMPI."""
    rate = FLOPS if flop_rate is None else flop_rate
    files = files_of(Path(path))
    processes = _Processes(files, rate)
    for file in files:
        do_lines(file, processes.do, _ADVICE, application, "trace")
    known = processes.of
    lacking = [rank for rank in range(len(known)) if rank not in known]
    if lacking or not known:
        problem = f"no actions of process {lacking[0]}" if lacking else "the file has no actions"
        raise TraceError(path, problem, hint=_ADVICE)
    told = ((_TESTS, processes.tests), (_TESTS_OF_MANY, processes.others))
    tests = [TraceWarning(text, number) for text, number in told if number]
    said = TraceWarning(_SAID.format(f"{rate:.3g}"))
    ordered = [known[rank] for rank in range(len(known))]
    for each in ordered:
        if each.open:  # SimGrid waits for what is open in the end
            each.call("Waitall")
    try:
        number = match_receives(ordered, _TEST)
    except LineError as error:
        raise TraceError(path, str(error), hint=error.hint) from None
    matched = [TraceWarning(_MATCHED, number)] if number else []
    return trace_of(path, ordered, {}, (said, *tests, *matched), _ADVICE)


def files_of(path: Path) -> list[Path]:
    """Return the files with actions: the given one, or those that it lists."""
    listed: list[Path] = []
    for number, line in lines(path):
        if not _says_something(line):
            continue
        if is_action(line):
            break  # a line of a list has one word
        file = listed_file(path, line.strip())
        if file is None:
            if listed or line.strip().endswith(".txt"):
                missing = path.parent / line.strip()
                raise TraceError(path, f"no such file: {missing}", line=number, hint=_MOVED)
            break  # neither a list nor an action: the reader says so
        listed.append(file)
    return listed or [path]


def is_action(line: str) -> bool:
    """Whether a line begins as an action does."""
    words = line.split(maxsplit=2)
    return len(words) > 1 and _rank_of(words[0]) is not None


def _rank_of(word: str) -> int | None:
    number = word.removeprefix("p").removeprefix("rank-")
    return int(number) if number.isdecimal() and len(number) <= _DIGITS else None


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


class _Processes:
    """What the processes do, as lines tell it."""

    def __init__(self, files: list[Path], rate: float) -> None:
        self.of: dict[int, Actions] = {}
        self.tests = self.others = 0
        self._files = files
        self._rate = rate
        self._unit: dict[int, int] = {}  # bytes of an element without a datatype
        self._count = 0

    def do(self, line: str) -> None:
        """Take a line."""
        words = line.split()
        if not words or words[0].startswith("#"):
            return
        rank = _rank_of(words[0])
        if rank is None or len(words) < 2:
            raise LineError(f"not an action of a process: {line.strip()[:40]!r}")
        mine = self.of.get(rank)
        if mine is None:
            mine = self.of[rank] = Actions(rank)
        action, told = words[1].lower(), _Amounts(words[1].lower(), words[2:], self._unit.get(rank))
        if action == "compute":
            mine.compute(told.amount(0) * (1e9 / self._rate))
        elif action == "sleep":
            mine.compute(told.amount(0) * 1e9)
        elif action in _MESSAGES:
            self._message(mine, action, told)
        elif action == "sendrecv":
            self._exchange(mine, told)
        elif action == "wait":
            source, to, tag = told.partner(0), told.partner(1), told.tag(2)
            what = f"from {told.word(0)} to {told.word(1)} with tag {told.word(2)}"
            mine.wait(_COLLECTIVE if tag < ANY_TAG else (source, to, tag), what)
        elif action == "waitall":
            mine.call("Waitall")
        elif action == "test":
            mine.test((told.partner(0), told.partner(1), told.tag(2)))
            self.tests += 1
        elif action in ("testall", "testany", "testsome"):
            self.others += 1
        elif action == "init":  # of SMPI's replay, which nobody waits for
            if len(told):
                self._unit[rank] = SIZES[0]
        elif action == "finalize":
            mine.call("Finalize")
        elif action.removeprefix("i") in _COLLECTIVES:
            self._collective(mine, action, told)
        elif action in _UNREAD:
            raise LineError(f"action '{words[1]}' cannot be replayed: {_UNREAD[action]}", _UNKNOWN)
        elif action not in _LOCAL:
            raise LineError(f"unknown action '{action[:40]}'")

    @staticmethod
    def _message(mine: Actions, action: str, told: _Amounts) -> None:
        partner, tag = told.partner(0), told.tag(1)
        receives = action.endswith("recv")
        if partner is None:
            return
        if not receives and (partner == ANY_SOURCE or tag == ANY_TAG):
            raise LineError(f"{action} to any process or with any tag")
        ends = (partner, mine.rank) if receives else (mine.rank, partner)
        key = (*ends, tag) if action[0] == "i" else None
        size = 0 if receives and told.word(2) == "-1" else told.size(2, 3)  # -1: not known
        mine.message(action.capitalize(), partner, tag, size, key)

    @staticmethod
    def _exchange(mine: Actions, told: _Amounts) -> None:
        """A Sendrecv, whose tags are 0: the receive is posted, the send blocks."""
        to, source = told.partner(1), told.partner(3)
        if to == source == mine.rank:
            return  # a copy
        if source is not None:
            mine.message("Irecv", source, 0, told.size(2, 5), "sendrecv")
        if to is not None:
            mine.message("Send", to, 0, told.size(0, 4))
        if source is not None:
            mine.wait("sendrecv", "")

    def _collective(self, mine: Actions, action: str, told: _Amounts) -> None:
        starts = action.startswith("i")
        action = action.removeprefix("i")
        name = f"I{_COLLECTIVES[action].lower()}" if starts else _COLLECTIVES[action]
        work, sent, received, is_root = 0.0, 0, 0, False
        parts: list[int] = []
        if action == "bcast":
            is_root = mine.rank == told.whole(1, 0)
            sent, received = _to_or_from(told.size(0, 2), is_root)
        elif action == "reduce":
            work, is_root = told.amount(1), mine.rank == told.whole(2, 0)
            received, sent = _to_or_from(told.size(0, 3), is_root)
        elif action in ("allreduce", "scan", "exscan"):
            work = told.amount(1)
            sent = received = told.size(0, 2)
        elif action in ("gather", "scatter"):
            is_root = mine.rank == told.whole(2, 0)
            sent, received = told.size(0, 3), told.size(1, 4)
            sent *= self.count * is_root if action == "scatter" else 1
            received *= self.count * is_root if action == "gather" else 1
        elif action in ("allgather", "alltoall"):
            sent, received = told.size(0, 2), told.size(1, 3) * self.count
            sent *= self.count if action == "alltoall" else 1
        elif action != "barrier":
            work, sent, received, is_root = self._uneven(mine.rank, action, told)
        if action == "alltoallv":
            parts = [told.sizes(1 + i, 1, 2 + 2 * self.count) for i in range(self.count)]
        if max(sent, received) > MOST:
            raise LineError(f"{action} of {max(sent, received):.3g} bytes")
        key = _COLLECTIVE if starts else None
        mine.collective(name, sent, received, is_root, key=key, parts=parts)
        mine.compute(work * (1e9 / self._rate))

    def _uneven(self, rank: int, action: str, told: _Amounts) -> tuple[float, int, int, bool]:
        """Work, bytes sent and received, and whether it is the root, where parts may differ."""
        count = self.count
        if action == "gatherv":
            is_root = rank == told.whole(1 + count, 0)
            parts = told.sizes(1, count, 3 + count) * is_root
            return 0.0, told.size(0, 2 + count), parts, is_root
        if action == "scatterv":
            is_root = rank == told.whole(1 + count, 0)
            parts = told.sizes(0, count, 2 + count) * is_root
            return 0.0, parts, told.size(count, 3 + count), is_root
        if action == "allgatherv":
            return 0.0, told.size(0, 1 + count), told.sizes(1, count, 1 + count), False
        if action == "reducescatter":
            whole, own = told.sizes(0, count, 1 + count), told.sizes(rank, 1, 1 + count)
            return told.amount(count), whole, own, False
        datatypes = 2 + 2 * count  # of alltoallv
        sent = told.sizes(1, count, datatypes)
        return 0.0, sent, told.sizes(2 + count, count, datatypes + 1), False

    @property
    def count(self) -> int:
        """How many processes there are: asked for by collectives, before all of them are read."""
        if not self._count:
            ranks = (
                _rank_of(line.split(maxsplit=1)[0])
                for file in self._files
                for _, line in lines(file)
                if _says_something(line)
            )
            self._count = 1 + max(rank for rank in ranks if rank is not None)
        return self._count


def _to_or_from(size: int, is_root: bool) -> tuple[int, int]:
    return (size, 0) if is_root else (0, size)


class _Amounts(Words):
    """Arguments of an action."""

    def __init__(self, what: str, words: list[str], unit: int | None) -> None:
        super().__init__(what, words)
        self._unit = SIZES[_BYTE] if unit is None else unit

    def word(self, place: int) -> str:
        """Return an argument as it is written; empty where there is none."""
        return self._words[place] if place < len(self._words) else ""

    def partner(self, place: int) -> int | None:
        """Return the rank of a partner, `ANY_SOURCE`, or None for MPI_PROC_NULL."""
        word = self.word(place)
        if word in _ANY:
            return ANY_SOURCE
        return None if word == _NULL else self.whole(place)

    def tag(self, place: int) -> int:
        """Return a tag, or `ANY_TAG`; those of SimGrid's collectives are below."""
        word = self.word(place)
        if word in _ANY_TAGS:
            return ANY_TAG
        return int(word) if re.fullmatch(r"-\d{1,9}", word) else self.whole(place)

    def size(self, count: int, datatype: int) -> int:
        """Bytes of a number of elements."""
        return self._bytes(self.amount(count), datatype)

    def sizes(self, first: int, count: int, datatype: int) -> int:
        """Bytes of several numbers of elements that follow one another."""
        return self._bytes(sum(self.amount(first + i) for i in range(count)), datatype)

    def _bytes(self, elements: float, datatype: int) -> int:
        unit = self._unit
        if datatype < len(self):
            if self.word(datatype) == "-1":
                raise LineError(
                    f"{self._what} of a derived datatype, whose size is not recorded",
                    "write the number of bytes, and datatype 6 (MPI_BYTE)",
                )
            number = self.whole(datatype)
            if number not in SIZES:
                raise LineError(f"unknown datatype {number}")
            unit = SIZES[number]
        if elements * unit > MOST:
            raise LineError(f"{self._what} of {elements * unit:.3g} bytes")
        return int(elements * unit)
