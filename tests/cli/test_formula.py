"""``popmodel predict --formula``."""

from __future__ import annotations

import json
import re

import pytest

from popmodel.reports.renderers.text import equation_lines

from .conftest import Call

RUN = ("predict", "--procs", "16", "--threads", "4")


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_a_side_that_differs_is_told(shown: Call) -> None:
    out = shown(*RUN, "--formula", "runtime")[1]
    # more rows than a multiple of the threads take a whole round more
    (row,) = [line for line in out.splitlines() if "1 % more N [1]" in line]
    assert row.endswith(" %")
    assert re.search(r"\[1\] not smooth: -\d\.\d\d % for 1 % less, \+\d\.\d\d % for 1 %", out)


def test_the_document_has_what_the_contract_names(popmodel: Call) -> None:
    document = json.loads(popmodel(*RUN, "--formula", "transfer_efficiency", "--format", "json")[1])
    assert document["schema"] == "popmodel/formula/1"
    assert document["metric"] == "mpi.transfer_efficiency"
    assert document["title"] == "Transfer efficiency"
    assert (document["processes"], document["threads"]) == (16, 4)
    assert document["text"] == "ideal_runtime/runtime"
    assert document["latex"].startswith(r"\text{transfer efficiency} = \frac{")
    assert document["unit"] == "1"
    keys = {"name", "text", "latex", "value", "unit", "meaning", "kind"}
    assert all(set(part) == keys for part in document["parts"])
    assert all(
        set(one) >= {"name", "meaning", "value", "unit", "low", "high", "origin"}
        for one in document["symbols"]
    )
    assert document["elasticities"][0]["label"]
    assert document["provenance"]["inputs"]
    predicted = json.loads(popmodel(*RUN, "--format", "json")[1])
    shown = predicted["metrics"]["mpi"]["transfer_efficiency"]["value"]
    assert document["value"] == pytest.approx(shown)


def test_markdown_has_equations_in_latex(popmodel: Call) -> None:
    out = popmodel("predict", "cannon", *RUN[1:], "--formula", "runtime", "--format", "markdown")[1]
    blocks = re.findall(r"\$\$\n(.+?)\n\$\$", out)
    assert blocks[0].startswith(r"\text{runtime} = ")
    assert all(block.count("{") == block.count("}") for block in blocks)
    assert r"\left\lceil{\frac{\mathrm{nb}}{T}}\right\rceil" in out
    assert "\n- $b_{\\mathrm{sat}}$ = 39.4 GB/s (38.2 .. 44, preset): saturated" in out
    assert "| 1 % more memory bandwidth | -0." in out


def test_a_constant_has_neither_symbols_nor_effects(popmodel: Call) -> None:
    out = popmodel("predict", "cannon", *RUN[1:], "--formula", "mpi.load_balance")[1]
    assert "\n load_balance = 1\n     Load balance\n" in out
    assert "symbols" not in out


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_an_equation_is_broken_before_operators(width: int) -> None:
    text = "aa + bb*(sqrt(c_p**2 + d**2)*q(P) + 1)/T - 24*n0*n1*n2*w/(T*b_8)"
    lines = equation_lines("runtime", text, width)
    assert max(map(len, lines)) <= width
    assert "".join(lines).replace(" ", "") == f"runtime={text}".replace(" ", "")
    assert all(re.match(r" {5}([+\-/]|\*[^*])", line) for line in lines[1:])


def test_a_name_wider_than_the_screen_stays_whole() -> None:
    assert equation_lines("a", "b" * 50, 20) == [f" a = {'b' * 50}"]
    assert equation_lines("a", f"{'b' * 50} + c", 20) == [f" a = {'b' * 50}", "     + c"]
