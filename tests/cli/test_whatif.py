"""``popmodel whatif`` with scenarios; its screens are in tests/golden/whatif.txt."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import popmodel as package
from popmodel.base.errors import UsageError
from popmodel.machines.profile import load

from .conftest import FEW_CALLS, LEFT_OUT, Call

DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")
HYBRID = str(DATA / "bt-mz.S.2x2.prv.gz")
IDEAL = ("--network", "ideal")
MACHINE = ("--machine", "sandybridge-fdr")


def document(popmodel: Call, *words: str) -> Any:
    status, out, err = popmodel("whatif", *words, "--format", "json")
    assert (status, err) == (0, "")
    return json.loads(out)


def rows(popmodel: Call, *words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(popmodel("whatif", *words, "--format", "csv")[1])))


def test_json_follows_the_contract(trace: str, popmodel: Call) -> None:
    found = document(popmodel, trace, "--network", "ideal,dimemas", "--bandwidth", "1GB/s")
    assert found["schema"] == "popmodel/whatif/1"
    assert "sensitivity" not in found
    assert (found["trace"], found["kind"]) == ("two.prv", "trace")
    assert [run["network"]["name"] for run in found["runs"]] == ["ideal", "dimemas"]
    first = found["runs"][0]
    assert first["network"]["bandwidth"] == 1e9
    assert first["runtime"] == pytest.approx(0.008)
    assert first["operations"] == 2
    assert first["ranks"] == [
        {"compute": pytest.approx(0.008), "end": pytest.approx(0.008)},
        {"compute": pytest.approx(0.006), "end": pytest.approx(0.008)},
    ]
    assert found["measured_runtime"] == pytest.approx(0.009)


def test_a_baseline_can_be_chosen(trace: str, popmodel: Call) -> None:
    for options, what, changes in (
        (IDEAL, "measured", [8 / 9 - 1]),
        (("--latency", "1ms"), "ideal", [0.25]),
        (("--latency", "1ms,2ms"), "first", [0.0, 0.2]),
        (("--latency", "1ms,2ms", "--against", "ideal"), "ideal", [0.25, 0.5]),
        (("--latency", "1ms", "--against", "measured"), "measured", [10 / 9 - 1]),
        ((*IDEAL, "--against", "ideal"), "ideal", [0.0]),
    ):
        found = document(popmodel, trace, *options)
        assert found["against"]["what"] == what
        assert [run["change"] for run in found["runs"]] == pytest.approx(changes, abs=1e-9)
        base = found["against"]["runtime"]
        assert found["runs"][0]["runtime"] == pytest.approx(base * (1 + changes[0]))
        assert rows(popmodel, trace, *options)[0]["against_what"] == what


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
    lines = popmodel("whatif", str(path), *IDEAL)[1].splitlines()
    heads = next(at for at, line in enumerate(lines) if line.startswith("run "))
    assert lines[heads].split() == ["run", "runtime", "measured", "rank", "ends"]
    assert lines[heads + 1].endswith("18.00 ns")


SPLIT = "not modelled, assumed to take no time: 50 % of the time in 1 MPI_Comm_split"


def test_the_program_is_replayed_and_what_is_left_out_said_first(
    started: str, popmodel: Call
) -> None:
    out = popmodel("whatif", started, *IDEAL)[1]
    said = " ".join(out.split())
    assert said.startswith("no call of MPI that is modelled: a network changes nothing here")
    assert SPLIT in said
    found = document(popmodel, started, *IDEAL)
    assert found["caveats"][1:4] == [SPLIT, LEFT_OUT, FEW_CALLS]
    assert found["window"]["left_out"] == {"before": 0.04, "between": 0.0, "after": 0.01}
    assert found["measured_runtime"] == 0.05
    assert found["runs"][0]["runtime"] == 0.025
    whole = document(popmodel, started, *IDEAL, "--from-start")
    assert whole["measured_runtime"] == 0.1
    assert whole["window"]["left_out"] == {"before": 0.0, "between": 0.0, "after": 0.0}


def test_what_has_to_be_known_first_is_what_metrics_says(crowded: str, popmodel: Call) -> None:
    first = document(popmodel, crowded, *IDEAL)["caveats"]
    assert first[0].startswith("more threads than CPUs: 2 threads may use only 1 CPU")
    metrics = json.loads(popmodel("metrics", crowded, "--format", "json")[1])
    assert first == metrics["runs"][0]["caveats"]


def test_a_run_that_no_network_explains_is_doubtful(popmodel: Call) -> None:
    for words in ((), IDEAL):
        found = document(popmodel, PURE, *words)
        metrics = json.loads(popmodel("metrics", PURE, "--format", "json")[1])
        assert found["doubts"] == metrics["advice"]["doubts"]
        out = popmodel("whatif", PURE, *words)[1]
        assert "-> Doubtful: even on a slow network" in out
        assert "what would help" not in out


# Every combination of values.


def test_every_combination_of_values_is_a_run(trace: str) -> None:
    found = package.whatif(trace, latency="0,1ms", cpu_factor=[1, 2])
    assert found["runtime"] == pytest.approx((8e-3, 4e-3, 10e-3, 6e-3))
    assert found["change"] == pytest.approx((0, -0.5, 0.25, -0.25))


def test_runs_of_different_networks_have_the_same_columns(popmodel: Call) -> None:
    words = ("--algorithm", "allreduce=ring", "--collectives", "algorithm,dimemas")
    found = rows(popmodel, PURE, *words)
    assert {row["network_algorithms"] for row in found} == {"allreduce=ring", ""}


# Collectives.


def test_algorithms_of_collectives(popmodel: Call) -> None:
    base = (PURE, "--network", "alpha-beta")
    choices = ("--algorithm", "allreduce=ring", "--algorithm", "allreduce=reduce_bcast:1KiB,ring")
    runs = document(popmodel, *base, *choices)["runs"]
    assert {run["network"]["collectives"] for run in runs} == {"algorithm"}
    ring, doubling = (
        document(popmodel, *base, "--algorithm", f"allreduce={name}")["runs"][0]["runtime"]
        for name in ("ring", "recursive_doubling")
    )
    plain = document(popmodel, *base, "--collectives", "algorithm")["runs"][0]["runtime"]
    assert doubling == plain
    assert ring == runs[0]["runtime"] != plain


def test_algorithms_go_with_collectives_as_messages_only(popmodel: Call) -> None:
    words = (PURE, "--algorithm", "allreduce=ring", "--collectives")
    status, _, err = popmodel("whatif", *words, "dimemas")
    assert (status, "collectives dimemas: not carried out as messages" in err) == (2, True)
    runs = document(popmodel, *words, "dimemas,algorithm")["runs"]
    assert [run["network"].get("algorithms") for run in runs] == [None, "allreduce=ring"]


# Efficiencies.


@pytest.mark.parametrize("path", [PURE, HYBRID])
def test_on_the_ideal_network_only_transfer_differs_from_the_measured_run(
    path: str, popmodel: Call
) -> None:
    found = document(popmodel, path, *IDEAL, "--metrics")
    words = ("--family", "all", "--format", "json")
    measured = json.loads(popmodel("metrics", path, *words)[1])["runs"][0]
    values = found["runs"][0]["metrics"]
    for family, known in found["measured_metrics"].items():
        assert known == {name: measured["metrics"][family][name] for name in known}
    mpi, before = values["mpi"], measured["metrics"]["mpi"]
    assert mpi["transfer_efficiency"] == 1.0
    for name in ("load_balance", "serialisation_efficiency"):
        assert mpi[name] == pytest.approx(before[name], rel=1e-12)
    faster = measured["runtime"] / found["runs"][0]["runtime"]
    assert mpi["parallel_efficiency"] == pytest.approx(before["parallel_efficiency"] * faster)
    assert ("hybrid-additive" in values) == (path == HYBRID)
    if path == HYBRID:
        additive = values["hybrid-additive"]
        assert additive["process_transfer_efficiency"] == 1.0
        assert additive["parallel_efficiency"] == pytest.approx(
            measured["metrics"]["hybrid-additive"]["parallel_efficiency"] * faster
        )


def test_processors_twice_as_fast_change_no_balance(popmodel: Call) -> None:
    one, two = document(popmodel, HYBRID, "--cpu-factor", "1,2", "--metrics")["runs"]
    assert two["metrics"]["hybrid-additive"] == pytest.approx(one["metrics"]["hybrid-additive"])
    assert two["metrics"]["mpi"] == pytest.approx(one["metrics"]["mpi"])


def test_efficiencies_with_ranks_of_other_speeds(popmodel: Call) -> None:
    (run,) = document(popmodel, PURE, "--rank-speed", "0=0.5", "--metrics")["runs"]
    ranks = [rank["compute"] for rank in run["ranks"]]
    balance = sum(ranks) / len(ranks) / max(ranks)
    assert run["metrics"]["mpi"]["load_balance"] == pytest.approx(balance, rel=1e-3)


# Links.


def test_links_that_messages_share_make_a_run_slower(popmodel: Call) -> None:
    words = (PURE, "--network", "alpha-beta", "--bandwidth", "100MB/s", "--mapping", "block:1")
    given = ("--links", "0,1,2:1", "--sharing", "fifo,fair")
    runs = document(popmodel, *words, *given)["runs"]
    free, free_too, fifo, fair, *_ = (run["runtime"] for run in runs)
    assert free == free_too < min(fifo, fair)
    assert "output_links" not in runs[0]["network"]
    assert runs[2]["network"]["output_links"] == runs[2]["network"]["input_links"] == 1
    assert [run["network"].get("sharing") for run in runs[2:]] == ["fifo", "fair"] * 2


# Machines, placements and speeds.


def test_the_network_of_a_machine(popmodel: Call, tmp_path: Path) -> None:
    profile = json.loads(Path(load("sandybridge-fdr").path).read_text())
    del profile["net"]["intra"]["os"]
    file = tmp_path / "sandybridge-fdr.json"
    file.write_text(json.dumps(profile))
    found = document(popmodel, PURE, *IDEAL, "--machine", str(file))
    ideal, machine = found["runs"]
    assert "tiers" not in ideal["network"]
    assert list(machine["network"]["tiers"]) == ["within"]
    # one size class, so that the network is a flat one with these values
    flat = ("--latency", "520ns", "--bandwidth", "7326007326.007326B/s")
    (same,) = document(popmodel, PURE, *flat, "--eager-threshold", "65537")["runs"]
    assert machine["runtime"] == pytest.approx(same["runtime"], rel=1e-12)
    assert found["provenance"]["inputs"][-1]["path"].endswith("sandybridge-fdr.json")


def test_machines_of_one_name_are_told_apart(popmodel: Call, tmp_path: Path) -> None:
    slow = json.loads(Path(load("sandybridge-fdr").path).read_text())
    slow["net"]["intra"]["classes"][0]["alpha"]["value"] = 4e-6
    slow["net"]["intra"]["classes"][0]["alpha"]["high"] = 5e-6
    other = tmp_path / "slow.json"
    other.write_text(json.dumps(slow))
    runs = document(popmodel, PURE, "--machine", f"sandybridge-fdr,{other}")["runs"]
    assert [run["network"]["name"] for run in runs] == ["sandybridge-fdr", str(other)]
    assert runs[0]["runtime"] < runs[1]["runtime"]


def test_other_placements_of_ranks(tmp_path: Path, popmodel: Call) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\na\nb\n")
    mappings = ("--mapping", f"traced,block:4,block:2,cyclic:2,{hosts}")
    runs = document(popmodel, PURE, *MACHINE, *mappings)["runs"]
    names = [run["network"].get("mapping") for run in runs]
    assert names == [None, "block:4", "block:2", "cyclic:2", str(hosts)]
    traced, together, block, cyclic, as_listed = (run["runtime"] for run in runs)
    assert traced == together
    assert cyclic == as_listed
    assert len({together, block, cyclic}) == 3


def test_ranks_and_regions_of_other_speeds(popmodel: Call) -> None:
    words = ("--rank-speed", "0=1", "--rank-speed", "0-1=2,3=0.5")
    same, other = document(popmodel, PURE, *words)["runs"]
    ratios = [
        a["compute"] / b["compute"] for a, b in zip(same["ranks"], other["ranks"], strict=True)
    ]
    assert ratios == pytest.approx([2, 2, 1, 0.5])
    faster = document(popmodel, PURE, "--region-speed", "before MPI_Sendrecv=2")
    plain = document(popmodel, PURE, *IDEAL)
    assert faster["runs"][0]["runtime"] < plain["runs"][0]["runtime"]
    assert "taken as 2 times as fast as in the run" in faster["notes"][0]


def test_a_faster_region_makes_no_run_doubtful(trace: str) -> None:
    found = package.whatif(trace, region_speed={"before MPI_Barrier": 100})
    assert found.runs[0].runtime == pytest.approx(8e-5)
    assert found.doubts == ()


# Signatures.


RING = """schema = "popmodel/signature/1"
[app]
name = "ring"
[params]
N = 1000
[[program]]
loop = { count = 5 }
[[program.body]]
[program.body.messages]
name = "round"
calls = [
  { do = "compute", seconds = "1e-6 * N" },
  { do = "sendrecv", to = "(rank + 1) % P", from = "(rank - 1) % P", bytes = "8 * N" },
]
"""


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    path = tmp_path / "ring.toml"
    path.write_text(RING)
    return path


def test_a_signature_is_replayed_on_any_network(ring: Path, popmodel: Call) -> None:
    found = package.whatif(ring, ["ideal", "alpha-beta"], procs=4, latency="10us", bandwidth=1e9)
    assert found["runtime"] == pytest.approx([5e-3 + 5 * 10e-6 + 5 * 8000 / 1e9] * 2)
    assert package.whatif(ring, "ideal", procs=4)["runtime"] == pytest.approx(5e-3)
    loaded = package.load_signature(ring)
    run = package.whatif(loaded, "ideal", procs=4, settings={"N": 2000}).runs[0]
    assert run.runtime == pytest.approx(1e-2)
    assert run.execution is not None
    assert run.execution.operations == 5 * 4 * 3
    made = document(popmodel, str(ring), "--procs", "4", *IDEAL)
    assert made["caveats"] == [
        "computation is that of 4 x 1 on sandybridge-fdr, as predicted, not measured"
    ]
    assert made["window"]["why"] == "every step of the signature"
    assert (made["kind"], made["measured_runtime"]) == ("signature", None)


def test_efficiencies_of_signatures(ring: Path) -> None:
    found = package.whatif(ring, "ideal", latency="1ms", procs=4, metrics=True)
    assert found["transfer_efficiency"] == pytest.approx(0.5)
    assert found["load_balance"] == pytest.approx(1)
    hybrid = package.whatif(
        "stencil3d", "ideal", procs=4, threads=2, settings={"N": 64}, metrics=True
    )
    assert hybrid["hybrid-additive.parallel_efficiency"] is not None


def test_a_signature_has_sensitivities(ring: Path) -> None:
    found = package.whatif(ring, procs=4)
    assert found.sensitivity is not None
    assert found["runtime"] == pytest.approx(5e-3 + 5 * 2e-6 + 5 * 8000 / 10e9)
    assert found.sensitivity.by_latency == 5


def test_what_only_traces_have_is_refused(ring: Path) -> None:
    of_traces: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, r"how many processes\?"),
        ({"procs": 4, "window": "1s:2s"}, "--window: .* is a signature, which has no trace for it"),
        (
            {"procs": 4, "flop_rate": 1e9},
            "--flop-rate: .* is a signature, which has no trace for it",
        ),
        ({"procs": 4, "save_trace": "x.prv"}, "--save-trace: .* is a signature, which"),
        ({"procs": 4, "network": "ideal", "against": "measured"}, "no measured times to compare"),
    )
    for more, message in of_traces:
        with pytest.raises(UsageError, match=message):
            package.whatif(ring, **more)


# Replays that stop.


STOPS = "deadlock in the replay: 2 of 2 ranks wait forever: rank 0 in MPI_Send at "


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


def test_a_deadlock_on_one_network_leaves_the_others(mutual: str, popmodel: Call) -> None:
    options = ("whatif", mutual, "--eager-threshold", "1MiB,10")
    status, out, err = popmodel(*options)
    assert status == 1
    lines = out.splitlines()
    assert "1        1 MiB  3.000 ns   +0.0 %" in lines
    assert "2         10 B      -[1]     -[1]" in lines
    assert any(line.startswith(f"[1] {STOPS[:40]}") for line in lines)
    assert err.startswith(f"popmodel: error: run 2 (eager threshold 10 B): {STOPS}")
    assert err.splitlines()[1].startswith("hint: records of these operations are missing")
    status, out, _ = popmodel(*options, "--metrics", "--format", "json")
    assert status == 1
    good, bad = json.loads(out)["runs"]
    assert "error" not in good
    assert good["runtime"] == pytest.approx(3e-9)
    assert bad["error"].startswith(STOPS)
    assert (bad["runtime"], bad["operations"], bad["ranks"]) == (None, None, [])
    found = [(row["rank"], row["error"][:16]) for row in rows(popmodel, *options[1:])]
    assert found == [("", ""), ("", STOPS[:16]), ("0", ""), ("1", "")]
    out = popmodel(*options, "--metrics")[1]
    (line,) = [line for line in out.splitlines() if line.startswith("Parallel efficiency")]
    assert line.endswith("  -[1]")


def test_several_deadlocks_are_one_error(mutual: str, popmodel: Call) -> None:
    status, out, err = popmodel("whatif", mutual, "--eager-threshold", "10")
    assert (status, out, err.startswith(f"popmodel: error: {STOPS}")) == (1, "", True)
    status, _, err = popmodel("whatif", mutual, "--eager-threshold", "10", "--latency", "0,1us")
    assert status == 1
    assert err.startswith(f"popmodel: error: run 1 (latency 0 s): {STOPS}")
    assert err.splitlines()[0].endswith("; no result for run 2 (latency 1 us) either")


def test_a_baseline_that_stops_gives_no_change(mutual: str, popmodel: Call) -> None:
    out = popmodel("whatif", mutual, "--eager-threshold", "10,1MiB", "--format", "json")[1]
    found = json.loads(out)
    assert found["against"] == {"what": "first", "runtime": None}
    assert [run["change"] for run in found["runs"]] == [None, None]
    # the ideal network stops, too: its eager threshold is below this message
    found = document(popmodel, mutual, "--eager-threshold", "1MiB")
    assert found["against"] == {"what": "ideal", "runtime": None}


def test_a_deadlock_of_a_signature_names_no_time_of_a_trace(tmp_path: Path, popmodel: Call) -> None:
    path = tmp_path / "mutual.toml"
    path.write_text(
        RING.replace("sendrecv", "send")
        .replace(', from = "(rank - 1) % P"', "")
        .replace("\n]", '\n  { do = "recv", from = "(rank - 1) % P", bytes = "8 * N" },\n]')
    )
    status, _, err = popmodel("whatif", str(path), "--procs", "2", "--eager-threshold", "10")
    assert status == 1
    assert "2 of 2 ranks wait forever: rank 0 in send at 0.001000000 s of the replay" in err
    assert "trace" not in err


# The run as a trace.


def test_a_replay_is_written_as_a_trace(tmp_path: Path, popmodel: Call) -> None:
    output = str(tmp_path / "replayed.prv.gz")
    found = document(popmodel, PURE, "--network", "dimemas", "--save-trace", output)
    assert found["written"] == output
    again = ("--from-start", "--format", "json")
    (measured,) = json.loads(popmodel("metrics", output, *again)[1])["runs"]
    (run,) = found["runs"]
    assert measured["runtime"] == pytest.approx(run["runtime"], abs=1e-9)
    (replayed,) = document(popmodel, output, "--network", "dimemas", "--from-start")["runs"]
    assert replayed["runtime"] == pytest.approx(run["runtime"], abs=1e-9)
    assert [rank["compute"] for rank in replayed["ranks"]] == pytest.approx(
        [rank["compute"] for rank in run["ranks"]], abs=1e-12
    )


def test_an_existing_trace_is_kept(trace: str, tmp_path: Path, popmodel: Call) -> None:
    words = ("whatif", trace, *IDEAL, "--save-trace", str(tmp_path / "replayed.prv"))
    assert "written" in popmodel(*words)[1]
    assert {each.suffix for each in tmp_path.glob("replayed.*")} == {".prv", ".pcf", ".row"}
    status, _, err = popmodel(*words)
    assert status == 2
    assert "use --force to overwrite it" in err
    assert popmodel(*words, "--force")[0] == 0
