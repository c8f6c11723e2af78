"""``popmodel replay``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import FEW_CALLS, LEFT_OUT

Answer = tuple[int, str, str]
Call = Callable[..., Answer]


def test_one_network(trace: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", trace)
    assert (status, err) == (0, "")
    assert out.splitlines()[:-2] == [
        "the analysed part lasts only 9.00 ms and has only 2 MPI",
        "calls: too little for reliable numbers",
        "",
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


@pytest.fixture
def mutual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two processes that send to each other first: possible only while sends are eager."""
    lines = ["#Paraver (01/01/2030 at 00:00):9_ns:1(2):1:2(1:1,1:1),1", "c:1:1:2:1:2"]
    for rank, other in ((1, 2), (2, 1)):
        where = f"{rank}:1:{rank}:1"
        lines += [
            f"1:{where}:0:2:1",
            f"1:{where}:2:8:3",
            f"1:{where}:8:9:1",
            f"2:{where}:2:50000001:1",
            f"3:{where}:2:2:{other}:1:{other}:1:6:8:100000:1",
            f"2:{where}:6:50000001:0:50000001:2",
            f"2:{where}:8:50000001:0",
        ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("mutual.prv").write_text("\n".join(lines) + "\n")
    Path("mutual.pcf").write_text("")
    return "mutual.prv"


STOPS = "the replay stops: 2 of 2 ranks wait for ever: rank 0 in MPI_Send at "


def test_a_deadlock_on_one_network_leaves_the_others(mutual: str, popmodel: Call) -> None:
    options = ("replay", mutual, "--eager-threshold", "1MiB,10")
    status, out, err = popmodel(*options)
    assert status == 1
    lines = out.splitlines()
    assert "1        1 MiB  3.000 ns   -66.7 %" in lines
    assert "2         10 B      -[1]      -[1]" in lines
    assert "processes        2" in lines
    assert any(line.startswith(f"[1] {STOPS[:40]}") for line in lines)
    assert err.startswith(f"popmodel: error: run 2 (eager threshold 10 B): {STOPS}")
    assert err.splitlines()[1].startswith("hint: records of these operations are missing")

    status, out, _ = popmodel(*options, "--format", "json")
    assert status == 1
    good, bad = json.loads(out)["runs"]
    assert "error" not in good
    assert good["runtime"] == pytest.approx(3e-9)
    assert bad["error"].startswith(STOPS)
    assert (bad["runtime"], bad["operations"], bad["ranks"]) == (None, None, [])

    rows = list(csv.DictReader(io.StringIO(popmodel(*options, "--format", "csv")[1])))
    assert [(row["rank"], row["error"][:16]) for row in rows] == [
        ("0", ""),
        ("1", ""),
        ("", STOPS[:16]),
    ]
    markdown = popmodel(*options, "--format", "markdown")[1]
    assert "| 2 | 10 B | -[1] | -[1] |\n" in markdown
    assert f"\n[1] {STOPS}" in markdown


def test_several_deadlocks_are_one_error(mutual: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", mutual, "--eager-threshold", "10", "--latency", "0,1us")
    assert status == 1
    assert "measured         9.000 ns" in out
    assert err.startswith(f"popmodel: error: run 1 (latency 0 s): {STOPS}")
    assert err.splitlines()[0].endswith("; no result for run 2 (latency 1 us) either")


def test_a_deadlock_on_the_only_network_is_an_error(mutual: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", mutual, "--eager-threshold", "10")
    assert (status, out) == (1, "")
    assert err.startswith(f"popmodel: error: {STOPS}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--latency", "fast"], "--latency: 'fast' is not a time\nhint: write a number with"),
        (["--latency", "5"], "--latency: '5': a time needs a unit\nhint: did you mean 5us? write"),
        (["--bandwidth", "5"], "--bandwidth: '5': a bandwidth needs a unit\nhint: did you mean 5G"),
        (["--latency", "1us,,5us"], "--latency '1us,,5us': a value is empty\nhint: separate"),
        (["--bandwidth", "0"], "--bandwidth: '0': a bandwidth must be greater than zero\nhint: "),
        (["--eager-threshold", "big"], "--eager-threshold: 'big' is not a size\nhint: write"),
        (["--cpu-factor", "x"], "--cpu-factor: 'x' is not a number\nhint: write a number such"),
        (
            ["--cpu-factor", "0"],
            "--cpu-factor: '0': a CPU factor is more than zero and finite\nhint: write 2 for",
        ),
        (
            ["--cpu-factor", "nan"],
            "--cpu-factor: 'nan': a CPU factor is more than zero and finite\nhint: write 2 for",
        ),
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


def test_the_program_is_replayed_and_what_is_left_out_said_first(
    started: str, popmodel: Call
) -> None:
    for form in ("table", "markdown"):
        out = popmodel("replay", started, "--format", form)[1]
        assert " ".join(out.split()).startswith(LEFT_OUT)
    document = json.loads(popmodel("replay", started, "--format", "json")[1])
    assert document["caveats"] == [LEFT_OUT, FEW_CALLS]
    assert document["window"]["left_out"] == {"before": 0.04, "between": 0.0, "after": 0.01}
    assert document["measured_runtime"] == 0.05
    assert document["runs"][0]["runtime"] == 0.025
    (row,) = csv.DictReader(io.StringIO(popmodel("replay", started, "--format", "csv")[1]))
    assert (row["window_begin"], row["window_end"]) == ("0.04", "0.09")


def test_the_whole_run_is_replayed_where_it_is_asked_for(started: str, popmodel: Call) -> None:
    document = json.loads(popmodel("replay", started, "--from-start", "--format", "json")[1])
    assert document["measured_runtime"] == 0.1
    assert document["window"]["left_out"] == {"before": 0.0, "between": 0.0, "after": 0.0}


def test_what_has_to_be_known_first_is_what_metrics_says(crowded: str, popmodel: Call) -> None:
    said = [
        json.loads(popmodel(*words, crowded, "--format", "json")[1])
        for words in (("replay",), ("metrics",))
    ]
    first = said[0]["caveats"]
    assert first[0].startswith("more threads than processors: 2 threads may use only 1 processor")
    assert first[-1].startswith("tests and probes that found nothing are not recorded")
    assert first == said[1]["runs"][0]["caveats"]
    assert popmodel("replay", crowded)[1].startswith("more threads than processors:")
