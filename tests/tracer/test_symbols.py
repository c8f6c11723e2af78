"""Names of functions: out of symbol tables, and as their authors wrote them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from popmodel.machines.host.toolchain import find_compiler
from popmodel.tracer import symbol_table as demangling
from popmodel.tracer.identities import Functions
from popmodel.tracer.meta import Function, Meta
from popmodel.tracer.symbol_table import SourceLines, SymbolPlace, demangle

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


@pytest.mark.parametrize("flags", [[], ["-no-pie"], ["-s", "-rdynamic"]])
def test_functions_have_names_without_debugging_data(tmp_path: Path, flags: list[str]) -> None:
    if shutil.which("addr2line") is None or shutil.which("nm") is None:
        pytest.skip("needs addr2line and nm (binutils)")
    program = build(tmp_path, *flags)
    table = ["nm", *(["-D"] if "-s" in flags else []), program]
    said = subprocess.run(table, capture_output=True, text=True, check=True).stdout
    wanted = {"seen", "main"} | (set() if "-s" in flags else {"hidden"})
    places = {n: int(at, 16) for at, n in re.findall(r"^(\w+) [tT] (\w+)$", said, re.M)}
    offsets = [places[name] + 1 for name in sorted(wanted)]
    lines = SourceLines()
    assert lines(str(program), [*offsets, 0]) == [
        *(SymbolPlace(name) for name in sorted(wanted)),
        SymbolPlace(),
    ]


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


def test_names_of_cpp_stay_mangled_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangling, "_function", lambda: None)
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
