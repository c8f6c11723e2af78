"""Units: what follows from how names are used, what clashes, with which words."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.documents import parse_toml
from popmodel.model.check.dimensions import (
    BYTE,
    NUMBER,
    SECOND,
    Base,
    Dimensions,
    DimensionUnit,
    infer,
)
from popmodel.model.grammar import toml_lines
from popmodel.model.signature.files import bundled, read
from popmodel.model.signature.reader import SignatureReader
from popmodel.model.signature.tables import KEYS

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'


def dimensions(text: str) -> Dimensions:
    """Infer the units of a signature without its head."""
    whole = HEAD + text
    reader = SignatureReader("demo.toml", toml_lines.key_lines(whole))
    return infer(reader.signature(parse_toml(whole, "demo.toml"), False), reader.formulas)


def units(found: Dimensions) -> dict[str, str]:
    return {name: str(decision.unit) for name, decision in found.decisions.items()}


@pytest.mark.parametrize("name", bundled())
def test_bundled_signatures_have_no_clash(name: str) -> None:
    path, _, text = read(name)
    reader = SignatureReader(path, toml_lines.key_lines(text))
    found = infer(reader.signature(parse_toml(text, path), True), reader.formulas)
    assert found.clashes == ()
    assert units(found)["w"] == "B"
    assert units(found)["N"] == "1"


def test_units_follow_from_use() -> None:
    found = dimensions(
        """
[params]
N = 4
w = 8
v = 2
t = 1e-6
b = 1e9
free = 3
[let]
area = "N**2"
rate = "v/t"
[limits]
memory_per_rank = "w*area + v*sqrt(area) + 3*free"
[[program]]
serial = { trip = "N" }
[[program]]
task = { count = 3, seconds = "t + w/b" }
[[program]]
collective = { op = "bcast", bytes = "v" }
"""
    )
    assert found.clashes == ()
    assert units(found) == {
        "N": "1",
        "w": "B",
        "v": "B",
        "t": "s",
        "b": "B/s",
        "area": "1",
        "rate": "B/s",
    }
    places = {name: decision.path for name, decision in found.decisions.items()}
    assert places["N"] == ("program", 0, "serial", "trip")
    assert places["area"] == ("let", "area")
    assert places["w"] == ("limits", "memory_per_rank")  # known once N is, but this says it of w
    assert places["b"] == ("program", 1, "task", "seconds")


def test_a_number_may_carry_any_unit() -> None:
    found = dimensions(
        """
