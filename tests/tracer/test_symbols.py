"""Names of functions: out of symbol tables, and as their authors wrote them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from popmodel.host.toolchain import find_compiler
from popmodel.tracer import symbols as demangling
from popmodel.tracer.identities import Functions
from popmodel.tracer.meta import Function, Meta
from popmodel.tracer.symbols import SymbolPlace, demangle, read_symbols

SOURCE = """\
static __attribute__((noinline)) int hidden(int x) { return x * 3; }
int seen(int x) { return hidden(x) + 1; }
int main(int n, char **words) { (void)words; return seen(n) == 0; }
"""


def build(folder: Path, *flags: str) -> Path:
    source, program = folder / "app.c", folder / "app"
    source.write_text(SOURCE)
    subprocess.run([*find_compiler().command, "-O1", *flags, "-o", program, source], check=True)
    return program


@pytest.mark.parametrize("flags", [[], ["-no-pie"]], ids=["pie", "no-pie"])
def test_functions_have_names_without_debugging_data(tmp_path: Path, flags: list[str]) -> None:
    symbols = read_symbols(str(build(tmp_path, *flags)))
    assert symbols is not None
    names = {symbols(int(begin)): (int(begin), int(end)) for begin, end in
             zip(symbols.begin, symbols.end, strict=True)}  # fmt: skip
    assert {"hidden", "seen", "main"} <= names.keys()
    begin, end = names["hidden"]
    assert symbols(end - 1) == "hidden"
    assert symbols(end) != "hidden"
    assert symbols(0) is None
    assert symbols(2**63) is None
    assert begin < end


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\2\1\1" + b"\xff" * 90]
)
def test_a_file_without_symbols_has_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert read_symbols(str(file)) is None
    assert read_symbols(str(tmp_path / "gone")) is None
    assert read_symbols(str(tmp_path)) is None


def test_a_file_that_was_cut_has_none(tmp_path: Path) -> None:
    program = build(tmp_path)
    whole = program.read_bytes()
    for length in range(64, len(whole), len(whole) // 7):
        program.write_bytes(whole[:length])
        found = read_symbols(str(program))
        assert found is None or found(0) is None


MANGLED = {
    "_ZN4Mesh5splitEv": "Mesh::split",
    "_ZNK4Mesh5applyIiEEvRKSt6vectorIT_SaIS2_EE": "Mesh::apply<int>",
    "main": "main",
    "_Zwrong": "_Zwrong",
}


def test_names_of_cpp_by_its_library() -> None:
    if demangling._function() is None:
        pytest.skip("needs libstdc++ or libc++abi")
    assert demangle(list(MANGLED)) == list(MANGLED.values())


def test_names_of_cpp_by_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("c++filt") is None:
        pytest.skip("needs c++filt (binutils)")
    monkeypatch.setattr(demangling, "_function", lambda: None)
    assert demangle(list(MANGLED)) == list(MANGLED.values())


def test_names_of_cpp_stay_mangled_without_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demangling, "_function", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demangle(["_ZN4Mesh5splitEv", "main"]) == ["_ZN4Mesh5splitEv", "main"]


def test_regions_of_one_function_stay_apart_without_their_lines(tmp_path: Path) -> None:
    functions = Functions()
    meta = Meta(tmp_path, "host", 1, 0, 0, "boot")
    meta.functions = {
        address: Function(None, "/bin/app", address) for address in (0x10, 0x20, 0x30)
    }
    functions.of_process(meta)
    functions.locate(lambda _, offsets: [SymbolPlace("f" if at < 0x30 else "g") for at in offsets])
    assert functions.names == ["f (app+0x10)", "f (app+0x20)", "g"]
