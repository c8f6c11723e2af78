"""Units: what clashes with the units that a signature states, with which words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.documents import parse_toml
from popmodel.model.kinds import key_at
from popmodel.model.signature import reading
from popmodel.model.signature.formula_units import BYTE, NUMBER, FormulaUnit, units_of
from popmodel.model.signature.reading import SignatureError
from popmodel.model.signatures import SignatureReader

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
STATED = """
[params]
N = { value = 4, unit = "1" }
w = { value = 8, unit = "B" }
t = { value = 1e-6, unit = "s" }
free = 3
"""
EVERY = Path(__file__).parents[2] / "data" / "signatures" / "every.toml"


def units(text: str) -> tuple[dict[str, FormulaUnit], list[SignatureError]]:
    """Check the units of a signature without its head."""
    whole = HEAD + text
    reader = SignatureReader("demo.toml", reading.key_lines(whole))
    signature = reader.signature(parse_toml(whole, "demo.toml"), False)
    return units_of(signature, reader.formulas, reader.lines)


def problems(item: str) -> list[str]:
    return [clash.problem for clash in units(f"{STATED}[[program]]\n{item}\n")[1]]


CLASHES = {
    "w": "gives bytes, not a number",
    "w*t": "gives B*s, not a number",
    "N/t**2": "gives 1/s^2, not a number",
    "sqrt(w)": "gives B^(1/2), not a number",
    "1 + (N + w)/w": "adds a number and bytes",
    "(w - t)/w": "subtracts seconds from bytes",
    "min(N, w)": "compares a number with bytes",
    "1 + (w > N)": "compares bytes with a number",
    "N if N > 1 else w": "chooses between a number and bytes",
    "log2(w)": "takes the logarithm of bytes",
    "exp(t)": "takes the exponential of seconds",
    "1 + is_square(w)": "takes is_square of bytes",
    "N**w": "has bytes as an exponent",
    "w**N/w**N": "raises bytes to an exponent that is not a constant",
    "(w % N)/w": "takes the remainder of bytes by a number",
    "if_fits(N, 1, 2)": "gives if_fits a number, not bytes",
    "if_fits(w, N, w)": "chooses between a number and bytes",
    "machine.memory.b1": "gives B/s, not a number",
}
SOUND = (
    *(
        "N",
        "8*w",
        "w*free",
        "w/w",
        "w**2/w**2",
        "(w*w)**0.5/w",
        "w**-1*w",
        "N*log2(N)",
        "2*t + w/w",
    ),
    *(
        "free*(free + w)",
        "machine.memory.b1*t/w",
        "w**min(1/0, 2)",
        "if_fits(w, N, 2*N)",
        "N if w > w else 3",
    ),
)


def test_formulas_that_clash_and_such_that_may_be_sound() -> None:
    for formula, problem in CLASHES.items():
        assert problems(f"serial = {{ trip = '{formula}' }}") == [f"trip: '{formula}' {problem}"]
    for formula in SOUND:
        assert problems(f"serial = {{ trip = '{formula}' }}") == [], formula
    assert problems("collective = { op = 'bcast', bytes = 'N' }") == [
        "bytes: 'N' gives a number, not bytes"
    ]
    assert problems("task = { count = 1, seconds = 'w' }") == [
        "seconds: 'w' gives bytes, not seconds"
    ]
    assert problems("serial = { trip = 1, bytes.MEM = 'N' }") == [
        "bytes.MEM: 'N' gives a number, not bytes"
    ]


def test_names_of_let_have_the_unit_of_their_formula() -> None:
    text = (
        f"{STATED}[let]\nrate = 'w/t'\nopen = 'free*w'\n[[program]]\nserial = {{ trip = 'rate' }}\n"
    )
    found = units(text)
    assert {name: str(unit) for name, unit in found[0].items()} == {
        **{"N": "1", "w": "B", "t": "s", "rate": "B/s"}
    }
    (clash,) = found[1]
    assert clash.hint == "rate is B/s (line 11)"


def test_units_that_are_counted_are_numbers() -> None:
    text = "[params]\nw = {{ value = 8, unit = '{}' }}\n[[program]]\nserial = {{ trip = 'w' }}\n"
    assert [len(units(text.format(unit))[1]) for unit in ("1", "cells", "B")] == [0, 0, 1]
    assert str(BYTE.times(BYTE).times(NUMBER, -1)) == "B^2"


def test_the_key_of_every_formula_of_a_program_says_its_unit() -> None:
    text = EVERY.read_text()
    reader = SignatureReader(str(EVERY), reading.key_lines(text))
    signature = reader.signature(parse_toml(text, str(EVERY)), False)
    assert units_of(signature, reader.formulas, reader.lines)[1] == []
    keys = [key_at(path) for path in reader.formulas if path[0] == "program"]
    assert len(keys) > 50
    assert all(key is not None for key in keys)


@given(st.integers(-3, 3), st.integers(-3, 3))
def test_a_product_of_names_clashes_unless_its_unit_is_right(b: int, s: int) -> None:
    found = problems(f"collective = {{ op = 'bcast', bytes = 'N*w**({b})*t**({s})' }}")
    assert len(found) == int((b, s) != (1, 0))


@pytest.mark.parametrize("formula", ["2*w*free", "free*(w + free)", "free**2*w"])
def test_what_has_an_open_part_agrees_with_everything(formula: str) -> None:
    assert problems(f"task = {{ count = 1, seconds = '{formula}' }}") == []
