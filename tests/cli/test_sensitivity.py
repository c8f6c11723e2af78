"""``popmodel sensitivity``."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]

ROOT = Path(__file__).parent.parent.parent
CG = str(ROOT / "tests" / "data" / "cg.S.2.prv.gz")
FT = str(ROOT / "tests" / "data" / "ft.S.4.prv.gz")


SCREEN = """\
-> latency-bound: 2.4 % of the runtime is latency, 0.0 %
   bandwidth; the run tolerates 141 us (now 100 us) before
   it is 1 % slower
-> 10 % less computing before MPI_Barrier saves 9.8 % of the
   runtime

trace      two.prv
processes  2 on 1 node, 2 MPI operations
network    alpha-beta: rules alpha-beta, latency 100 us,
           bandwidth 10 GB/s, eager threshold 32 KiB,
           collectives dimemas, collective cost logarithmic
runtime    8.200 ms (ideal network 8.000 ms, measured
           9.000 ms)

                               runtime
critical path      time     %  without
computing      8.000 ms  97.6           ####################
latency        200.0 us   2.4   -2.4 %
bandwidth           0 s   0.0    0.0 %
 without: with no latency, or infinite bandwidth, and all
 else as it is. It may be less than the part, as another
 path becomes the longest.

                                    latency  bandwidth
tolerated                  runtime    up to       from
now                       8.200 ms   100 us    10 GB/s
1 % slower                8.282 ms   141 us        any
2 % slower                8.364 ms   182 us        any
5 % slower                8.610 ms   305 us        any
transfer efficiency 95 %  8.421 ms   211 us        any
 any: none makes the run take that long

which region pays
self %  path %  -10 %  -50 %   one  even
  85.4    97.6    9.8   48.8  24.4  12.2  before MPI_Barrier
 self %: computing in it, mean over ranks; path %: its part
 of the critical path; -10 %, -50 %: how much shorter the
 run is if it takes that much less time; one: -50 % on its
 slowest rank only; even: if all its ranks take equally
 long; all in % of the runtime

potential gains
gain %      gain   runtime
  14.6  1.200 ms  7.000 ms  balanced, no transfer: equal
                             computing, ideal network
  14.6  1.200 ms  7.000 ms  all ideal: no transfer, no
                             waiting, balanced: the mean
                             computing
  12.2  1.000 ms  7.200 ms  balanced: equal computing on all
                             ranks
   2.4  200.0 us  8.000 ms  no transfer: no latency,
                             infinite bandwidth
   2.4  200.0 us  8.000 ms  no waiting: no rank ever waits:
                             the longest computing

critical path by rank
    %  computing  in MPI
100.0       97.6     2.4  rank 0
 in % of the runtime; it stays on rank 0

critical path by MPI call
  %  latencies  bytes
2.4          2      -  MPI_Barrier
 latencies, bytes: how often the path waits for a latency,
 and for how many bytes: the derivatives of the runtime by
 latency and by time per byte

over latency, 0 s .. 200 us: 1 piece, 2 latencies on the
  critical path

notes
 - exact as long as sizes decide who waits for a receive,
   messages meet as traced, and collectives keep their
   algorithms; links and memory are not shared
 - over latency, bandwidth and speed of computing together
   the runtime is one plane (in JSON)
