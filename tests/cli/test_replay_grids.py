"""``popmodel replay`` on many networks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")


def test_every_combination_of_values_is_a_run(trace: str, popmodel: Call) -> None:
    out = popmodel("replay", trace, "--latency", "0,1ms", "--cpu-factor", "1,2")[1]
    lines = out.splitlines()
    begin = lines.index("run  latency  factor   runtime    run 1            compute")
    assert lines[begin - 1 : begin + 5] == [
        "                 CPU            against",
        "run  latency  factor   runtime    run 1            compute",
        "1        0 s       1  8.000 ms   +0.0 %  6.000 .. 8.000 ms",
        "2        0 s       2  4.000 ms  -50.0 %  3.000 .. 4.000 ms",
        "3       1 ms       1  10.00 ms  +25.0 %  6.000 .. 8.000 ms",
        "4       1 ms       2  6.000 ms  -25.0 %  3.000 .. 4.000 ms",
    ]


def test_networks_of_several_names_are_described_above_the_table(
    trace: str, popmodel: Call
) -> None:
    lines = popmodel("replay", trace, "--network", "ideal,alpha-beta")[1].splitlines()
    assert "ideal       rules alpha-beta, no latency, infinite" in lines
    assert "alpha-beta  rules alpha-beta, latency 2 us, bandwidth" in lines
    assert "run     network   runtime    run 1" in lines


def test_a_range_of_values_is_a_run_each(popmodel: Call) -> None:
    words = ("replay", PURE, "--latency", "1us:100us:log3,0", "--format", "json")
    runs = json.loads(popmodel(*words)[1])["runs"]
    assert [run["network"]["latency"] for run in runs] == [1e-6, 1e-5, 1e-4, 0]


def test_many_runs_over_two_parameters_are_one_table(popmodel: Call) -> None:
    words = ("replay", PURE, "--latency", "1us:100us:log5", "--bandwidth", "1GB/s:10GB/s:5")
    lines = popmodel(*words)[1].splitlines()
    at = lines.index("runtime, ms, by latency (down) and bandwidth (across)")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["1", "3.25", "5.5", "7.75", "10"],
        ["latency", *["GB/s"] * 5],
    ]
    rows = [line.split() for line in lines[at + 3 : at + 8]]
    assert [row[:2] for row in rows] == [
        ["1", "us"],
        ["3.162", "us"],
        ["10", "us"],
        ["31.62", "us"],
        ["100", "us"],
    ]
    runs = json.loads(popmodel(*words, "--format", "json")[1])["runs"]
    assert [float(cell) for row in rows for cell in row[2:]] == pytest.approx(
        [run["runtime"] * 1e3 for run in runs], rel=1e-3
    )


def test_few_runs_are_a_line_each_though_they_are_a_grid(popmodel: Call) -> None:
    out = popmodel("replay", PURE, "--latency", "1us:100us:log3", "--bandwidth", "1GB/s,2GB/s")[1]
    assert "run  latency  bandwidth" in out


def test_runs_of_different_networks_have_the_same_columns(popmodel: Call) -> None:
    words = ("--algorithm", "allreduce=ring", "--collectives", "algorithm,dimemas")
    out = popmodel("replay", PURE, *words, "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["network_algorithms"] for row in rows} == {"allreduce=ring", ""}
