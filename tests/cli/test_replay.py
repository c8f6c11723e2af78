"""``popmodel replay``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


def test_one_network(trace: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", trace)
    assert (status, err) == (0, "")
    assert out.splitlines()[:-2] == [
        "trace            two.prv",
        "processes        2",
        "operations       2",
        "measured         9.000 ms",
        "preset           ideal",
        "rules            alpha-beta",
        "latency          0 s",
        "bandwidth        inf",
        "eager threshold  32 KiB",
        "collectives      dimemas",
        "collective cost  logarithmic",
        "CPU factor       1",
        "",
        "                against",
        "run   runtime  measured",
        "1    8.000 ms   -11.1 %",
        "",
        "      compute   compute       end       end",
        "run     least      most     first      last",
        "1    6.000 ms  8.000 ms  8.000 ms  8.000 ms",
        "",
    ]


def test_every_combination_of_values_is_a_run(trace: str, popmodel: Call) -> None:
    out = popmodel("replay", trace, "--latency", "0,1ms", "--cpu-factor", "1,2")[1]
    lines = out.splitlines()
    begin = lines.index("run  latency  factor   runtime  measured")
    assert lines[begin - 1 : begin + 5] == [
        "                 CPU             against",
        "run  latency  factor   runtime  measured",
        "1        0 s       1  8.000 ms   -11.1 %",
        "2        0 s       2  4.000 ms   -55.6 %",
        "3       1 ms       1  10.00 ms   +11.1 %",
        "4       1 ms       2  6.000 ms   -33.3 %",
    ]


def test_json_follows_the_contract(trace: str, popmodel: Call) -> None:
    out = popmodel(
        "replay", trace, "--format", "json", "--network", "ideal,dimemas", "--bandwidth", "1GB/s"
    )[1]
    document = json.loads(out)
    assert document["schema"] == "popmodel/replay/1"
    assert [run["network"]["name"] for run in document["runs"]] == ["ideal", "dimemas"]
    first = document["runs"][0]
    assert first["trace"] == "two.prv"
    assert first["network"]["bandwidth"] == 1e9
    assert first["runtime"] == pytest.approx(0.008)
    assert first["operations"] == 2
    assert first["ranks"] == [
        {"compute": pytest.approx(0.008), "end": pytest.approx(0.008)},
        {"compute": pytest.approx(0.006), "end": pytest.approx(0.008)},
    ]
    assert document["measured_runtime"] == pytest.approx(0.009)


def test_infinite_quantities_are_null(trace: str, popmodel: Call) -> None:
    options = ("--bandwidth", "inf", "--eager-threshold", "inf", "--format", "json")
    network = json.loads(popmodel("replay", trace, *options)[1])["runs"][0]["network"]
    assert network["bandwidth"] is None
    assert network["eager_threshold"] is None
    assert "eager threshold  inf" in popmodel("replay", trace, *options[:4])[1]


def test_csv_has_a_line_per_rank(trace: str, popmodel: Call) -> None:
    out = popmodel("replay", trace, "--latency", "1us,5us", "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["network_latency"], row["rank"]) for row in rows] == [
        ("1e-06", "0"),
        ("1e-06", "1"),
        ("5e-06", "0"),
        ("5e-06", "1"),
    ]


def test_markdown(trace: str, popmodel: Call) -> None:
    out = popmodel("replay", trace, "--format", "markdown")[1]
    assert "| run | runtime | against measured |\n|:--|--:|--:|\n| 1 | 8.000 ms | -11.1 % |" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--latency", "fast"], "--latency: 'fast' is not a time\nhint: write a number with"),
        (["--latency", "1us,,5us"], "--latency '1us,,5us': a value is empty\nhint: separate"),
        (["--bandwidth", "0"], "--bandwidth: '0': a bandwidth must be greater than zero\nhint: "),
        (["--eager-threshold", "big"], "--eager-threshold: 'big' is not a size\nhint: write"),
        (["--cpu-factor", "x"], "--cpu-factor: 'x' is not a number\nhint: write a number such"),
        (["--cpu-factor", "0"], "CPU factor must be more than zero and finite, not 0\n"),
        (["--cpu-factor", "nan"], "CPU factor must be more than zero and finite, not nan\n"),
        (["--network", "idel"], "--network: unknown network 'idel'\nhint: did you mean ideal?"),
        (["--collectives", "magic"], "unknown reading of collectives 'magic'\nhint: choose one"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], message: str, trace: str, popmodel: Call
) -> None:
    status, out, err = popmodel("replay", trace, *options)
    assert (status, out) == (2, "")
    assert err.startswith(f"popmodel: error: {message}")
