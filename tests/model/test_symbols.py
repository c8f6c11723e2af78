"""The table of symbols is complete and agrees with the schema of the machine profile."""

from __future__ import annotations

from popmodel.machine import profile
from popmodel.machine.schema import PROFILE, Number
from popmodel.model.symbols import RESERVED, SYMBOLS, explain
from popmodel.shapes import Items, Named, Shape, Table


def schema_unit(path: str) -> str:
    entry: Shape = PROFILE
    for key in path.replace("[", ".[").split("."):
        match entry:
            case Table(keys=keys):
                entry = keys[key]
            case Named(of=inner) | Items(of=inner):
                entry = inner
    assert isinstance(entry, Number)
    return entry.unit


def test_every_quantity_of_the_presets_has_a_symbol_with_the_same_unit() -> None:
    for name in profile.presets():
        for path in profile.load(name).quantities:
            symbol = explain(path)
            assert symbol is not None, path
            assert symbol.unit == schema_unit(path), path
            assert symbol.source == "machine"


def test_unknown_paths_have_none() -> None:
    assert explain("memory.unknown") is None
    assert explain("net.inter.unknown") is None
    assert explain("P") == SYMBOLS["P"]
    assert explain("memory.line_transfer.near") == SYMBOLS["memory.line_transfer"]


def test_names_of_the_request_are_reserved() -> None:
    assert {"P", "T", "rank", "n0", "P0"} <= set(RESERVED)
    assert "memory.b1" not in RESERVED
