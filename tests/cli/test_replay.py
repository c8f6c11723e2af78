"""``popmodel replay``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel import replay
from popmodel.errors import UsageError
from popmodel.machine.profile import load
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


DATA = Path(__file__).parent.parent / "data"
HYBRID = str(DATA / "bt-mz.S.2x2.prv.gz")
PURE = str(DATA / "comd.4.prv.gz")


@pytest.mark.parametrize("path", [PURE, HYBRID])
def test_on_the_ideal_network_only_transfer_differs_from_the_measured_run(
    path: str, popmodel: Call
) -> None:
    words = ("--format", "json")
    document = json.loads(popmodel("replay", path, "--metrics", *words)[1])
    measured = json.loads(popmodel("metrics", path, "--family", "all", *words)[1])["runs"][0]
    found = document["runs"][0]["metrics"]
    for family, values in document["measured_metrics"].items():
        assert values == {name: measured["metrics"][family][name] for name in values}
    mpi, before = found["mpi"], measured["metrics"]["mpi"]
    assert mpi["transfer_efficiency"] == 1.0
    for name in ("load_balance", "serialisation_efficiency"):
        assert mpi[name] == pytest.approx(before[name], rel=1e-12)
    faster = measured["runtime"] / document["runs"][0]["runtime"]
    assert mpi["parallel_efficiency"] == pytest.approx(before["parallel_efficiency"] * faster)
    assert ("hybrid-additive" in found) == (path == HYBRID)
    if path == HYBRID:
        additive = found["hybrid-additive"]
        assert additive["process_transfer_efficiency"] == 1.0
        assert additive["parallel_efficiency"] == pytest.approx(
            measured["metrics"]["hybrid-additive"]["parallel_efficiency"] * faster
        )


def test_efficiencies_of_replays_stand_beside_those_of_the_measured_run(popmodel: Call) -> None:
    words = ("replay", PURE, "--latency", "1us,1ms", "--metrics")
    lines = popmodel(*words)[1].splitlines()
    head = lines.index("MPI (multiplicative)        measured  run 1  run 2")
    assert [line[:28].rstrip() for line in lines[head + 1 : head + 6]] == [
        "Parallel efficiency",
        " Load balance",
        " Communication efficiency",
        "  Serialisation efficiency",
        "  Transfer efficiency",
    ]
    assert (
        "| MPI (multiplicative) | measured | run 1 | run 2 |"
        in (popmodel(*words, "--format", "markdown")[1])
    )
    rows = list(csv.DictReader(io.StringIO(popmodel(*words, "--format", "csv")[1])))
    document = json.loads(popmodel(*words, "--format", "json")[1])
    assert (
        float(rows[-1]["mpi.transfer_efficiency"])
        == (document["runs"][1]["metrics"]["mpi"]["transfer_efficiency"])
    )


def test_without_being_asked_for_there_are_no_efficiencies(popmodel: Call) -> None:
    document = json.loads(popmodel("replay", PURE, "--format", "json")[1])
    assert "measured_metrics" not in document
    assert "metrics" not in document["runs"][0]


def test_processors_twice_as_fast_change_no_balance(popmodel: Call) -> None:
    words = ("replay", HYBRID, "--cpu-factor", "1,2", "--metrics", "--format", "json")
    one, two = json.loads(popmodel(*words)[1])["runs"]
    assert two["metrics"]["hybrid-additive"] == pytest.approx(one["metrics"]["hybrid-additive"])
    assert two["metrics"]["mpi"] == pytest.approx(one["metrics"]["mpi"])


def test_the_network_of_a_machine(popmodel: Call) -> None:
    words = ("replay", PURE, "--network", "ideal", "--machine", "sandybridge-fdr")
    out = popmodel(*words)[1]
    assert "within a node latency 520 ns, bandwidth up to 7.326 GB/s, eager" in out
    assert "2    sandybridge-fdr" in out
    assert "machines: best estimates of the profile, processes on nodes as traced" in out
    document = json.loads(popmodel(*words, "--format", "json")[1])
    ideal, machine = document["runs"]
    assert "tiers" not in ideal["network"]
    assert list(machine["network"]["tiers"]) == ["within"]
    # one size class, so that the network is a flat one with these values
    flat = ("--latency", "520ns", "--bandwidth", "7326007326.007326B/s")
    like = (*flat, "--eager-threshold", "65537", "--format", "json")
    (same,) = json.loads(popmodel("replay", PURE, *like)[1])["runs"]
    assert machine["runtime"] == pytest.approx(same["runtime"], rel=1e-12)
    assert document["provenance"]["inputs"][-1]["path"].endswith("sandybridge-fdr.json")


def test_machines_take_what_their_profile_does_not_say(popmodel: Call) -> None:
    words = ("replay", PURE, "--machine", "sandybridge-fdr", "--cpu-factor", "1,2")
    document = json.loads(popmodel(*words, "--format", "json")[1])
    assert [run["network"]["cpu_factor"] for run in document["runs"]] == [1.0, 2.0]
    status, out, err = popmodel(*words, "--latency", "1us")
    assert (status, out) == (2, "")
    assert err == (
        "popmodel: error: latency: already set by the machine profile\n"
        "hint: leave it out, or name a network as well, such as ideal\n"
    )


def test_machines_of_one_name_are_told_apart(popmodel: Call, tmp_path: Path) -> None:
    document = json.loads(Path(load("sandybridge-fdr").path).read_text())
    document["net"]["intra"]["classes"][0]["alpha"]["value"] = 4e-6
    document["net"]["intra"]["classes"][0]["alpha"]["high"] = 5e-6
    other = tmp_path / "slow.json"
    other.write_text(json.dumps(document))
    words = ("replay", PURE, "--machine", f"sandybridge-fdr,{other}", "--format", "json")
    runs = json.loads(popmodel(*words)[1])["runs"]
    assert [run["network"]["name"] for run in runs] == ["sandybridge-fdr", str(other)]
    assert runs[0]["runtime"] < runs[1]["runtime"]


def test_a_trace_without_mpi_says_that_there_is_nothing_to_replay(
    started: str, popmodel: Call
) -> None:
    status, out, err = popmodel("replay", started, "--metrics", "--latency", "1us,2us")
    assert (status, err) == (0, "")
    text = " ".join(out.split())
    assert "no MPI to replay: no process sends, receives or takes part in a collective" in text
    assert "against" not in text
    assert "Parallel efficiency" not in text
    markdown = popmodel("replay", started, "--format", "markdown")[1]
    assert "\nno MPI to replay: " in markdown
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


STOPS = "deadlock in the replay: 2 of 2 ranks wait forever: rank 0 in MPI_Send at "


def test_a_deadlock_on_one_network_leaves_the_others(mutual: str, popmodel: Call) -> None:
    options = ("replay", mutual, "--eager-threshold", "1MiB,10")
    status, out, err = popmodel(*options)
    assert status == 1
    lines = out.splitlines()
    assert "1        1 MiB  3.000 ns   +0.0 %" in lines
    assert "2         10 B      -[1]     -[1]" in lines
    assert "processes  2 on 1 node, 4 MPI operations" in lines
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
    assert "measured  9.000 ns" in out
    assert err.startswith(f"popmodel: error: run 1 (latency 0 s): {STOPS}")
    assert err.splitlines()[0].endswith("; no result for run 2 (latency 1 us) either")


def test_a_baseline_that_stops_gives_no_change(mutual: str, popmodel: Call) -> None:
    words = ("replay", mutual, "--eager-threshold", "10,1MiB", "--format", "json")
    document = json.loads(popmodel(*words)[1])
    assert document["against"] == {"what": "first", "runtime": None}
    assert [run["change"] for run in document["runs"]] == [None, None]
    lines = popmodel(*words[:-2])[1].splitlines()
    assert "2        1 MiB  3.000 ns        -" in lines
    # the ideal network stops, too: its eager threshold is below this message
    words = ("replay", mutual, "--eager-threshold", "1MiB", "--format", "json")
    assert json.loads(popmodel(*words)[1])["against"] == {"what": "ideal", "runtime": None}


def test_efficiencies_of_a_replay_that_stops_are_marked(mutual: str, popmodel: Call) -> None:
    out = popmodel("replay", mutual, "--eager-threshold", "1MiB,10", "--metrics")[1]
    (line,) = [line for line in out.splitlines() if line.startswith("Parallel efficiency")]
    assert line.endswith("  -[1]")


def test_a_deadlock_on_the_only_network_is_an_error(mutual: str, popmodel: Call) -> None:
    status, out, err = popmodel("replay", mutual, "--eager-threshold", "10")
    assert (status, out) == (1, "")
    assert err.startswith(f"popmodel: error: {STOPS}")


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


def test_the_program_is_replayed_and_what_is_left_out_said_first(
    started: str, popmodel: Call
) -> None:
    for form in ("table", "markdown"):
        out = popmodel("replay", started, "--format", form)[1]
        assert " ".join(out.split()).startswith(LEFT_OUT)
    document = json.loads(popmodel("replay", started, "--format", "json")[1])
    assert document["caveats"][:2] == [LEFT_OUT, FEW_CALLS]
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


def test_algorithms_of_collectives(popmodel: Call) -> None:
    words = ("replay", PURE, "--network", "alpha-beta")
    choices = ("--algorithm", "allreduce=ring", "--algorithm", "allreduce=reduce_bcast:1KiB,ring")
    out = popmodel(*words, *choices, "--algorithm", "bcast=linear")[1]
    rows = [line.split()[1:3] for line in out.splitlines() if line.endswith(" %")]
    assert rows == [
        ["allreduce=ring", "bcast=linear"],
        ["allreduce=reduce_bcast:1KiB,ring", "bcast=linear"],
    ]
    runs = json.loads(popmodel(*words, *choices, "--format", "json")[1])["runs"]
    assert {run["network"]["collectives"] for run in runs} == {"algorithm"}
    ring, doubling = (
        json.loads(popmodel(*words, "--algorithm", f"allreduce={name}", "--format", "json")[1])
        for name in ("ring", "recursive_doubling")
    )
    plain = json.loads(popmodel(*words, "--collectives", "algorithm", "--format", "json")[1])
    assert doubling["runs"][0]["runtime"] == plain["runs"][0]["runtime"]
    assert ring["runs"][0]["runtime"] == runs[0]["runtime"] != plain["runs"][0]["runtime"]


def test_algorithms_go_with_collectives_as_messages_only(popmodel: Call) -> None:
    words = ("replay", PURE, "--algorithm", "allreduce=ring", "--collectives")
    status, _, err = popmodel(*words, "dimemas")
    assert status == 2
    assert "collectives dimemas: not carried out as messages" in err
    runs = json.loads(popmodel(*words, "dimemas,algorithm", "--format", "json")[1])["runs"]
    assert [run["network"].get("algorithms") for run in runs] == [None, "allreduce=ring"]


def test_an_algorithm_that_is_none_names_the_option(popmodel: Call) -> None:
    status, _, err = popmodel("replay", PURE, "--algorithm", "allreduce=rign")
    assert status == 2
    assert "--algorithm: unknown algorithm 'rign' of allreduce" in err


def test_other_placements_of_ranks(tmp_path: Path, popmodel: Call) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\na\nb\n")
    words = ("replay", PURE, "--machine", "sandybridge-fdr")
    mappings = ("--mapping", f"traced,block:4,block:2,cyclic:2,{hosts}")
    document = json.loads(popmodel(*words, *mappings, "--format", "json")[1])
    names = [run["network"].get("mapping") for run in document["runs"]]
    assert names == [None, "block:4", "block:2", "cyclic:2", str(hosts)]
    traced, together, block, cyclic, as_listed = (run["runtime"] for run in document["runs"])
    assert traced == together
    assert cyclic == as_listed
    assert len({together, block, cyclic}) == 3
    lines = popmodel(*words, *mappings)[1].splitlines()
    assert any(line.split()[:2] == ["1", "traced"] for line in lines)
    assert "processes on nodes as traced or as" in "\n".join(lines)


def test_a_mapping_that_changes_nothing_is_refused(popmodel: Call) -> None:
    status, _, err = popmodel("replay", PURE, "--network", "alpha-beta", "--mapping", "block:2")
    assert status == 2
    assert "mapping block:2: changes nothing on alpha-beta" in err


def test_what_is_no_mapping_is_refused(popmodel: Call) -> None:
    words = ("replay", PURE, "--machine", "sandybridge-fdr", "--mapping")
    assert "'blck:2': must be traced, block:N, cyclic:N or a file" in popmodel(*words, "blck:2")[2]


def test_runs_of_different_networks_have_the_same_columns(popmodel: Call) -> None:
    words = ("--algorithm", "allreduce=ring", "--collectives", "algorithm,dimemas")
    out = popmodel("replay", PURE, *words, "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["network_algorithms"] for row in rows} == {"allreduce=ring", ""}


def test_costs_of_collectives_by_factor_or_as_a_file_of_dimemas_says(
    tmp_path: Path, popmodel: Call
) -> None:
    file = tmp_path / "ideal.collectives"
    file.write_text("\n".join(f"{number} 0 MAX 0 MAX 1" for number in range(16)))
    words = ("replay", PURE, "--network", "dimemas", "--collective-cost")
    given = (f"constant,linear,{file}", "--format", "json")
    runs = json.loads(popmodel(*words, *given)[1])["runs"]
    assert [run["network"]["collective_cost"] for run in runs] == ["constant", "linear", str(file)]
    constant, linear, none = (run["runtime"] for run in runs)
    assert none < constant < linear
    err = popmodel(*words, "liner")[2]
    assert "unknown cost of collectives 'liner'" in err
    assert "linear" in err


def test_ranks_of_other_speeds(popmodel: Call) -> None:
    words = ("replay", PURE, "--rank-speed", "0=1", "--rank-speed", "0-1=2,3=0.5")
    same, other = json.loads(popmodel(*words, "--format", "json")[1])["runs"]
    ratios = [
        a["compute"] / b["compute"] for a, b in zip(same["ranks"], other["ranks"], strict=True)
    ]
    assert ratios == pytest.approx([2, 2, 1, 0.5])
    assert "speeds" in other["network"]
    out = popmodel(*words)[1]
    assert any(line.split()[:2] == ["2", "0-1=2,3=0.5"] for line in out.splitlines())


def test_efficiencies_with_ranks_of_other_speeds(popmodel: Call) -> None:
    words = ("replay", PURE, "--rank-speed", "0=0.5", "--metrics", "--format", "json")
    document = json.loads(popmodel(*words)[1])
    ranks = [rank["compute"] for rank in document["runs"][0]["ranks"]]
    balance = document["runs"][0]["metrics"]["mpi"]["load_balance"]
    assert balance == pytest.approx(sum(ranks) / len(ranks) / max(ranks), rel=1e-3)


def test_ranks_that_are_not_there_have_no_speed(popmodel: Call) -> None:
    status, _, err = popmodel("replay", PURE, "--rank-speed", "4=2")
    assert status == 2
    assert "speed of rank 4: there are 4 ranks, from 0 to 3" in err
    assert "--rank-speed: '4' is no speed" in popmodel("replay", PURE, "--rank-speed", "4")[2]


def test_links_that_messages_share_make_a_run_slower(popmodel: Call) -> None:
    words = ("replay", PURE, "--network", "alpha-beta", "--bandwidth", "100MB/s", "--mapping")
    given = ("block:1", "--links", "0,1,2:1", "--sharing", "fifo,fair")
    runs = json.loads(popmodel(*words, *given, "--format", "json")[1])["runs"]
    free, free_too, fifo, fair, *_ = (run["runtime"] for run in runs)
    assert free == free_too < min(fifo, fair)
    assert "output_links" not in runs[0]["network"]
    assert runs[2]["network"]["output_links"] == runs[2]["network"]["input_links"] == 1
    assert [run["network"].get("sharing") for run in runs[2:]] == ["fifo", "fair"] * 2
    lines = popmodel(*words, *given)[1].splitlines()
    assert any(line.split()[:4] == ["5", "2", "1", "fifo"] for line in lines)


def test_a_topology_from_a_file(popmodel: Call) -> None:
    words = ("replay", PURE, "--bandwidth", "1GB/s", "--mapping", "block:1")
    given = ("--topology", "tests/data/fat_tree.toml")
    document = json.loads(popmodel(*words, *given, "--format", "json")[1])
    assert document["runs"][0]["network"]["topology"].startswith("fat tree (down 2, 2; up 1, 1;")
    assert "tests/data/fat_tree.toml" in json.dumps(document["provenance"])
    assert "topology fat tree (down 2, 2" in " ".join(popmodel(*words, *given)[1].split())


def test_links_between_nodes_of_a_run_on_one_node_are_named(popmodel: Call) -> None:
    out = " ".join(popmodel("replay", PURE, "--links", "1")[1].split())
    assert "all ranks are on one node, so that no message takes a link between nodes" in out
    within = popmodel("replay", PURE, "--bandwidth", "1GB/s", "--intra-links", "1")[1]
    assert "links within 1" in " ".join(within.split())
    assert "on one node, so" not in within


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--links", "x"), "--links: must be a whole number of at least 0, or OUT:IN, not 'x'"),
        (("--links", "1:"), "--links: must be a whole number of at least 0, or OUT:IN, not '1:'"),
        (("--buses", "-1"), "--buses: must be a whole number of at least 0, not '-1'"),
        (("--intra-links", "1.5"), "--intra-links: must be a whole number of at least 0"),
        (("--sharing", "fare"), "--sharing: unknown sharing of links 'fare'"),
        (("--sharing", "fair"), "sharing: no network has anything to share"),
        (
            ("--links", "1", "--topology", "tests/data/fat_tree.toml"),
            "a topology has its own links",
        ),
    ],
)
def test_what_nobody_shares_is_refused(
    given: tuple[str, ...], message: str, popmodel: Call
) -> None:
    status, _, err = popmodel("replay", PURE, *given)
    assert (status, message in err) == (2, True), err


def test_a_replay_is_written_as_a_trace(tmp_path: Path, popmodel: Call) -> None:
    output = tmp_path / "replayed.prv.gz"
    words = ("--network", "dimemas", "--format", "json", "-o", str(output))
    status, out, err = popmodel("replay", PURE, *words)
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["written"] == str(output)
    again = ("--from-start", "--format", "json")
    (measured,) = json.loads(popmodel("metrics", str(output), *again)[1])["runs"]
    (run,) = document["runs"]
    assert measured["runtime"] == pytest.approx(run["runtime"], abs=1e-9)
    (replayed,) = json.loads(popmodel("replay", str(output), "--network", "dimemas", *again)[1])[
        "runs"
    ]
    assert replayed["runtime"] == pytest.approx(run["runtime"], abs=1e-9)
    assert [rank["compute"] for rank in replayed["ranks"]] == pytest.approx(
        [rank["compute"] for rank in run["ranks"]], abs=1e-12
    )


def test_the_table_says_where_the_replay_was_written(
    trace: str, tmp_path: Path, popmodel: Call
) -> None:
    output = tmp_path / "replayed.prv"
    lines = popmodel("replay", trace, "-o", str(output))[1].splitlines()
    assert any(line.startswith("written ") for line in lines)
    assert {each.suffix for each in tmp_path.glob("replayed.*")} == {".prv", ".pcf", ".row"}
    status, _, err = popmodel("replay", trace, "-o", str(output))
    assert status == 2
    assert "use --force to overwrite it" in err
    assert popmodel("replay", trace, "-o", str(output), "--force")[0] == 0


def test_only_one_replay_makes_a_trace(trace: str, tmp_path: Path, popmodel: Call) -> None:
    output = tmp_path / "replayed.prv"
    status, _, err = popmodel("replay", trace, "--latency", "1us,2us", "-o", str(output))
    assert status == 2
    assert "one replay makes a trace, not 2 replays" in err
    assert not output.exists()


def test_a_trace_has_the_name_of_one(trace: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.prv or \.prv\.gz"):
        replay(trace, output=tmp_path / "replayed.trace")


def test_regions_of_other_speed(popmodel: Call) -> None:
    given = ("--region-speed", "before MPI_Sendrecv=2", "--format", "json")
    document = json.loads(popmodel("replay", PURE, *given)[1])
    plain = json.loads(popmodel("replay", PURE, "--format", "json")[1])
    assert document["runs"][0]["runtime"] < plain["runs"][0]["runtime"]
    assert "taken as 2 times as fast as traced" in document["notes"][0]
    status, _, err = popmodel("replay", PURE, "--region-speed", "2")
    assert (status, "'2' is no speed of a region" in err) == (2, True)
