"""Names of phases in formulas, which people read and set: by where they are in the program.

``t_sweep`` is the time of the region sweep, ``t_partlist_sendrecv_2`` that of the second phase in
the function partlist_sendrecv, ``t_allreduce`` that before the first MPI_Allreduce of an unknown
one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

TIME, RECORDED = "t_", "r_"
"""What stands before the name of a phase: of its time, and of its recorded times."""
_LONGEST = 24
"""Letters of a name, without a prefix and a number behind it."""
_ADDRESS = re.compile(r"\+?0x[0-9a-f]+", re.IGNORECASE)
_LINE = re.compile(r"\(([^()]*):(\d+)\)\s*$")


def short(name: str, inside: str = "") -> str:
    """Return a word for a call or a region, as formulas may hold it."""
    last = _word(name)
    if inside:
        function = _LINE.sub("", inside).rpartition("::")[2] or inside
        first = _word(function)
        repeats = not first or not last or first.endswith(last)
        both = first or last if repeats else f"{first}_{last}"
        last = both if len(both) <= _LONGEST else first or last
    return _cut(last) or "phase"


def _word(text: str) -> str:
    line = _LINE.search(text)
    kept = text if line is None else f"{text[: line.start()] or line[1]} {line[2]}"
    kept = _ADDRESS.sub(" ", kept).removeprefix("MPI_")
    return re.sub(r"[^a-z0-9]+", "_", kept.lower()).strip("_")


def _cut(word: str) -> str:
    """A word that is not too long, of whole parts where these are not."""
    if len(word) <= _LONGEST:
        return word
    return word[: _LONGEST + 1].rpartition("_")[0].strip("_") or word[:_LONGEST]


def told_apart(words: Sequence[str], taken: Collection[str] = ()) -> tuple[str, ...]:
    """Number words that come again, from the second one on."""
    avoided = {one.removeprefix(TIME) for one in taken if one.startswith(TIME)}
    numbers: dict[str, int] = {}
    own, found = set(words), []
    for word in words:
        number = numbers.get(word, 0) + 1
        name = word if number == 1 else f"{word}_{number}"
        while name in avoided or (number > 1 and name in own):
            number += 1
            name = f"{word}_{number}"
        numbers[word] = number
        avoided.add(name)
        found.append(name)
    return tuple(found)
