"""Values over time as lines of signs."""

from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports.blocks import MarksBlock, Strip, Strips
from popmodel.reports.renderers.text import RAMP, strip_lines


def lines(strips: Strips, width: int) -> list[str]:
    return list(strip_lines(strips, width))


def test_the_more_the_denser() -> None:
    strip = Strip("in MPI", tuple(i / 9 for i in range(10)))
    (drawn, ends) = lines(Strips((strip,), "0 s", "1 s"), 38)
    assert [RAMP.index(sign) for sign in drawn[8:]] == sorted(RAMP.index(s) for s in drawn[8:])
    assert ends == " " * 8 + "0 s" + " " * 24 + "1 s"


def test_something_is_never_drawn_as_nothing() -> None:
    (drawn, _) = lines(Strips((Strip("x", (0.0, 0.02)),), "0", "1"), 19)
    assert drawn == "x" + " " * 10 + "." * 8


def test_marks_stand_where_their_times_are() -> None:
    marks = MarksBlock("focus", (0.0, 0.5, 1.0), ((0.25, 0.5),))
    (drawn, _) = lines(Strips((marks,), "0", "1"), 7 + 16)
    assert drawn == "focus  |   ====|      |"


def test_a_short_stretch_is_seen() -> None:
    (drawn, _) = lines(Strips((MarksBlock("x", stretches=((0.99, 0.991),)),), "0", "1"), 19)
    assert drawn.count("=") == 1


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=300),
    st.lists(st.floats(0, 1), max_size=20).map(sorted),
    st.integers(10, 300),
)
def test_lines_fit_any_width(values: list[float], instants: list[float], width: int) -> None:
    strips = Strips((Strip("a", tuple(values)), MarksBlock("marks", tuple(instants))), "0 s", "9 s")
    assert all(len(line) <= max(width, 7 + 16) for line in lines(strips, width))


def test_ends_that_do_not_fit_stand_behind_each_other() -> None:
    found = lines(Strips((Strip("a", (1.0,)),), "123.456789 ms", "123.567891 ms"), 20)
    assert found[-1] == "   123.456789 ms to 123.567891 ms"
