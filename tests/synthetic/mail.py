"""Messages between processes: matched in order by sender, receiver and tag."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthetic.data import Network

if TYPE_CHECKING:
    from synthetic.engine import Process


@dataclass(eq=False)
class Message:
    """A message; times in ns."""

    sender: int
    size: int
    tag: int
    left: int  # when its send begins
    data: object = None
    sent: tuple[int, int] = (-1, -1)  # logical and physical
    received: tuple[int, int, int] = (-1, -1, -1)  # receiver, logical and physical


@dataclass(eq=False)
class Request:
    """What a process may wait for: done at a time that is known once both sides are there."""

    posted: int
    done: int | None = None
    owner: Process | None = None  # who waits for it
    message: Message | None = None
    logical: int = -1  # of a receive
    receiver: int = -1


class Mail:
    """What is sent and what is posted; `wake` is called for whom waits for what is matched."""

    def __init__(self, network: Network, wake: Callable[[Process], object]) -> None:
        self.latency, self.overhead = round(network.latency * 1e9), round(network.overhead * 1e9)
        self._per_byte, self._eager = 1e9 / network.bandwidth, network.eager
        self._wake = wake
        self._sends: dict[tuple[int, int, int], deque[tuple[Message, Request]]] = {}
        self._receives: dict[tuple[int, int, int], deque[Request]] = {}
        self.messages: list[Message] = []

    def transfer(self, size: int) -> int:
        """Time of some bytes on the way, ns."""
        return self.latency + round(size * self._per_byte)

    def send(self, sender: int, to: int, size: int, tag: int, now: int) -> Request:
        """Send; the request has its message."""
        message = Message(sender, size, tag, now)
        self.messages.append(message)
        request = Request(now, message=message)
        if size <= self._eager:
            request.done = now + self.overhead
        key = (sender, to, tag)
        if posted := self._receives.get(key):
            self._match(request, posted.popleft())
        else:
            self._sends.setdefault(key, deque()).append((message, request))
        return request

    def post(self, source: int, receiver: int, tag: int, now: int) -> Request:
        """Post a receive."""
        request = Request(now, receiver=receiver)
        key = (source, receiver, tag)
        if sent := self._sends.get(key):
            self._match(sent.popleft()[1], request)
        else:
            self._receives.setdefault(key, deque()).append(request)
        return request

    def waiting(self, receiver: int, tag: int) -> Sequence[tuple[int, int]]:
        """When messages that no receive was posted for are there, and their senders."""
        return [
            (sent[0][0].left + self.overhead + self.latency, source)
            for (source, to, each), sent in self._sends.items()
            if to == receiver and each == tag and sent
        ]

    def _match(self, sent: Request, received: Request) -> None:
        message = sent.message
        ready = message.left + self.overhead
        if message.size > self._eager:
            ready = max(ready, received.posted + self.latency)
            sent.done = ready + round(message.size * self._per_byte)
        received.done = ready + self.transfer(message.size)
        received.message = message
        if message.size > self._eager and sent.owner is not None:
            self._wake(sent.owner)
        if received.owner is not None:
            self._wake(received.owner)
