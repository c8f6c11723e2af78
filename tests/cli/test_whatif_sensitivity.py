"""``popmodel whatif`` without scenarios; its screens are in tests/golden/whatif.txt."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import popmodel as package
from popmodel.base.errors import PopmodelError
from popmodel.reports.sensitivity_tables import conclusion

from .conftest import Call

DATA = Path(__file__).parent.parent / "data"
CG = str(DATA / "cg.S.2.prv.gz")
FT = str(DATA / "ft.S.4.prv.gz")
SLOW = ("--sensitivity", "--latency")


def document(popmodel: Call, *words: str) -> dict:
    """What the runtime depends on."""
    status, out, err = popmodel("whatif", *words, "--format", "json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["schema"] == "popmodel/whatif/1"
    assert "runs" not in found
    return dict(found["sensitivity"])


def test_the_document_of_a_barrier(trace: str, popmodel: Call) -> None:
    # two ranks compute for 8 and 6 ms, then a barrier of two latencies
    found = document(popmodel, trace, *SLOW, "100us")
    assert found["runtime"] == pytest.approx(8.2e-3)
    assert found["shares"] == pytest.approx(
        {"computing": 8e-3, "latency": 2e-4, "bandwidth": 0, "overhead": 0}
    )
    assert found["derivatives"] == pytest.approx(
        {"latency": 2, "inverse_bandwidth": 0, "cpu": 8e-3}
    )
    assert found["without"] == pytest.approx({"latency": 8e-3, "bandwidth": 8.2e-3})
    assert found["latency"] == {
        "breakpoints": pytest.approx([0, 2e-4]),
        "runtimes": pytest.approx([8e-3, 8.4e-3]),
        "slopes": [2],
        "error": 0,
    }
    assert [one["slowdown"] for one in found["tolerance"]] == [0.01, 0.02, 0.05]
    # (1.05 x 8.2 - 8) / 2 ms, beyond the range
    assert found["tolerance"][-1]["latency"] == pytest.approx(0.305e-3)
    assert found["tolerance"][0]["bandwidth"] == 0
    assert found["tolerance"][0]["why"] == {
        "bandwidth": "no bandwidth makes the run take that long"
    }
    assert found["planes"] == [
        {
            "constant": pytest.approx(8e-3),
            "latency": 2,
            "inverse_bandwidth": 0,
            "computing": pytest.approx(8e-3),
        }
    ]
    assert found["planes_speed"] == {"least": 0.25, "most": 4}


def test_what_pays_stands_beside_what_bounds(trace: str, popmodel: Call) -> None:
    found = document(popmodel, trace, *SLOW, "100us")
    (one, *_) = found["regions"]
    assert one["name"] == "before MPI_Barrier"
    assert [gain["faster"] for gain in one["gain"]] == [0.1, 0.25, 0.5, 1.0]
    # rank 0 computes for 8 ms: without that rank 1, which computes for 6 ms, would be the last
    assert one["slowest"]["rank"] == 0
    assert one["slowest"]["gain"][-1]["runtime"] == pytest.approx(6.2e-3)
    assert one["gain"][0]["runtime"] == pytest.approx(7.4e-3)
    assert one["balanced"] == pytest.approx(7.2e-3)
    gains = {scenario["name"]: scenario["runtime"] for scenario in found["scenarios"]}
    assert gains["no transfer"] == pytest.approx(8e-3)
    assert gains["balanced, no transfer"] == pytest.approx(7e-3)
    assert found["critical_path"]["spent"]["computing"] == pytest.approx(8e-3)


def test_a_transfer_efficiency_that_latency_alone_makes_impossible(
    trace: str, popmodel: Call
) -> None:
    found = document(popmodel, trace, *SLOW, "1ms")
    assert found["efficient"]["latency"] == pytest.approx((8 / 0.95 - 8) / 2 * 1e-3)
    assert found["efficient"]["bandwidth"] is None
    assert found["efficient"]["why"]["bandwidth"].startswith("even with infinite bandwidth")


def test_a_run_without_communication_depends_on_no_network(tmp_path: Path, popmodel: Call) -> None:
    path = tmp_path / "alone.prv"
    path.write_text("#Paraver (01/01/2030 at 00:00):99_ns:1(1):1:1(1:1),0\n1:1:1:1:1:0:99:1\n")
    status, out, _ = popmodel("whatif", str(path))
    assert status == 0
    assert "nothing to gain from a network" in out
    found = document(popmodel, str(path))
    assert found["shares"]["computing"] == found["runtime"] == pytest.approx(99e-9)
    assert found["tolerance"][0]["latency"] is None


def test_a_run_is_bound_from_a_tenth_of_the_runtime_on() -> None:
    latency = package.whatif(CG)
    assert latency["latency_share"] == pytest.approx(0.137, abs=1e-3)
    assert conclusion(latency.to_dict()).startswith("bound by latency: 13.7 % of the runtime")
    bandwidth = package.whatif(FT)
    assert conclusion(bandwidth.to_dict()).startswith("not bound by the network: 8.0 % of the")


def test_csv_has_every_breakpoint(popmodel: Call) -> None:
    found = document(popmodel, CG)
    text = popmodel("whatif", CG, "--format", "csv")[1]
    rows = list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))

    def of(name: str) -> list[dict[str, str]]:
        return [row for row in rows if row["table"] == f"sensitivity.{name}"]

    latencies = [float(row["breakpoints"]) for row in of("latency")]
    assert latencies == found["latency"]["breakpoints"]
    assert len(latencies) > 100
    (shares,) = of("shares")
    assert {name: float(shares[name]) for name in found["shares"]} == found["shares"]
    limits = of("tolerance")
    assert float(limits[0]["latency"]) == found["tolerance"][0]["latency"]
    entries = of("critical_path.entries")
    assert {row["group"] for row in entries} == {"ranks", "regions", "calls", "pairs"}
    (first, *_) = found["regions"]
    gains = (row for row in of("regions.gain") if row["name"] == first["name"])
    faster = {float(row["faster"]): float(row["runtime"]) for row in gains}
    assert faster[0.1] == first["gain"][0]["runtime"]


def test_a_machine_changes_messages_over_its_longest_distance(popmodel: Call) -> None:
    found = document(popmodel, FT, "--machine", "sandybridge-fdr", "--sensitivity")
    assert [one["name"] for one in found["tiers"]] == ["within"]
    assert found["runtime"] == pytest.approx(sum(found["shares"].values()), rel=1e-9)


def test_shared_links_are_refused(trace: str) -> None:
    with pytest.raises(PopmodelError, match="messages share links or buses"):
        package.whatif(trace, "alpha-beta", links=1, mapping="block:1", sensitivity=True)


@pytest.mark.parametrize(
    "given",
    [
        ("--algorithm", "allreduce=ring"),
        ("--send-overhead", "1us", "--receive-overhead", "2us"),
        ("--machine", "sandybridge-fdr", "--mapping", "block:1"),
    ],
)
def test_the_network_is_that_of_a_scenario(
    given: tuple[str, ...], popmodel: Call, trace: str
) -> None:
    base = () if "--machine" in given else ("--network", "alpha-beta")
    found = document(popmodel, trace, *given, "--sensitivity")
    (run,) = json.loads(popmodel("whatif", trace, *base, *given, "--format", "json")[1])["runs"]
    assert found["runtime"] == pytest.approx(run["runtime"], rel=1e-12)
    assert sum(found["shares"].values()) == pytest.approx(found["runtime"], rel=1e-9)
    assert found["network"] == run["network"]


def test_the_critical_path_is_written_into_the_trace(
    trace: str, popmodel: Call, tmp_path: Path
) -> None:
    target = str(tmp_path / "path.prv.gz")
    status, out, err = popmodel("whatif", trace, "--save-trace", target)
    assert (status, err) == (0, "")
    assert "critical path, to" in out
    assert "Critical path of a replay (2 us, 10 GB/s)" in (tmp_path / "path.pcf").read_text()
    assert popmodel("whatif", trace, "--save-trace", target)[0] == 2
    assert popmodel("whatif", trace, "--save-trace", target, "--force")[0] == 0
    status, _, err = popmodel("whatif", trace, "--save-trace", trace, "--force")
    assert (status, "is the trace itself" in err) == (2, True)


def test_conditions(popmodel: Call) -> None:
    status, _, err = popmodel("whatif", CG, "--fail-if", "latency_share > 10%")
    assert (status, "latency_share is 0.1375, more than 0.1" in err) == (3, True)
    assert popmodel("whatif", CG, "--fail-if", "runtime > 1")[0] == 0
    words = ("--latency", "1us,20us", "--fail-if", "change > 0.1")
    status, _, err = popmodel("whatif", CG, *words)
    assert (status, "change of latency 20 us is" in err) == (3, True)
    assert popmodel("whatif", CG, "--fail-if", "nothing > 1")[0] == 2


def test_a_page_shows_sliders_and_regions(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "cg.html"
    assert popmodel("whatif", CG, "-o", str(path))[0] == 0
    text = path.read_text()
    assert 'id="whatif-latency"' in text


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ("a: calc 0", "nothing is sent"),
        ("a: send 8b to 0\nb: recv 8b from 0", "messages cost nothing"),
    ],
)
def test_a_run_that_takes_no_time_has_no_sensitivities(
    operations: str, why: str, tmp_path: Path, popmodel: Call
) -> None:
    schedule = tmp_path / "nothing.goal"
    schedule.write_text(f"num_ranks 1\nrank 0 {{\n{operations}\n}}\n")
    status, _, err = popmodel("whatif", str(schedule), "--network", "ideal", "--sensitivity")
    assert status == 2
    assert f"takes no time: nothing is computed, and {why}" in err
