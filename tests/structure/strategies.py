"""Random programs of messages."""

import numpy as np
from hypothesis import strategies as st
from structure.scripts import Repeat, Step, structure


@st.composite
def programs(draw):
    """Random programs in which every message is received and every request completed."""
    ranks = draw(st.integers(2, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)

    def exchange():
        kind = rng.integers(4)
        if rng.random() < 0.5:
            goal = (np.arange(ranks) + rng.integers(1, ranks)) % ranks
        else:
            goal = rng.permutation(ranks)
        takes = rng.random(ranks) < rng.choice([0.5, 1.0])
        size = rng.choice([8, 100], ranks if rng.random() < 0.3 else 1)
        sizes = np.broadcast_to(size, ranks)
        source = np.argsort(goal)

        def sends(do):
            return Step(
                lambda rank, _: [(do, int(goal[rank]), int(sizes[rank]), 0)] if takes[rank] else [],
                "MPI_Send",
            )

        def receives(do):
            return Step(
                lambda rank, _: [(do, int(source[rank]), 0)] if takes[source[rank]] else [],
                "MPI_Recv",
            )

        waits = Step(lambda *_: [("waitall",)], "MPI_Waitall")
        if kind == 0:
            return [receives("irecv"), sends("isend"), waits]
        if kind == 1:
            return [sends("isend"), receives("recv"), waits]
        if kind == 2:
            return [receives("irecv"), sends("send"), waits]

        def both(rank, _):
            to, back = takes[rank], takes[source[rank]]
            if to and back:
                return [("sendrecv", int(goal[rank]), int(source[rank]), int(sizes[rank]), 0)]
            if to:
                return [("send", int(goal[rank]), int(sizes[rank]), 0)]
            return [("recv", int(source[rank]), 0)] if back else []

        return [Step(both, "MPI_Sendrecv")]

    def body(depth):
        found = []
        for _ in range(rng.integers(1, 4)):
            if depth < 2 and rng.random() < 0.4:
                found.append(Repeat(int(rng.integers(1, 4)), body(depth + 1)))
            else:
                found += exchange()
        return found

    return structure(ranks, body(0))
