"""Terms on screens that are not metrics, each with its single definition.

Quantities of a run, parameters of a machine, symbols and keys of a signature are defined where they
are used; ``glossary.toml`` has the rest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from popmodel.base.values import dataclass
from popmodel.efficiency.explain import plain
from popmodel.efficiency.family import AGGREGATES
from popmodel.machines import register
from popmodel.model import symbols
from popmodel.model.symbols import REMEDIES

FILE = Path(__file__).with_name("glossary.toml")

TOPICS: Mapping[str, str] = {
    "runs": "measured runs",
    "replay": "what-if runs",
    "prediction": "predictions",
    "splits": "splits",
    "validation": "validation",
    "calibration": "calibration",
    "machine": "parameters of a machine profile",
    "run": "quantities of a run, in formulas of metrics",
    "model": "symbols of the model",
}
"""What the words are about, in the order of the list."""


@dataclass(frozen=True)
class Word:
    """A word and its meaning."""

    name: str  # As screens write it
    topic: str  # What it is about, in words
    meaning: str  # A sentence or a noun phrase
    unit: str = ""  # SI unit, ``1`` for a ratio or count; empty where it is no number
    also: tuple[str, ...] = ()  # Other spellings
    see: tuple[str, ...] = ()  # Related words and metrics
    measure: str = ""  # The command that measures it, if there is one


def find(wanted: str, *, is_metric: bool = False) -> list[Word]:
    """Every word of that name or spelling; those with the same capitals first.

    Keys of signatures and changes of parts of a program are asked for only where they may be meant:
    the model has them, whose rooms take longer to load than all else that explains a word.
    """
    name = plain(wanted)
    found = [*_words_by_name().get(name, ()), *_parameter(wanted)]
    if not (found or is_metric) or name in _file()["also_keys"]:
        found += [*_keys_by_name().get(name, ()), *_remedy(wanted)]
    exact = [word for word in found if wanted in (word.name, *word.also)]
    return list(dict.fromkeys(exact or found))


def abbreviations() -> dict[str, str]:
    """Ids of metrics by their usual abbreviations, as `plain` writes these."""
    given: dict[str, str] = _file()["abbreviations"]
    return {plain(short): metric for short, metric in given.items()}


def words() -> list[Word]:
    """All words but the keys of signatures and the symbols of formulas, by topic."""
    return [*_own(), *_of_the_model(), *_of_runs()]


def names() -> dict[str, str]:
    """Every spelling of every word, as it is shown, by how `plain` writes it."""
    spelt = [*words(), *_keys()]
    return {plain(name): name for word in spelt for name in (*word.also, word.name)}


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def _words_by_name() -> dict[str, list[Word]]:
    return _by_name(words())


@cache
def _keys_by_name() -> dict[str, list[Word]]:
    return _by_name(_keys())


def _by_name(known: Iterable[Word]) -> dict[str, list[Word]]:
    found: dict[str, list[Word]] = {}
    for word in known:
        for name in dict.fromkeys(plain(name) for name in (word.name, *word.also)):
            found.setdefault(name, []).append(word)
    return found


def _own() -> Iterator[Word]:
    for entry in _file()["term"]:
        yield Word(
            entry["name"],
            TOPICS[entry["topic"]],
            entry["meaning"],
            entry.get("unit", ""),
            tuple(entry.get("also", ())),
            tuple(entry.get("see", ())),
        )
    for label in REMEDIES:
        text = f"Change of the predicted runtime with: {label}."
        yield Word(label, TOPICS["prediction"], text, "%", see=("what would help",))


def _of_runs() -> Iterator[Word]:
    for one in AGGREGATES.values():
        also = () if plain(one.name) == plain(one.symbol) else (one.name,)
        yield Word(one.symbol, TOPICS["run"], one.meaning, one.unit, also)


def _of_the_model() -> Iterator[Word]:
    for symbol in symbols.SYMBOLS.values():
        short = symbols.SHORT.get(symbol.name)
        yield _symbol(symbol, symbol.name, () if short is None else (short,))


def _symbol(symbol: symbols.ModelSymbol, name: str, also: tuple[str, ...] = ()) -> Word:
    topic = TOPICS["machine" if symbol.source == "machine" else "model"]
    measure = (register.measuring_anew(name) if symbol.source == "machine" else None) or ""
    return Word(name, topic, symbol.meaning, symbol.unit, also, measure=measure)


def _parameter(path: str) -> list[Word]:
    """A parameter of a profile by its path, such as ``net.inter.classes[0].alpha``."""
    parameter, symbol = register.find(path), symbols.explain(path)
    if "." not in path or path in symbols.SYMBOLS or parameter is None or symbol is None:
        return []
    return [_symbol(symbol, path, () if parameter.unused else (symbols.short_name(path),))]


def _remedy(label: str) -> list[Word]:
    """A change of a part of the program, such as ``parallelise NAME``."""
    from popmodel.model.kinds import remedy

    meaning = remedy(label)
    if meaning is None:
        return []
    text = f"{meaning} The figure is the change of the predicted runtime."
    return [Word(label, TOPICS["prediction"], text, "%", see=("what would help",))]


_GRAMMAR = ("popmodel docs grammar",)


@cache
def _keys() -> list[Word]:
    """Keys of signatures: by their own name and with that of their table."""
    from popmodel.model.kinds import KEYS, TABLES

    found = []
    for table, keys in KEYS.items():
        topic = "key of a signature" if table else "table of a signature"
        if table:
            text = f"{TABLES[table]}; keys: {', '.join(key.name for key in keys)}"
            found.append(Word(table, "table of a signature", text, see=_GRAMMAR))
        for key in keys:
            name = f"{table}.{key.name}" if table else key.name
            found.append(Word(name, topic, key.meaning, key.unit, (key.name,), _GRAMMAR))
    return found


def find_in_formulas(wanted: str) -> list[Word]:
    """The part of the work of a process to which formulas give that name; loads the model."""
    from popmodel.model.run.work import WORK

    return [
        Word(name, "symbols of popmodel predict --formula", meaning, unit)
        for name, unit, meaning in WORK.values()
        if name == wanted
    ]