"""


def test_the_conclusion_stands_above_what_it_rests_on(trace: str, popmodel: Call) -> None:
    # two ranks compute for 8 and 6 ms, then a barrier of two latencies
    status, out, err = popmodel("sensitivity", trace, "--latency", "100us")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("-> "))
    assert lines[begin:-3] == SCREEN.splitlines()


def document(popmodel: Call, *words: str) -> dict:
    status, out, err = popmodel("sensitivity", *words, "--format", "json")
    assert (status, err) == (0, "")
    return dict(json.loads(out))


def test_the_document_of_a_barrier(trace: str, popmodel: Call) -> None:
    found = document(popmodel, trace, "--latency", "100us", "--slowdown", "10,50")
    assert found["schema"] == "popmodel/sensitivity/1"
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
    assert [one["slowdown"] for one in found["tolerance"]] == [0.1, 0.5]
    # (1.1 x 8.2 - 8) / 2 ms, beyond the range
    assert found["tolerance"][0]["latency"] == pytest.approx(0.51e-3)
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


def test_a_transfer_efficiency_that_latency_alone_makes_impossible(
    trace: str, popmodel: Call
) -> None:
    found = document(popmodel, trace, "--latency", "1ms")
    assert found["efficient"]["latency"] == pytest.approx((8 / 0.95 - 8) / 2 * 1e-3)
    assert found["efficient"]["bandwidth"] is None
    assert found["efficient"]["why"]["bandwidth"].startswith("even with infinite bandwidth")
    _, out, _ = popmodel("sensitivity", trace, "--latency", "1ms")
    assert "none: even with no latency, or infinite bandwidth" in out


def test_a_run_without_communication_depends_on_no_network(tmp_path: Path, popmodel: Call) -> None:
    path = tmp_path / "alone.prv"
    path.write_text("#Paraver (01/01/2030 at 00:00):99_ns:1(1):1:1(1:1),0\n1:1:1:1:1:0:99:1\n")
    status, out, _ = popmodel("sensitivity", str(path))
    assert status == 0
    assert "-> nothing to gain from a network: the run does not communicate" in out
    found = document(popmodel, str(path))
    assert found["shares"]["computing"] == found["runtime"] == pytest.approx(99e-9)
    assert found["tolerance"][0]["latency"] is None


def test_bandwidth_bounds_a_transpose(shown: Call) -> None:
    assert "-> bandwidth-bound: " in shown("sensitivity", FT)[1]
    assert "-> latency-bound: " in shown("sensitivity", CG)[1]
    assert "costs anything" in shown("sensitivity", FT, "--network", "ideal")[1]


def test_a_file_has_tables_of_the_pieces(shown: Call) -> None:
    text = shown("sensitivity", CG, "--format", "markdown")[1]
    assert "runtime over latency: 218 pieces, the ends and the sharpest bends" in text
    assert "| piece | from latency | runtime | against now | critical path latencies |" in text
    assert "| end | 100 us | 141.9 ms | +684.6 % |  |" in text


def test_csv_has_every_breakpoint(shown: Call) -> None:
    found = document(shown, CG)
    text = shown("sensitivity", CG, "--format", "csv")[1]
    rows = list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))
    latencies = [float(row["value"]) for row in rows if row["part"] == "runtime over latency"]
    assert latencies == found["latency"]["breakpoints"]
    assert len(latencies) > 100
    shares = {row["name"]: float(row["value"]) for row in rows if row["part"] == "critical path"}
    assert shares == found["shares"]
    limits = [row for row in rows if row["part"] == "tolerance"]
    assert [row["name"] for row in limits[::2]] == [
        *("1 % slower", "2 % slower", "5 % slower", "transfer efficiency 95 %")
    ]
    assert float(limits[0]["value"]) == found["tolerance"][0]["latency"]
    assert limits[-1]["value"] == ""


def test_a_drawing_marks_breakpoints_and_tolerances(tmp_path: Path, shown: Call) -> None:
    path = tmp_path / "cg.svg"
    assert shown("sensitivity", CG, "-o", str(path))[0] == 0
    root = ElementTree.parse(path).getroot()
    ids = [one.get("id") for one in root.iter() if one.get("id")]
    assert {"latency-0", "latency-spot-0", "inverse_bandwidth-0", "both-0"} <= set(ids)
    dots = [one for one in root.iter() if one.get("class") == "dot"]
    assert len(dots) > 50
    titles = [one.text or "" for one in root.iter() if one.tag.endswith("title")]
    assert any(text.startswith("latency 2.15 us: ") for text in titles)
    width, height = (float(root.get(side) or 0) for side in ("width", "height"))
    for one in root.iter():
        for key, most in (("cx", width), ("cy", height), ("x", width), ("y", height)):
            assert 0 <= float(one.get(key) or 0) <= most


def test_a_machine_changes_messages_over_its_longest_distance(shown: Call) -> None:
    few = ("--latency-range", "1us:2us", "--bandwidth-range", "5GB/s:6GB/s")  # breakpoints
    found = document(shown, CG, "--machine", "sandybridge-fdr", *few)
    assert [one["name"] for one in found["tiers"]] == ["within"]
    assert found["runtime"] == pytest.approx(sum(found["shares"].values()), rel=1e-9)
    _, out, _ = shown("sensitivity", CG, "--machine", "sandybridge-fdr", *few)
    assert "latency and bandwidth change within a node, for all sizes alike" in " ".join(
        out.split()
    )


def test_a_range_is_looked_at_as_a_whole(popmodel: Call) -> None:
    found = document(
        popmodel, CG, "--latency-range", "1us:1ms", "--bandwidth-range", "1GB/s:50GB/s"
    )
    assert found["latency"]["breakpoints"][0] == 1e-6
    assert found["latency"]["breakpoints"][-1] == 1e-3
    gaps = found["inverse_bandwidth"]["breakpoints"]
    assert (gaps[0], gaps[-1]) == pytest.approx((2e-11, 1e-9))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--latency", "5"], "--latency: '5': a time needs a unit"),
        (["--bandwidth", "fast"], "--bandwidth: 'fast' is not a bandwidth"),
        (["--latency-range", "1us"], "range of latency: must be LOW:HIGH, not '1us'"),
        (["--latency-range", "2us:1us"], "range of latency: must rise from at least 0"),
        (["--bandwidth-range", "0:1"], "range of bandwidth: '0': "),
        (["--slowdown", "0"], "--slowdown: must be per cent above 0, not '0'"),
        (["--slowdown", "1,x"], "--slowdown: must be per cent above 0, not 'x'"),
        (["--network", "idael"], "--network: unknown network 'idael'"),
        (["--collectives", "none"], "--collectives: unknown rule for collectives 'none'"),
        (["--cpu-factor", "x"], "--cpu-factor: must be a number, not 'x'"),
        (["--cpu-factor", "0"], "--cpu-factor: must be above 0 and finite, not '0'"),
        (
            ["--machine", "sandybridge-fdr", "--latency", "1us"],
            "latency: already set by the machine profile",
        ),
        (
            ["--machine", "sandybridge-fdr", "--network", "ideal"],
            "network: already set by the machine profile",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], message: str, trace: str, popmodel: Call
) -> None:
    status, out, err = popmodel("sensitivity", trace, *words)
    assert (status, out) == (2, "")
    assert message in err


def test_shared_links_are_refused(trace: str) -> None:
    import popmodel

    class Shared(popmodel.Network):
        contended = True

    with pytest.raises(popmodel.PopmodelError, match="messages share links or buses"):
        popmodel.sensitivity(trace, Shared())


def test_slowdowns_in_python_are_fractions(trace: str) -> None:
    import popmodel

    with pytest.raises(popmodel.PopmodelError, match="slowdowns: must be numbers above 0"):
        popmodel.sensitivity(trace, slowdowns=[0.01, -1])
    found = popmodel.sensitivity(trace, latency=1e-4, slowdowns=0.1)
    assert list(found.slower) == [0.1]
    assert found.slower[0.1].bandwidth == 0
    assert math.isclose(found.without[0], 8e-3)
    assert repr(found).startswith("<Sensitivity of two.prv: latency-bound: 2.4 % of the runtime")


def test_what_pays_stands_beside_what_bounds(trace: str, popmodel: Call) -> None:
    found = document(popmodel, trace, "--latency", "100us")
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


def test_the_critical_path_is_written_into_the_trace(
    trace: str, popmodel: Call, tmp_path: Path
) -> None:
    target = str(tmp_path / "path.prv.gz")
    status, out, err = popmodel("sensitivity", trace, "-o", target)
    assert (status, err) == (0, "")
    assert "critical path  written to" in out
    assert "Critical path of a replay (2 us, 10 GB/s)" in (tmp_path / "path.pcf").read_text()
    assert popmodel("info", target, "--format", "json")[0] == 0
    status, _, err = popmodel("sensitivity", trace, "-o", target)
    assert status == 2
    assert "exists" in err
    assert popmodel("sensitivity", trace, "-o", target, "--force")[0] == 0
    assert "written" in document(popmodel, trace, "-o", target, "--force")


def test_the_path_is_not_written_over_the_trace(trace: str, popmodel: Call) -> None:
    status, _, err = popmodel("sensitivity", trace, "-o", trace, "--force")
    assert status == 2
    assert "is the trace itself" in err


@pytest.mark.parametrize(
    ("given", "network"),
    [
        (("--algorithm", "allreduce=ring"), {"collectives": "algorithm"}),
        (("--send-overhead", "1us", "--receive-overhead", "2us"), {"send_overhead": 1e-6}),
        (("--machine", "sandybridge-fdr", "--mapping", "block:1"), {"name": "sandybridge-fdr"}),
    ],
)
def test_networks_are_chosen_as_for_a_replay(
    given: tuple[str, ...], network: dict[str, object], popmodel: Call, trace: str
) -> None:
    found = json.loads(popmodel("sensitivity", trace, *given, "--format", "json")[1])
    base = () if "--machine" in given else ("--network", "alpha-beta")
    replayed = json.loads(popmodel("replay", trace, *base, *given, "--format", "json")[1])
    assert found["runtime"] == pytest.approx(replayed["runs"][0]["runtime"], rel=1e-12)
    assert sum(found["shares"].values()) == pytest.approx(found["runtime"], rel=1e-9)
    assert network.items() <= found["network"].items()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ("--algorithm", "allreduce=ring", "--algorithm", "allreduce=recursive_doubling"),
            "one network at a time, not 2",
        ),
        (("--mapping", "block:1"), "mapping block:1: changes nothing on alpha-beta"),
        (("--machine", "sandybridge-fdr", "--send-overhead", "1us"), "send overhead: already set"),
    ],
)
def test_what_makes_no_single_network_is_refused(
    given: tuple[str, ...], message: str, popmodel: Call, trace: str
) -> None:
    status, _, err = popmodel("sensitivity", trace, *given)
    assert (status, message in err) == (2, True), err


def test_a_page_shows_sliders_and_regions(shown: Call, tmp_path: Path) -> None:
    path = tmp_path / "cg.html"
    assert shown("sensitivity", CG, "-o", str(path))[0] == 0
    text = path.read_text()
    assert 'id="whatif-latency"' in text
    assert "Regions</h2>" in text
    assert "Further results" not in text
