"""Which calls take part in the same collective: those of one communicator match in call order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.errors import ReplayError
from popmodel.simulator.calls import turns
from popmodel.simulator.mpi_calls import Action
from popmodel.simulator.program import COLLECTIVES, Collectives
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.calls import MasterCalls
    from popmodel.trace import Trace

__all__ = ["MatchedCollectives", "match_collectives", "note_calls_apart"]

_WAIT_FOR_ALL = (COLLECTIVES.index("barrier"), COLLECTIVES.index("allreduce"))
_APART = 100_000  # ns; clocks of nodes may differ by less
# MPI_Init comes before any communicator: a turn of its own, over all processes. No trace has it.
_INIT = np.iinfo(np.int64).min


@dataclass(frozen=True)
class MatchedCollectives:
    """Collectives of a trace, and the collective of each call.

    Attributes
    ----------
    collectives : Collectives
        One row each.
    call : int64[n]
        Calls of collectives.
    collective : int32[n]
        Row of `collectives` that the call takes part in.
    sent, received : int64[n]
        Bytes that the caller sends and receives.
    """

    collectives: Collectives
    call: NDArray[np.int64]
    collective: NDArray[np.int32]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]

    def uneven(self) -> NDArray[np.bool_]:
        """Whether each collective has no root, and members of different amounts."""
        differ = np.zeros(len(self.collectives), dtype=bool)
        for own, largest in (
            (self.sent, self.collectives.sent),
            (self.received, self.collectives.received),
        ):
            differ[self.collective[own != largest[self.collective]]] = True
        return differ & (self.collectives.root < 0)

    def called_by(
        self, members: NDArray[np.int32], root: NDArray[np.int32]
    ) -> tuple[MatchedCollectives, NDArray[np.int32]]:
        """These collectives where only some of the members call them.

        Parameters
        ----------
        members : int32[C]
            How many call each; collectives of nobody are left out.
        root : int32[C]
            Process index of the root, or -1.

        Returns
        -------
        MatchedCollectives
        int32[C]
            The row there of each collective here.
        """
        some = members > 0
        row = (np.cumsum(some) - 1).astype(np.int32)
        columns = {**vars(self.collectives), "members": members, "root": root}
        calls = some[self.collective]
        return MatchedCollectives(
            Collectives(**{name: column[some] for name, column in columns.items()}),
            self.call[calls],
            row[self.collective[calls]],
            self.sent[calls],
            self.received[calls],
        ), row


def match_collectives(trace: Trace, calls: MasterCalls) -> MatchedCollectives:
    """Group the calls of collectives by communicator and turn.

    Raises
    ------
    ReplayError
        If members of a communicator call different collectives at the same turn, or a process
        calls one on a communicator that the trace lists without it.
    """
    call = np.flatnonzero(np.isin(calls.action, (Action.COLLECTIVE, Action.ICOLLECTIVE)))
    told, attributes = trace.calls().collectives, np.zeros((4, len(calls)), np.int64)
    attributes[:, told.call] = told.sent, told.received, told.is_root, told.communicator
    attributes = attributes[:, call]
    sent, received, root = attributes[0], attributes[1], attributes[2] != 0
    kind, process = calls.collective[call], calls.process[call]
    communicator = np.where(kind == COLLECTIVES.index("init"), _INIT, attributes[3])
    _check_membership(trace, calls, call, communicator)
    pairs, collective = _distinct_rows(communicator, turns(communicator, process))
    count = len(pairs)
    first = np.full(count, -1, dtype=np.int64)
    first[collective[::-1]] = np.arange(len(call))[::-1]
    _check_same_kind(trace, calls, call, collective, first)
    roots = np.full(count, -1, dtype=np.int32)
    roots[collective[root]] = process[root]
    root_sent = np.zeros(count, dtype=np.int64)
    root_sent[collective[root]] = sent[root]
    return MatchedCollectives(
        Collectives(
            kind=kind[first],
            communicator=np.where(pairs[:, 0] == _INIT, 0, pairs[:, 0]),
            members=_members(trace, pairs[:, 0], communicator, process),
            root=roots,
            sent=_largest(sent, collective, count),
            received=_largest(received, collective, count),
            root_sent=root_sent,
        ),
        call,
        collective.astype(np.int32),
        sent,
        received,
    )


def note_calls_apart(calls: MasterCalls, matched: MatchedCollectives) -> list[str]:
    """Say how many collectives cannot be what they are: a member leaves before another one enters.

    Calls are matched by their turns, so one that was not recorded (tracing was switched on between
    the same calls of two processes) moves all that follow it. Barrier and Allreduce show it, as
    nobody leaves them before all have entered.
    """
    kind = matched.collectives.kind[matched.collective]
    blocking = calls.action[matched.call] == Action.COLLECTIVE
    chosen = blocking & np.isin(kind, _WAIT_FOR_ALL)
    row, call = matched.collective[chosen], matched.call[chosen]
    entered = np.zeros(len(matched.collectives), np.int64)
    left = np.full(len(matched.collectives), np.iinfo(np.int64).max)
    np.maximum.at(entered, row, calls.entry[call])
    np.minimum.at(left, row, calls.exit[call])
    number = int(np.count_nonzero(entered - _APART > left))
    if not number:
        return []
    return [
        f"{number} of {plural(len(distinct(row)), 'call')} of MPI_Barrier and MPI_Allreduce end on "
        "one rank before they begin on another: records are missing (was tracing switched on "
        "during the run?) or clocks differ; serialisation and transfer are doubtful"
    ]


def _members(
    trace: Trace,
    wanted: NDArray[np.int64],
    communicator: NDArray[np.int64],
    process: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Number of members of each wanted communicator.

    One that the trace does not list has the processes that call on it.
    """
    numbers, index = np.unique(wanted, return_inverse=True)
    pairs, _ = _distinct_rows(communicator, process)
    callers = np.bincount(np.searchsorted(numbers, pairs[:, 0]), minlength=len(numbers))
    sizes = np.array(
        [
            trace.processes if number == 0 else len(trace.communicators.get(number, range(many)))
            for number, many in zip(numbers.tolist(), callers.tolist(), strict=True)
        ],
        dtype=np.int32,
    )
    return sizes[index]


