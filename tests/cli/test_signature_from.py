"""``popmodel signature from`` and ``signature check --against``."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from trace_files import DATA

Answer = tuple[int, str, str]
Call = Callable[..., Answer]

TRACE = str(DATA / "is.S.4.prv.gz")
TOML = ("signature", "from", "--format", "toml")
AGAINST = ("signature", "check", "is.toml", "--against", TRACE)
OTHER = str(DATA / "ft.S.4.prv.gz")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "70")


def test_a_signature_goes_to_standard_output(popmodel: Call) -> None:
    status, out, err = popmodel("signature", "from", TRACE, "--format", "toml")
    assert (status, err) == (0, "")
    assert out.startswith(
        "# Signature of is.S.4, found by popmodel in is.S.4.prv.gz (4 processes)."
    )
    Path("is.toml").write_text(out)
    assert popmodel("signature", "check", "is.toml")[0] == 0
    assert popmodel("predict", "is.toml", "--procs", "4")[0] == 0


def test_it_is_named_after_the_trace_without_its_suffixes(popmodel: Call) -> None:
    trace = str(DATA / "smpi" / "jac2048.4.ti.txt.gz")
    out = popmodel("signature", "from", trace, "--flop-rate", "1Gflop/s", "--format", "toml")[1]
    assert '\nname = "jac2048.4"\n' in out


def test_a_file_is_written_and_summed_up(popmodel: Call) -> None:
    status, out, err = popmodel("signature", "from", TRACE, "-o", "is.toml")
    assert (status, err) == (0, "")
    assert out.startswith("-> is.toml takes ")
    assert "popmodel signature check is.toml --against" in out
    assert "\npopmodel predict is.toml --procs 4 --threads 1\n" in out
    assert max(len(line) for line in out.splitlines() if "/" not in line) <= 70
    assert 'schema = "popmodel/signature/1"' in Path("is.toml").read_text()


def test_a_file_is_not_replaced_unless_it_is_asked_for(popmodel: Call) -> None:
    Path("is.toml").write_text("mine")
    status, _, err = popmodel("signature", "from", TRACE, "-o", "is.toml")
    assert status == 2
    assert "the file exists" in err
    assert Path("is.toml").read_text() == "mine"
    assert popmodel("signature", "from", TRACE, "-o", "is.toml", "--force")[0] == 0


def test_json_has_every_value_with_its_origin(popmodel: Call) -> None:
    status, out, _ = popmodel("signature", "from", TRACE, "--format", "json")
    assert status == 0
    made = json.loads(out)
    assert made["schema"] == "popmodel/signature-from/1"
    assert {one["origin"] for one in made["values"]} == {"trace", "assumed"}
    assert made["signature"].startswith("# Signature of is.S.4")
    assert made["provenance"]["inputs"][0]["path"] == TRACE


def test_csv_has_a_line_for_each_constant(popmodel: Call) -> None:
    _, out, _ = popmodel("signature", "from", TRACE, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert rows[0]["name"] == "t_bcast"
    assert float(rows[0]["value"]) > 0


def test_parameters_and_a_name_are_written(popmodel: Call) -> None:
    _, out, _ = popmodel(*TOML, f"{TRACE}:N=65536", "--name", "is", "--set", "w=4")
    assert 'name = "is"' in out
    assert "N = 65536" in out
    assert "w = 4" in out


def test_a_signature_is_of_the_iterations_that_are_asked_for(popmodel: Call) -> None:
    trace = str(DATA / "comd.4.prv.gz")
    status, out, err = popmodel(
        "signature", "from", trace, "--foa", "iterations=2:4", "--format", "toml"
    )
    assert (status, err) == (0, "")
    assert "iterations 2 to 4 of 4" in " ".join(out.split("\n# "))
    program = tomllib.loads(out)["program"]
    assert [item["loop"]["count"] for item in program if "loop" in item] == [3]
    Path("comd.toml").write_text(out)
    against = ("check", "comd.toml", "--against", trace, "--foa", "iterations=2:4")
    assert popmodel("signature", *against, "--fail-if", "error > 2%")[0] == 0


def test_a_window_without_calls_is_computing_alone(popmodel: Call) -> None:
    trace = str(DATA / "comd.4.prv.gz")  # messages are known that none of its calls sends
    status, out, _ = popmodel(
        "signature", "from", trace, "--window", "1ms:20ms", "--format", "toml"
    )
    assert status == 0
    assert [set(item) for item in tomllib.loads(out)["program"]] == [{"serial"}]


def test_weak_scaling_is_assumed_where_it_is_said(popmodel: Call) -> None:
    _, out, _ = popmodel("signature", "from", TRACE, "--scaling", "weak", "--format", "toml")
    assert "assumed: weak scaling" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("from",), "signature from: no input"),
        (("from", TRACE, "--scaling", "huge"), "scaling: unknown value 'huge'"),
        (("from", TRACE, "-o", "is.xyz"), "-o is.xyz: cannot tell the format from the suffix"),
        (
            ("from", TRACE, "-o", "is.toml", "--format", "json"),
            "means toml, --format says json",
        ),
        (("from", f"{TRACE}:N="), ":N= N=: value missing"),
        (("from", f"{TRACE}:N=big"), "N=big: must be a number, not 'big'"),
        (("from", f"{TRACE}:N=1,N=2"), "N=2: N is set twice"),
        (("from", f"{TRACE}:N=1", OTHER), "other parameters than the first trace (N)"),
        (("from", "missing.prv"), "missing.prv"),
        (("from", TRACE, "--foa", "auto", "--window", "1s:2s"), "--foa cannot be combined with"),
        (("from", TRACE, "--foa", "iterations=1:900"), "no iteration 900"),
        (("check", "stencil3d", "--fail-if", "error > 1%"), "no trace is given with --against"),
        (("check", "stencil3d", "--fail-above", "1%"), "now --fail-if 'error > 2%'"),
        (("check", "stencil3d", "--window", "1s:2s"), "--window, --region, --from-start, --foa"),
        (("from", "stencil3d"), "signature from: no runs to fit stencil3d to"),
        (("from", "stencil3d", "cannon", TRACE), "signature from: 2 signatures"),
        (("from", "a.c", "stencil3d"), "both say what the program does"),
        (("from", "runs.csv"), "runs.csv says how long the program took, not what it does"),
        (("from", TRACE, "--machine", "cluster"), "--machine: needs a signature and runs"),
        (("from", TRACE, "--cflags", "-O2"), "--cflags: no source file is given"),
    ],
)
def test_what_is_wrong_is_said(popmodel: Call, arguments: tuple[str, ...], problem: str) -> None:
    status, _, err = popmodel("signature", *arguments)
    assert status in (1, 2)
    assert problem in err


def test_a_signature_is_compared_with_its_trace(popmodel: Call) -> None:
    popmodel("signature", "from", TRACE, "-o", "is.toml")
    status, out, err = popmodel("signature", "check", "is.toml", "--against", TRACE)
    assert (status, err) == (0, "")
    assert "efficiencies, %" in out
    assert (
        popmodel("signature", "check", "is.toml", "--against", TRACE, "--fail-if", "error > 2%")[0]
        == 0
    )


def test_a_threshold_that_is_missed_is_an_error(popmodel: Call) -> None:
    popmodel("signature", "from", OTHER, "-o", "ft.toml")
    status, out, err = popmodel(
        "signature", "check", "ft.toml", "--against", TRACE, "--fail-if", "error > 2%"
    )
    assert status == 3
    assert "first operation that differs" in out
    assert "more than 0.02" in err
