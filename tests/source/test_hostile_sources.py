"""Wrong, partial and hostile sources: a draft, or one line that says where and what to do."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hostile_sources import C_MAIN, HostileSource, hostile_sources
from sympy.core.cache import clear_cache

import popmodel
from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.cli import main
from popmodel.source import (
    c_family,
    formula_text,
    fortran_family,
    loop_costs,
    openmp_directives,
    signature_of_source,
    symbolic_memory,
)
from popmodel.source.draft import Draft
from popmodel.source.interpreter import Interpreter

HOSTILE = list(hostile_sources())


def answer(folder: Path, source: HostileSource) -> str:
    """The signature of a program, or the message that says why there is none."""
    for name, text in source.files.items():
        (folder / name).write_bytes(text)
    given = [folder / name for name in source.files if not name.endswith(".h")]
    try:
        text, draft = signature_of_source(given, "app")
    except PopmodelError as error:
        assert re.match(r"[^:]+: .+[^.]$", error.message, re.DOTALL), error.message
        assert error.hint
        return error.message
    assert tomllib.loads(text)["app"]["name"] == "app"
    assert all(note.isprintable() for note in draft.notes)
    return text


def test_there_are_300_of_them() -> None:
    assert len({source.name for source in HOSTILE}) == len(HOSTILE) >= 300


@pytest.mark.parametrize("source", HOSTILE[::25], ids=lambda source: source.name)
def test_some_are_answered(source: HostileSource, tmp_path: Path) -> None:
    answer(tmp_path, source)


@pytest.mark.long
@pytest.mark.parametrize("part", range(25))
def test_all_are_answered(part: int, tmp_path: Path) -> None:
    for number, source in enumerate(HOSTILE[part::25]):
        folder = tmp_path / str(number)
        folder.mkdir()
        answer(folder, source)


def calls_of(folder: Path, name: str, text: str) -> int:
    """How many functions of Python are called for a program: its work, whatever the machine."""
    (folder / name).write_text(text)
    clear_cache()  # of SymPy; what earlier tests have left there would be work that is not seen
    for module in (formula_text, loop_costs, openmp_directives, symbolic_memory):
        for function in vars(module).values():
            getattr(function, "cache_clear", bool)()
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        if name.endswith(".c"):
            program = c_family._read_file(folder / name, ())
        else:
            program = fortran_family.read([folder / name])
        made = Interpreter(program)
        made.run()
        Draft(made, "app").text()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("name", "once"),
    [
        ("a.c", "a[0] += 1;"),
        ("a.c", "for (int i = 0; i < n; i++) a[i] += 1;"),
        ("a.c", "if (n) { n = n + 1; } else { n = 2; }"),
        pytest.param(  # cases of cases
            "a.c", "if (n > k) k = k + n; else n = n - k;", marks=pytest.mark.long, id="cases"
        ),
        ("a.c", "switch (n) { case 1: a[0] = 2; case 2: a[1] = 3; }"),
        ("a.c", "a[0] = a[1] + a[2] - a[3] * 2.0;"),
        ("a.c", "{ int k = n; while (k) { k--; } }"),  # a value of all turns is cut at a length
        ("a.c", "\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) a[i] = 1;\n"),
        ("a.f90", "do i = 1, n\n a(i) = a(i) + 1\nend do\n"),
        ("a.f90", "!$omp parallel do\ndo i = 1, n\n a(i) = 1\nend do\n!$omp end parallel do\n"),
    ],
)
def test_twice_the_source_is_about_twice_the_work(name: str, once: str, tmp_path: Path) -> None:
    def text(times: int) -> str:
        if name == "a.c":
            return C_MAIN.format("static double a[99]; int k = 1;\n" + once * times)
        return f"program p\nreal(8) :: a(100)\nread(*,*) n\n{once * times}end program\n"

    calls_of(tmp_path, name, text(20))  # what is computed once
    first, second, third = (calls_of(tmp_path, name, text(times)) for times in (20, 40, 60))
    assert third - second < 1.3 * (second - first) + 1000


@pytest.mark.parametrize(
    "text",
    ["", "int main(", "}}}}", "int f(void) { return g(h; }", "#include <nowhere.h>\nint main() {}"],
)
def test_broken_source_is_answered_in_one_line_or_read_as_far_as_it_goes(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "app.c"
    path.write_text(text)
    try:
        found = popmodel.signature(path)
    except UsageError as error:
        assert error.message == "app.c: no main"
    else:
        assert "app.c:1" in found.facts["notes"][0]
        assert found.facts["source"]["errors"] > 0


def test_a_header_that_is_missing_is_asked_for_in_the_folder_of_the_program_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("sub/all.h").write_text('#include "../none.h"\n#include <none.h>\n')
    Path("app.c").write_text('#include "sub/all.h"\nint main() { REAL *a = new_real(9); }')
    with pytest.raises(UsageError, match="nothing in it takes time") as caught:
        popmodel.signature("app.c").save("app.toml")
    assert caught.value.hint == (
        "all.h:1: ../none.h is not found, taken as empty: give its folder, --cflags -IFOLDER"
    )


def test_the_first_line_says_that_source_was_not_read_as_a_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.c").write_text('#include "none.h"\nint main() { return 0; }')
    assert main(["signature", "from", str(tmp_path / "app.c")]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "nothing left open by the source as far as it was read, with 1 error;" in words


def test_files_that_cannot_be_read_and_mixed_inputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        popmodel.signature(tmp_path / "none.c")


def test_a_function_that_calls_itself_is_named(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text("int f(int n) { return n < 2 ? n : f(n - 1); }\nint main(int c, char **v) "
                    "{ return f(c); }")  # fmt: skip
    found = popmodel.signature(path)
    assert found.facts["notes"] == ["app.c:1: f calls itself: followed twice"]


@pytest.mark.parametrize(
    "text",
    [
        "int main(int c, char **v) { int s = 0; s = " + "s + " * 5000 + "1; return s; }",
        "int main(int c, char **v) { " + "if (c) { " * 200 + "c++;" + " }" * 200 + " return c; }",
        "int main(int c, char **v) { return c; } /* " + "x" * 1_000_000 + " */",
        "".join(
            f"int f{n}(int x) {{ if (x) return f{n + 1}(x) + f{n + 1}(x - 1); "
            f"return f{n + 1}(x); }}\n"
            for n in reversed(range(25))
        ).join(["int f25(int x) { return x; }\n", "int main(int c, char **v) { return f0(c); }"]),
    ],
)
def test_hostile_source_is_read_as_far_as_it_goes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(text)
    found = popmodel.signature(path)
    assert tomllib.loads(found.text)["app"]["name"] == "app"
