"""From the estimates of launches to a value with its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from machines.bench.estimate.synthetic import QUIET, Noise, core, launches, messages, pingpong

from popmodel.machines.bench.estimate.launch_intervals import CalibrationError, Series, quantities
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.estimate.profile_document import quality
from popmodel.machines.bench.sample_files import Launch, SampleResult

SIZES = (0, 8, 1024, 4096, 16384, 65536, 262144)


def test_a_single_launch_varies_as_the_others_do() -> None:
    series = {str(i): Series((1.0, 1.1, 0.9), "source", 50) for i in range(5)}
    found = quantities({**series, "one": Series((1.0,), "source", 50, sampling=0.001)})
    # with the spread of the others, but once instead of three times; their degrees of freedom: 10
    half = np.log(found["0"]["high"] / found["0"]["value"])
    expected = np.sqrt(3) * half * 1.812 / 2.920
    assert np.log(found["one"]["high"]) == pytest.approx(expected, rel=0.01)


def test_a_quantity_that_cannot_be_negative_is_not_stated_so() -> None:
    with pytest.raises(CalibrationError, match="determine x: it must be above 0, not -1e-09"):
        quantities({"x": Series((-1e-9,), "source", 50, scale=1e-6)})


def test_launches_that_have_nothing_in_common_are_told() -> None:
    with pytest.raises(CalibrationError, match="determine x: no launch measured all that it needs"):
        quantities({"x": Series((1e-300, 1e300), "source", 50)})


def test_ratios_are_taken_within_a_launch() -> None:
    clock = ("clock", {"threads": 1}, 300)
    found = []
    for number, slow in enumerate((1.0, 2.0, 4.0), 1):  # the clock goes down to a quarter
        results = [
            SampleResult(name, params, np.full(60, slow * 1e-7), None, {"work": work})
            for name, params, work in (clock, ("loads", {}, 600))
        ]
        found.append(Launch(f"{number}", {"program": "node", "launch": number}, tuple(results)))
    loads = core(MeasuredResults(found))[0]["load_per_cycle"]
    assert loads["low"] == pytest.approx(loads["high"], rel=1e-4)


def test_an_interrupted_launch_is_one_with_what_resumed_it() -> None:
    first, second = (
        Launch(
            f"run/launch-001{part}.jsonl",
            {"program": "node", "launch": 1},
            (SampleResult(job, params, np.full(60, 1e-7), None, {"work": 300}),),
        )
        for part, job, params in (("", "clock", {"threads": 1}), ("-2", "loads", {}))
    )
    assert core(MeasuredResults([first, second]))[0]["load_per_cycle"]["value"] == 1.0
    elsewhere = Launch("other/launch-001.jsonl", second.header, second.results)
    assert "load_per_cycle" not in core(MeasuredResults([first, elsewhere]))[0]


def test_a_resumed_launch_counts_once() -> None:
    found = [
        Launch(
            f"run/launch-001{part}.jsonl",
            {"program": "node", "launch": 1},
            (SampleResult("clock", {"threads": n}, np.full(60, 1e-7), None, {"work": 300}),),
        )
        for n, part in enumerate(("", "-2"), 1)
    ]
    entry = quality(MeasuredResults(found), {})["core"]
    assert entry["launches"] == 1
    assert entry["why"] == ["only one launch: the spread between launches is unknown"]


def test_launches_of_other_jobs_and_thread_levels_do_not_count() -> None:
    found = [
        Launch(
            f"run/launch-00{n}.jsonl",
            {"program": "mpi", "launch": n, "mpi": {"thread_level": level}},
            (SampleResult(job, {"bytes": 8}, np.full(60, 1e-7)),),
        )
        for n, (job, level) in enumerate(
            (("ping_pong", "single"), ("ping_pong", "multiple"), ("window", "single"))
        )
    ]
    assert quality(MeasuredResults(found), {})["net"]["launches"] == 1


def test_one_launch_gives_the_error_of_its_batches() -> None:
    found = quantities({"x": Series((1.0,), "source", 50, sampling=0.01)})["x"]
    assert found["high"] == pytest.approx(np.exp(1.645 * 0.01), rel=1e-4)
    assert found["source"] == "source, 1 launch"


def test_a_negative_estimate_is_clipped() -> None:
    found = quantities(
        {"x": Series((-1e-9, -2e-9), "source", 50, scale=1e-6)}, zero=frozenset("x")
    )["x"]
    assert found["value"] == 0.0 == found["low"]
    half = 6.314 * 1e-9 * np.sqrt(0.5) / np.sqrt(2)  # Student's t with one degree of freedom
    assert found["high"] == pytest.approx(1.5e-9 + half, rel=1e-3)


def test_a_size_that_one_launch_measured_does_not_take_the_others_away() -> None:
    varied = Noise(launch=0.03, batch=0.05)
    jobs = [pingpong(n, 1e-6 + 1e-10 * n) for n in SIZES]
    found = launches(jobs, 5, np.random.default_rng(0), varied)
    lame = [
        replace(one, results=tuple(r for r in one.results if r.params["bytes"] != 8))
        for one in found[1:]
    ]
    whole, less = (
        messages(MeasuredResults(some))[0]["intra"]["classes"][0]
        for some in (found, [found[0], *lame])
    )
    for name in ("alpha", "beta"):
        assert less[name]["source"].endswith("5 launches")
        width, before = (one[name]["high"] / one[name]["low"] - 1 for one in (less, whole))
        assert 0.3 * before < width < 3 * before


def test_a_tier_of_which_every_launch_has_a_part_is_a_reason() -> None:
    rng = np.random.default_rng(0)
    found = [
        replace(one, header={**one.header, "launch": n})
        for n, size in enumerate((0, 8, 1024))
        for one in launches([pingpong(size, 1e-6)], 1, rng, QUIET)
    ]
    net, reasons = messages(MeasuredResults(found))
    assert net == {}
    assert reasons == {"net.intra": "no launch measured 3 message sizes"}
