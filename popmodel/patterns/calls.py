"""One event as calls of a signature's ``messages``: what is sent, received and waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from popmodel.simulator.program import Op
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.patterns.table import PatternTable
    from popmodel.structure.structure import Structure


class Untold(Exception):
    """Why calls cannot be listed."""


@dataclass(frozen=True)
class PatternCall:
    """What one process does."""

    do: str  # As in signatures: send, recv, isend, irecv, sendrecv, wait, waitall
    # Partners; -1 for none.
    to: int = -1
    source: int = -1
    # Bytes of the message that is sent, else received; and its tag, where it matters.
    size: int | None = None
    tag: int | None = None
    request: int = 0  # Of a wait: which of the open requests, from the oldest

    @property
    def amount(self) -> tuple[int | None, int | None]:
        """What calls of one row have in common."""
        return self.size, self.tag

    def named(self, do: str) -> PatternCall:
        """The same with another name."""
        return self if do == self.do else replace(self, do=do)


class Requests:
    """Open requests of each process, the oldest first: messages, and whether they are sent."""

    def __init__(self, opened: list[list[tuple[int, bool]]]) -> None:
        self.opened = opened

    @classmethod
    def none(cls, processes: int) -> Requests:
        """Of processes that have opened none."""
        return cls([[] for _ in range(processes)])

    def copy(self) -> Requests:
        """What is open now, whatever comes."""
        return Requests([list(each) for each in self.opened])

    def reset(self, to: Requests) -> None:
        """Go back to what was open before."""
        self.opened = to.copy().opened

    def idle(self, rank: int) -> bool:
        """Whether a process has none open."""
        return not self.opened[rank]

    def check_none(self) -> None:
        """Refuse requests that are still open."""
        late = [rank for rank, each in enumerate(self.opened) if each]
        if late:
            raise Untold(f"rank {late[0]} leaves requests open behind the last place")

    def close(self, rank: int, waited: list[tuple[int, bool]], name: str) -> list[PatternCall]:
        """Calls that complete requests: all that are open, or some, one by one."""
        mine = self.opened[rank]
        if not set(waited) <= set(mine):
            raise Untold(f"{name} of rank {rank} completes a request of before the first place")
        if len(waited) == len(mine) and (len(mine) > 1 or name.lower().endswith("all")):
            mine.clear()
            return [PatternCall("waitall")]
        calls = []
        for one in sorted(waited, key=mine.index):
            calls.append(PatternCall("wait", request=mine.index(one)))
            mine.remove(one)
        return calls


def calls_of(
    structure: Structure, table: PatternTable, event: int, requests: Requests
) -> list[PatternCall]:
    """What one event does; requests become open and complete."""
    program, events = structure.program, structure.events
    name = events.names[events.name[event]]
    if events.is_region[event]:
        raise Untold(f"{name} is a parallel region")
    begin, end = int(events.first[event]), int(events.first[event + 1])
    kinds = [Op(kind) for kind in program.kind[begin:end].tolist()]
    targets = program.target[begin:end].tolist()
    if Op.COLLECTIVE in kinds or Op.ARRIVE in kinds or Op.WAIT_COLLECTIVE in kinds:
        raise Untold(f"{name} is about a collective")
    messages = program.messages
    calls: list[PatternCall] = []
    at = 0
    while at < len(kinds):
        kind, message = kinds[at], targets[at]
        if kind in (Op.WAIT_RECEIVE, Op.WAIT_SEND):
            stop = at
            while stop < len(kinds) and kinds[stop] in (Op.WAIT_RECEIVE, Op.WAIT_SEND):
                stop += 1
            waited = [(targets[i], kinds[i] is Op.WAIT_SEND) for i in range(at, stop)]
            rank = int(
                messages.sender[message] if kind is Op.WAIT_SEND else messages.receiver[message]
            )
            calls += requests.close(rank, waited, name)
            at = stop
            continue
        sender, receiver = int(messages.sender[message]), int(messages.receiver[message])
        size = int(messages.size[message])
        tag = int(messages.tag[message]) if table.needs_tags else None
        at += 1
        match kind:
            case Op.SEND:
                calls.append(PatternCall("send", receiver, -1, size, tag))
            case Op.ISEND:
                requests.opened[sender].append((message, True))
                calls.append(PatternCall("isend", receiver, -1, size, tag))
            case Op.RECEIVE:
                calls.append(PatternCall("recv", -1, sender, size, tag))
            case _:
                following = list(zip(kinds[at : at + 2], targets[at : at + 2], strict=True))
                own = PatternCall("recv", -1, sender, size, tag)
                if following[:1] == [(Op.WAIT_RECEIVE, message)]:
                    calls.append(own)
                    at += 1
                elif following[1:] == [(Op.WAIT_RECEIVE, message)] and following[0][0] is Op.SEND:
                    sent = following[0][1]
                    if table.needs_tags and messages.tag[sent] != messages.tag[message]:
                        requests.opened[receiver].append((message, False))
                        calls.append(own.named("irecv"))
                        continue
                    to, size = int(messages.receiver[sent]), int(messages.size[sent])
                    calls.append(PatternCall("sendrecv", to, sender, size, tag))
                    at += 2
                else:
                    requests.opened[receiver].append((message, False))
                    calls.append(own.named("irecv"))
    return calls
