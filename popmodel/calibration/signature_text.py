"""A calibrated signature as the text of a file: that of the original, with what runs have taught.

Comments and the order of the original stay. Numbers that were learnt stand where the old ones did,
each with the runs as its source; all that ties them to each other, to the machine and to the laws
is in a table at the end.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from popmodel.calibration.posterior import PROGRAM, Learnt, PosteriorValue
from popmodel.machine.quantity import FIELDS, Quantity
from popmodel.model.calibration import Calibration, packed
from popmodel.model.signature.program import SET, Signature
from popmodel.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIT = "fit"
_DIGITS = 9
"""Significant digits: what is read back gives the same predictions to 1e-6."""


def text_of(
    original: str, before: Signature, after: Signature, values: Sequence[Learnt], day: date
) -> str:
    """Return the text of a calibrated signature.

    What an earlier calibration left in the text is replaced.
    """
    import tomlkit

    known = after.calibration
    assert known is not None
    document: Any = tomlkit.parse(original)
    document.pop("calibration", None)
    source = f"fit to {plural(len(known.runs), 'run')} of {day.isoformat()}"
    for table in PROGRAM:
        old: dict[str, Quantity] = getattr(before, table)
        for key, one in getattr(after, table).items():
            if one != old.get(key):
                _put(document[table], key, one, source)
    text = tomlkit.dumps(document).rstrip("\n")
    return f"{text}\n\n{_table(known, values, day)}"


def _put(table: Any, key: str, one: Quantity, source: str) -> None:
    """Write a number where another one, or a table with it, stands; its comment stays."""
    from tomlkit.items import InlineTable, Table

    entries: dict[str, Any] = {"value": _rounded(one.value)}
    if one.low is not None and one.high is not None:
        entries |= {"low": _rounded(one.low), "high": _rounded(one.high)}
    fitted = one.origin == FIT
    other = one.source if one.source not in (None, SET) else "set when it was calibrated"
    entries |= {"origin": one.origin, "source": source if fitted else other}
    given = table.get(key)
    if given is None:
        table[key] = _inline(entries)
        return
    if isinstance(given, InlineTable | Table) and "unit" in given:
        entries["unit"] = given["unit"]
    if isinstance(given, Table):  # [constants.rate]: its lines, and what stands between them
        for name in FIELDS:
            if name in entries:
                given[name] = entries[name]
            else:
                given.pop(name, None)
        return
    table[key] = _inline(entries)
    table[key].trivia.comment_ws = given.trivia.comment_ws
    table[key].trivia.comment = given.trivia.comment


def _inline(entries: Mapping[str, Any]) -> Any:
    """Return a table on one line, with blanks inside of its braces."""
    import tomlkit

    inside = ", ".join(
        f"{tomlkit.key(name).as_string()} = {tomlkit.item(value).as_string()}"
        for name, value in entries.items()
    )
    return tomlkit.parse(f"it = {{ {inside} }}")["it"]


def _table(known: Calibration, values: Sequence[Learnt], day: date) -> str:
    """The table ``calibration``."""
    import tomlkit

    table = tomlkit.table()
    table["machine"] = known.machine
    table["machine_digest"] = known.machine_digest
    table["own"] = _rounded(known.own)
    table["own"].comment("own part of the error of loops, relative to that without runs")
    table["noise"] = _rounded(known.noise)
    table["noise"].comment(f"runs vary by {100 * known.noise:.2g} %")
    table["hull"] = _inline(
        {name: [_whole(end) for end in ends] for name, ends in known.hull.items()}
    )
    if known.residuals:
        table["terms"] = _inline({name: _rounded(one) for name, one in known.residuals.items()})
    if known.drifts:
        drifts = {
            name: _inline({"deviation": _rounded(one.deviation), "origin": _rounded(one.origin)})
            for name, one in known.drifts.items()
        }
        table["drifts"] = _inline(drifts)
    table["tied"] = packed(known.root)
    runs = tomlkit.table()
    runs.update(known.runs)
    table["runs"] = runs
    scores = tomlkit.table()
    for number, one in enumerate(values):
        entry = {
            "mean": _rounded(float(known.means[number])),
            "deviation": _rounded(float(known.deviations[number])),
        }
        if one.kind == "program":
            entry["value"] = _rounded(one.after.value)
        scores[one.name] = _inline(entry)
        scores[one.name].comment(_meaning(one))
    table["scores"] = scores
    document = tomlkit.document()
    document.add(
        tomlkit.comment(f"What runs have taught, {day.isoformat()}, by popmodel calibrate:")
    )
    document.add(tomlkit.comment("predictions draw from it, so leave it with the numbers above."))
    document["calibration"] = table
    return tomlkit.dumps(document)


def _meaning(one: Learnt) -> str:
    """What a score stands for, in a comment: ``law of loops: times 1.08, 1.02 to 1.15``."""
    unit = f" {one.unit}" if one.unit not in ("", "1") else ""
    times = "" if one.unit else "times "
    text = f"{one.label}: {times}{_shown(one.after)}{unit}"
    return text if one.unit == "" or one.kind == "term" else f"{text}; was {_shown(one.before)}"


def _shown(one: PosteriorValue) -> str:
    if one.low == one.high:
        return f"{one.value:.4g}"
    return f"{one.value:.4g}, {one.low:.4g} to {one.high:.4g}"


def _rounded(value: float) -> float | int:
    return _whole(float(f"{value:.{_DIGITS}g}"))


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() and abs(value) < 10**_DIGITS else float(value)
