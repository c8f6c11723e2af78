"""Turns and operations of loops that are made at random, against carrying them out."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.source import c_family
from popmodel.source.computing_items import mean_trips
from popmodel.source.interpreter import Interpreter
from popmodel.source.loop_costs import loop_costs
from popmodel.source.source_events import Work

SIZE = 9


def interpreted(folder: Path, body: str, before: str = "") -> Interpreter:
    """A program of one size, carried out with symbols."""
    path = folder / "program.c"
    path.write_text(
        f"#include <stdlib.h>\n{before}\nint main(int argc, char **argv) {{\n"
        f"int n = atoi(argv[1]);\ndouble *a = malloc(8), *b = malloc(8), s = 0.0;\n{body}\n"
        "return 0; }\n"
    )
    made = Interpreter(c_family.read([path]))
    made.run()
    return made


def turns(made: Interpreter) -> float:
    """Innermost iterations of all loops, at the size."""
    total = 0.0
    (symbol,) = made.parameters
    for event in made.events:
        assert isinstance(event, Work)
        for cost in loop_costs(event.nest, None):
            product = sympy.Integer(1)
            for trip in mean_trips(cost):
                product *= trip
            total += float(product.subs(symbol, SIZE).doit())
    return total


@st.composite
def loops(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """First, last and step of loops inside of each other; one may begin where that outside is."""
    found: list[tuple[str, str, int]] = []
    ends = ["n - 1", "n", "2*n + 3"]
    for depth in range(draw(st.integers(1, 4))):
        outer = f"i{depth - 1}" if depth else "0"
        first = draw(st.sampled_from(["0", "1", outer]))
        ends = ends[ends.index(found[-1][1]) :] if found else ends
        last = draw(st.sampled_from(ends))
        step = draw(st.integers(1, 3)) if "i" not in first else 1
        found.append((first, last, step))
    return found


def executed(nest: Sequence[tuple[str, str, int]], values: dict[str, int]) -> int:
    """Innermost iterations, one by one."""
    if not nest:
        return 1
    (first, last, step), *inner = nest
    begin, end = (eval(text, {"n": SIZE, **values}) for text in (first, last))
    name = f"i{len(values)}"
    return sum(executed(inner, {**values, name: at}) for at in range(begin, end, step))


@given(loops())
def test_turns_are_those_of_carrying_loops_out(
    tmp_path_factory: pytest.TempPathFactory, nest: list[tuple[str, str, int]]
) -> None:
    heads = "".join(
        f"for (int i{depth} = {first}; i{depth} < {last}; i{depth} += {step}) "
        for depth, (first, last, step) in enumerate(nest)
    )
    inner = f"i{len(nest) - 1}"
    made = interpreted(tmp_path_factory.mktemp("loops"), f"{heads} a[{inner}] += b[{inner}];")
    assert turns(made) == pytest.approx(executed(nest, {}))


def cost(folder: Path, body: str, before: str = "") -> Any:
    """The only loop of a program."""
    (event,) = interpreted(folder, body, before).events
    assert isinstance(event, Work)
    (found,) = loop_costs(event.nest, None)
    return found


@pytest.mark.parametrize(
    ("statement", "flops", "loads", "stores"),
    [
        ("a[i] = b[i] * 2.0 + 1.0;", 2, 1, 1),
        ("a[i] += b[i];", 1, 2, 1),
        ("s += a[i] * a[i];", 2, 1, 0),  # an element is loaded once
        ("a[i] = b[i] / 3.0 - b[i + 1] * b[i - 1];", 3, 3, 1),
        ("a[2 * i] = b[0];", 0, 0, 1),  # what does not move with the loop is no load of it
        ("a[i] = add(b[i], b[i + n]);", 1, 2, 1),  # of a function
        ("*a++ = *b++;", 0, 1, 1),
        ("a[i] = b[(int)b[i]];", 0, 2, 1),  # what another element names
        ("if (i % 3) a[(int)b[i]] += 1.0;", 1, 2, 1),
        ("if (argc > 1) a[i] = b[i]; else a[i] = 2.0 * b[i] + b[i + 1];", 2, 2, 1),  # the dearer
    ],
)
def test_operations_of_an_iteration(
    statement: str, flops: int, loads: int, stores: int, tmp_path: Path
) -> None:
    add = "static double add(double x, double y) { return x + y; }"
    found = cost(tmp_path, f"for (int i = 0; i < n; i++) {{ {statement} }}", add)
    assert (found.flops, found.loads, found.stores) == (flops, loads, stores)


def test_traffic_of_a_stencil_by_what_a_cache_holds(tmp_path: Path) -> None:
    """Rows above and below: one stream where three rows and that of the result stay, else three."""
    found = cost(
        tmp_path,
        "for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++)\n"
        "a[i*n + j] = b[i*n + j - 1] + b[i*n + j + 1] + b[(i-1)*n + j] + b[(i+1)*n + j];",
    )
    (rows, stays, written), (end, passes, _) = found.layers
    (size,) = rows.own.free_symbols
    assert (rows.own, stays, written, end, passes) == (32 * size, 24, 8, None, 40)
    assert Fraction(found.flops.p, found.flops.q) == 3


def test_rows_of_an_array_and_of_pointers_are_different_data(tmp_path: Path) -> None:
    """Of all rows nothing stays: 8 B of one array are read, 8 of the other, read and written."""
    for rows in ("double c[900][900];", "double **c;"):
        found = cost(
            tmp_path,
            "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) c[i][j] += a[i*n + j];",
            rows,
        )
        _, moved, written = found.layers[-1]
        pointers = sum(8 / size for size in moved.free_symbols)  # One of a row
        assert (moved - pointers, written) == (24, 8), rows
        assert bool(pointers) == ("**" in rows)


def test_ends_of_rows_in_an_array_are_turns_that_are_not_known(tmp_path: Path) -> None:
    found = draft(
        tmp_path,
        "int *row = malloc(4 * n);\n"
        "for (int i = 0; i < n; i++) for (int k = row[i]; k < row[i + 1]; k++) s += a[k];",
    )
    (item,) = found["program"]
    assert item["serial"]["trip"] == "n*row_range"
    assert list(found["constants"].values()) == ["?"]


def draft(folder: Path, body: str, before: str = "") -> dict[str, Any]:
    """The signature of a program."""
    interpreted(folder, body, before)
    return tomllib.loads(popmodel.signature(folder / "program.c").text)


def test_a_cache_that_loads_nothing_holds_all_that_is_touched_in_between(tmp_path: Path) -> None:
    found = draft(
        tmp_path,
        "double *c = malloc(8 * n);\nfor (int t = 0; t < 99; t++) {\n"
        "for (int i = 0; i < n; i++) a[i] += b[i];\nMPI_Barrier(MPI_COMM_WORLD);\n"
        "for (int i = 0; i < n; i++) b[i] += c[i]; }",
        "#include <mpi.h>",
    )
    assert list(found["let"].values()) == ["24*n"]


def test_loops_of_a_branch_keep_their_directives(tmp_path: Path) -> None:
    found = draft(
        tmp_path,
        "if (n > 9)\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) a[i] += 1.0;\nelse\n"
        "#pragma omp parallel for reduction(+:s)\nfor (int i = 0; i < n; i++) s += a[i];",
    )
    constructs = [item["parallel"]["constructs"] for item in found["program"]]
    assert constructs == [{"parallel_for": 1}, {"for": 1, "reduction": 1}]


@pytest.mark.parametrize(
    ("call", "loads"),
    [("dot(a, a, n)", [1]), ("dot(a, b, n)", [2]), ("dot(a, argv, n)", [2])],
)
def test_pointers_are_compared_where_both_are_known(
    call: str, loads: list[int], tmp_path: Path
) -> None:
    found = draft(
        tmp_path,
        f"s = {call};",
        "static double dot(double *x, double *y, int n) { double s = 0;\n"
        "if (x == y) for (int i = 0; i < n; i++) s += x[i] * x[i];\n"
        "else for (int i = 0; i < n; i++) s += x[i] * y[i];\nreturn s; }",
    )
    assert [item["serial"]["loads"] for item in found["program"]] == loads


def test_what_only_the_first_turn_does_is_done_once(tmp_path: Path) -> None:
    found = draft(
        tmp_path,
        "for (int k = 1; k < 150; k++) { if (k == 1) for (int i = 0; i < n; i++) a[i] = b[i];\n"
        "else for (int i = 0; i < n; i++) a[i] += 2.0 * b[i];\nMPI_Barrier(MPI_COMM_WORLD); }",
        "#include <mpi.h>",
    )
    (item,) = found["program"]
    rare = [table.get("every") for inner in item["body"] for table in inner.values()]
    assert rare == [149, None, None]


def test_parameters_that_are_written_as_arrays_are_pointers(tmp_path: Path) -> None:
    """Their operations on what a loop loads are counted, whichever way they are written."""
    for x, y in (("*x", "(*y)[2]"), ("x[]", "y[][2]"), ("x[2]", "y[1][2]")):
        found = cost(
            tmp_path,
            "for (int i = 0; i < n; i++) { double x[2], y[1][2]; x[0] = b[i]; x[1] = b[i + 1];\n"
            "form(x, y); a[i] = y[0][0] * y[0][1]; }",
            f"static void form(double const {x}, double {y}) {{\n"
            "y[0][0] = x[0] + x[1]; y[0][1] = x[0] - x[1]; }",
        )
        assert (found.flops, found.loads, found.stores) == (3, 2, 1), (x, y)


def test_a_turn_that_needs_what_the_one_before_has_made_is_a_chain(tmp_path: Path) -> None:
    for statement, cycles in (
        ("a[i] = 0.5 * (a[i] + a[i - 1]);", 8),
        ("a[n - i] = a[n - i + 1] + 1;", 4),
        ("a[i] = 0.5 * (a[i] + a[i + 1]);", None),
        ("a[i] = a[i - 2] + b[i - 1];", None),
    ):
        found = draft(tmp_path, f"for (int i = 1; i < n; i++) {statement}")
        assert found["program"][0]["serial"].get("chain") == cycles, statement
