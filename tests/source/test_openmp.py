"""Directives and clauses of OpenMP 5.2 in C, C++ and Fortran: each is modelled, or it is named."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from popmodel.source import c_family, fortran_family, signature_of_source
from popmodel.source.draft import Draft
from popmodel.source.interpreter import Interpreter
from popmodel.source.openmp_directives import parsed_directive
from popmodel.source.source_events import Work

_TABLE = (Path(__file__).parents[1] / "data" / "sources" / "openmp52.txt").read_text()
BEFORE_LOOPS, BEFORE_STATEMENTS, ALONE, CLAUSES, NAMED = (
    part.splitlines()[1:] for part in _TABLE[1:].split("\n#")
)
"""Names of all directives, combined ones by examples; all clauses, and those that change costs."""


def draft_of(folder: Path, name: str, text: str) -> tuple[list[dict[str, Any]], Draft]:
    """Items of a program, and its draft."""
    (folder / name).write_text(text)
    found, draft = signature_of_source([folder / name], "app")
    return tomllib.loads(found).get("program", []), draft


def in_c(directive: str, code: str) -> str:
    """A program with a directive before code."""
    return (
        "#include <stdlib.h>\nint main(int argc, char **argv) { int n = atoi(argv[1]), i;\n"
        f"double *a = (double *)malloc(8 * n);\n#pragma omp {directive}\n{code}\n}}\n"
    )


def in_fortran(directive: str) -> str:
    """A directive as Fortran has it."""
    return " ".join("do" if word == "for" else word for word in directive.split())


def fortran(directive: str, code: str) -> str:
    """A program with a directive before code."""
    return (
        "program p\ninteger :: i, n\nreal(8) :: a(100)\nread(*,*) n\n"
        f"!$omp {directive}\n{code}\nend program\n"
    )


LOOP, FORTRAN_LOOP = (
    "for (i = 0; i < n; i++) a[i] = 2 * a[i];",
    "do i = 1, n\na(i) = 2*a(i)\nend do",
)


def work_of(folder: Path, name: str, parts: Sequence[str]) -> list[list[Work]]:
    """Computing of the functions of a program, each with a directive and a loop; what is named."""
    numbers = range(len(parts))
    if name.endswith("90"):
        text = "".join(
            f"subroutine f{number}(a, n)\ninteger :: i, n\nreal(8) :: a(n)\n{parts[number]}\nend\n"
            for number in numbers
        )
        calls = "\n".join(f"call f{number}(a, n)" for number in numbers)
        text += f"program p\ninteger :: n\nreal(8) :: a(100)\nread(*,*) n\n{calls}\nend program\n"
    else:
        text = "#include <stdlib.h>\n" + "".join(
            f"void f{number}(double *a, int n) {{ int i;\n{parts[number]}\n}}\n"
            for number in numbers
        )
        calls = " ".join(f"f{number}(a, n);" for number in numbers)
        text += f"int main(int c, char **v) {{ int n = atoi(v[1]); static double a[9]; {calls} }}\n"
    (folder / name).write_text(text)
    family = fortran_family if name.endswith("90") else c_family
    made = Interpreter(family.read([folder / name]))
    made.run()
    assert not any("no directive" in note for note in made.notes)
    work = [event for event in made.events if isinstance(event, Work)]
    return [[event for event in work if event.function == f"f{number}"] for number in numbers]


@pytest.mark.parametrize("name", ["a.c", "a.cpp", "a.f90"])
def test_loops_behind_every_directive_are_counted_once_and_shared_where_threads_share(
    name: str, tmp_path: Path
) -> None:
    parts = [
        f"!$omp {in_fortran(directive)}\n{FORTRAN_LOOP}"
        if name.endswith("90")
        else f"#pragma omp {directive}\n{LOOP}"
        for directive in BEFORE_LOOPS
    ]
    for directive, work in zip(BEFORE_LOOPS, work_of(tmp_path, name, parts), strict=True):
        (loop,) = work
        constructs = parsed_directive(directive).constructs
        is_shared = not set(constructs) <= {"simd", "tile", "unroll", "target"}
        assert (bool(loop.directive), loop.nest.tally.flops) == (is_shared, {"*": 1}), directive


@pytest.mark.parametrize("name", ["a.c", "a.cpp", "a.f90"])
def test_every_directive_is_known_and_what_follows_it_is_carried_out(
    name: str, tmp_path: Path
) -> None:
    directives, parts = [*BEFORE_STATEMENTS, *ALONE], []
    for directive in directives:
        omp = parsed_directive(directive)
        assert omp.is_alone == (directive in ALONE), directive
        if name.endswith("90"):
            is_ended = not omp.is_alone and directive != "section"
            end = f"!$omp end {omp.name}" if is_ended else ""
            parts.append(f"!$omp {directive}\n{FORTRAN_LOOP}\n{end}")
        else:
            parts.append(f"#pragma omp {directive}\n{';' if omp.is_alone else ''}{{ {LOOP} }}")
    for directive, work in zip(directives, work_of(tmp_path, name, parts), strict=True):
        loops = [one.directive for one in work if one.nest.tally.size]
        assert loops == [""], directive


@pytest.mark.parametrize("directive", ["parallel for", "target teams distribute parallel for"])
def test_every_clause_is_known_and_those_that_change_costs_are_named(directive: str) -> None:
    for clause in CLAUSES:
        omp = parsed_directive(f"{directive} private(x) {clause}, shared(y)")
        name = clause.split("(")[0]
        assert [known for known, _ in omp.clauses] == ["private", name, "shared"]
        about = [text for text in omp.unmodelled() if name in text.split(": ", 1)[-1].split()]
        assert bool(about) == (name in NAMED), (clause, list(omp.unmodelled()))


def test_what_is_no_directive_or_clause_is_named() -> None:
    for text, said in (
        ("paralel for", "omp paralel for: no directive of OpenMP 5.2, left out"),
        ("", "omp: no directive of OpenMP 5.2, left out"),
        ("for colapse(2)", "omp for: colapse is no clause of OpenMP 5.2, left out"),
        ("parallel private(x) )", "omp parallel: cannot be read: )"),
    ):  # fmt: skip
        assert list(parsed_directive(text).unmodelled()) == [said]


@pytest.mark.parametrize(
    "before",
    [
        "#pragma omp parallel for schedule(dynamic, 4)\n",
        "#  pragma  omp  parallel \\\n for \\\n schedule ( dynamic , 4 ) // why\n",
        "#ifdef _OPENMP\n#pragma omp parallel for schedule(dynamic, 4)\n#endif\n",
        '_Pragma("omp parallel for schedule(dynamic, 4)") ',
        "SHARE ",
        "DIRECTIVE(omp parallel for schedule(dynamic, 4)) ",
        "[[omp::directive(parallel for schedule(dynamic, 4))]] ",
        "[[using omp: sequence(directive(parallel), directive(for schedule(dynamic, 4)))]] ",
        "#pragma omp metadirective when(device={kind(gpu)}: target teams loop) "
        "when(user={condition(1)}: parallel for schedule(dynamic, 4)) default(nothing)\n",
    ],
)
def test_a_directive_is_found_in_every_way_to_write_it(before: str, tmp_path: Path) -> None:
    macros = (
        '#define SHARE _Pragma("omp parallel for schedule(dynamic, 4)")\n'
        "#define DIRECTIVE(text) _Pragma(#text)\n"
    )
    text = in_c("nothing", f"{before}{LOOP}")
    ((item,), _) = draft_of(tmp_path, "a.cpp", macros + text)
    assert (item["parallel"]["schedule"], item["parallel"]["chunk"]) == ("dynamic", 4)


@pytest.mark.parametrize(
    "before",
    [
        "#if 0\n#pragma omp parallel for\n#endif\n",
        "/*\n#pragma omp parallel for\n*/\n",
        "// #pragma omp parallel for\n",
        'const char *t = "\\\n#pragma omp parallel for";\n',
        "#pragma unroll(4)\n",
    ],
)
def test_what_only_looks_like_a_directive_is_none(before: str, tmp_path: Path) -> None:
    ((item,), draft) = draft_of(tmp_path, "a.cpp", in_c("nothing", f"{before}{LOOP}"))
    assert (list(item), draft.notes) == (["serial"], [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.f90", "!$omp parallel do schedule(dynamic, 4)\n"),
        ("a.f90", "!$OMP PARALLEL DO &\n!$OMP& SCHEDULE(DYNAMIC, 4)\n"),
        ("a.f90", "  !$omp paralleldo &\n  !$omp schedule(dynamic, &\n  !$omp& 4)\n"),
        ("a.f", "c$omp parallel do schedule(dynamic, 4)\n"),
        ("a.f", "*$omp parallel do\n*$omp+ schedule(dynamic,\n!$omp1 4)\n"),
        ("a.F", "#ifdef _OPENMP\nC$OMP PARALLELDO SCHEDULE(DYNAMIC,4)\n#endif\n"),
    ],
)
def test_sentinels_and_continued_lines_of_both_forms_are_read(
    name: str, text: str, tmp_path: Path
) -> None:
    lines = fortran("nothing", text + FORTRAN_LOOP).splitlines(keepends=True)
    if not name.endswith("90"):
        lines = [line if line[:1] in "!c*C#" else f"      {line}" for line in lines]
        lines = [line.replace("      end\n", "      end program\n") for line in lines]
    ((item,), _) = draft_of(tmp_path, name, "".join(lines))
    assert (item["parallel"]["schedule"], item["parallel"]["chunk"]) == ("dynamic", 4)


def test_what_ends_with_a_directive_of_fortran_is_inside_of_it(tmp_path: Path) -> None:
    inner = "!$omp do\n" + FORTRAN_LOOP + "\n!$omp end do nowait\n!$omp barrier"
    text = fortran("parallel", f"{inner}\n!$omp endparallel\n{FORTRAN_LOOP}")
    items, _ = draft_of(tmp_path, "a.f90", text)
    kinds = [(kind, item.get("constructs")) for part in items for kind, item in part.items()]
    assert kinds == [("parallel", {"for": 1}), ("parallel", {"barrier": 1}), ("serial", None)]


def test_collapsed_loops_are_shared_as_one(tmp_path: Path) -> None:
    nest = "for (i = 0; i < n; i++) for (int j = 0; j < 20; j++) for (int k = 0; k < 30; k++)"
    text = in_c("parallel for collapse(2)", f"{nest} a[(i * 20 + j) * 30 + k] += 1;")
    ((item,), _) = draft_of(tmp_path, "a.c", text)
    assert (item["parallel"]["trip"], item["parallel"]["inner"]) == ("20*n", 30)
