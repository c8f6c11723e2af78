"""Instructions by the user's compiler, and its options from the database of a project."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.source import signature_of_source
from popmodel.source.user_compiler import loop_instructions, loops_of

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "sources"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing")
PROGRAM = (
    "#include <stdlib.h>\nint main(int argc, char **argv) { int n = atoi(argv[1]);\n"
    "double *a = malloc(8 * n), *b = malloc(8 * n);\n"
    "for (int i = 0; i < n; i++) a[i] = 2.0 * b[i] + FACTOR * a[i];\nreturn a[n - 1] > 0; }\n"
)


def items(program: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All items that compute, in order."""
    found = []
    for item in program:
        found += [entries for kind, entries in item.items() if kind in ("serial", "parallel")]
        found += items(item.get("body", []))
    return found


@pytest.mark.parametrize(
    ("name", "triad", "copy"),  # read off the assembly: instructions, and elements of them
    [
        ("sse", (23, 8, 0), (19, 32, 0)),
        ("avx2", (27, 32, 0), (35, 128, 0)),
        ("avx512", (27, 64, 0), (35, 256, 0)),
        ("neon", (10, 4, 0), (6, 8, 0)),
        ("gcc", (8, 2, 0), (5, 4, 0)),
    ],
)
def test_loops_of_two_compilers_and_four_instruction_sets_are_counted(
    name: str, triad: tuple[int, ...], copy: tuple[int, ...]
) -> None:
    loops = list(loops_of((DATA / f"triad_{name}.s").read_text()))
    assert loop_instructions(loops, frozenset({("triad.c", 4)}), 2, 8) == triad
    assert loop_instructions(loops, frozenset({("triad.c", 9)}), 0, 4) == copy
    assert loop_instructions(loops, frozenset({("other.c", 4)}), 2, 8) is None
    assert loop_instructions(loops, frozenset({("triad.c", 4)}), 0, 0) is None


@pytest.mark.parametrize(
    ("body", "chain"),
    [
        (["movsd (%rdi), %xmm1", "mulsd %xmm2, %xmm1", "addsd %xmm1, %xmm0"], 1),
        (["movsd (%rdi), %xmm1", "mulsd %xmm2, %xmm1", "movsd %xmm1, (%rdi)"], 0),
        (["vmovupd (%rdi), %ymm1", "vfmadd231pd (%rsi), %ymm1, %ymm0"], 1),
        (["vmulsd %xmm0, %xmm1, %xmm2", "vdivsd %xmm2, %xmm3, %xmm0"], 5),
        (["pxor %xmm0, %xmm0", "addsd (%rdi), %xmm0", "addsd %xmm0, %xmm1"], 1),
        (["addsd (%rdi), %xmm0", "call exp"], 0),
        (["addsd (%rdi), %xmm0", "jp .L9", "addsd (%rsi), %xmm0"], 0),
        (["ldr d1, [x0], 8", "fmul d1, d1, d2", "fadd d0, d0, d1"], 1),
        (["ldr q1, [x0], 16", "fmla v0.2d, v1.2d, v2.2d"], 1),
    ],
)
def test_operations_that_wait_for_those_of_the_turn_before_are_a_chain(
    body: list[str], chain: int
) -> None:
    (loop,) = loops_of("\n".join([".L2:", *body, "jne .L2"]))
    assert loop.chain == chain


@given(
    st.lists(
        st.sampled_from((DATA / "triad_gcc.s").read_text().splitlines())
        | st.text(st.characters(codec="ascii"), max_size=30)
    )
)
def test_any_text_is_read_as_assembly(lines: list[str]) -> None:
    for loop in loops_of("\n".join(lines)):
        assert loop.instructions > 0 and loop.lanes > 0


@needs_gcc
@pytest.mark.parametrize(
    ("name", "by_hand"),
    [("stencil3d", [6, 6, 6, 6, 5, 5, 23 / 2]), ("cannon", [8 / 2])],
)
def test_instructions_of_the_bundled_programs_are_those_written_by_hand(
    name: str, by_hand: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing, walls and sweep; the product: as GCC compiles them for any x86-64."""
    monkeypatch.setenv("CC", "gcc")
    text, _ = signature_of_source([ROOT / "examples" / name / f"{name}.c"], name)
    (loop,) = [item["body"] for item in tomllib.loads(text)["program"] if "loop" in item]
    assert [entries["instructions"] for entries in items(loop)] == by_hand


def test_without_a_compiler_the_rest_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    (tmp_path / "app.c").write_text(PROGRAM.replace("FACTOR", "3.0"))
    text, draft = signature_of_source([tmp_path / "app.c"], "app")
    (item,) = items(tomllib.loads(text)["program"])
    assert (item["trip"], item["flops"], item["instructions"]) == ("n", 3, 9)
    assert draft.notes == ["no compiler no-such-compiler: instructions are estimated"]


@needs_gcc
def test_options_of_the_database_are_those_of_front_end_and_compiler(tmp_path: Path) -> None:
    source, build = tmp_path / "src", tmp_path / "build"
    source.mkdir()
    build.mkdir()
    (source / "app.c").write_text('#include "factor.h"\n' + PROGRAM)
    (source / "include").mkdir()
    (source / "include" / "factor.h").write_text("#ifdef TWICE\n#define FACTOR 2.0\n#endif\n")
    command = "gcc -O3 -DTWICE -I../src/include -MD -MF app.d -o app.o -c ../src/app.c"
    entry = {"directory": str(build), "file": "../src/app.c", "command": command}
    (build / "compile_commands.json").write_text(json.dumps([entry]))
    text, draft = signature_of_source([source / "app.c"], "app")
    (item,) = items(tomllib.loads(text)["program"])
    assert (item["flops"], draft.notes) == (3, [])
    assert item["instructions"] < 9  # two or more elements at once
    assert sorted(path.name for path in build.iterdir()) == ["compile_commands.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"directory": 1}]', '{"a": "b"}', "null"])
def test_a_damaged_database_is_named_in_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    (tmp_path / "app.c").write_text(PROGRAM.replace("FACTOR", "3.0"))
    (tmp_path / "compile_commands.json").write_text(text)
    _, draft = signature_of_source([tmp_path / "app.c"], "app")
    (damaged,) = [note for note in draft.notes if "damaged" in note]
    assert damaged.startswith("compile_commands.json: is damaged (")


@needs_gcc
def test_what_the_compiler_cannot_compile_is_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "gcc")
    (tmp_path / "app.c").write_text('#include "none.h"\n' + PROGRAM.replace("FACTOR", "3.0"))
    text, draft = signature_of_source([tmp_path / "app.c"], "app")
    assert items(tomllib.loads(text)["program"])[0]["instructions"] == 9
    assert any("app.c: gcc cannot compile it" in note for note in draft.notes)
