"""What all kinds of items have: keys that say what they hold, and what is asked of them.

An item holds formulas as it is read. `ItemTable.at` evaluates them: the same class, with numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, replace
from functools import cached_property
from inspect import get_annotations
from typing import Any, ClassVar, Self, TypeAlias

from popmodel.base.expressions import Expression
from popmodel.base.expressions.elementary import Value
from popmodel.base.units import count, format_size, format_time
from popmodel.base.values import dataclass
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import OperationsBuilder
from popmodel.model.run.work import RunWork, UnevenWork
from popmodel.model.signature.keys import GrammarKey, page_tables
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.model.terms.pipeline import Fronts

COMMON = tuple(page_tables()["loop"].keys[name] for name in ("name", "every"))
"""Keys of all items."""
Further: TypeAlias = Mapping[str, Mapping[str, Any]]
"""What the page does not say of keys, by their names: fields of `GrammarKey`."""
Amount: TypeAlias = Any
"""What a key holds: a formula as it was read, in `ItemTable.at` the quantity that it gives."""
CELLS, GRID = "decomp with global (cells)", "decomp"
"""What an item may need."""
Entry: TypeAlias = Mapping[str, Any]
"""An item, or a formula ``{formula, value, unit}``, as plain data, see `signature_check`."""


@dataclass(frozen=True)
class ListedItem:
    """Values that are given by rank, one by one."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class ItemTable:
    """Keys and their values: formulas as they were read, or numbers at a point."""

    # What the table is called; empty if its keys stand among those of the item around it.
    kind: ClassVar[str] = ""
    # Its keys, one for each field with a value of its own: rows of the page of signatures.
    own: ClassVar[tuple[GrammarKey, ...]] = ()
    # Fields that are tables whose keys stand among its own.
    parts: ClassVar[Mapping[str, type[ItemTable]]] = {}
    further: ClassVar[Further] = {}

    def __init_subclass__(cls, *, among: str = "") -> None:
        """Take the keys from the page: those of its kind, or its fields ``among`` another's."""
        super().__init_subclass__()
        rows = page_tables()[among or cls.kind].keys.values() if among or cls.kind else ()
        others = {key.name for part in cls.parts.values() for key in part.own}
        others |= {key.name for key in COMMON if not among}
        further = {
            name: more for one in cls.__mro__ for name, more in vars(one).get("further", {}).items()
        }
        cls.own = tuple(
            replace(key, **further.get(key.name, {}))
            for key in rows
            if key.name not in others and (not among or key.name in cls.__annotations__)
        )

    @classmethod
    def key(cls, name: str) -> GrammarKey:
        return next(key for key in cls.own if key.name == name)

    @classmethod
    def keys(cls) -> tuple[GrammarKey, ...]:
        return (*cls.own, *(key for part in cls.parts.values() for key in part.own))

    @classmethod
    def read(cls, reading: GrammarReading, table: Mapping[str, Any], where: Path) -> Self:
        return cls(**cls.values(reading, table, where))

    @classmethod
    def values(
        cls, reading: GrammarReading, table: Mapping[str, Any], where: Path
    ) -> dict[str, Any]:
        own = {key.name: reading.value(key, table, where) for key in cls.own}
        return own | {name: part.read(reading, table, where) for name, part in cls.parts.items()}

    def shown(self) -> Iterator[tuple[GrammarKey, Any]]:
        """Return the keys with their values, as reports list them; tables in it as such."""
        keys = {key.name: key for key in (*self.own, *COMMON)}
        for name in self.field_names():
            value = getattr(self, name)
            if name in self.parts:  # their keys are those of the item
                yield from value.shown()
            else:
                yield keys[name], value

    @classmethod
    def field_names(cls) -> list[str]:
        """Name the fields as reports list them: the name, those of the kind, those of many."""
        declared, every = get_annotations(cls), [field.name for field in fields(cls)]
        of_kind = [name for name in every if name in declared]
        shared = [name for name in every if name not in declared]
        return [*shared[:1], *of_kind, *reversed(shared[1:])]

    @cached_property
    def evaluated(self) -> tuple[tuple[str, GrammarKey, Any], ...]:
        """Fields whose value depends on the point, with their keys."""
        known = {key.name: key for key in (*self.own, *COMMON)}
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple(
            (name, known.get(name, _PART), value)
            for name, value in values
            if isinstance(value, Expression | ItemTable) or (isinstance(value, Mapping) and value)
        )

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Values of formulas without names: the same at every point, and checked when read."""
        return {
            name: value.evaluate({})
            for name, key, value in self.evaluated
            if isinstance(value, Expression)
            if not (value.names or value.calls or key.is_whole)
        }

    def formulas(self) -> list[Expression]:
        """Return the formulas of the table, those of its body left out."""
        found: list[Expression] = []
        for _, _, value in self.evaluated:
            if isinstance(value, Expression):
                found.append(value)
            else:
                found += value.formulas() if isinstance(value, ItemTable) else value.values()
        return found

    def at(self, point: ModelPoint, of: str, inside: str = "") -> Self:
        """Return the table with numbers for its formulas."""
        numbers = dict(self.constants)
        for name, key, value in self.evaluated:
            if name in numbers:
                continue
            if isinstance(value, Expression):
                by_rank = key.of_ranks and "rank" in value.names
                evaluate = point.by_rank if by_rank else point.amount
                numbers[name] = evaluate(value, key, f"{inside}{name} of {of!r}")
            elif isinstance(value, ItemTable):
                numbers[name] = value.at(point, of, f"{inside}{value.kind}." if value.kind else "")
            else:
                numbers[name] = {
                    entry: point.amount(one, key, f"{inside}{name}.{entry} of {of!r}")
                    for entry, one in value.items()
                }
        found = replace(self, **numbers)
        self.check(found, point)
        return found

    def check(self, numbers: Self, point: ModelPoint) -> None:
        """Refuse numbers that make no sense at a point, where domains of keys cannot say so."""


_PART = GrammarKey("", "", None, "")


@dataclass(frozen=True)
class Item(ItemTable):
    """A part of a program; every kind is a subclass with what is to be known of it."""

    needs: ClassVar[str] = ""  # What it cannot do without: `GRID`, `CELLS` or nothing
    communicates: ClassVar[bool] = False  # Whether processes exchange messages in it
    # Whether what it computes lies between its messages and is part of `operations`.
    computes_between: ClassVar[bool] = False
    # Why several threads of a process cannot send its messages; empty if they can.
    one_sender: ClassVar[str] = "it sends no messages"
    # What may make it faster: label, in which ``{}`` is its name, and meaning.
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {}

    name: str  # In reports
    every: Amount  # Inside a loop: executed in every n-th iteration only

    @classmethod
    def keys(cls) -> tuple[GrammarKey, ...]:
        return (*super().keys(), *COMMON)

    @classmethod
    def values(
        cls, reading: GrammarReading, table: Mapping[str, Any], where: Path
    ) -> dict[str, Any]:
        if (cls.needs and not reading.dimensions) or (cls.needs == CELLS and not reading.has_cells):
            raise reading.error(where, f"{cls.kind} needs {cls.needs}")
        name = reading.text(table, (*where, "name")) if "name" in table else cls.kind
        if "every" in table and "body" not in where:
            raise reading.error(
                (*where, "every"),
                f"every counts the iterations of a loop, but {name!r} is not in a loop",
                "move the item into the body of a loop, or remove every",
            )
        every = reading.value(COMMON[1], table, where)
        return {"name": name, "every": every, **super().values(reading, table, where)}

    @property
    def own_spread(self) -> Mapping[str, Amount]:
        """``persistent_cv`` and ``transient_cv`` of its work, those that the program's are not."""
        return {}

    @property
    def stated_spreads(self) -> Set[str]:
        """Those of ``persistent_cv`` and ``transient_cv`` that it states in some form."""
        return set(self.own_spread)

    def uneven(self, point: ModelPoint) -> tuple[UnevenWork, ...]:  # noqa: ARG002
        """Return the parts of its work of which more is known than a spread, if there are any.

        Together they are the whole work; `self` has numbers.
        """
        return ()

    @property
    def measured_overhead(self) -> Amount:
        """Overhead of an execution that was measured with its work: processes differ as in that."""
        return 0.0

    def crowding(self, point: ModelPoint) -> Value:  # noqa: ARG002
        """Return the part of its computation that other processes of a memory domain cost, s."""
        return 0.0

    @property
    def inside(self) -> tuple[Item, ...]:
        """The items of its body, if it has one."""
        return ()

    @property
    def only_at(self) -> int | None:
        """The only number of processes at which it is fully known, if there is one."""
        return None

    def around(self, inside: tuple[Item, ...]) -> Item:
        """Return the item with another body, if it has one."""
        assert not inside
        return self

    @property
    def repeats(self) -> Amount:
        """How often its body is executed, if it has one."""
        return 1.0

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:  # noqa: ARG002
        """Return what would make it faster here: a key of `remedies`, and the item then."""
        yield from ()

    def work(self, point: ModelPoint) -> RunWork:
        """Return one execution by an average process, in closed form; `self` has numbers.

        An item with a body has the work of that, `repeats` times.
        """
        raise NotImplementedError

    def fronts(self, point: ModelPoint) -> Fronts | None:  # noqa: ARG002
        """Return what of its work need not be paid again after a like one; `self` has numbers.

        None says that all processes meet in it, so that nothing before it matters after it.
        """
        return None if self.communicates else {}

    def most_operations(self, point: ModelPoint) -> float:  # noqa: ARG002
        """Return the operations of a process in one execution, at most; `self` has numbers."""
        return 3

    def lighter(self, part: float, point: ModelPoint) -> Self:  # noqa: ARG002
        """Return the item with about a part of what it only repeats, whole numbers of it.

        It stands for the item in a replay of a run that is too large; `self` has numbers.
        """
        return self

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        """Describe what all processes do in one execution, for the replay; `self` has numbers."""
        raise NotImplementedError

    @staticmethod
    def sentence(entry: Entry) -> str:
        """Say what the item does."""
        raise NotImplementedError


