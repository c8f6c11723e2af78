"""The numbers in Python are those of the headers of the library."""

from __future__ import annotations

import re
import struct

from popmodel.machines.host.build import sources
from popmodel.tracer import raw_records as records
from popmodel.tracer.raw_records import (
    _KINDS,
    HEADER,
    INCOMPLETE,
    RECORD,
    Construct,
    Guard,
    Left,
    RecordKind,
    known_calls,
)
from popmodel.traces.codes import FILE_CALLS
from popmodel.traces.paraver.numbers import MPI_CALLS, MPI_TYPES, NUMBERS

FOLDER = sources() / "tracer"


def enumeration(name: str) -> dict[str, int]:
    """Constants of an enumeration in record.h."""
    text = re.sub(r"/\*.*?\*/", "", (FOLDER / "record.h").read_text(), flags=re.DOTALL)
    body = re.search(rf"enum {name} {{(.*?)}}", text, re.DOTALL)
    assert body is not None
    return {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", body[1])}


def test_kinds_and_constructs_are_those_of_the_library() -> None:
    assert enumeration("kind") == {kind.name: kind.value for kind in RecordKind}
    assert enumeration("construct") == {each.name: each.value for each in Construct}
    assert enumeration("left") == {each.name: each.value for each in Left}
    assert enumeration("guard") == {each.name: each.value for each in Guard}
    assert set(enumeration("file_call_kind").values()) == set(FILE_CALLS)
    assert max(RecordKind) < _KINDS


def test_layouts_are_those_of_the_library() -> None:
    text = (FOLDER / "record.h").read_text()
    sizes = {"char": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "int64_t": 8}

    def fields(name: str) -> list[tuple[str, int]]:
        body = re.search(rf"struct {name} {{(.*?)}};", text, re.DOTALL)
        assert body is not None
        found = re.findall(r"^\s*(u?\w+) (\w+)(?:\[(\d+)\])?;", body[1], re.MULTILINE)
        return [(field, sizes[type_] * int(count or 1)) for type_, field, count in found]

    assert fields("record") == [(name, RECORD[name].itemsize) for name in RECORD.names]
    assert [size for _, size in fields("header")] == [8, 4, 4, 4, 4, 4, 4, 8, 8, 16]
    assert HEADER.size == 64 == sum(size for _, size in fields("header"))
    assert struct.calcsize("=8s6I2Q16x") == HEADER.size


def test_constants_are_those_of_the_library() -> None:
    text = (FOLDER / "record.h").read_text()
    assert f'RAW_MAGIC "{records.MAGIC.decode()}"' in text
    assert f"RAW_MARK 0x{records.MARK:08x}u" in text
    assert f"RAW_VERSION {records.VERSION}" in text


def test_every_call_of_the_table_is_read_and_has_numbers_of_its_own() -> None:
    text = (FOLDER / "calls.h").read_text()
    lines = [line for line in text.splitlines() if re.match(r"\s+X\(\w+, \d", line)]
    table = known_calls()
    assert len(table) == len(lines) > 200
    assert {NUMBERS[call.event] for call in table.values()} == set(MPI_TYPES)
    shared = {"Init", "Init_thread"}
    values = [call.value for call in table.values() if call.name != "Init_thread"]
    assert len(values) == len(set(values))
    assert all(call.value < INCOMPLETE for call in table.values())
    assert {c.value for c in table.values() if c.name in shared} == {31}


def test_calls_have_the_values_that_extrae_gives_them() -> None:
    by_name = {name: value for value, name in MPI_CALLS.items()}
    for call in known_calls().values():
        known = by_name.get(f"MPI_{call.name}")
        if known is not None:
            assert call.value == known, call.name
        elif call.name != "Init_thread":
            assert call.value not in MPI_CALLS, call.name
