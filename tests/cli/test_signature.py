"""``popmodel signature``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]

GOOD = """schema = "popmodel/signature/1"
[app]
name = "demo"
[params]
N = 64
[[program]]
serial = { trip = "N/P" }
"""
BAD = GOOD.replace('"N/P"', '"M/P"').replace("serial", "serial", 1) + (
    '[[program]]\ncollective = { op = "bcast", bytes = "N*P" }\n'
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    Path("good.toml").write_text(GOOD)
    Path("bad.toml").write_text(BAD)


def test_a_signature_in_order_is_explained(popmodel: Call) -> None:
    status, out, err = popmodel("signature", "check", "good.toml")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[:3] == ["signature  demo", "file       good.toml", "check      no mistakes"]
    assert "parameters  N = 64" in lines
    assert lines[lines.index("program") + 1].startswith(
        " serial: the master thread executes N/P it"
    )


def test_mistakes_are_listed_with_file_and_line_and_end_with_status_1(popmodel: Call) -> None:
    status, out, err = popmodel("signature", "check", "bad.toml")
    assert status == 1
    assert "\nbad.toml:7: trip: unknown name 'M' in 'M/P'\n  hint: known: N, P, T\n" in out
    assert "\nbad.toml:9: bytes: 'N*P'" not in out  # N is used nowhere else: it may be bytes
    assert err == "popmodel: error: bad.toml: 1 mistake\nhint: correct it in line 7\n"


def test_several_mistakes(popmodel: Call) -> None:
    Path("bad.toml").write_text(BAD.replace("[params]", "[limit]\n[params]"))
    status, out, err = popmodel("signature", "check", "bad.toml")
    assert status == 1
    assert "check      2 mistakes\n" in out
    assert "\nbad.toml:4: unknown key 'limit'\n  hint: did you mean limits?\n" in out
    assert err == (
        "popmodel: error: bad.toml: 2 mistakes\n"
        "hint: correct the mistake in line 4 first: the others may follow from it\n"
    )


def test_remarks_are_no_failure(popmodel: Call) -> None:
    Path("good.toml").write_text(GOOD.replace("N = 64", "N = 64\nM = 3"))
    status, out, err = popmodel("signature", "check", "good.toml")
    assert (status, err) == (0, "")
    assert "\ngood.toml:6: remark: M is never used\n" in out
    assert "check      no mistakes, 1 remark\n" in out


def test_other_formats(popmodel: Call) -> None:
    page = json.loads(popmodel("signature", "check", "good.toml", "--format", "json")[1])
    assert page["schema"] == "popmodel/signature-check/1"
    assert list(page) == [
        "schema", "path", "application", "mistakes", "remarks", "explained", "caveats",
        "against", "provenance",
    ]  # fmt: skip
    assert (page["application"], page["mistakes"], page["remarks"]) == ("demo", [], [])
    assert page["explained"]["params"] == [
        {"name": "N", "value": 64.0, "origin": "user", "unit": None}
    ]
    status, out, _ = popmodel("signature", "check", "bad.toml", "--format", "json")
    page = json.loads(out)
    assert status == 1
    assert page["mistakes"] == [
        {
            "message": "trip: unknown name 'M' in 'M/P'",
            "line": 7,
            "column": None,
            "hint": "known: N, P, T",
        }
    ]
    assert page["explained"] is None
    rows = list(
        csv.DictReader(
            io.StringIO(popmodel("signature", "check", "bad.toml", "--format", "csv")[1])
        )
    )
    assert [(row["section"], row["line"]) for row in rows] == [("mistake", "7")]
    assert popmodel("signature", "check", "cannon", "-o", "a.md")[0] == 0
    assert Path("a.md").read_text().startswith("- **signature**: cannon\n")


def test_set_and_bundled(popmodel: Call) -> None:
    status, out, _ = popmodel("signature", "check", "stencil3d", "--set", "N=1024")
    assert status == 0
    assert "\nparameters  N = 1,024, steps = 100\n" in out
    assert popmodel("signature", "check", "good.toml", "--set", "M=3") == (
        2,
        "",
        "popmodel: error: demo has no parameter 'M'\nhint: its parameters: N\n",
    )


def test_toml_that_breaks_off(popmodel: Call) -> None:
    Path("bad.toml").write_text("a = 1\nb = = 2\n")
    status, out, err = popmodel("signature", "check", "bad.toml")
    assert status == 1
    assert "\nbad.toml:2:5: is not TOML: Invalid value\n" in out
    assert err == "popmodel: error: bad.toml: 1 mistake\nhint: correct it in line 2\n"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["check"], 2, "signature check: no signature\nhint: name a file, or one of cannon, sten"),
        (["show"], 2, "signature show: no signature\nhint: name a file, or one of cannon, stencil"),
        (["show", "stencil"], 2, "no application 'stencil'"),
        (["chek", "good.toml"], 2, "signature: unknown action 'chek'\nhint: did you mean check?"),
        (["check", "stencil"], 2, "no application 'stencil'"),
        (["check", "no.toml"], 1, "no.toml: cannot be read: No such file or directory"),
        (["check", "good.toml", "--set", "N"], 2, "--set N: value missing"),
        (["check", "good.toml", "-o", "good.toml"], 2, "-o good.toml: cannot tell the format"),
    ],
)
def test_wrong_usage(arguments: list[str], status: int, words: str, popmodel: Call) -> None:
    found, out, err = popmodel("signature", *arguments)
    assert (found, out) == (status, "")
    assert err.startswith(f"popmodel: error: {words}")
    assert len(err.splitlines()) <= 2


def test_without_action_the_bundled_ones_are_listed(popmodel: Call) -> None:
    status, out, err = popmodel("signature")
    assert (status, err) == (0, "")
    shown = out.split("\n\npopmodel 0.")[0]
    assert popmodel("signature", "list")[1].startswith(shown)
    assert "stencil3d  7-point stencil on a cube, MPI + OpenMP (N=512\n" in out
    assert "popmodel docs grammar: every key with its unit\n" in out
    page = json.loads(popmodel("signature", "--format", "json")[1])
    assert page["schema"] == "popmodel/signatures/1"
    assert [one["name"] for one in page["signatures"]] == ["cannon", "stencil3d"]
    assert page["signatures"][1]["params"] == {"N": 512.0, "steps": 100.0}


@pytest.mark.parametrize("name", ["cannon", "stencil3d"])
def test_a_bundled_signature_is_shown_as_it_is(name: str, popmodel: Call) -> None:
    status, out, err = popmodel("signature", "show", name)
    assert (status, err) == (0, "")
    assert "popmodel docs grammar" in out
    Path("my_app.toml").write_text(out)
    assert popmodel("signature", "check", "my_app.toml")[0] == 0
    assert popmodel("signature", "show", "my_app.toml")[1] == out


def test_a_shown_signature_is_written_without_replacing_a_file(popmodel: Call) -> None:
    assert popmodel("signature", "show", "cannon", "-o", "a.toml") == (0, "", "")
    assert Path("a.toml").read_text() == popmodel("signature", "show", "cannon")[1]
    status, _, err = popmodel("signature", "show", "stencil3d", "-o", "a.toml")
    assert (status, err.splitlines()[0]) == (2, "popmodel: error: -o a.toml: the file exists")
    assert popmodel("signature", "show", "stencil3d", "-o", "a.toml", "--force")[0] == 0
    assert Path("a.toml").read_text() == popmodel("signature", "show", "stencil3d")[1]
