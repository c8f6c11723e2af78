"""What a check finds: every mistake and remark with its line and its words."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.errors import UsageError
from popmodel.model import signatures as signature
from popmodel.model.check import CheckedSignature, check
from popmodel.model.grammar.reading import SignatureError
from popmodel.model.signatures import bundled, read

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
BODY = "[[program]]\nserial = { trip = 5 }\n"
ROOT = Path(__file__).parents[2]

Check = Callable[..., CheckedSignature]


@pytest.fixture
def checked(tmp_path: Path) -> Check:
    def run(text: str, **settings: float) -> CheckedSignature:
        path = tmp_path / "demo.toml"
        path.write_text(text)
        return check(path, settings)

    return run


@pytest.mark.parametrize(
    "source",
    [*bundled(), *sorted(str(path) for path in ROOT.glob("examples/**/*.toml"))],
)
def test_what_comes_with_popmodel_is_in_order(source: str) -> None:
    found = check(source)
    assert found.mistakes == ()
    assert found.remarks == ()
    assert found.explained is not None
    assert found.application == signature.load(source).name


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        (
            HEAD + "[let]\nnrows = 4\nb = 'nrow'\n" + BODY,
            6,
            "b: unknown name 'nrow' in 'nrow'",
            "did you mean nrows?",
        ),
        (
            HEAD + "[let]\na = \"__import__('os').system('ls')\"\n" + BODY,
            5,
            "a: expression \"__import__('os').system('ls')\", column 1: only functions can "
            "be called, by name",
            None,
        ),
        (
            HEAD + f"[[program]]\nserial = {{ trip = '{'-' * 1500}1' }}\n",
            5,
            "nested",
            None,
        ),
        (
            HEAD + "[[program]]\nserial = { trip = '9**9**9' }\n",
            5,
            "trip: expression '9**9**9', column 1: an exponent is larger than 64",
            None,
        ),
        (
            HEAD + "[params]\nt = { value = 3, unit = 'ms' }\n[[program]]\nserial={trip='t'}\n",
            5,
            "t: the unit must be B, s, 1 or what is counted, not 'ms'",
            "for example cells; sizes are in B, times in s",
        ),
        (
            HEAD + "[params]\nt = { value = 3, unit = [1] }\n[[program]]\nserial={trip='t'}\n",
            5,
            "t: the unit must be B, s, 1 or what is counted, not [1]",
            "for example cells; sizes are in B, times in s",
        ),
        (
            HEAD + "[params]\nw = { value = 8, unit = 'B' }\n[let]\nn = 'P + 1'\n[[program]]\n"
            "serial = {trip = 'w + n' }\n",
            9,
            "trip: 'w + n' adds bytes and a number",
            "w is bytes (line 5); n is a number (line 7)",
        ),
        (
            HEAD + "[[program]]\ncollective = { op = 'bcast', bytes = 'P*T' }\n",
            5,
            "bytes: 'P*T' gives a number, not bytes",
            "counts, P, T and the extents of the grid have no unit",
        ),
        (
            HEAD + "[limits]\nrequire = [\n 'P > 1',\n 'P < 1' ]\n" + BODY,
            7,
            "require: 'P < 1' never holds (tried 1 to 1048576 processes)",
            "no run is possible",
        ),
        (
            HEAD + "[limits]\nrequire = [ 'T > 300']\n" + BODY,
            5,
            "require: 'T > 300' never holds (tried a selection of process counts and 1 to 256 "
            "threads)",
            "no run is possible",
        ),
        (
            HEAD + "[limits]\nrequire = [\n 'P > 8',\n 'P < 9',\n 'P < 5']\n" + BODY,
            7,
            "require: 'P < 9' never holds together with require: 'P > 8' in line 6",
            "no run is possible (tried 1 to 1048576 processes)",
        ),
        (
            HEAD + "[limits]\nrequire = ['P%2 == 0', 'P%3 == 0',\n 'P < 6']\n" + BODY,
            6,
            "require: 'P < 6' never holds together with the conditions before it",
            "no run is possible (tried 1 to 1048576 processes)",
        ),
        (
            HEAD + "[decomp]\ngrid = ['P + 1']\n" + BODY,
            5,
            "the grid P + 1 never has P processes (tried 1 to 1048576 processes)",
            "no run is possible",
        ),
        (
            HEAD + "[params]\nN = 3\n[[program]]\nserial = { trip = 'N - 3' }\n",
            7,
            "trip: 'N - 3' is 0 with these parameters, for every P and T; must be above 0",
            "check the parameters in it",
        ),
        (
            HEAD + "[params]\nN = 3\n[[program]]\nparallel = { trip = 'N/P', inner = '-P/N' }\n",
            7,
            "inner: '-P/N' is -349525 to -0.333333 with these parameters, for every P and T; "
            "must be above 0",
            "check the parameters in it",
        ),
        (
            HEAD + "[params]\nN = 3\n[let]\na = '1/(N - 3)'\n[[program]]\nserial = {trip = 'a'}\n",
            7,
            "a: '1/(N - 3)' has no finite value with these parameters",
            "look for a division by zero, the root or logarithm of a negative number, or a power "
            "that is too large",
        ),
        (
            HEAD + "[decomp]\nglobal = ['1/(P - P)', 'P']\n[[program]]\nserial = {trip='n0'}\n",
            5,
            "global: '1/(P - P)' has no finite value with these parameters",
            None,
        ),
        (HEAD + "[params]\nN = 3\n" + BODY + "[x\n", 8, "is not TOML: ", None),
        ("schema = 3\n" + BODY, 1, "schema must be 'popmodel/signature/1', not 3", None),
    ],
)
def test_a_mistake(checked: Check, text: str, line: int, message: str, hint: str | None) -> None:
    found = checked(text)
    (mistake,) = found.mistakes
    assert mistake.line == line
    assert message in mistake.message
    assert "\n" not in mistake.message
    if len(message) > 10:
        assert mistake.message.startswith(message)
    if hint is not None:
        assert mistake.hint == hint
    assert found.explained is None


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        (
            HEAD + "[params]\nN = 3\n" + BODY,
            5,
            "N is never used",
            "remove it, or use it in a formula",
        ),
        (HEAD + "[let]\na = 'P'\nb = 'a'\n" + BODY, 6, "b is never used", None),
        (
            HEAD + "[limits]\nrequire = [ 'P > 1',\n 'P > 0' ]\n" + BODY,
            6,
            "require: 'P > 0' excludes nothing",
            "remove or correct it",
        ),
        (
            HEAD + "[[program]]\nserial = { trip = '1 + 1/(P - 1)' }\n",
            5,
            "trip: '1 + 1/(P - 1)' has no finite value for P = 1",
            "for example a division by zero; limits.require can exclude these runs",
        ),
        (
            HEAD + "[[program]]\nserial = { trip = '1 + 1/(0 if P < 9 else 1)' }\n",
            5,
            "trip: '1 + 1/(0 if P < 9 else 1)' has no finite value for P = 1, 2, 3, ...",
            None,
        ),
        (
            HEAD + "[[program]]\nserial = { trip = '1 + 1/(4 - T)**2' }\n",
            5,
            "trip: '1 + 1/(4 - T)**2' has no finite value for T = 4",
            None,
        ),
        (
            HEAD + "[[program]]\nserial = { trip = '8 - P' }\n",
            5,
            "trip: '8 - P' is -2 for P = 10, 14, 19, ...; must be at least 0",
            "limits.require can exclude these runs",
        ),
        (
            HEAD + "[[program]]\nparallel = { trip = '2 - T' }\n",
            5,
            "trip: '2 - T' is 0 for T = 2, 4, 8, ...; must be above 0",
            None,
        ),
        (
            HEAD + "[[program]]\nserial = { trip = 1, bytes = { mem = 8 } }\n",
            5,
            "bytes: 'mem' is not a usual memory level",
            "levels are MEM and L1, L2, ... as in the machine profile",
        ),
        (
            HEAD + "[[program]]\nparallel = { trip = 1, constructs = { parallelfor = 1 } }\n",
            5,
            "constructs: popmodel does not measure the overhead of 'parallelfor'",
            "did you mean parallel_for?",
        ),
        (
            HEAD + "[params]\nn = 3\n[[program]]\nloop = { count = 'n', body = [\n"
            "{ serial = { trip = 1, every = 3 } },\n{ serial = { trip = 1, every = 'n + 1' } }]}",
            9,
            "every: 'n + 1' exceeds the 'n' iterations of the loop with these parameters",
            "the item is never executed",
        ),
        (
            HEAD + "[[program]]\nloop = { count = 3 }\n[[program.body]]\n"
            "serial = { trip = 1, every = 4 }\n",
            7,
            "every: '4' exceeds the '3' iterations of the loop with these parameters",
            "the item is never executed",
        ),
    ],
)
def test_a_remark(checked: Check, text: str, line: int, message: str, hint: str | None) -> None:
    found = checked(text)
    assert found.mistakes == ()
    (remark,) = found.remarks
    assert (remark.line, remark.message) == (line, message)
    if hint is not None:
        assert remark.hint == hint
    assert found.explained is not None


def test_formulas_of_the_machine_have_no_value_and_are_in_order(checked: Check) -> None:
    found = checked(
        HEAD + "[[program]]\nloop = { count = 'machine.memory.q' }\n"
        "[[program.body]]\nserial = { trip = 5, every = 2, seconds = '9/machine.core.freq' }\n"
    )
    assert (found.mistakes, found.remarks) == ((), ())
    assert found.explained is not None
    (loop,) = found.explained["program"]
    assert loop["count"] == {"formula": "machine.memory.q", "value": None, "unit": "1"}


def test_what_needs_itself_is_told_with_the_other_mistakes(checked: Check) -> None:
    text = (
        HEAD + "[let]\na = 'b'\nb = 'c + 1'\nc = 'a'\nd = 'n0'\ne = 'e'\n"
        "[decomp]\nglobal = ['d']\ngrid = ['f']\n[[program]]\nserial = { trip = 'a*d*e' }\n"
    )
    found = checked(text)
    assert [(one.line, one.message) for one in found.mistakes] == [
        (5, "let defines a name by itself: a needs b needs c needs a"),
        (9, "let defines a name by itself: e needs itself"),
        (11, "global uses d, which needs the grid that it defines"),
        (12, "grid: unknown name 'f' in 'f'"),
    ]


def test_names_of_the_grid_are_explained_and_have_units(checked: Check) -> None:
    found = checked(
        HEAD + "[params]\nw = { value = 8, unit = 'B' }\n[let]\nws = 'w*n0'\n"
        "[decomp]\nglobal = [64]\n[limits]\nmemory_per_rank = '2*ws'\n" + BODY
    )
    assert (found.mistakes, found.remarks) == ((), ())
    assert found.explained is not None
    assert found.explained["let"] == [{"name": "ws", "formula": "w*n0", "value": None, "unit": "B"}]


def test_all_mistakes_come_at_once_and_in_order(checked: Check) -> None:
    text = """schema = "popmodel/signature/1"
