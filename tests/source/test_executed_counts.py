"""Turns of generated loops in C, C++ and Fortran, against the compiled programs' own counts."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sympy

from popmodel.source import c_family, fortran_family
from popmodel.source.computing_items import mean_trips
from popmodel.source.interpreter import Interpreter
from popmodel.source.loop_costs import loop_costs
from popmodel.source.source_events import Work

SIZE = 17
Loop = tuple[str, str, int]
"""First and last value of a loop, both included, and its step."""


def nest_of(draw: random.Random) -> list[Loop]:
    """Loops inside of each other; bounds are formulas of the size, a scalar, or loops outside."""
    found: list[Loop] = []
    ends = ["n - 1", "n", "n + k", "2*n + 3"]  # in order: no loop is empty for some turns outside
    for depth in range(draw.randint(1, 4)):
        first = draw.choice(["0", "1", "2", "k", *([f"i{depth - 1}"] if depth else [])])
        last = draw.choice(ends)
        ends = ends[ends.index(last) :]
        step = draw.choice([1, 1, 2, 3]) if first in ("0", "1", "2") else 1
        if draw.random() < 0.25 and not first.startswith("i"):
            first, last, step = last, first, -step  # downwards
        found.append((first, last, step))
    return found


def c_text(nests: list[list[Loop]], is_counting: bool, before: str = "") -> str:
    """A program with a function for each nest, which prints their turns if it is to count."""
    text = f"#include <stdio.h>\n#include <stdlib.h>\n{before}\nlong turns;\n"
    for number, nest in enumerate(nests):
        heads = "".join(
            f"for (long i{depth} = {first}; i{depth} {'<=' if step > 0 else '>='} {last}; "
            f"i{depth} {'+' if step > 0 else '-'}= {abs(step)}) "
            for depth, (first, last, step) in enumerate(nest)
        )
        body = "turns++;" if is_counting else f"a[i{len(nest) - 1}] += b[i{len(nest) - 1}];"
        text += f"void f{number}(long n, double *a, double *b) {{ long k = 3; {heads} {body} }}\n"
    shown = 'printf("%ld\\n", turns); turns = 0;' if is_counting else ""
    calls = " ".join(f"f{number}(n, a, b); {shown}" for number in range(len(nests)))
    pointers = "double *a = (double *)malloc(8), *b = (double *)malloc(8);"
    return text + f"int main(int c, char **v) {{ long n = atol(v[1]); {pointers} {calls} }}\n"


def cpp_text(nests: list[list[Loop]], is_counting: bool) -> str:
    """The same as methods of a template that hold their arrays."""
    text = c_text(nests, is_counting)
    for number in range(len(nests)):
        text = text.replace(
            f"void f{number}(long n, double *a, double *b) {{",
            f"template <class T> struct S{number} {{ T *a, *b; long n; void run(); }};\n"
            f"template <class T> void S{number}<T>::run() {{",
        )
        one = f"s{number}"
        text = text.replace(
            f"f{number}(n, a, b);",
            f"S{number}<double> {one}; {one}.n = n; {one}.a = a; {one}.b = b; {one}.run();",
        )
    return text


def fortran_text(nests: list[list[Loop]], is_counting: bool) -> str:
    """The same in Fortran."""
    text, calls = "", ""
    for number, nest in enumerate(nests):
        heads = "".join(
            f"do i{depth} = {first}, {last}, {step}\n"
            for depth, (first, last, step) in enumerate(nest)
        )
        index = f"i{len(nest) - 1}"
        body = "turns = turns + 1" if is_counting else f"a({index}) = a({index}) + b({index})"
        text += (
            f"subroutine f{number}(n, a, b, turns)\ninteger(8) :: n, k, turns, i0, i1, i2, i3\n"
            f"real(8) :: a(*), b(*)\nk = 3\n{heads}{body}\n{'end do' + chr(10)}"
            + "end do\n" * (len(nest) - 1)
            + "end subroutine\n"
        )
        shown = "print '(i0)', turns\nturns = 0\n" if is_counting else ""
        calls += f"call f{number}(n, a, b, turns)\n{shown}"
    return (
        f"{text}program p\ninteger(8) :: n, turns\nreal(8) :: a(1), b(1)\nturns = 0\n"
        f"read(*,*) n\n{calls}end program\n"
    )


def drafted_turns(path: Path, count: int) -> list[float]:
    """Turns of the innermost loop of each function at the size."""
    family = fortran_family if path.suffix == ".f90" else c_family
    made = Interpreter(family.read([path]))
    made.run()
    found = dict.fromkeys((f"f{number}" for number in range(count)), 0.0)
    runs = iter(found)
    (size,) = made.parameters
    for event in made.events:
        assert isinstance(event, Work)
        name = event.function if event.function in found else next(runs)  # methods come in order
        for cost in loop_costs(event.nest, None):
            found[name] += float(sympy.Mul(*mean_trips(cost)).subs(size, SIZE).doit())
    return list(found.values())


@pytest.mark.parametrize(
    ("name", "compiler", "text"),
    [("a.c", "gcc", c_text), ("a.cpp", "g++", cpp_text), ("a.f90", "gfortran", fortran_text)],
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_turns_are_those_that_the_compiled_program_counts(
    name: str,
    compiler: str,
    text: Callable[[list[list[Loop]], bool], str],
    seed: int,
    tmp_path: Path,
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    draw = random.Random(seed)
    nests = [nest_of(draw) for _ in range(25)]
    counting, path = tmp_path / f"counting{Path(name).suffix}", tmp_path / name
    counting.write_text(text(nests, True))
    path.write_text(text(nests, False))
    program = tmp_path / "counting"
    subprocess.run([compiler, "-O1", "-o", str(program), str(counting)], check=True)
    counted = subprocess.run(
        [str(program), str(SIZE)], input=str(SIZE), capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(counted) == len(nests)
    made = drafted_turns(path, len(nests))
    off = [
        (nest, found, int(turns))
        for nest, found, turns in zip(nests, made, counted, strict=True)
        if found != pytest.approx(int(turns))
    ]
    assert off == []
