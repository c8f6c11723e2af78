"""Random programs that end: what an operation waits for is always begun before it."""

from __future__ import annotations

from hypothesis import strategies as st

from popmodel.network.network import Network
from popmodel.simulator.program import Op, Program, ProgramBuilder


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Of a few processes, whose bursts and messages have whole ns and few sizes, so that paths of
    equal length are common.
    """
    processes = draw(st.integers(1, 4))
    program = ProgramBuilder(processes)
    ranks = st.integers(0, processes - 1)

    def do(process: int, op: Op, target: int) -> None:
        program.compute(process, draw(st.integers(0, 3000)) * 1e-9)
        program.do(process, op, target)

    for _ in range(draw(st.integers(0, 10))):
        match draw(st.sampled_from(["eager", "posted", "collective"])):
            case "eager":
                sender, receiver = draw(ranks), draw(ranks)
                message = program.message(sender, receiver, draw(st.sampled_from([0, 10, 900])))
                do(sender, Op.ISEND, message)
                do(receiver, Op.RECEIVE, message)
                do(sender, Op.WAIT_SEND, message)
            case "posted":
                sender, receiver = draw(ranks), draw(ranks)
                message = program.message(sender, receiver, draw(st.sampled_from([10, 5000])))
                do(receiver, Op.POST, message)
                do(sender, Op.SEND, message)
                do(receiver, Op.WAIT_RECEIVE, message)
            case _:
                kind = draw(st.sampled_from(["barrier", "allreduce", "bcast", "reduce"]))
                root = draw(ranks) if kind in ("bcast", "reduce") else -1
                collective = program.collective(kind, 100, 100, root=root)
                for process in range(processes):
                    do(process, Op.COLLECTIVE, collective)
    for process in range(processes):
        program.compute(process, draw(st.integers(0, 100)) * 1e-9)
    return program.build()


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Networks of all rules and readings."""
    return Network(
        rules=draw(st.sampled_from(["alpha-beta", "dimemas"])),
        latency=draw(st.sampled_from([0.0, 1e-7, 1e-6])),
        bandwidth=draw(st.sampled_from([1e9, float("inf")])),
        eager_threshold=draw(st.sampled_from([1000.0, float("inf")])),
        collectives=draw(st.sampled_from(["dimemas", "synchronising", "rooted", "algorithm"])),
        collective_cost=draw(st.sampled_from(["constant", "linear", "logarithmic"])),
        cpu_factor=draw(st.sampled_from([0.5, 1.0, 4.0])),
    )