app = { name = "demo", titel = "x" }
[params]
P = 3
N = "many"
w = { value = 8, unit = "B" }
[let]
a = "b"
a2 = "a + 1"
[limits]
require = ["P >", "Q > 1"]
memory = 3
[decomp]
global = ["M"]
grid = ["P", "P"]
[imbalance]
persistent_cv = -1
growth_exponent = 2
[[program]]
loop = { count = "n0 + n5", body = [
  { serial = { trip = "w", flops = "lg(2)", load = 3 } },
  { seriel = { trip = 1 } },
  { shift = { dim = 7, by = 1, bytes = 1 } },
  { serial = { flops = 1 } },
] }
"""
    found = checked(text)
    assert [(one.line, one.message.partition(":")[0]) for one in found.mistakes] == [
        (2, "unknown key 'titel' in app"),
        (4, "the name P is reserved"),
        (5, "N"),
        (8, "a"),
        (11, "require"),
        (11, "require"),
        (12, "unknown key 'memory' in limits"),
        (14, "global"),
        (15, "grid has 2 dimensions but global has 1"),
        (17, "persistent_cv"),
        (18, "growth_exponent must be between 0 (smooth) and 0.5 (independent cells), not 2"),
        (20, "count"),
        (21, "unknown key 'load' in serial"),
        (21, "flops"),
        (21, "trip"),
        (22, "unknown kind of item 'seriel'"),
        (23, "dim must be a grid dimension, not 7"),
        (24, "trip is missing in serial"),
    ]
    assert found.application == "demo"
    assert found.remarks == ()  # what is left out may be what they are about


@given(
    st.integers(0, 10_000),
    st.integers(0, 12),
    st.sampled_from(["", "\n", "w", "0", '"', "]", "}", ",", "=", "-", "n0", "[x]\n", "P == 0"]),
)
def test_a_damaged_signature_is_answered_in_one_line_for_each_mistake(
    at: int, cut: int, instead: str
) -> None:
    text = Path(read("stencil3d")[0]).read_text()
    at %= len(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.toml"
        path.write_text(text[:at] + instead + text[at + cut :])
        found = check(path)
    for one in (*found.mistakes, *found.remarks):
        assert "\n" not in one.message + (one.hint or "")
        assert "None" not in one.message + (one.hint or "")
    assert (found.explained is None) == bool(found.mistakes)


def test_toml_that_breaks_off_has_its_column(checked: Check) -> None:
    found = checked("a = [1,\n  = 2\n")
    (mistake,) = found.mistakes
    assert (mistake.line, mistake.column) == (2, 3)
    assert mistake.message == "is not TOML: Invalid value"
    assert found.application is None


def test_a_signature_for_many_processes_only(checked: Check) -> None:
    head = HEAD + "[limits]\nrequire = ['P > 5000']\n[decomp]\nglobal = [640000]\n"
    found = checked(head + "[[program]]\nserial = { trip = 'n0' }\n")
    assert found.explained["limits"]["possible"][0] == 5001
    found = checked(head + "[let]\na = '1/(1-1)'\n" + BODY)
    assert [one.message for one in found.mistakes] == [
        "a: '1/(1-1)' has no finite value with these parameters"
    ]


def test_values_can_be_set(checked: Check) -> None:
    text = HEAD + "[params]\nN = 5\n[[program]]\nserial = { trip = 'N - 4' }\n"
    assert checked(text).mistakes == ()
    found = checked(text, N=3)
    assert found.mistakes[0].message.startswith("trip: 'N - 4' is -1 with these parameters")
    with pytest.raises(UsageError, match="demo has no parameter 'M'"):
        checked(text, M=3)


def test_files_that_are_no_signatures(tmp_path: Path) -> None:
    with pytest.raises(SignatureError, match="cannot be read: No such file"):
        check(tmp_path / "a.toml")
    with pytest.raises(UsageError, match="no application 'stencil'"):
        check("stencil")


def test_units_and_values_of_the_explanation() -> None:
    explained = check("cannon", {"N": 1000}).explained
    assert explained is not None
    assert [(one["name"], one["value"], one["unit"]) for one in explained["params"]] == [
        ("N", 1000, None),
        ("w", 8, None),
    ]
    assert explained["let"] == [
        {"name": "s", "formula": "sqrt(P)", "value": None, "unit": "1"},
        {"name": "nb", "formula": "N/s", "value": None, "unit": None},
        {"name": "lanes", "formula": "2", "value": 2, "unit": None},
        {"name": "issue", "formula": "6", "value": 6, "unit": None},
        {"name": "line", "formula": "64", "value": 64, "unit": None},
        {"name": "ends", "formula": "17", "value": 17, "unit": None},
    ]
    assert explained["limits"]["possible"][:4] == [1, 4, 9, 16]
    assert explained["depends"] == {
        "P": ["step", "matmul", "shift A", "shift B"],
        "T": ["matmul"],
    }
    (step,) = explained["program"]
    assert (step["kind"], step["name"]) == ("loop", "step")
    assert step["body"][0]["flops"] == {"formula": "2", "value": 2.0, "unit": "1"}
    assert step["body"][0]["bytes"]["MEM"]["value"] is None  # the machine's cache decides
