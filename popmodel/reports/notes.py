"""Remarks beside tables: on several runs each given once, warnings, reasons, and the verdict.

The same remark on several runs mostly differs in its numbers only. It is given once then. One
number that differs is given with the name of each run; several as ranges over the runs. Numbers
that name something, such as a rank, have no range: there the first run is the example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from popmodel.base.units import TIME_UNITS, count
from popmodel.reports.blocks import NoteBlock, Role, Section, notes, titled

if TYPE_CHECKING:
    from popmodel.efficiency.verdict import Verdict

Run = Mapping[str, Any]
Remark = TypeVar("Remark")

# Digits may stand in groups of three, as `popmodel.base.units.count` writes them. What is part of a
# word, a path or a version (run-5.prv, a/5/b, 1.2.3) is no number. Units of time belong to
# it: those of two runs may differ.
_NUMBER = re.compile(
    r"(?<![\w./])(?<!\d,)(?<![^\W\d]-)(?:(?<!\w)-)?"
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?"
    r"(?!\w|/\w|\.\w|-[^\W\d])(?: [mun]?s(?!\w))?"
)
_NAMED = 4
"""Up to so many runs are named with their numbers; more have a range."""
_UNIT = re.compile(r" (?:%|[KMGT]?i?B(?:/s)?|[kMG]?Hz|times)(?!\w)")
_LABEL = re.compile(
    r"(?:rank|thread|process|node|line|application|communicator)(?:s|es)?\s[\d\s,-]*$|\S:$"
)
"""What stands before a number that names something instead of counting it."""


def joint_caveats(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """What has to be known before the numbers of the runs are read, joined as `joint_notes`."""
    return _joined([run["caveats"] for run in runs], names)


def joint_notes(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Notes on the runs; one that holds for all runs is given without their names."""
    families = [[note for one in run["family_notes"].values() for note in one] for run in runs]
    return _joined(
        [[*run["notes"], *more] for run, more in zip(runs, families, strict=True)], names
    )


