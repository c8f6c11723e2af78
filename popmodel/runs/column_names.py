"""Which columns of a table say how large a run was and how long it took, by their usual names.

People write ranks, ``OMP_NUM_THREADS``, cores, ``Time (ms)`` or ``Elapsed``. What may be two things
is refused, and what has to be assumed is said.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from popmodel.base.units import TIME_UNITS
from popmodel.runs.measurement import COLUMNS
from popmodel.runs.text_tables import REMARK, Place, Row, is_number

# Names are compared in small letters, without what divides words.

_OF = r"(?:number|num|nr|no|n|of|mpi|slurm|pbs|total)*"
_ONES = r"(?:process(?:es)?|procs?|ranks?|tasks?)"
_SIZES = {
    "processes": rf"{_OF}{_ONES}|n?p|mpi|(?:mpi|comm|world)+size",
    "threads": r"(?:number|num|nr|no|n|of|openmp|omp)*threads?|n?t|openmp|omp"
    rf"|(?:openmp|omp)?(?:threads?|cpus?|cores?)per(?:mpi)?{_ONES}",
    "cores": rf"(?:alloc|allocated|used|{_OF})*(?:cores?|cpus?|processors?|pes)",
    "nodes": rf"(?:alloc|{_OF})*(?:nodes|hosts)",
    "per node": rf"{_OF}{_ONES}pernode|ppn|rpn",
}
_RUNTIME = (
    r"(?:total|wallclock|wall|elapsed|execution|exec|run|running|real|loop)*time|wall(?:clock)?|"
    r"elapsed(?:raw)?|duration|real|seconds|secs?|timetaken|timetosolution|tts|"
    r"t(?:total|wall|elapsed|run|exec)"
)
_STATISTICS = ("mean", "average", "avg", "median", "best", "minimum", "min")
"""Which of several is the runtime: the first that stands there."""
_REPEATED = rf"(?:run|rep|repeat|repetition|trial|try|sample|measurement|t|{_RUNTIME})(\d+)"
_RESULT = re.compile(
    r".*(?:speedup|efficiency|flops?|bandwidth|throughput|energy|power|rss|time|seconds|relative|"
    r"stddev|stdev|std|variance|pers(?:ec(?:ond)?)?)|user|sys|system|eff|ci95|"
    rf"(?:{_RUNTIME}|)(?:sd|max|maximum|worst|error|{'|'.join(_STATISTICS)})"
)
"""What is measured of a run beside its runtime, and sets nothing."""
_TIME_WORDS = {
    word: unit
    for unit, words in {
        "s": "s sec secs second seconds",
        "ms": "ms msec msecs millisecond milliseconds",
        "us": "us µs μs usec usecs microsecond microseconds",
        "ns": "ns nsec nanosecond nanoseconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
    }.items()
    for word in words.split()
}
_CLOCK = re.compile(r"(?:(?P<d>\d+)[- ])?(?P<a>\d+):(?P<b>\d\d?)(?::(?P<c>\d\d?))?(?P<f>\.\d*)?")
_WORDS = re.compile(r"(?:(\d+) *h)? *(?:(\d+) *m(?:in)?)? *(?:(\d+(?:\.\d*)?) *s)?")
_CLOCK_UNIT = r"\[?(?:d+[-: ])?h+\]?:m+(?::s+)?(?:\.\w+)?|\[?m+\]?:s+(?:\.\w+)?"
_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<square>.*)\]|\((?P<round>[^()]*)\))")
_SUFFIX = re.compile(r"(?P<name>runtime)_(?P<unit>[A-Za-zµμ]+)")
_WHOLE = re.compile(r"0*[1-9]\d{0,8}(?:\.0*)?", re.ASCII)  # a spreadsheet's 4.0 is 4
_PAIR = re.compile(
    rf"(?:{_ONES}|n?p|mpi)(?:x|times)(?:threads|n?t|openmp|omp)|split|layout|config(?:uration)?"
)
"""What a column of both is called, ``4 x 2``."""
_LAUNCHED = {
    "processes": r"\b(?:mpirun|mpiexec\S*|srun|aprun)\s(?:.*\s)?(?:-n|-np|--np|--ntasks)[ =]?(\d+)",
    "threads": r"(?:OMP_NUM_THREADS=|\s--cpus-per-task[ =]|\ssrun\s(?:.*\s)?-c ?)(\d+)",
}
_LONGEST = 200  # letters of a name that may be a usual one: patterns take the square of them
NEEDED = f"every run needs {', '.join(COLUMNS[:2])} and {COLUMNS[2]}"


class Meaning(NamedTuple):
    """What the name of a column usually means."""

    kind: str  # ``runtime``, or a key of `_SIZES`
    unit: str | None = None  # Of `TIME_UNITS`, or as ``hh:mm:ss``
    rank: int = 0  # 0 of the name itself, 1 of usual ones; above, where there is no better


class SizedRows(NamedTuple):
    """A table whose columns of sizes and runtimes are called `COLUMNS`."""

    heads: list[str]
    rows: list[Row]
    results: frozenset[str]  # Columns that are no parameters
    notes: list[str]  # What had to be assumed


def unit_of(head: str) -> tuple[str, str | None]:
    """The name and the unit in what stands above a column: ``runtime [ms]``, ``runtime_ms``."""
    match = _SUFFIX.fullmatch(head) or _BRACKETS.fullmatch(head) if len(head) <= _LONGEST else None
    if match is None:
        return head, None
    units = [text.strip() for key, text in match.groupdict().items() if key != "name" and text]
    unit = units[0] if units else ""
    return match["name"], _TIME_WORDS.get(unit.casefold(), unit)


def meaning_of(head: str) -> Meaning | None:
    """What a column is by its name, if it is one of those that say how large a run was, or long."""
    name, unit = unit_of(head)
    if head in (*COLUMNS[:2], "nodes") or name == COLUMNS[2]:
        return Meaning(name, unit)
    rank, letters = 20 if head.startswith(REMARK) else 1, _letters(name)
    if is_time := unit in TIME_UNITS or bool(unit and re.fullmatch(_CLOCK_UNIT, unit.casefold())):
        if letters == "t":
            return Meaning("runtime", unit, rank)
    else:
        for kind, names in _SIZES.items():
            if re.fullmatch(names, letters):
                return Meaning(kind, None, rank)
        letters = _letters(head)  # ``time (mean)``
    for word in ("", *([] if is_time else sorted(_TIME_WORDS, key=len, reverse=True))):
        rest = letters.removesuffix(word)
        rest = re.sub("(?:in|per)$", "", rest) if word else rest  # ``time in s``, ``time / s``
        inside = unit if is_time else _TIME_WORDS.get(word)
        if not letters.endswith(word) or not rest:
            continue
        if re.fullmatch(_RUNTIME, rest):
            return Meaning("runtime", inside, rank)
        for number, statistic in enumerate(_STATISTICS, 1):
            of = {rest.removesuffix(statistic), rest.removeprefix(statistic)} - {rest}
            if any(re.fullmatch(f"{_RUNTIME}|", own) for own in of):
                return Meaning("runtime", inside, rank + number)
    return None


def is_result(head: str) -> bool:
    """Whether a column by its name is a result of a run, and no parameter."""
    name, unit = unit_of(head)
    measured = unit in TIME_UNITS or unit == "%" or bool(unit and "/s" in unit)
    return measured or bool(_RESULT.fullmatch(_letters(name)))


def _letters(head: str) -> str:
    """What names are compared by; nothing of what is too long for a name."""
    if len(head) > _LONGEST:
        return ""
    words = head.casefold().replace("/", "per").replace("×", "x")
    return re.sub(r"[\W_]", "", words)


def seconds_of(cell: Any, unit: str | None) -> float:
    """Seconds of a cell: a number in its unit, or a time such as 1-02:03:04 or 2m3.5s; or NaN."""
    text = cell.strip().split("±")[0].strip() if isinstance(cell, str) else repr(cell)
    by_clock = unit is not None and unit not in TIME_UNITS
    if is_number(text):
        return math.nan if by_clock else float(text) * TIME_UNITS[unit or "s"]
    if match := _CLOCK.fullmatch(text):
        days, first, second, third = (int(match[key] or 0) for key in "dabc")
        in_hours = match["c"] is not None or (by_clock and "s" not in str(unit).casefold())
        clock = 3600 * first + 60 * second + third if in_hours else 60 * first + second
        return 86400 * days + clock + float(f"0{match['f'] or ''}")
    if text and (match := _WORDS.fullmatch(text)):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return 3600 * hours + 60 * minutes + seconds
    match = re.fullmatch(r"([\d.eE+-]+)\s*([A-Za-zµμ]+)", text)
    if match and is_number(match[1]) and match[2].casefold() in _TIME_WORDS:
        return float(match[1]) * TIME_UNITS[_TIME_WORDS[match[2].casefold()]]
    return math.nan


def is_whole(cell: Any) -> bool:
    """Whether a cell is a whole number, at least 1."""
    return bool(_WHOLE.fullmatch(cell if isinstance(cell, str) else repr(cell)))


def is_missing(cell: Any) -> bool:
    """Whether nothing stands in a cell: blanks, or a word in place of a number."""
    if isinstance(cell, str):
        return not re.search(r"\d", cell)
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def sized(
    heads: Sequence[str], rows: Sequence[Row], known: Collection[str], top: Place
) -> SizedRows:
    """Find processes, threads and runtimes by the usual names; `known` are other parameters."""
    heads, rows = _one_run_each(heads, rows, known)
    meanings = _meanings(heads, rows, known)
    chosen = {kind: _chosen(kind, meanings, rows, top) for kind in (*_SIZES, "runtime")}
    names = {}
    for kind, head in chosen.items():
        if head and meanings[head].rank and kind in (*COLUMNS, "nodes"):
            unit = meanings[head].unit
            names[head] = kind if unit is None else f"{kind} [{unit}]"
    others = {"runtime", "cores", "per node"}
    results = {
        head
        for head, meaning in meanings.items()
        if head not in names
        and (meaning.kind in others or (meaning.rank and _equal(chosen[meaning.kind], head, rows)))
    }
    heads = [names.get(head, head) for head in heads]
    rows = [
        row._replace(values={names.get(head, head): cell for head, cell in row.values.items()})
        for row in rows
    ]
    return _completed(SizedRows(heads, rows, frozenset(results), []), chosen, top)


def _one_run_each(
    heads: Sequence[str], rows: Sequence[Row], known: Collection[str]
) -> tuple[list[str], list[Row]]:
    """A row for each run, where a line has several beside each other: ``run1,run2,run3``."""
    repeats: dict[str, list[str]] = defaultdict(list)
    for head in heads:
        name, unit = unit_of(head)
        if head not in known and re.fullmatch(_REPEATED, _letters(name)):
            repeats[unit or ""].append(head)
    meanings = filter(None, map(meaning_of, heads))
    is_told = any(meaning.kind == "runtime" and meaning.rank < 2 for meaning in meanings)
    if len(repeats) != 1 or is_told:
        return list(heads), list(rows)
    ((unit, several),) = repeats.items()
    numbers = [int(re.findall(r"\d+", unit_of(head)[0])[-1]) for head in several]
    if len(several) < 2 or numbers != [*range(numbers[0], numbers[0] + len(several))]:
        return list(heads), list(rows)  # t1, t2, t4: of other threads
    runtime = f"{COLUMNS[2]} [{unit}]" if unit else COLUMNS[2]
    others = [head for head in heads if head not in several]
    return [*others, runtime], [
        row._replace(
            place=row.place._replace(entry=" ".join(filter(None, (row.place.entry, head)))),
            values={name: row.values[name] for name in others if name in row.values}
            | {runtime: row.values[head]},
        )
        for row in rows
        for head in several
        if not is_missing(row.values.get(head)) or head == several[0]
    ]


def _meanings(
    heads: Sequence[str], rows: Sequence[Row], known: Collection[str]
) -> dict[str, Meaning]:
    """What columns mean, as far as their cells can be that."""
    found = {}
    for head in heads:
        meaning = None if head in known else meaning_of(head)
        cells = [cell for row in rows if not is_missing(cell := row.values.get(head))]
        if meaning and meaning.rank and meaning.kind != "runtime" and cells:
            if _letters(head) == "t" and not all(map(is_whole, cells)):
                meaning = Meaning("runtime", None, 10)
            elif not any(map(is_number, cells)):  # names of nodes
                meaning = None
        if meaning:
            found[head] = meaning
    times = [head for head, meaning in found.items() if meaning.kind == "runtime"]
    if not times and "t" in found:  # whole seconds
        found["t"], times = Meaning("runtime", None, 10), ["t"]
    able = [
        head
        for head in times
        if any(seconds_of(row.values.get(head), found[head].unit) > 0 for row in rows)
    ]
    dated = {_letters(head) for head in heads} & {"date", "day"}
    for head in times if able else ():  # such as the time of the day
        if head not in able or (dated and len(able) > 1 and head.casefold() == "time"):
            del found[head]
    return found


def _chosen(kind: str, meanings: Mapping[str, Meaning], rows: Sequence[Row], top: Place) -> str:
    """The column of a kind; empty if there is none."""
    ranks = {head: meaning.rank for head, meaning in meanings.items() if meaning.kind == kind}
    best = [head for head, rank in ranks.items() if rank == min(ranks.values())]
    if not best or not ranks[best[0]]:
        return best[0] if best else ""
    head = best[0]
    units = [meanings[other].unit for other in best] if kind == "runtime" else []
    for other, unit in zip_longest(best, units):
        alike = _equal(head, other, rows) or (
            units and _same_times(head, other, units[0], unit, rows)
        )
        if not alike:
            raise top.error(
                f"columns {head!r} and {other!r} may both be the {kind}",
                f"say which: {shlex.quote(f'{top.path}:{head}={kind}')}",
            )
    if len(ranks) == 1 and kind == "runtime" and re.fullmatch(r".+[a-z_ ]min", head.casefold()):
        raise top.error(
            f"column {head!r} may be in minutes, or the least of several times",
            f"say it: {top.path}:{head}=runtime [min], or {head}=runtime",
        )
    return head


def _equal(one: str, other: str, rows: Sequence[Row]) -> bool:
    """Whether two columns hold the same."""
    return all(row.values.get(one) == row.values.get(other) for row in rows)


def _same_times(
    one: str, other: str, unit: str | None, its: str | None, rows: Sequence[Row]
) -> bool:
    """Whether two columns hold the same times, each in its unit, but for rounding."""
    return all(
        math.isclose(
            seconds_of(row.values.get(one), unit),
            seconds_of(row.values.get(other), its),
            rel_tol=0.01,
        )
        for row in rows
    )


def _completed(table: SizedRows, chosen: Mapping[str, str], top: Place) -> SizedRows:
    """Complete the processes and threads of each run by what else is said of them."""
    heads, rows = table.heads, [row._replace(values=dict(row.values)) for row in table.rows]
    cores, each = chosen["cores"], chosen["per node"]
    pair = next((head for head in heads if _PAIR.fullmatch(_letters(head))), "")
    command = next((head for head in heads if head.casefold() == "command"), "")
    for name, other in (COLUMNS[:2], COLUMNS[1::-1]):
        if name in heads or not rows:
            continue
        values: list[Any] = []
        if name == "processes" and each and "nodes" in heads:
            pairs = [(row.values.get("nodes"), row.values.get(each)) for row in rows]
            values = [
                int(float(str(nodes))) * int(float(str(ranks)))
                if is_whole(nodes) and is_whole(ranks) else None
                for nodes, ranks in pairs
            ]  # fmt: skip
        elif cores and other in heads:
            values = [quotient(row, cores, other, name) for row in rows]
        elif pair:
            splits = [re.findall(r"\d+", str(row.values.get(pair))) for row in rows]
            both = all(len(numbers) == 2 for numbers in splits)
            values = [numbers[COLUMNS.index(name)] for numbers in splits] if both else []
        elif command:
            lines = [f" {row.values.get(command)}"[: 5 * _LONGEST] for row in rows]
            said = [re.search(_LAUNCHED[name], line) for line in lines]
            values = [match and match[1] for match in said] if any(said) else []
        for row, value in zip(rows, values, strict=False):
            row.values[name] = value
        heads = [*heads, name] if values else heads
    left = [name for name in COLUMNS[:2] if name not in heads]
    if cores and len(left) == 2:
        raise top.error(
            f"column {cores!r} may be processes, or processes x threads",
            f"say it: {top.path}:{cores}=processes, or how many threads: {top.path}:threads=N",
        )
    if len(left) == 1 and not (left[0] == "processes" and chosen["nodes"]):
        of = "per process " if left[0] == "threads" else ""
        told = f"no {left[0]} are given: 1 {of}assumed"
        table.notes.append(f"{told}, {top.path}:{left[0]}=N sets them")
        for row in rows:
            row.values[left[0]] = 1
        heads = [*heads, left[0]]
    return table._replace(heads=heads, rows=rows)


def quotient(row: Row, cores: str, by: str, name: str) -> int:
    """Processes or threads of a run, by its cores and the other of the two."""
    cells = [row.values.get(name, "") for name in (cores, by)]
    hint = f"say the {name}: {row.place.path}:{name}=N"
    if not all(map(is_whole, cells)):
        problem = f"{cores} {cells[0]!r} and {by} {cells[1]!r} do not tell the {name}"
        raise row.place.error(problem, hint)
    whole, rest = divmod(int(float(cells[0])), int(float(cells[1])))
    if rest or not whole:
        problem = f"{cells[0]} {cores} are no whole number for each of {cells[1]} {by}"
        raise row.place.error(problem, hint)
    return whole
