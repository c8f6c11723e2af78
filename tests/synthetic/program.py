"""What a program is: a generator for each rank that yields what the rank does next.

    def body(me: Rank) -> Steps:
        right = (me.rank + 1) % me.size
        for step in range(100):
            yield me.iteration()
            yield me.compute(1e-3, "sweep")
            request = yield me.irecv((me.rank - 1) % me.size, 8)
            yield me.send(right, 8)
            yield me.wait(request)
            yield me.collective("Allreduce", 8)

    Program(16, body)

MPI_Init and MPI_Finalize are called before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

ANY = -1
"""As a source: whoever's message is there first."""

Step = tuple[Any, ...]
Steps = Generator[Step, Any, None]


@dataclass(frozen=True)
class Program:
    """A program for a number of processes, with a number of threads each."""

    processes: int
    body: Callable[[Rank], Steps]
    threads: int = 1


@dataclass(frozen=True)
class Rank:
    """A process that runs a program: its methods make the steps that the program yields.

    A `site` is where a call stands: function, file and line.
    """

    rank: int
    size: int
    threads: int = 1

    def compute(
        self, seconds: float, name: str = "", *, even: bool = False, ipc: float = 0.0
    ) -> Step:
        """Compute on the master; `even`: no imbalance and no noise; `ipc` other than the run's."""
        return ("compute", seconds, name, even, ipc)

    def region(self, name: str, seconds: float | Sequence[float], *, even: bool = False) -> Step:
        """A parallel region; `seconds` of each thread, or the same of all."""
        each = [seconds] * self.threads if isinstance(seconds, int | float) else list(seconds)
        return ("region", name, each, even)

    def send(
        self, to: int, size: int, tag: int = 0, site: Site = None, data: object = None
    ) -> Step:
        """Send some bytes, and what they tell the receiver."""
        return ("send", to, size, tag, site, data)

    def recv(self, source: int, size: int = 0, tag: int = 0, site: Site = None) -> Step:
        """Receive; yields the source and its data. The size is that of what was sent."""
        del size
        return ("recv", source, tag, site)

    def isend(self, to: int, size: int, tag: int = 0, site: Site = None) -> Step:
        """Begin to send; yields a request."""
        return ("isend", to, size, tag, site)

    def irecv(self, source: int, size: int = 0, tag: int = 0, site: Site = None) -> Step:
        """Begin to receive; yields a request."""
        del size
        return ("irecv", source, tag, site)

    def wait(self, request: Any, site: Site = None) -> Step:
        """Wait for a request."""
        return ("wait", "Wait", [request], site)

    def waitall(self, requests: Sequence[Any], site: Site = None) -> Step:
        """Wait for requests."""
        return ("wait", "Waitall", list(requests), site)

    def sendrecv(self, to: int, size: int, source: int, tag: int = 0, site: Site = None) -> Step:
        """Send and receive at once."""
        return ("sendrecv", to, size, source, tag, site)

    def collective(
        self,
        name: str,
        size: int = 0,
        among: Sequence[int] | None = None,
        root: int = 0,
        site: Site = None,
    ) -> Step:
        """A collective (Barrier, Bcast, Reduce, Allreduce, Alltoall, Gather, Scatter, Allgather).

        `size` is what one process gives to (one) other; `among` whom, ascending ranks; `root` a
        rank of the world.
        """
        members = tuple(range(self.size)) if among is None else tuple(among)
        return ("collective", name, size, members, root, site)

    def enter(self, name: str) -> Step:
        """Enter a user's region."""
        return ("user", name)

    def leave(self) -> Step:
        """Leave the innermost user's region."""
        return ("user", "")

    def iteration(self) -> Step:
        """Note that an iteration begins: known to the run, nothing in the trace."""
        return ("iteration",)

    def last(self) -> Step:
        """Note that the last iteration has ended."""
        return ("iteration",)


Site = tuple[str, str, int] | None
