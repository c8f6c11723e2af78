"""Programs of known structure are found again, place by place and turn by turn."""

import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from structure.programs import Call, Repeat, loops, write

from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.structure.iterations import structure_of
from popmodel.structure.structure import LIKELY, Leaf

# Of a loop that comes into two places, one lacks what the other has.
LEFT_OUT = [
    *[("ring", 0), ("ring", 0), ("chain", 0), ("ring", 0), ("chain", 0)],
    *[("ring", 0), ("ring", 0), ("ring", 1), ("chain", 0), ("ring", 1)],
]
KINDS = ("allreduce", "ring", "chain", "pipeline")


@st.composite
def bodies(draw, depth=0, numbers=None):
    """A body of calls, all different, and loops around at least two of them."""
    numbers = itertools.count() if numbers is None else numbers
    items = []
    for _ in range(draw(st.integers(1, 3))):
        items.append(Call(draw(st.sampled_from(KINDS)), next(numbers)))
        if depth < 2 and draw(st.booleans()):
            inner = draw(bodies(depth + 1, numbers))
            counts = draw(st.lists(st.integers(4, 6), min_size=1, max_size=1))
            items.append(Repeat(tuple(counts), (Call("ring", next(numbers)), *inner)))
    return tuple(items)


def same_places(written, found):
    """Whether events share a place and execution where they should, and nowhere else."""
    place_of, execution_of = {}, {}
    offsets = found.events.offsets
    for process, known in enumerate(written.events):
        mine = slice(offsets[process], offsets[process + 1])
        assert offsets[process + 1] - offsets[process] == len(known)
        for (place, execution), number, turn in zip(
            known, found.place[mine].tolist(), found.execution[mine].tolist(), strict=True
        ):
            if place_of.setdefault(place, number) != number:
                return False
            if execution_of.setdefault((place, execution), turn) != turn:
                return False
    return len(set(place_of.values())) == len(place_of) == len(found.places)


@given(st.integers(2, 5), bodies())
def test_nests_of_constant_counts(processes, body):
    step = Call("ring", 41, seconds=0.1)
    body = (Call("allreduce", 40), Repeat((7,), (step, *body)), Call("allreduce", 42))
    written = write(processes, body)
    found = structure_of(written.program)
    assert same_places(written, found)
    wanted = sorted(_counts(body))
    assert sorted(loop.count for loop in loops(found.nest)) == wanted


def _counts(body):
    for item in body:
        if isinstance(item, Repeat):
            yield item.counts[0]
            yield from _counts(item.body)


@given(
    st.integers(2, 4),
    st.lists(st.integers(2, 9), min_size=5, max_size=9).filter(lambda c: len(set(c[1:-1])) > 1),
)
def test_a_solver_in_time_steps_that_takes_as_many_iterations_as_it_needs(processes, counts):
    solver = Repeat(tuple(counts), tuple(Call(kind, 1 + n) for n, kind in enumerate(KINDS)))
    step = (Call("ring", 10, seconds=5e-3), solver, Call("allreduce", 11))
    written = write(processes, (Call("allreduce", 20), Repeat((len(counts),), step)))
    found = structure_of(written.program)
    assert found.loop is not None
    assert found.loop.counts == (len(counts),)
    (inner,) = (each for each in found.loop.body if not isinstance(each, Leaf))
    assert inner.counts == tuple(counts)
    assert same_places(written, found)


@given(st.integers(2, 4), st.lists(st.integers(2, 4), min_size=4, max_size=6))
@example(2, [2, 4, 3, 2, 2])
def test_few_steps_with_equal_counts_by_chance_are_all_found(processes, counts):
    solver = Repeat(tuple(counts), (Call("ring", 1), Call("allreduce", 2)))
    step = (Call("ring", 10, seconds=5e-3), solver, Call("allreduce", 11))
    written = write(processes, (Call("allreduce", 20), Repeat((len(counts),), step)))
    found = structure_of(written.program)
    assert found.loop is not None
    assert found.loop.counts == (len(counts),)
    assert same_places(written, found)