[params]
N = 4
[limits]
memory_per_rank = "8*N + 100"
[[program]]
serial = { trip = "N + 2" }
[[program]]
task = { count = "N", seconds = "1e-9*N**2" }
"""
    )
    assert found.clashes == ()
    assert units(found) == {"N": "1"}


USES = """
[params]
N = 4
w = 8
t = 1e-6
k = 2
[[program]]
serial = { trip = "N" }
[[program]]
collective = { op = "bcast", bytes = "w" }
[[program]]
task = { count = "k", seconds = "t" }
[[program]]
"""


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("serial = { trip = 'w' }", "trip: 'w' gives bytes, not a number"),
        ("serial = { trip = 'w*t' }", "trip: 'w*t' gives B*s, not a number"),
        ("serial = { trip = 'N/t**2' }", "trip: 'N/t**2' gives 1/s^2, not a number"),
        ("serial = { trip = 'sqrt(w)' }", "trip: 'sqrt(w)' gives B^(1/2), not a number"),
        (
            "serial = { trip = 1, bytes.MEM = 'N*k' }",
            "bytes.MEM: 'N*k' gives a number, not bytes",
        ),
        ("task = { count = 1, seconds = 'w' }", "seconds: 'w' gives bytes, not seconds"),
        ("serial = { trip = '1 + (N + w)/w' }", "trip: '1 + (N + w)/w' adds a number and bytes"),
        ("serial = { trip = '(w - t)/w' }", "trip: '(w - t)/w' subtracts seconds from bytes"),
        ("serial = { trip = 'min(N, w)' }", "trip: 'min(N, w)' compares a number with bytes"),
        ("serial = { trip = '1 + (w > N)' }", "trip: '1 + (w > N)' compares bytes with a number"),
        (
            "serial = { trip = 'N if N > 1 else w' }",
            "trip: 'N if N > 1 else w' chooses between a number and bytes",
        ),
        ("serial = { trip = 'log2(w)' }", "trip: 'log2(w)' takes the logarithm of bytes"),
        ("serial = { trip = 'exp(t)' }", "trip: 'exp(t)' takes the exponential of seconds"),
        (
            "serial = { trip = '1 + is_square(w)' }",
            "trip: '1 + is_square(w)' takes is_square of bytes",
        ),
        ("serial = { trip = 'N**w' }", "trip: 'N**w' has bytes as an exponent"),
        (
            "serial = { trip = '(w**k)/w**k' }",
            "trip: '(w**k)/w**k' raises bytes to an exponent that is not a constant",
        ),
        ("serial = { trip = '(w % N)/w' }", "trip: '(w % N)/w' takes the remainder of bytes by a "
         "number"),
        (
            "serial = { trip = 'if_fits(N, 1, 2)' }",
            "trip: 'if_fits(N, 1, 2)' gives if_fits a number, not bytes",
        ),
        (
            "serial = { trip = 'N', bytes.MEM = 'if_fits(w, w, N)' }",
            "bytes.MEM: 'if_fits(w, w, N)' chooses between bytes and a number",
        ),
    ],
)  # fmt: skip
def test_clashes(item: str, problem: str) -> None:
    (clash,) = dimensions(USES + item).clashes
    assert clash.problem == problem
    assert clash.path[:2] == ("program", 3)
    assert set(clash.names) <= {"N", "w", "t", "k"}


def test_a_clash_of_values_whose_units_are_open() -> None:
    found = dimensions(
        "[params]\nw = 8\nx = 3\n[let]\na = 'x + x*w'\n[[program]]\n"
        "collective = { op = 'bcast', bytes = 'w' }\n"
    )
    assert [clash.problem for clash in found.clashes] == ["bytes: 'w' gives a number, not bytes"]
    found = dimensions(
        "[params]\nx = 3\n[params.w]\nvalue = 8\nunit = 'B'\n[let]\na = 'x*w + x'\n[[program]]\n"
        "collective = { op = 'bcast', bytes = 'w' }\n"
    )
    assert [clash.problem for clash in found.clashes] == [
        "a: 'x*w + x' adds a value times bytes and a value"
    ]


def test_stated_units_are_facts() -> None:
    text = "[params]\nw = {{ value = 8, unit = '{}' }}\n[[program]]\nserial = {{ trip = 'w' }}\n"
    for unit in ("1", "cells"):
        assert dimensions(text.format(unit)).clashes == ()
    for unit, noun in (("B", "bytes"), ("s", "seconds")):
        (clash,) = dimensions(text.format(unit)).clashes
        assert clash.problem == f"trip: 'w' gives {noun}, not a number"


def test_constants_that_are_computed() -> None:
    def clashes(formula: str) -> list[str]:
        found = dimensions(f"{USES}serial = {{ trip = '{formula}' }}\n")
        return [clash.problem for clash in found.clashes]

    for formula in (
        "w**(1 + 1)/w**2", "w**(3/2)/(w*sqrt(w))", "(w*w)**(1/2)/w", "w**-1*w", "w**sqrt(4)/w**2",
        "w**(4 - 2*2)", "w**-(-1)/w",
    ):  # fmt: skip
        assert clashes(formula) == [], formula
    assert clashes("w**(2 - 1)") == ["trip: 'w**(2 - 1)' gives bytes, not a number"]
    assert clashes("w**min(1/0, 2)") == []  # what is wrong with it is not the unit


def _with_key(table: str, name: str, value: str) -> str:
    """A program in which one key has a given value, and what else is required a number."""
    send = '{ do = "send", to = "rank + P", bytes = 1 }'
    given = {"op": "'bcast'", "dim": "0", "dims": "[0]", "offsets": "[1]", "calls": f"[{send}]"}
    if table == "calls":
        return _with_call(name, value)
    required = {
        key.name: given.get(key.name, "1")
        for key in KEYS[table]
        if (key.default is None or (table, key.name) == ("collective", "bytes"))
        and key.name != "body"
    }
    entries = required | {name: value}
    inside = ", ".join(f"{key} = {entry}" for key, entry in entries.items())
    if table == "loop":
        inside += ", body = [{ serial = { trip = 1 } }]"
    if table in ("critical", "shared_writes"):
        table, inside = "parallel", f"trip = 1, {table} = {{ {inside} }}"
    if table == "scaled":
        table, inside = "messages", f"calls = [{send}], scaled = {{ {inside} }}"
    item = f"{table} = {{ {inside} }}"
    return f"[[program]]\nloop = {{ count = 1, body = [{{ {item} }}] }}\n"


def _with_call(name: str, value: str) -> str:
    """A list with a call in which one key has a given value."""
    kinds = {"from": "recv", "seconds": "compute", "instructions": "compute", "request": "wait"}
    do = kinds.get(name, "isend")
    needed = {
        "isend": {"to": "1", "bytes": "1"},
        "recv": {"from": "1"},
        "compute": {"seconds": "1"},
    }
    entries = needed.get(do, {})
    inside = ", ".join(f"{key} = {entry}" for key, entry in (entries | {name: value}).items())
    one = f"{{ do = '{do}', {inside} }}"
    if name == "repeat":
        one = f"{{ repeat = {value}, calls = [{{ do = 'waitall' }}] }}"
    send = "{ do = 'send', to = 'rank + P', bytes = 1 }"
    return f"[[program]]\nmessages = {{ calls = [{send}, {one}] }}\n"


ITEM_KEYS = [
    (table, key.name, key.unit)
    for table, keys in KEYS.items()
    for key in keys
    if key.unit and table not in ("", "imbalance", "limits", "decomp", "calibration")
]


@pytest.mark.parametrize(("table", "name", "unit"), ITEM_KEYS)
def test_every_key_needs_its_unit(table: str, name: str, unit: str) -> None:
    wrong = "s" if unit == "B" else "B"
    free_keys = {"bytes": "{ MEM = 'x' }", "constructs": "{ for = 'x' }"}
    free_keys["written"] = "{ MEM = 'x' }, bytes.MEM = 8"
    alone = {"latency": "'x', instructions = 1"}.get(name, "'x'")
    of_levels = name in ("bytes", "written") and table in ("serial", "parallel")
    is_table = name == "constructs" or of_levels
    for stated, clashes in ((unit, 0), (wrong, 1)):
        known = stated if stated in ("B", "s") else "1"
        params = f"[params]\nx = {{ value = 1, unit = '{known}' }}\n[decomp]\nglobal = [8, 8]\n"
        text = params + _with_key(table, name, free_keys[name] if is_table else alone)
        assert len(dimensions(text).clashes) == clashes


@pytest.mark.parametrize("section", ["limits.memory_per_rank", "decomp.global", "decomp.grid"])
def test_the_keys_before_the_program_need_theirs(section: str) -> None:
    table, key = section.split(".")
    value = "'x'" if key == "memory_per_rank" else "['x']"
    other = "global = ['P']\n" if key == "grid" else ""
    for unit, clashes in (("B", 0), ("1", 1)) if table == "limits" else (("1", 0), ("B", 1)):
        text = (
            f"[params]\nx = {{ value = 1, unit = '{unit}' }}\n[{table}]\n{other}{key} = {value}\n"
            "[[program]]\nserial = { trip = 1 }\n"
        )
        assert len(dimensions(text).clashes) == clashes


def test_units_as_text() -> None:
    assert [str(unit) for unit in (NUMBER, BYTE, SECOND)] == ["1", "B", "s"]
    assert str(BYTE.power(Fraction(2)).times(SECOND, Fraction(-1))) == "B^2/s"
    assert str(BYTE.power(Fraction(-1, 2)).times(SECOND, Fraction(-1))) == "1/B^(1/2)/s"
    assert str(BYTE.times(SECOND)) == "B*s"


# -- well-formed formulas never clash, ill-formed products always do

NAMES = {"w": BYTE, "t": SECOND, "N": NUMBER, "P": NUMBER}


@st.composite
def formulas(draw: st.DrawFn, unit: DimensionUnit = NUMBER, depth: int = 3) -> str:
    """A formula of a unit, made of names and of operations that are sound."""

    def of(other: DimensionUnit) -> str:
        return draw(formulas(other, depth - 1))

    if depth == 0:
        count = draw(st.sampled_from(["N", "P", "3", "(N + 1)"]))
        w, t = (unit.powers.get(base, 0) for base in Base)
        return f"({count}*w**({w})*t**({t}))"
    extra = draw(st.sampled_from(list(NAMES.values())))
    makers: list[Callable[[], str]] = [
        lambda: f"({of(unit)} + {of(unit)})",
        lambda: f"({of(unit)} - 2*{of(unit)})",
        lambda: f"({of(unit.times(extra))}/({of(extra)}))",
        lambda: f"({of(unit.times(extra.power(Fraction(-1))))}*{of(extra)})",
        lambda: f"sqrt({of(unit.power(Fraction(2)))})",
        lambda: f"({of(unit.power(Fraction(1, 2)))})**2",
        lambda: f"max({of(unit)}, {of(unit)})",
        lambda: f"abs(ceiling({of(unit)}))",
        lambda: f"({of(unit)} if {of(extra)} > {of(extra)} else {of(unit)})",
        lambda: f"{of(unit)}*log2({of(NUMBER)})",
        lambda: f"(-{of(unit)} % {of(unit)})",
        lambda: f"if_fits({of(BYTE)}, {of(unit)}, {of(unit)})",
    ]
    return draw(st.sampled_from(makers))()


ANCHORS = """
[params]
w = {{ value = 8, unit = "B" }}
t = {{ value = 2, unit = "s" }}
N = 5
[[program]]
serial = {{ trip = "N" }}
[[program]]
{}
"""


@given(
    st.sampled_from([("bytes", BYTE), ("count", NUMBER), ("seconds", SECOND)]).flatmap(
        lambda key: st.tuples(st.just(key[0]), formulas(key[1], depth=2))
    )
)
def test_a_well_formed_formula_never_clashes(case: tuple[str, str]) -> None:
    key, formula = case
    item = {
        "bytes": "shift = {{ dim = 0, by = 1, bytes = '{}' }}",
        "count": "loop = {{ count = '{}', body = [{{ serial = {{ trip = 1 }} }}] }}",
        "seconds": "task = {{ count = 1, seconds = '{}' }}",
    }[key].format(formula)
    text = ANCHORS.format(item).replace("[[program]]", "[decomp]\ngrid = ['P']\n[[program]]", 1)
    assert dimensions(text).clashes == ()


@given(st.integers(-3, 3), st.integers(-3, 3))
def test_a_product_of_names_clashes_unless_its_unit_is_right(b: int, s: int) -> None:
    item = f"collective = {{ op = 'bcast', bytes = 'N*w**{b}*t**{s}' }}"
    assert len(dimensions(ANCHORS.format(item)).clashes) == int((b, s) != (1, 0))
