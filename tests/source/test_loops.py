"""Turns and operations of loops that are made at random, against carrying them out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

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
        for cost in loop_costs(event.nest, is_repeated=False):
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
    (found,) = loop_costs(event.nest, is_repeated=False)
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
