"""The verdict: of which run, in which order, with which causes, or none; never two opinions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from efficiency.builders import observables, runs
from hypothesis import given
from hypothesis import strategies as st

from popmodel.efficiency.evidence import CallSite, Crowd, Evidence, OtherNetworks, SerialCode
from popmodel.efficiency.family import FamilyEvaluation
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.loss_causes import BOUND, NetworkCosts, network_remedy
from popmodel.efficiency.measure import MeasuredRun
from popmodel.efficiency.observables import Observables, RegionObservables
from popmodel.efficiency.scaling import Comparable, scale
from popmodel.efficiency.verdict import advise, network_costs, verdict

ENOUGH = Evidence(calls=1000)


def run(useful: Sequence[Sequence[float]], runtime: float, **given: Any) -> MeasuredRun:
    """A run with many calls of MPI, unless told otherwise."""
    evidence = given.pop("evidence", ENOUGH)
    sites = tuple(given.pop("sites", ()))
    measured = observables(useful, runtime, **{"ideal_runtime": runtime, **given})
    return MeasuredRun("x", measured, (), call_sites=sites, evidence=evidence)


def advised(*runs: MeasuredRun, families: Sequence[str] = (), **options: Any) -> Any:
    """What is advised on runs called a, b, ..., its keys as attributes."""
    names = list("abcdefgh"[: len(runs)])
    compared = [
        Comparable(name, each.observables.aggregates(), each.observables.absent)
        for name, each in zip(names, runs, strict=True)
    ]
    scaled = scale(compared, **options)
    chosen = families or list(load_families())
    evaluations: list[Mapping[str, FamilyEvaluation]] = [
        {
            id: scaled.evaluations[index]
            if id == "scaling"
            else load_families()[id].evaluate(
                {**each.aggregates, **scaled.aggregates(index)},
                {**each.absent, **scaled.absent(index)},
            )
            for id in chosen
        }
        for index, each in enumerate(compared)
    ]
    found = advise(runs, evaluations, scaled, names)
    causes = [SimpleNamespace(**cause) for cause in found["causes"]]
    fall = found["steepest_fall"] and SimpleNamespace(**found["steepest_fall"])
    return SimpleNamespace(**{**found, "causes": causes, "fall": fall, "document": found})


def only(*runs: MeasuredRun, **options: Any) -> str:
    """Why and remedy of the only cause."""
    (cause,) = advised(*runs, **options).causes
    return f"{cause.why} {cause.remedy}"


def test_nothing_is_advised_from_95_percent_on() -> None:
    good = advised(run([[9.6], [9.5]], 10.0))
    assert good.verdict == ("No advice: parallel efficiency is at least 95 %.")
    lower = advised(run([[9.5], [9.4]], 10.0))
    assert lower.verdict == (
        "Parallel efficiency is 94.5 %, above the 80 % that POP considers good."
    )
    assert [cause.metric for cause in lower.causes] == ["serialisation_efficiency"]
    series = advised(run([[10]], 10.0), run([[5], [5]], 5.0))
    assert series.verdict == (
        "No advice: parallel efficiency and computation scaling are at least 95 % in all runs."
    )


def test_runs_of_a_few_milliseconds_are_too_short() -> None:
    short = run([[4e-3], [1e-3]], 9e-3)
    assert advised(short).verdict == "No advice: only 9.00 ms analysed, less than 10 ms."
    assert advised(short).causes == []
    both = advised(short, run([[0.4], [0.1]], 1.0))
    assert both.verdict.endswith("Too short to advise on: a.")
    assert both.causes[0].run == "b"


def test_few_events_are_too_little_for_a_short_run() -> None:
    few = Evidence(calls=4)
    assert advised(run([[0.4], [0.1]], 0.5, evidence=few)).verdict == (
        "No advice: only 4 MPI calls and parallel regions analysed."
    )
    assert advised(run([[4], [1]], 5.0, evidence=few)).causes


def test_scaling_alone_is_advised_on_where_there_are_several_runs() -> None:
    one, other = run([[10]], 10.0), run([[6], [6]], 6.0)
    assert advised(one, families=["scaling"]).verdict == "No advice: a single run has no scaling."
    (cause,) = advised(one, other, families=["scaling"]).causes
    assert cause.metric == "computation_scaling"


@given(runs(), runs(), st.sampled_from([None, *load_families()]), st.integers(1, 2))
def test_any_runs_get_finite_costs_and_whole_sentences(
    one: Observables, other: Observables, family: str | None, number: int
) -> None:
    without = replace(other, has_mpi=False)
    chosen = [
        MeasuredRun(name, each, (), evidence=ENOUGH) for name, each in (("a", one), ("b", without))
    ]
    found = advised(*chosen[-number:], families=[] if family is None else [family])
    assert found.verdict.endswith(".")
    assert found.verdict.startswith("No advice") == (not found.causes)
    for cause in found.causes:
        assert math.isfinite(cause.cost)
        for text in (cause.why, cause.remedy, *found.doubts):
            assert "nan" not in text
            assert not text or text.endswith((".", "?"))


def test_the_costliest_loss_comes_first_and_only_those_that_cost_enough() -> None:
    found = advised(run([[8], [5], [5]], 10.0, ideal_runtime=9.8))
    assert [cause.metric for cause in found.causes] == [
        "load_balance",
        "serialisation_efficiency",
    ]
    assert found.causes[0].cost > found.causes[1].cost > 0.05


def test_one_family_leads_and_others_do_not_repeat_it() -> None:
    hybrid = run([[4, 2], [4, 2]], 10.0, omp_useful=[[2, 2], [2, 2]], in_openmp=[3, 3])
    assert {cause.family for cause in advised(hybrid).causes} == {"hybrid-additive"}
    assert {cause.family for cause in advised(hybrid, families=["talp"]).causes} == {"talp"}
    # To the family of MPI the master's time with its team is communication.
    assert advised(hybrid, families=["mpi"]).causes == []


def test_a_program_without_mpi_gets_no_advice_about_processes() -> None:
    threads = run(
        [[9.5, 4.2]], 10.0, omp_useful=[[4.2, 4.2]], in_openmp=[4.4], has_mpi=False, has_openmp=True
    )
    (cause,) = advised(threads).causes
    assert cause.metric == "serial_region_efficiency"
    assert "processes" not in cause.why + cause.remedy
    assert advised(threads, families=["mpi"]).verdict == (
        "No advice: these families see only the MPI calls of master threads; hybrid-additive sees "
        "all threads."
    )


@pytest.mark.parametrize("families", [["mpi"], ()])
def test_a_program_without_mpi_and_openmp_gets_no_advice(families: Sequence[str]) -> None:
    serial = run([[9.5]], 10.0, has_mpi=False)
    assert advised(serial, families=families).verdict == (
        "No advice: neither MPI calls nor parallel regions were recorded."
    )


@pytest.mark.parametrize(
    ("caveats", "advises"),
    [([], True), (["the analysed part lasts only 5 ms: too little for reliable numbers"], False)],
)
def test_nothing_is_advised_from_too_little(caveats: list[str], advises: bool) -> None:
    region = {"kind": "region", "name": "solve", "share": 0.4, "gain": [GAIN]}
    depends = {"trace": "x", "runtime": 1.0, "operations": 9, "caveats": caveats}
    depends |= {"shares": {"latency": 0, "bandwidth": 0}, "regions": [region, region]}
    depends["network"] = {"name": "fast", "latency": 1e-6, "bandwidth": None}
    assert bool(verdict([], [depends]).steps) is advises


def test_a_program_without_openmp_gets_no_advice_about_threads() -> None:
    found = advised(run([[4], [9]], 10.0), families=["hybrid-additive", "talp"])
    assert {cause.metric for cause in found.causes} <= {
        "process_load_balance",
        "process_serialisation_efficiency",
    }


def test_the_worst_run_of_a_series_leads_and_the_steepest_fall_is_named() -> None:
    series = [
        run([[10]], 10.0),
        run([[2.5]] * 4, 2.6),
        run([[0.8], [0.6], [0.6], [0.6]] * 4, 1.25),
    ]
    found = advised(*series)
    assert found.causes[0].run == "c"
    assert found.verdict.startswith("Global efficiency is lowest in c: 50.0 %, below the 80 %")
    assert found.fall is not None
    assert (found.fall.before, found.fall.after) == ("b", "c")
    assert (found.fall.high, found.fall.low) == pytest.approx((1 / 1.04, 0.5))
    assert found.fall.metric == "serialisation_efficiency"
    # Splits of the same cores are no series.
    assert advised(series[0], series[1], series[1]).fall is None


def test_a_cause_that_falls_most_is_named_even_where_it_does_not_cost_most() -> None:
    steady = {"omp_useful": [[4, 4]] * 2, "has_openmp": True}
    one = run([[8, 4]] * 2, 10.0, in_openmp=[4] * 2, ideal_runtime=8.0, **steady)
    assert one.observables.threads.sum() == 4
    half = {"omp_useful": [[2, 2]] * 4, "in_openmp": [2.8] * 4, "has_openmp": True}
    other = run([[4, 2]] * 4, 5.8, ideal_runtime=4.8, **half)
    found = advised(one, other)
    assert found.fall is not None
    assert found.fall.metric == "openmp_region_efficiency"
    assert "openmp_region_efficiency" in {cause.metric for cause in found.causes}


def test_implausible_scaling_is_not_advised_on() -> None:
    found = advised(run([[10]], 11.0), run([[50], [50]], 60.0))
    assert found.verdict.startswith("Parallel efficiency is lowest")
    assert all(cause.family == "mpi" for cause in found.causes)


def test_load_imbalance_names_ranks_and_tells_uneven_work_from_uneven_speed() -> None:
    useful = [[6], [6], [9]]
    assert only(run(useful, 9.0)).startswith(
        "Rank 2 has the most useful time, 9.00 s (29 % above the mean), rank 0 the least, 6.00 s. "
        "Is its work or its speed different?"
    )
    uneven = only(run(useful, 9.0, instructions=[6e9, 6e9, 9e9]))
    assert "It also executes 29 % more instructions than the mean: the work is uneven." in uneven
    even = only(run(useful, 9.0, instructions=[6e9, 6e9, 6e9]))
    assert "It executes 0.0 % more instructions than the mean, so it runs more slowly." not in even
    assert "so it runs more slowly" in even
    assert "--by process" in even


def test_the_surplus_of_a_rank_with_threads_is_located() -> None:
    regions = [[2, 2], [6, 6]]
    hybrid = run([[4, 2], [8, 6]], 8.0, omp_useful=regions, in_openmp=[2, 6])
    cause = next(c for c in advised(hybrid).causes if c.metric == "process_load_balance")
    assert cause.why.endswith("The excess is in parallel regions.")
    serial = run([[4, 2], [8, 2]], 8.0, omp_useful=[[2, 2], [2, 2]], in_openmp=[2, 2])
    cause = next(c for c in advised(serial).causes if c.metric == "process_load_balance")
    assert cause.why.endswith("The excess is in serial code.")


RECV = CallSite("MPI_Recv", "solve", "a.c:7", 100, 3.0, 0.15, 2.4)
REDUCE = CallSite("MPI_Allreduce", "", "", 50, 2.0, 0.1, 0.1)


def test_waiting_names_the_call_that_waits_longest() -> None:
    text = only(run([[7], [7]], 10.0, sites=[REDUCE, RECV]))
    assert text.startswith(
        "MPI_Recv in solve (a.c:7) takes 60 % of the time in MPI, 80 % of it waiting for other "
        "ranks. Its partners are late"
    )
    late = only(run([[7], [7]], 10.0, sites=[replace(REDUCE, waiting=1.9)]))
    assert "Ranks arrive there at different times" in late


def transferring(slow: float, latency: float, bandwidth: float, *sites: CallSite) -> MeasuredRun:
    """A run of 10 s, 7 s of it on the ideal network."""
    evidence = Evidence(1000, networks=OtherNetworks(slow, latency, bandwidth))
    return run([[7], [7]], 10.0, ideal_runtime=7.0, evidence=evidence, sites=sites)


@pytest.mark.parametrize(
    ("latency", "bandwidth", "said"),
    [
        (
            9.0,
            7.1,
            "Latency costs 20 % of the runtime on a network of 2 us and 10 GB/s",
        ),
        (7.1, 9.0, "Volume costs 20 % of the runtime on a network of 2 us and 10 GB/s, latency"),
        (
            8.2,
            8.2,
            "Latency costs 12 % of the runtime on a network of 2 us and 10 GB/s",
        ),
        (
            7.3,
            7.1,
            "Neither bounds the run on a network of 2 us and 10 GB/s: latency",
        ),
    ],
)
def test_transfer_names_the_call_and_what_of_the_network_it_needs(
    latency: float, bandwidth: float, said: str
) -> None:
    text = only(transferring(9.9, latency, bandwidth, RECV, REDUCE))
    assert text.startswith(
        "MPI_Allreduce takes 40 % of the time in MPI, 5.0 % of it waiting for other ranks; each of "
        "50 calls takes 38.0 ms beyond waiting."
    )
    assert said in text


@pytest.mark.parametrize(("at_once", "helps"), [(2.0, True), (8.9, False), (None, False)])
def test_blocking_sends_that_hold_each_other_up_are_to_be_sent_at_once(
    at_once: float | None, helps: bool
) -> None:
    evidence = Evidence(1000, networks=OtherNetworks(9.9, 7.1, 9.0, at_once))
    found = only(run([[7], [7]], 10.0, ideal_runtime=7.0, evidence=evidence, sites=[RECV, REDUCE]))
    remedy = (
        "Send and receive at once (MPI_Sendrecv, or MPI_Isend): at 10 GB/s the replay then takes "
        "2.00 s instead of 9.00 s."
    )
    assert (remedy in found) is helps


def test_a_network_that_does_not_explain_transfer_is_a_doubt_and_not_a_remedy() -> None:
    found = advised(transferring(5.0, 4.9, 4.9, RECV))
    assert len(found.doubts) == 1
    assert (
        "even on a slow network (5 us, 1 GB/s) the replay takes only 5.00 s of the 10.0 s"
        in (found.doubts[0])
    )
    assert found.causes[0].remedy == ""
    # Time in calls that the replay does not model needs no network.
    write = CallSite("MPI_File_write_all", "", "", 10, 8.0, 0.4)
    known = advised(transferring(5.0, 4.9, 4.9, write))
    assert known.doubts == []
    assert known.causes[0].remedy.startswith("This is I/O")
    other = advised(transferring(5.0, 4.9, 4.9, replace(write, call="MPI_Win_fence")))
    assert other.causes[0].remedy.startswith("The replay does not model this call")


def test_communication_that_cannot_be_split_says_why() -> None:
    absent, site = {"ideal_runtime": "a message is missing"}, replace(REDUCE, waiting=None)
    text = only(run([[7], [7]], 10.0, ideal_runtime=None, absent=absent, sites=[site]))
    assert "Waiting and transfer cannot be told apart: a message is missing." in text


def hybrid(*regions: RegionObservables, **given: Any) -> MeasuredRun:
    """Two threads that lose half of the time in regions."""
    return run(
        [[5, 5]],
        10.0,
        omp_useful=[[5, 5]],
        in_openmp=[10],
        regions=regions,
        has_mpi=False,
        **given,
    )


def region(name: str, cost: float, **given: float) -> RegionObservables:
    return RegionObservables(name, 1000, cost, 0.5, 0.9, cost, **given)


@pytest.mark.parametrize(
    ("given", "kind", "remedy"),
    [
        ({"imbalance": 6.0}, "imbalance between its threads (load balance 90 %)", "dynamic"),
        ({"locks": 6.0}, "locks and critical sections", "reductions or atomics"),
        ({"barriers": 6.0}, "barriers", "nowait"),
        ({"mpi": 6.0}, "calls of MPI inside it", "tasks"),
    ],
)
def test_the_costliest_region_is_named_with_the_kind_of_its_loss(
    given: dict[str, float], kind: str, remedy: str
) -> None:
    text = only(hybrid(region("sweep", 8.0, **given), region("copy", 2.0)))
    assert f"sweep causes 80 % of the loss in parallel regions, 75 % of it by {kind}." in text
    assert remedy in text


def test_short_regions_do_not_pay_and_long_overhead_is_a_doubt() -> None:
    short = replace(region("sweep", 0.8), wall=0.8)
    text = only(hybrid(short))
    assert "scheduling, fork and join; an instance takes 800 us." in text
    assert "merge them" in text
    found = advised(hybrid(replace(short, wall=8.0, cost=8.0)))
    assert "even the busiest thread does nothing useful for 4.00 ms" in found.doubts[0]
    assert found.causes[0].remedy == ""


@pytest.mark.parametrize(
    ("after", "before", "where"),
    [
        ("", "sweep", "before the first region, sweep"),
        ("sweep", "", "after the last region, sweep"),
        ("sweep", "sweep", "between instances of sweep"),
        ("sweep", "copy", "between sweep and copy"),
    ],
)
def test_serial_code_is_located_between_regions(after: str, before: str, where: str) -> None:
    longest = SerialCode(after, before, 10, 3.0)
    serial = run(
        [[8, 4]],
        8.0,
        omp_useful=[[4, 4]],
        in_openmp=[4],
        evidence=Evidence(1000, serial=(longest,)),
    )
    assert only(serial) == (
        f"Serial code takes 50 % of the runtime, 75 % of it {where}; other threads idle meanwhile. "
        "Parallelise this code, or use more processes with fewer threads each."
    )


def test_threads_that_share_cores_come_before_everything_else() -> None:
    narrow = Evidence(1000, crowd=Crowd(threads=4, sharing=4, cpus=1))
    found = advised(run([[5], [5]], 10.0, evidence=narrow))
    assert found.doubts == [
        "Doubtful: the 4 threads of a process share 1 core. Bind processes wider (Open MPI: "
        "--map-by slot:PE=4 or --bind-to none) and trace again first.",
    ]
    assert found.verdict == "Parallel efficiency is 50.0 %."
    assert found.causes and not any(each.remedy for each in found.causes)
    good = advised(run([[9], [9]], 10.0, evidence=narrow))
    assert (good.verdict, len(good.doubts)) == ("Parallel efficiency is 90.0 %.", 1)
    shared = replace(narrow, crowd=Crowd(threads=4, sharing=8, cpus=4))
    found = advised(run([[5], [5]], 10.0, evidence=shared))
    assert found.doubts[0].startswith("Doubtful: 8 threads share 4 cores. Use fewer processes")


def test_threads_that_wait_for_other_programs_are_a_doubt() -> None:
    found = advised(run([[5], [5]], 10.0, evidence=Evidence(1000, delayed=True)))
    assert found.doubts[0].startswith("Doubtful: threads waited for CPUs")


def test_causes_of_a_slower_computation_have_numbers() -> None:
    base = run([[4]], 4.0, instructions=[8e9], cycles=[4e9])
    more = run([[2.5], [2.5]], 2.5, instructions=[5e9, 5e9], cycles=[2.5e9, 2.5e9])
    assert only(base, more).startswith("The run executes 25 % more instructions than a at equal")
    slow = run([[2.5], [2.5]], 2.5, instructions=[4e9, 4e9], cycles=[2.5e9, 2.5e9])
    assert only(base, slow).startswith("IPC is 1.6 against 2 in a.")
    clock = run([[2.5], [2.5]], 2.5, instructions=[4e9, 4e9], cycles=[2e9, 2e9])
    assert only(base, clock).startswith("The clock is 0.8 GHz against 1 GHz in a.")
    blind = only(run([[4]], 4.0), run([[2.5], [2.5]], 2.5))
    assert blind.startswith("The useful time of all threads is 5.000 s against 4.000 s in a (no")
    assert "PAPI_TOT_INS" in blind


@pytest.mark.parametrize("family", ["hybrid-multiplicative", "talp"])
def test_other_families_find_the_same_causes(family: str) -> None:
    idle = {"idle_serial": 6.0, "idle_imbalance": 0.0, "idle_scheduling": 0.0}
    serial = run([[8, 2]], 8.0, omp_useful=[[2, 2]], in_openmp=[2], **idle)
    text = only(serial, families=[family])
    assert text.startswith("Serial code takes 75 % of the runtime")


SHARES = st.floats(0, 0.5)


@given(
    measured=st.tuples(SHARES, SHARES),
    replayed=st.none() | st.tuples(SHARES, SHARES),
    doubtful=st.booleans(),
)
def test_all_sentences_of_one_result_rest_on_the_same_facts(
    measured: tuple[float, float], replayed: tuple[float, float] | None, doubtful: bool
) -> None:
    """Efficiencies and what the runtime depends on, of one run: doubt first, one opinion."""
    one = transferring(9.9, 7 + 10 * measured[0], 7 + 10 * measured[1], REDUCE)
    if doubtful:
        one = replace(one, evidence=replace(one.evidence, crowd=Crowd(1, 2, 1)))
    found = advised(one)
    document = {
        "runs": [{"trace": one.trace}],
        "advice": found.document,
    }
    sensitivities = []
    if replayed is not None:
        shares = {"latency": replayed[0], "bandwidth": replayed[1]}
        region = {"kind": "region", "name": "solve", "share": 0.4, "gain": [GAIN]}
        sensitivities.append(
            {
                "trace": one.trace,
                "runtime": 1.0,
                "operations": 9,
                "shares": shares,
                "network": {"name": "fast", "latency": 1e-6, "bandwidth": None},
                "regions": [region],
            }
        )
    told = verdict([document], sensitivities)
    assert bool(told.doubts) == doubtful
    said = " ".join((*told.statements, *told.causes, *told.steps))
    if doubtful:  # neither judged, nor bound by anything, nor advised on
        assert "POP" not in said and "ound" not in said
        assert not told.steps and not any(text in said for text in REMEDIES)
        return
    costs = None if replayed is None else network_costs(sensitivities[0])
    parts = measured if costs is None else (costs.latency, costs.bandwidth)
    known = costs or NetworkCosts("a network of 2 us and 10 GB/s", *parts)
    assert network_remedy(known) in said
    assert sum(text in said for text in REMEDIES) == 1
    assert ("Neither bounds" in said) == (max(parts) < BOUND) == (not known.bound)
    if replayed is not None:
        assert ("not bound by the network" in said.lower() or "costs anything" in said) == (
            not known.bound
        )
        assert not known.bound or f"bound by {known.bound}:" in said.lower()


GAIN = {"faster": 0.1, "runtime": 0.9}
REMEDIES = ("aggregate small messages", "send less", "aggregate messages", "Neither bounds")