def _joined(remarks: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """The remarks on each run, those that differ in numbers only as one."""
    said = [
        (name, remark)
        for name, mine in zip(names, remarks, strict=True)
        for remark in dict.fromkeys(mine)
    ]
    return [_about(group, names) for group in _alike(said, str)]


def joint_warnings(runs: Sequence[Run], names: Sequence[str]) -> list[dict[str, Any]]:
    """Warnings about the traces, ``{"text", "count", "line"}``.

    One about a single trace keeps its count and line; in one about several the counts are part of
    the text.
    """
    warned = [
        (name, warning)
        for run, name in zip(runs, names, strict=True)
        for warning in run["warnings"]
    ]
    return [_joint_warning(group, names) for group in _alike(warned, lambda one: str(one["text"]))]


def join(texts: Sequence[str], names: Sequence[str]) -> str | None:
    """One text for several runs' texts that differ in numbers only.

    Examples
    --------
    >>> join(["7 of 9 calls", "8 of 9 calls"], ["a", "b"])
    '7 (a), 8 (b) of 9 calls'
    >>> join(["1 s of 9 s", "3 s of 8 s"], ["a", "b"])
    '1 to 3 s of 8 to 9 s'
    >>> join(["9 ms of 9 s", "1 s of 8 s"], ["a", "b"])
    '9 ms to 1 s of 8 to 9 s'
    """
    columns = list(zip(*(_NUMBER.findall(text) for text in texts), strict=True))
    differ = [len(set(column)) > 1 for column in columns]
    matches = list(_NUMBER.finditer(texts[0]))
    ahead = [texts[0][: match.start()] for match in matches]
    if any(differs and _LABEL.search(text) for differs, text in zip(differ, ahead, strict=True)):
        return None
    if sum(differ) == 1 and len(texts) <= _NAMED:
        index = differ.index(True)
        return _with_names(texts[0], matches[index], columns[index], names)
    written = iter(
        _range(column) if differs else column[0]
        for column, differs in zip(columns, differ, strict=True)
    )
    return _NUMBER.sub(lambda _: next(written), texts[0])


def _with_names(
    text: str, number: re.Match[str], numbers: Sequence[str], names: Sequence[str]
) -> str:
    """The text with the number of each run in the place of the first run's; units are repeated."""
    before, after = text[: number.start()], text[number.end() :]
    unit = _UNIT.match(after)
    written = unit[0] if unit else ""
    each = [f"{own}{written} ({name})" for own, name in zip(numbers, names, strict=True)]
    return before + ", ".join(each) + after[len(written) :]


def _range(numbers: Sequence[str]) -> str:
    """The least and the greatest, as they are written."""

    def amount(number: str) -> float:
        value, _, unit = number.partition(" ")
        return float(value.replace(",", "")) * TIME_UNITS.get(unit, 1.0)

    least, greatest = min(numbers, key=amount), max(numbers, key=amount)
    value, _, unit = least.partition(" ")
    return f"{value if greatest.endswith(f' {unit}') else least} to {greatest}"


def _joint_warning(
    group: Sequence[tuple[str, Mapping[str, Any]]], names: Sequence[str]
) -> dict[str, Any]:
    warnings = [warning for _, warning in group]
    text = _about([(name, str(warning["text"])) for name, warning in group], names)
    if len(group) == 1:
        return {**warnings[0], "text": text}
    times = [count(warning.get("count", 1)) for warning in warnings]
    if set(times) != {"1"}:
        where = [name for name, _ in group]
        told = join([f"{number} times" for number in times], where)
        text += f" ({told})"
    return {"text": text}


def _about(group: Sequence[tuple[str, str]], names: Sequence[str]) -> str:
    """One remark for a group of them, with the runs that it is about unless it is about all."""
    where = [name for name, _ in group]
    text = join([remark for _, remark in group], where)
    if text is None:
        return f"{where[0]}: {group[0][1]} (similar in {', '.join(where[1:])})"
    named = all(f"({name})" in text for name in where)
    return text if named or len(where) == len(names) else f"{', '.join(where)}: {text}"


def without_numbers(text: str) -> str:
    """What remarks have in common that differ in numbers only."""
    return _NUMBER.sub("#", text)


def _alike(
    said: Iterable[tuple[str, Remark]], text_of: Callable[[Remark], str]
) -> list[list[tuple[str, Remark]]]:
    """Remarks with their runs, in groups whose texts differ in numbers only.

    A group has at most one remark of each run: a second one like it begins the next group.
    """
    groups: dict[tuple[str, int], list[tuple[str, Remark]]] = {}
    seen: dict[tuple[str, str], int] = {}
    for name, remark in said:
        pattern = without_numbers(text_of(remark))
        turn = seen.get((name, pattern), 0)
        seen[name, pattern] = turn + 1
        groups.setdefault((pattern, turn), []).append((name, remark))
    return list(groups.values())


def warned(warnings: Sequence[Mapping[str, Any]]) -> Section:
    """Warnings ``{"text", "count", "line"}`` about an input; empty for none."""
    return titled("warnings", [warning_text(one) for one in warnings], Role.WARNING)


def warning_text(warning: Mapping[str, Any]) -> str:
    """One warning with how often it was met and where first."""
    times, line = warning.get("count", 1), warning.get("line")
    met = [f"{count(times)} times"] if times > 1 else []
    if line is not None:
        met.append(f"{'first on ' if met else ''}line {count(line)}")
    return f"{warning['text']} ({', '.join(met)})" if met else str(warning["text"])


class Reasons:
    """Numbers the reasons for missing values in the order in which a screen meets them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str) -> str:
        """What stands in place of a value."""
        return f"-[{self._numbers.setdefault(reason, len(self._numbers) + 1)}]"

    def texts(self) -> list[str]:
        """The reasons, each behind its number."""
        return [f"[{number}] {reason}" for reason, number in self._numbers.items()]

    def section(self) -> Section:
        """The reasons as notes; empty if no value was missing."""
        return notes(self.texts(), Role.HANGING)


_LONG = 250  # characters of a cause in brief


def verdict_section(verdict: Verdict, *, brief: int = 0) -> Section:
    """Doubts, how the runs did, the causes in the order of their cost, what else would help.

    In brief the first doubt, or else so many causes, of which the first says why it is one.
    """
    causes = list(verdict.causes)
    doubts, statements = verdict.doubts, verdict.statements
    if brief:
        costs = [re.split(r"(?<=core time\.) |(?<=x runtime\)\.) ", one)[0] for one in causes]
        while brief == 1 and causes and len(causes[0]) > _LONG and ". " in causes[0][3:]:
            causes[0] = causes[0].rpartition(". ")[0] + "."
        causes = costs[:1] if doubts else [*causes[:1], *costs[1:brief]]
        doubts, statements = doubts[:1], statements[:1]
    first, *others = [*doubts, *statements]
    return (
        NoteBlock(first, Role.VERDICT),
        *notes(others, Role.DOUBT),
        *notes(causes, Role.STEP),
        *notes(() if brief else verdict.steps, Role.DOUBT),
    )