# Words for formulas and their values, in the sentences that describe items.


def equation(formula: Entry) -> str:
    """A formula and its value, such as ``3*w = 24 B``; a number alone once."""
    if formula["value"] is None:
        return str(formula["formula"])
    value = value_text(formula)
    return value if _is_number(formula["formula"]) else f"{formula['formula']} = {value}"


def symbol(formula: Entry) -> str:
    """A formula that is a number of something, with its value."""
    return equation({**formula, "unit": "1"})


def quantity(formula: Entry) -> str:
    """A formula that has a unit, with its value."""
    if formula["value"] is None:
        noun = {"B": "bytes", "s": "seconds"}[formula["unit"]]
        return f"{formula['formula']} {noun}"
    return equation(formula)


def many(formula: Entry, noun: str) -> str:
    """How many of something: ``1 store``, ``n0 iterations``."""
    plural_noun = noun if noun == "flop" else f"{noun}s"
    return f"{symbol(formula)} {noun if formula['formula'] == '1' else plural_noun}"


def value_text(entry: Entry) -> str:
    """A number with its unit."""
    value, unit = entry["value"], entry["unit"]
    if unit == "B":
        return format_size(value)
    if unit == "s":
        return format_time(value, trim=True)
    number = count(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return number if unit in (None, "1") else f"{number} {unit}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def ordinal(formula: Entry) -> str:
    if not _is_number(formula["formula"]):
        return f"({symbol(formula)})th"
    text = symbol(formula)
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending}"


def listed(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