def test_two_steps_of_a_few_calls_are_doubtful():
    """They may be alike by chance; those of many calls are not."""
    for calls, sure in ((2, False), (6, True)):
        step = tuple(Call("ring", number) for number in range(calls))
        found = structure_of(write(2, (Call("allreduce", 20), *step, *step)).program)
        assert found.loop is not None
        assert found.loop.counts == (2,)
        assert (found.confidence >= LIKELY) == sure


def test_a_loop_is_no_kin_of_a_call():
    a, b = Call("allreduce", 0, seconds=1e-4), Call("chain", 1)
    written = write(3, [a, b, b, a, b, b, a, b, b, a, a, a, a, b, b, b, a, b, a, a, a])
    found = structure_of(written.program)
    assert len(found.place) == sum(map(len, written.events))


def test_a_call_every_fifth_step_is_a_place_that_other_steps_pass_without():
    plain = (Call("ring", 1, seconds=10e-3), Call("chain", 2), Call("allreduce", 3))
    extra = (*plain, Call("allreduce", 4, seconds=1e-4))
    for first, steps in itertools.product((1, 2, 5), (20, 23)):
        body = [extra if step % 5 == first % 5 else plain for step in range(steps)]
        found = structure_of(write(3, [Call("allreduce", 9), *itertools.chain(*body)]).program)
        assert found.loop is not None
        assert found.loop.counts == (steps,), (first, steps)
        assert found.kinds.tolist() == [int(step % 5 == first % 5) for step in range(steps)]


def test_a_check_every_tenth_step_is_no_loop_of_its_own():
    """Whether the run ends with a check or not."""
    step = (Call("ring", 1, seconds=10e-3), Call("chain", 2), Call("allreduce", 3))
    check = Call("allreduce", 4, seconds=1e-6)
    for steps in (40, 43):
        body = [(*step, check) if n % 10 == 9 else step for n in range(steps)]
        found = structure_of(write(4, list(itertools.chain(*body))).program)
        assert found.loop is not None
        assert found.loop.counts == (steps,)
        assert found.kinds.tolist() == [int(n % 10 == 9) for n in range(steps)]


def test_sweeps_forth_and_back_are_one_step_with_a_norm_at_some_of_them():
    def sweep(forth):
        for _ in range(8):
            for a in range(3)[:: 1 if forth else -1]:
                pair = (a, a + 1) if forth else (a + 1, a)
                message = builder.message(*pair, 512, tag=1)
                builder.compute(pair[0], 1e-3)
                builder.do(pair[0], Op.SEND, message)
                builder.do(pair[1], Op.RECEIVE, message)

    builder = ProgramBuilder(4)
    for step in range(10):
        sweep(forth=True)
        sweep(forth=False)
        if step % 5 == 4:
            target = builder.collective("allreduce", 40, 40)
            for process in range(4):
                builder.do(process, Op.COLLECTIVE, target)
    found = structure_of(builder.build())
    assert found.loop is not None
    assert found.loop.counts == (10,)
    assert [each.count for each in loops(found.loop.body)] == [8, 8]
    assert found.kinds.tolist() == [0, 0, 0, 0, 1] * 2


def test_two_kinds_of_steps_that_take_turns_are_iterations_of_one_loop():
    one = (Call("ring", 1, seconds=10e-3), Call("chain", 2), Call("allreduce", 3))
    other = (*one[:2], Call("chain", 5), one[2])
    written = write(4, (Call("allreduce", 9), Repeat((10,), (*one, *other))))
    found = structure_of(written.program)
    assert found.loop is not None
    assert found.loop.counts == (20,)
    assert found.kinds.tolist() == [0, 1] * 10
    assert len(found.places) == 1 + 7


def test_a_step_that_lacks_a_call_parts_no_loop_in_two():
    step = (Call("ring", 1, seconds=10e-3), Call("chain", 2), Call("allreduce", 3))
    for lacking in (3, 7, 26):
        body = [step[:2] if n == lacking else step for n in range(30)]
        found = structure_of(write(4, list(itertools.chain(*body))).program)
        assert found.loop is not None
        assert found.loop.counts == (30,), lacking
        assert found.kinds.tolist() == [int(n == lacking) for n in range(30)]


