"""Two programs are the same, or the first operation that differs is named in words."""

from popmodel.signatures.compare_replay import differences, exchanged
from popmodel.simulator.program import Op, ProgramBuilder


def made(size=8, extra=False):
    build = ProgramBuilder(2)
    message = build.message(0, 1, size)
    build.do(0, Op.SEND, message)
    build.do(1, Op.RECEIVE, message)
    row = build.collective("allreduce", 16, 16)
    for rank in range(2):
        build.do(rank, Op.COLLECTIVE, row)
    if extra:
        end = build.collective("barrier")
        for rank in range(2):
            build.do(rank, Op.COLLECTIVE, end)
    return build.build()


def test_a_program_is_the_same_as_itself():
    assert differences(made(), made()) == []


def test_another_size_is_named_on_both_sides():
    first, second = differences(made(), made(size=16))
    assert (first["rank"], first["number"]) == (0, 1)
    assert first["mine"] == "a blocking send to rank 1 of 8 B"
    assert first["other"] == "a blocking send to rank 1 of 16 B"
    assert second["mine"] == "a blocking receive from rank 0 of 8 B"


def test_what_one_program_does_beyond_the_other_is_named():
    first, _ = differences(made(), made(extra=True))
    assert (first["number"], first["mine"]) == (3, "nothing more")
    assert first["other"] == "barrier of 2 processes"


def test_what_is_exchanged_is_summed_by_kind():
    found = exchanged(made(extra=True))
    assert found == {"messages": (1, 8), "barrier": (1, 0), "allreduce": (1, 32)}


def exchange(turn):
    build = ProgramBuilder(3)
    messages = [build.message(a, b, 8) for a in range(3) for b in range(3) if a != b]
    for rank in range(3):
        mine = [one for one, (a, b) in zip(messages, PAIRS, strict=True) if b == rank]
        for one in mine:
            build.do(rank, Op.POST, one)
        for one, (a, _) in zip(messages, PAIRS, strict=True):
            if a == rank:
                build.do(rank, Op.ISEND, one)
        for one in mine[::turn]:
            build.do(rank, Op.WAIT_RECEIVE, one)
    return build.build()


PAIRS = [(a, b) for a in range(3) for b in range(3) if a != b]


def test_which_of_several_requests_is_completed_first_does_not_matter():
    assert differences(exchange(1), exchange(-1)) == []
