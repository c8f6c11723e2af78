"""Damages documents the way people and other programs do: values by path, keys, lines."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    3,
    -5,
    0.5,
    -0.0,
    1e-300,
    5e-324,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
    10**9,
    2**31,
    2**63,
    10**30,
    10**400,
    "",
    "1",
    "x",
    "a.b[0]",
    "new\nline \x1b[31m",
    "\ud800",
    "9" * 5000,
    [],
    [1],
    [[]],
    {},
    {"value": 1},
    {"": {}},
]


class _Doubled(dict[str, Any]):
    """A table that is written with one of its keys twice."""

    def items(self) -> Any:
        return [*super().items(), next(iter(super().items()))]


_DEEP = {
    f"<{levels} {open}{close}>": open * levels + "0" + close * levels
    for levels in (40, 300, 900, 5000)
    for open, close in (("[", "]"), ('{"a":', "}"))
}
"""Values nested so deeply, by what stands for them until the document is text."""


def mutate(document: Any, dice: random.Random) -> str:
    """Return the document as JSON text, with one to three changes."""
    document = [copy.deepcopy(document)]  # so that the whole of it can be replaced, too
    for _ in range(dice.randint(1, 3)):
        holder, key = dice.choice(list(_places(document)))
        change = dice.randrange(8)
        if change == 0 and holder is not document:
            del holder[key]
        elif change == 1 and isinstance(holder[key], dict) and holder[key]:
            holder[key] = _Doubled(holder[key])
        elif change == 2 and isinstance(holder, dict):
            holder[dice.choice(["", "x", "a.b", "9" * 5000, f"{key} "])] = holder[key]
        elif change == 3 and isinstance(holder, list) and holder is not document:
            holder.insert(key, copy.deepcopy(holder[key]))
        elif change == 4:
            _, other = dice.choice(list(_leaves(document)))
            holder[key] = copy.deepcopy(other)
        elif change == 5 and isinstance(holder[key], float):
            holder[key] = holder[key] * dice.choice([-1, 2, 1e3, 1e-3, 1e9, 1e-12])
        elif change == 6 and not dice.randrange(4):
            holder[key] = dice.choice(list(_DEEP))
        else:
            holder[key] = copy.deepcopy(dice.choice(VALUES))
    text = json.dumps(document[0])
    for name, value in _DEEP.items():
        text = text.replace(json.dumps(name), value)
    return text


def mutate_text(text: str, dice: random.Random) -> str:
    """Return a text with one to three changes of characters, fields and lines."""
    for _ in range(dice.randint(1, 3)):
        at, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        change = dice.randrange(5)
        if change == 0:
            text = (
                text[:at]
                + dice.choice(["\x00", '"', ",", "\n", "\r", "-", "\ufeff", " "])
                + text[at:]
            )
        elif change == 1:
            text = text[:at] + text[min(end, at + 3) :]
        elif change == 2:
            value = dice.choice([value for value in VALUES if isinstance(value, int | float | str)])
            text = text[:at] + str(value).replace("\ud800", "?")[:4000] + text[end:]
        elif change == 3:
            lines = text.split("\n")
            lines.insert(dice.randrange(len(lines)), dice.choice(lines))
            text = "\n".join(lines)
        else:
            text = text[:at] + "x" * 200_000 + text[at:]
    return text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a document: what holds the value, and under which key."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    for holder, key in _places(value):
        if not isinstance(holder[key], dict | list):
            yield key, holder[key]
    yield None, None