def test_a_run_that_ends_between_two_checkpoints_tells_that_they_are_no_steps():
    step = (Call("ring", 1, seconds=1e-3), Call("chain", 2), Call("allreduce", 3))
    checkpoint = Call("allreduce", 4, seconds=5e-3)
    body = [(*step, checkpoint) if n % 25 == 24 else step for n in range(110)]
    found = structure_of(write(4, list(itertools.chain(*body))).program)
    assert found.loop is not None
    assert found.loop.counts == (110,)
    assert np.flatnonzero(found.kinds).tolist() == [24, 49, 74, 99]


def test_sizes_that_grow_or_shrink_slowly_leave_one_loop():
    """Though tokens tell sizes by powers of two, the work changes more than step by step."""
    sizes = [400 + 10 * step for step in range(40)], [80_000 * n // 36 for n in range(36, 4, -1)]
    for some in sizes:
        builder = ProgramBuilder(5)
        for size in some:
            target = builder.collective("bcast", size, size)
            for process in range(5):
                builder.compute(process, 1e-10 * size**2)
                builder.do(process, Op.COLLECTIVE, target)
        found = structure_of(builder.build())
        assert found.loop is not None
        assert found.loop.counts == (len(some),)
        assert len(found.places) == 1


def test_partners_by_chance_leave_the_steps_that_all_end_alike():
    rng = np.random.default_rng(1)
    builder = ProgramBuilder(8)
    for _ in range(40):
        for a, b in np.argwhere(rng.random((8, 8)) < 0.3).tolist():
            if a != b:
                message = builder.message(a, b, 100)
                builder.do(a, Op.SEND, message)
                builder.do(b, Op.RECEIVE, message)
        target = builder.collective("allreduce", 8, 8)
        for process in range(8):
            builder.compute(process, 1e-3)
            builder.do(process, Op.COLLECTIVE, target)
    found = structure_of(builder.build())
    assert found.loop is not None
    assert found.loop.counts in {(39,), (40,)}


def test_a_last_step_with_one_call_more_is_one_of_the_iterations():
    step = (Call("ring", 1, seconds=10e-3), Call("chain", 2), Call("allreduce", 3))
    last = (*step[:2], Call("allreduce", 7, seconds=1e-4), step[2])
    written = write(4, (Call("allreduce", 9), Repeat((9,), step), *last, Call("allreduce", 10)))
    found = structure_of(written.program)
    assert found.loop is not None
    assert found.loop.counts == (10,)
    assert found.kinds.tolist() == [0] * 9 + [1]


def test_a_run_in_which_nothing_repeats():
    written = write(3, [Call(kind, number) for number, kind in enumerate(KINDS)])
    found = structure_of(written.program)
    assert found.loop is None
    assert (found.confidence, found.period) == (0.0, None)
    assert found.notes == ("no iterations: nothing repeats",)
    assert found.focus.last < found.focus.first
    assert [part.kind for part in found.parts] == ["initialisation"]
    assert same_places(written, found)


def test_a_program_without_a_call():
    found = structure_of(write(2, []).program)
    assert found.loop is None
    assert len(found.events) == len(found.places) == 0


def test_partners_that_take_turns_do_not_hide_the_iterations():
    builder = ProgramBuilder(5)
    for step in range(20):
        target = builder.collective("bcast", 8, 8, root=step % 5)
        other = builder.collective("allreduce", 8, 8)
        for process in range(5):
            for each in (target, other):
                builder.compute(process, 1e-3)
                builder.do(process, Op.COLLECTIVE, each)
    found = structure_of(builder.build())
    assert found.loop is not None
    assert found.loop.counts == (20,)


@given(
    st.integers(1, 4),
    st.lists(st.builds(Call, st.sampled_from(KINDS), st.integers(0, 2)), max_size=60),
)
@example(2, [Call(*each) for each in LEFT_OUT])
def test_any_program_has_a_structure(processes, calls):
    found = structure_of(write(processes, calls).program)
    assert sorted(set(found.place.tolist())) == list(range(len(found.places)))
    sequence = found.events.sequence
    seen = set(zip(sequence.tolist(), found.place.tolist(), found.execution.tolist(), strict=True))
    assert len(seen) == len(found.events)  # a place is passed once at each execution
    assert 0.0 <= found.confidence <= 1.0
    assert np.all(np.diff(found.iterations, axis=0) >= 0)
