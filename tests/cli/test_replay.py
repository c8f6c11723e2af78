"""``popmodel replay``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel.network.network import PRESETS, describe

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
        "trace      two.prv",
        "processes  2 on 1 node, 2 MPI operations",
        "measured   9.000 ms",
        "compute    6.000 .. 8.000 ms per process",
        "network    ideal: rules alpha-beta, no latency, infinite",
        "           bandwidth, eager threshold 32 KiB, collectives",
        "           dimemas, collective cost logarithmic",
        "",
        "                against",
        "run   runtime  measured",
        "1    8.000 ms   -11.1 %",
        "",
    ]


def test_ranks_that_end_early_are_shown(tmp_path: Path, popmodel: Call) -> None:
    # a message whose receiver works on for long
    path = tmp_path / "early.prv"
    where = ("1:1:1:1", "2:1:2:1")
    path.write_text(
        "\n".join(
            [
                "#Paraver (01/01/2030 at 00:00):99_ns:1(2):1:2(1:1,1:1),0",
                *(f"1:{each}:0:{end}:1" for each, end in zip(where, (20, 99), strict=True)),
                f"2:{where[0]}:10:50000001:1",
                f"3:{where[0]}:10:10:{where[1]}:10:12:8:0",
                f"2:{where[0]}:12:50000001:0",
                f"2:{where[1]}:10:50000001:2",
                f"2:{where[1]}:12:50000001:0",
            ]
        )
        + "\n"
    )
    lines = popmodel("replay", str(path))[1].splitlines()
    heads = next(at for at, line in enumerate(lines) if line.startswith("run "))
    assert lines[heads - 1].split() == ["against", "first"]
    assert lines[heads].split() == ["run", "runtime", "measured", "rank", "ends"]
    assert lines[heads + 1].endswith("18.00 ns")


@pytest.mark.parametrize(
    ("options", "what", "changes"),
    [
        ([], "measured", [8 / 9 - 1]),
        (["--latency", "1ms"], "ideal", [0.25]),
        (["--latency", "1ms,2ms"], "first", [0.0, 0.2]),
        (["--latency", "1ms,2ms", "--against", "ideal"], "ideal", [0.25, 0.5]),
        (["--latency", "1ms", "--against", "measured"], "measured", [10 / 9 - 1]),
        (["--network", "ideal", "--against", "ideal"], "ideal", [0.0]),
        (["--latency", "1ms", "--against", "first"], "first", [0.0]),
    ],
)
def test_a_baseline_can_be_chosen(
    options: list[str], what: str, changes: list[float], trace: str, popmodel: Call
) -> None:
    document = json.loads(popmodel("replay", trace, *options, "--format", "json")[1])
    assert document["against"]["what"] == what
    assert [run["change"] for run in document["runs"]] == pytest.approx(changes, abs=1e-9)
    base = document["against"]["runtime"]
    assert document["runs"][0]["runtime"] == pytest.approx(base * (1 + changes[0]))
    head = "run 1" if what == "first" else what
    assert f" {head}\n" in popmodel("replay", trace, *options)[1]
    assert f"| against {head} |" in popmodel("replay", trace, *options, "--format", "markdown")[1]
    (row, *_) = csv.DictReader(
        io.StringIO(popmodel("replay", trace, *options, "--format", "csv")[1])
    )
    assert (row["against"], float(row["change"])) == (what, pytest.approx(changes[0], abs=1e-9))


def test_the_networks_are_listed_in_the_help(popmodel: Call) -> None:
    text = " ".join(popmodel("replay", "--help")[1].split())
    for name, network in PRESETS.items():
        assert f"{name} ({describe(network)})" in text


def test_a_trace_without_mpi_says_that_there_is_nothing_to_replay(
    started: str, popmodel: Call
) -> None:
    status, out, err = popmodel("replay", started, "--metrics", "--latency", "1us,2us")
    assert (status, err) == (0, "")
    text = " ".join(out.split())
    assert "no call of MPI that is modelled: a network changes nothing here" in text
    assert "against" not in text
    assert "Parallel efficiency" not in text
    markdown = popmodel("replay", started, "--format", "markdown")[1]
    assert "\nno call of MPI that is modelled: " in markdown
    assert "| run |" not in markdown


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
    assert "eager threshold inf" in " ".join(popmodel("replay", trace, *options[:4])[1].split())


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
        (["--latency", "fast"], "--latency: 'fast' is not a time\nhint: give a number with"),
        (["--latency", "5"], "--latency: '5': a time needs a unit\nhint: did you mean 5us? give"),
        (["--bandwidth", "5"], "--bandwidth: '5': a bandwidth needs a unit\nhint: did you mean 5G"),
        (["--latency", "1us,,5us"], "--latency '1us,,5us': a value is empty\nhint: separate"),
        (["--bandwidth", "0"], "--bandwidth: '0': a bandwidth must be above 0\nhint: "),
        (["--eager-threshold", "big"], "--eager-threshold: 'big' is not a size\nhint: give"),
        (
            ["--cpu-factor", "x"],
            ("--cpu-factor: must be a number, not 'x'\nhint: write a number such"),
        ),
        (
            ["--cpu-factor", "0"],
            "--cpu-factor: must be above 0 and finite, not '0'\nhint: write 2",
        ),
        (
            ["--cpu-factor", "nan"],
            "--cpu-factor: must be above 0 and finite, not 'nan'\nhint: write 2",
        ),
        (["--network", "idel"], "--network: unknown network 'idel'\nhint: did you mean ideal?"),
        (["--against", "mesured"], "--against: unknown value 'mesured'\nhint: did you mean meas"),
        (["--machine", "none"], "no machine 'none': neither a file nor a preset\nhint: "),
        (
            ["--collectives", "magic"],
            "--collectives: unknown rule for collectives 'magic'\nhint: c",
        ),
        (
            ["--collectives", "root"],
            "--collectives: unknown rule for collectives 'root'\nhint: did",
        ),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], message: str, trace: str, popmodel: Call
) -> None:
    status, out, err = popmodel("replay", trace, *options)
    assert (status, out) == (2, "")
    assert err.startswith(f"popmodel: error: {message}")


SPLIT = "not modelled, assumed to take no time: 50 % of the time in 1 MPI_Comm_split"


def test_the_program_is_replayed_and_what_is_left_out_said_first(
    started: str, popmodel: Call
) -> None:
    for form in ("table", "markdown"):
        out = popmodel("replay", started, "--format", form)[1]
        assert " ".join(out.split()).startswith(f"{SPLIT} {LEFT_OUT}")
    document = json.loads(popmodel("replay", started, "--format", "json")[1])
    assert document["caveats"][:3] == [SPLIT, LEFT_OUT, FEW_CALLS]
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
    assert first[0].startswith("more threads than CPUs: 2 threads may use only 1 CPU")
    assert first[-1].startswith("tests and probes that found nothing are not recorded")
    assert first == said[1]["runs"][0]["caveats"]
    assert popmodel("replay", crowded)[1].startswith("more threads than CPUs:")


def test_a_page_has_sliders_from_the_first_network_on(
    started: str, popmodel: Call, tmp_path: Path
) -> None:
    path = tmp_path / "replay.html"
    words = ("--latency", "1us,5us", "--bandwidth", "1GB/s", "-o", str(path))
    assert popmodel("replay", started, *words)[0] == 0
    status, out, _ = popmodel("report", str(path), "--format", "json")
    assert status == 0
    replays, depends = json.loads(out)["documents"]
    assert depends["schema"] == "popmodel/sensitivity/1"
    assert depends["network"] == replays["runs"][0]["network"]
    assert depends["runtime"] == pytest.approx(replays["runs"][0]["runtime"])
    assert depends["window"] == replays["window"]


def test_a_page_says_why_it_has_no_sliders(started: str, popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "replay.html"
    assert popmodel("replay", started, "--links", "1", "-o", str(path))[0] == 0
    found = json.loads(popmodel("report", str(path), "--format", "json")[1])
    assert [one["schema"] for one in found["documents"]] == ["popmodel/replay/1"]
    (left_out,) = found["left_out"]
    assert left_out["what"] == "sensitivity"
    assert "messages share links or buses" in left_out["why"]


def test_options_of_smpi_have_its_names(trace: str, popmodel: Call) -> None:
    words = ("--async-small-thresh", "1KiB", "--send-is-detached-thresh", "inf")
    out = popmodel("replay", trace, "--network", "smpi", *words, "--format", "json")[1]
    network = json.loads(out)["runs"][0]["network"]
    assert network["eager_threshold"] == 1024
    assert network["send_is_detached_thresh"] is None
    status, _, err = popmodel("replay", trace, *words)
    assert status == 2
    assert err.startswith(
        "popmodel: error: send-is-detached-thresh: no option of ideal, only of SimGrid SMPI"
    )
