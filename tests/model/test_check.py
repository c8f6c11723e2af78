"""What a check finds: every mistake and remark with its line and its words."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.model import signatures as signature
from popmodel.model.signature_check import CheckedSignature, check
from popmodel.model.signatures import bundled, read

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
BODY = "[[program]]\nserial = { trip = 5 }\n"
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    str(path)
    for path in ROOT.glob("examples/**/*.toml")
    if "popmodel/signature/1" in path.read_text()
)

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
    [*bundled(), *EXAMPLES],
)
def test_what_comes_with_popmodel_is_in_order(source: str) -> None:
    found = check(source)
    assert found.mistakes == ()
    drafts = [one for one in found.remarks if '("?")' in one.message]  # what nobody knows yet
    assert [one for one in found.remarks if one not in drafts] == []
    assert not drafts or "drafts" in Path(source).parts
    assert found.explained is not None
    assert found.application == signature.load(source).name


def test_formulas_of_the_machine_have_no_value_and_are_in_order(checked: Check) -> None:
    found = checked(
        HEAD + "[[program]]\nloop = { count = 'machine.memory.q' }\n"
        "[[program.body]]\nserial = { trip = 5, every = 2, seconds = '9/machine.core.freq' }\n"
    )
    assert (found.mistakes, found.remarks) == ((), ())
    assert found.explained is not None
    (loop,) = found.explained["program"]
    assert loop["count"] == {"formula": "machine.memory.q", "value": None, "unit": "1"}


def test_names_of_the_grid_are_explained_and_have_units(checked: Check) -> None:
    found = checked(
        HEAD + "[params]\nw = { value = 8, unit = 'B' }\n[let]\nws = 'w*n0'\n"
        "[decomp]\nglobal = [64]\n[limits]\nmemory_per_rank = '2*ws'\n" + BODY
    )
    assert (found.mistakes, found.remarks) == ((), ())
    assert found.explained is not None
    assert found.explained["let"] == [{"name": "ws", "formula": "w*n0", "value": None, "unit": "B"}]


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


def test_values_can_be_set(checked: Check) -> None:
    text = HEAD + "[params]\nN = 5\n[[program]]\nserial = { trip = 'N - 4' }\n"
    assert checked(text).mistakes == ()
    found = checked(text, N=3)
    assert found.mistakes[0].message.startswith("trip: 'N - 4' is -1 with these parameters")
    with pytest.raises(UsageError, match="demo has no parameter 'M'"):
        checked(text, M=3)


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
