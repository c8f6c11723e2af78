"""Cheap data classes behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
import pytest

from popmodel.base.values import NamedTuple, dataclass


@dataclass(frozen=True)
class Cheap:
    """A class as they come."""

    a: int
    b: list[int] = field(default_factory=list)
    c: str = field(default="x", repr=False)
    d: float = field(default=1.0, compare=False)


@dataclasses.dataclass(frozen=True)
class Standard:
    """The same of the standard library."""

    a: int
    b: list[int] = field(default_factory=list)
    c: str = field(default="x", repr=False)
    d: float = field(default=1.0, compare=False)


@dataclass(frozen=True)
class Longer(Cheap):
    """A class with more fields than its base."""

    e: int = 5

    def __post_init__(self) -> None:
        if self.e < 0:
            raise ValueError("e")


@dataclass(frozen=True)
class Single:
    """A class with one field."""

    value: object


@dataclass(frozen=True)
class Empty:
    """A class without fields."""


class Plain(Cheap):
    """A class that is not decorated."""


def fails(call: Callable[[], Any]) -> type[BaseException] | None:
    try:
        call()
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: repr(kind(1, [2])).partition("(")[2],
        lambda kind: repr(kind(a=1, c="y", b=[3])).partition("(")[2],
        lambda kind: kind(1) == kind(1),
        lambda kind: kind(1, d=2.0) == kind(1, d=3.0),
        lambda kind: kind(1, c="z") == kind(1),
        lambda kind: kind(1) == 1,
        lambda kind: kind(1).b is kind(1).b,
        lambda kind: hash(kind(1, ())) == hash(kind(1, (), d=7)),
        lambda kind: dataclasses.asdict(kind(1)),
        lambda kind: dataclasses.astuple(dataclasses.replace(kind(1), a=2)),
        lambda kind: [one.name for one in dataclasses.fields(kind)],
        lambda kind: kind.__match_args__,
        lambda kind: dataclasses.astuple(pickle.loads(pickle.dumps(kind(1, [4])))),
        lambda kind: dataclasses.astuple(copy.deepcopy(kind(1, [4]))),
        lambda kind: fails(lambda: kind()),
        lambda kind: fails(lambda: kind(1, z=3)),
        lambda kind: fails(lambda: kind(1, [], "", 1.0, 5)),
        lambda kind: fails(lambda: hash(kind(1))),
        lambda kind: fails(lambda: setattr(kind(1), "a", 2)),
        lambda kind: fails(lambda: setattr(kind(1), "other", 2)),
        lambda kind: fails(lambda: delattr(kind(1), "a")),
    ],
)
def test_it_does_what_the_standard_library_does(use: Callable[[Any], Any]) -> None:
    assert use(Cheap) == use(Standard)


def test_a_class_may_have_a_base_and_check_itself() -> None:
    assert repr(Longer(1, e=2)) == "Longer(a=1, b=[], d=1.0, e=2)"
    assert Longer(1) != Cheap(1)
    with pytest.raises(ValueError, match="e"):
        Longer(1, e=-1)
    with pytest.raises(ValueError, match="e"):
        dataclasses.replace(Longer(1), e=-1)


def test_a_class_that_is_not_decorated_may_hold_more() -> None:
    one = Plain(1)
    one.other = 3  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 2  # type: ignore[misc]


def test_few_fields() -> None:
    assert (Single(1), hash(Single(1))) == (Single(1), hash(Single(1)))
    assert repr(Single(Single(None))) == "Single(value=Single(value=None))"
    assert Single([1]) != Single([2])
    assert (Empty(), hash(Empty()), repr(Empty())) == (Empty(), hash(Empty()), "Empty()")


def test_objects_of_a_class_may_differ_by_themselves_only() -> None:
    @dataclass(frozen=True, eq=False)
    class Unique:
        value: int

    one = Unique(1)
    assert (one == one, one == Unique(1)) == (True, False)
    assert len({one, Unique(1)}) == 2


def test_own_methods_are_kept() -> None:
    @dataclass(frozen=True)
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == Own(2)
    assert repr(Own(1)) == "own"
    assert hash(Own(3)) == hash(Own(3))


def test_fields_may_be_given_by_name_only() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Named(Cheap):
        e: int
        f: int = 2

    assert repr(Named(1, e=3)).endswith("Named(a=1, b=[], d=1.0, e=3, f=2)")
    assert fails(lambda: Named(1, [], "", 1.0, 5)) is TypeError  # type: ignore[misc]


def test_what_else_is_asked_for_is_left_to_the_standard_library() -> None:
    @dataclass(order=True, frozen=True)
    class Ordered:
        value: int

    @dataclass
    class Open:
        value: int = 1

    assert Ordered(1) < Ordered(2)
    some = Open()
    some.value = 2
    assert some == Open(2)


@dataclass(frozen=True)
class Many:
    array: Any
    many: tuple[int, ...]
    few: dict[str, int]
    text: str


def test_repr_shows_the_size_of_what_is_large() -> None:
    shown = repr(Many(np.zeros((3, 4)), tuple(range(50)), {"a": 1}, "x" * 1000))
    assert shown == (
        f"Many(array=<float64[3, 4]>, many=<tuple of 50>, few={{'a': 1}}, text='{'x' * 95}...')"
    )


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int = 2

    @property
    def total(self) -> int:
        """Of both."""
        return self.first + self.second


def test_named_tuples_are_as_those_of_typing() -> None:
    one = Pair(1)
    assert one == (1, 2) and one._replace(second=5).total == 6
    assert Pair._fields == ("first", "second") and Pair.__doc__ == "Two numbers."
    assert repr(one) == "Pair(first=1, second=2)"
    assert pickle.loads(pickle.dumps(one)) == one
    assert Pair.__annotations__ == {"first": "int", "second": "int"}
    with pytest.raises(TypeError, match="first"):
        Pair()  # type: ignore[call-arg]
