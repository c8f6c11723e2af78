"""Columns of numbers as lines of text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popmodel.traces.paraver.render import Lines, digits, in_order, table

NUMBERS = st.one_of(
    st.integers(0, 2**63 - 1), st.sampled_from([10**n - d for n in range(19) for d in (0, 1)])
)


@given(st.lists(NUMBERS, max_size=30))
def test_digits_are_those_of_python(numbers: list[int]) -> None:
    rows = digits(np.array(numbers, np.int64))
    assert [bytes(row[row != 0]).decode() for row in rows] == [str(number) for number in numbers]


@given(st.data(), st.integers(0, 40))
def test_lines_of_different_kinds_stand_at_their_places(data: st.DataObject, count: int) -> None:
    places = data.draw(st.permutations(range(count)))
    split = data.draw(st.integers(0, count))
    numbers = data.draw(st.lists(NUMBERS, min_size=count, max_size=count))
    first, second = np.array(places[:split], np.int64), np.array(places[split:], np.int64)
    names = table([b"one:", b"a much longer name:"])
    values = np.array(numbers, np.int64)
    which = values % 2
    text = in_order(
        [
            Lines(first, [b"1:", digits(values[:split]), b"\n"]),
            Lines(second, [names[which[split:]], digits(values[split:]), b":2\n"]),
        ]
    )
    expected = [""] * count
    for i, place in enumerate(places):
        name = ("one:", "a much longer name:")[numbers[i] % 2]
        expected[place] = f"1:{numbers[i]}" if i < split else f"{name}{numbers[i]}:2"
    assert text.decode() == "".join(f"{line}\n" for line in expected)