def _largest(values: NDArray[np.int64], group: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, group, values)
    return largest


def _check_membership(
    trace: Trace,
    calls: MasterCalls,
    call: NDArray[np.int64],
    communicator: NDArray[np.int64],
) -> None:
    """Refuse calls of processes that are no members: they would count as ones that are."""
    listed = [
        (number, trace.communicators[number])
        for number in distinct(communicator).tolist()
        if number in trace.communicators
    ]
    numbers = np.array([number for number, _ in listed], dtype=np.int64)
    # A pair of communicator and process as one number.
    pairs = [
        row * trace.processes + ranks.astype(np.int64) for row, (_, ranks) in enumerate(listed)
    ]
    rows = np.flatnonzero(np.isin(communicator, numbers))
    own = np.searchsorted(numbers, communicator[rows]) * trace.processes + calls.process[call[rows]]
    strangers = rows[~np.isin(own, np.concatenate([np.empty(0, np.int64), *pairs]))]
    if len(strangers):
        i = int(strangers[0])
        raise ReplayError(
            f"{trace.path}: {calls.where(int(call[i]))} calls a collective on communicator "
            f"{communicator[i]}, of which the trace does not list it as a member",
            "the trace's list of communicators is wrong: trace the run again",
        )


def _check_same_kind(
    trace: Trace,
    calls: MasterCalls,
    call: NDArray[np.int64],
    collective: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    kind = calls.collective[call]
    different = np.flatnonzero(kind != kind[first[collective]])
    if len(different):
        i = int(different[0])
        raise ReplayError(
            f"{trace.path}: members of a communicator call different collectives: "
            f"{calls.where(int(call[first[collective[i]]]))}, {calls.where(int(call[i]))}",
            "an event of a collective is missing from the trace, or the program is wrong",
        )


def _distinct_rows(
    a: NDArray[np.int64], b: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows of two columns, in order, and the index of each row among them."""
    order = np.lexsort((b, a))
    pairs = np.stack([a[order], b[order]], axis=1)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return pairs[new], inverse
