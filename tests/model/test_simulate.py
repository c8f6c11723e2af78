"""Programs carried out step by step: imbalance, long loops, and which side is believed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine, program
from model.kinds.test_operations import PERIODIC, model_of, steps

from popmodel.model import replayed_run
from popmodel.model.replayed_run import Simulation, simulate
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.work import closed_form
from popmodel.model.script import Script
from popmodel.model.signature.application import Signature
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.unroll import carry_out, outline, persistent_scores
from popmodel.network.network import PRESETS
from popmodel.prediction.prediction import predict
from popmodel.simulator import replay
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.simulator.replayer import ends

GLOBAL = 'collective = { op = "barrier" }'
NEIGHBOURS = 'p2p = { to = "(rank + 1) % P", bytes = 8, mode = "sendrecv" }'
PAIRS = [(0.1, 0.0), (0.0, 0.1), (0.05, 0.1), (0.1, 0.05)]  # persistent, transient


def carried_out(
    signature: Signature, processes: int, seed: int = 0, **spread: float
) -> tuple[Any, Simulation]:
    model = model_of(signature, processes, 1)
    tree = model.work()
    closed = closed_form(tree.total, processes, spread, has_mpi=True)
    return closed, simulate(tree, spread, seed)


# -- the formulas of imbalance against a Monte Carlo replay of our own making


def monte_carlo(
    processes: int, persistent: float, transient: float, count: int = 200, draws: int = 400
) -> tuple[float, float]:
    """Load balance and serialisation of steps that a barrier ends, over many random programs."""
    builder = ProgramBuilder(processes)
    for _ in range(count):
        barrier = builder.collective("barrier")
        for rank in range(processes):
            builder.do(rank, Op.COLLECTIVE, barrier)
    empty = builder.build()
    rng = np.random.default_rng(processes)
    balance, serialisation = [], []
    for _ in range(draws):
        lasting = persistent * rng.standard_normal(processes)
        bursts = 1 + lasting[:, None] + transient * rng.standard_normal((processes, count))
        ran = replay(replace(empty, burst=bursts.ravel() * 1e9), PRESETS["ideal"])
        balance.append(ran.compute.mean() / ran.compute.max())
        serialisation.append(ran.compute.max() / ran.runtime)
    return float(np.mean(balance)), float(np.mean(serialisation))


def balanced_work(processes: int) -> float:
    work = model_of(steps(GLOBAL, 200, ""), processes, 1).work().total
    return float(work.serial + work.share)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("persistent", "transient"), PAIRS)
@pytest.mark.parametrize("processes", [4, 16, 64])
def test_balance_and_serialisation_are_those_of_random_programs(
    processes: int, persistent: float, transient: float
) -> None:
    balance, serialisation = monte_carlo(processes, persistent, transient)
    spread = {"persistent_cv": persistent, "transient_cv": transient}
    work = model_of(steps(GLOBAL, 200, ""), processes, 1).work().total
    closed = closed_form(work, processes, spread, has_mpi=True)
    assert balanced_work(processes) / closed.computing == pytest.approx(balance, abs=0.015)
    assert closed.computing / closed.ideal == pytest.approx(serialisation, abs=0.007)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("persistent", "transient"), PAIRS)
@pytest.mark.parametrize("processes", [4, 16, 64])
def test_one_replay_says_what_many_random_programs_say(
    processes: int, persistent: float, transient: float
) -> None:
    balance, serialisation = monte_carlo(processes, persistent, transient)
    spread = {"persistent_cv": persistent, "transient_cv": transient}
    found = carried_out(steps(GLOBAL, 200, ""), processes, **spread)[1].course
    assert balanced_work(processes) / found.computing == pytest.approx(balance, abs=0.015)
    assert found.computing / found.ideal == pytest.approx(serialisation, abs=0.012)


@pytest.mark.parametrize("every", [2, 5])
def test_a_step_lasts_from_one_meeting_to_the_next(every: int) -> None:
    text = f"""
[[program]]
loop = {{ count = 400 }}
[[program.body]]
parallel = {{ trip = 64, inner = 1000, flops = 2 }}
[[program.body]]
collective = {{ op = "barrier", every = {every} }}
"""
    closed, found = carried_out(program(text), 64, transient_cv=0.1)
    assert found.course.ideal == pytest.approx(closed.ideal, rel=0.01)
    assert found.course.computing == pytest.approx(closed.computing, rel=0.01)


@pytest.mark.parametrize(("persistent", "transient"), PAIRS)
def test_where_all_wait_in_every_step_chance_is_taken_out(
    persistent: float, transient: float
) -> None:
    spread = {"persistent_cv": persistent, "transient_cv": transient}
    for seed in range(3):
        closed, found = carried_out(steps(GLOBAL, 5, ""), 64, seed, **spread)
        assert found.course.ideal == pytest.approx(closed.ideal, rel=1e-9)
        assert found.course.runtime == pytest.approx(closed.runtime, rel=1e-9)


# -- regions with a spread of their own


def regions(loops: str, *cvs: tuple[float, float], count: int = 200) -> Signature:
    """Parallel loops of equal work that differ in their spreads, in one loop or each in its own."""
    bodies = [
        "[[program.body]]\nparallel = { trip = 64, inner = 1000, flops = 2, "
        f"persistent_cv = {persistent}, transient_cv = {transient} }}\n"
        for persistent, transient in cvs
    ]
    head = f"[[program]]\nloop = {{ count = {count} }}\n"
    end = f"[[program.body]]\n{GLOBAL}\n"
    together = f"{head}{''.join(bodies)}{end}"
    return program(together if loops == "one" else "".join(f"{head}{one}{end}" for one in bodies))


def monte_carlo_of_regions(
    loops: str, processes: int, *cvs: tuple[float, float], count: int = 200, draws: int = 300
) -> tuple[float, float]:
    """Load balance and serialisation where all processes wait after every step."""
    rng = np.random.default_rng(processes)
    balance, serialisation = [], []
    for _ in range(draws):
        lasting = rng.standard_normal(processes)[:, None]
        turns = [rng.standard_normal((processes, count)) for _ in cvs]
        if loops == "one":  # who is slow in a step is so in both regions
            turns = turns[:1] * len(cvs)
        parts = [1 + p * lasting + t * turn for (p, t), turn in zip(cvs, turns, strict=True)]
        steps = sum(parts) if loops == "one" else np.concatenate(parts, axis=1)
        busiest, ideal = steps.sum(axis=1).max(), steps.max(axis=0).sum()
        balance.append(steps.sum(axis=1).mean() / busiest)
        serialisation.append(busiest / ideal)
    return float(np.mean(balance)), float(np.mean(serialisation))


@pytest.mark.long(after=3)
@pytest.mark.parametrize("loops", ["one", "each"])
@pytest.mark.parametrize("processes", [4, 64])
@pytest.mark.parametrize(
    "cvs", [((0.1, 0.0), (0.0, 0.0)), ((0.1, 0.0), (0.0, 0.1)), ((0.02, 0.1), (0.05, 0.0))]
)
def test_regions_with_their_own_spread_are_those_of_random_programs(
    loops: str, processes: int, cvs: tuple[tuple[float, float], ...]
) -> None:
    balance, serialisation = monte_carlo_of_regions(loops, processes, *cvs)
    tree = model_of(regions(loops, *cvs), processes, 1).work()
    work = float(tree.total.share)
    closed = closed_form(tree.total, processes, tree.spread({}), has_mpi=True)
    found = simulate(tree, {}, 0).course
    assert work / closed.computing == pytest.approx(balance, abs=0.015)
    assert closed.computing / closed.ideal == pytest.approx(serialisation, abs=0.007)
    assert work / found.computing == pytest.approx(balance, abs=0.015)
    assert found.computing / found.ideal == pytest.approx(serialisation, abs=0.012)


def test_neighbours_wait_less_than_all_do() -> None:
    # a ring of 256 with a spread of 0.1: 0.908, where the formula for all says 0.791
    spread = {"transient_cv": 0.1}
    both_sides = f"{NEIGHBOURS}\n[[program.body]]\n{NEIGHBOURS.replace('+', '-')}"
    closed, found = carried_out(steps(both_sides, 200, ""), 256, **spread)
    assert found.course.computing / found.course.ideal == pytest.approx(0.908, abs=0.01)
    assert closed.computing / closed.ideal == pytest.approx(0.791, abs=0.01)


# -- scores


@pytest.mark.parametrize("processes", [1, 2, 3, 16, 1000])
def test_persistent_scores_have_the_expected_maximum(processes: int) -> None:
    scores = persistent_scores(processes, np.random.default_rng(1))
    assert scores.max() == pytest.approx(expected_maximum(processes))
    assert scores.sum() == pytest.approx(0, abs=1e-9)


def test_the_seed_decides_who_is_slow() -> None:
    model = model_of(steps(GLOBAL, 5, ""), 8, 1)
    first, again, other = (
        carry_out(
            outline(Script.of(model.work(), {}), {}), {"persistent_cv": 0.1}, seed
        ).program.compute()
        for seed in (1, 1, 2)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    assert sorted(first.tolist()) == pytest.approx(sorted(other.tolist()))


# -- long programs


@pytest.fixture
def few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed_run, "MOST_OPERATIONS", 5000)


def stencil(count: int) -> Signature:
    return program(
        f"""{PERIODIC}
[[program]]
loop = {{ count = {count} }}
[[program.body]]
halo = {{ width = 1, bytes_per_cell = 8, pack = "none" }}
[[program.body]]
parallel = {{ trip = 64, inner = 1000, flops = 2 }}
[[program.body]]
collective = {{ op = "allreduce", bytes = 8, every = 5 }}
"""
    )


@pytest.mark.usefixtures("few_operations")
def test_a_part_of_a_uniform_loop_says_all() -> None:
    closed, found = carried_out(stencil(1000), 8)
    assert found.part < 0.1
    assert found.course.runtime == pytest.approx(closed.runtime, rel=1e-9)
    assert found.course.ideal == pytest.approx(closed.ideal, rel=1e-9)
    assert found.course.computing == pytest.approx(closed.computing, rel=1e-9)


def test_a_part_of_an_uneven_loop_says_nearly_all(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = {"persistent_cv": 0.03, "transient_cv": 0.05}
    monkeypatch.setattr(replayed_run, "MOST_OPERATIONS", 10**6)
    _, whole = carried_out(stencil(400), 64, **spread)
    assert whole.part == 1
    monkeypatch.setattr(replayed_run, "MOST_OPERATIONS", 100_000)
    _, part = carried_out(stencil(400), 64, **spread)
    assert 0.1 < part.part < 0.4
    for name in ("computing", "ideal", "runtime"):
        assert getattr(part.course, name) == pytest.approx(getattr(whole.course, name), rel=0.01)


@pytest.mark.usefixtures("few_operations")
def test_loops_in_a_loop_are_carried_out_in_part() -> None:
    text = """
[[program]]
loop = { count = 2 }
  [[program.body]]
  loop = { count = 900 }
    [[program.body.body]]
    parallel = { trip = 64, inner = 1000, flops = 2 }
    [[program.body.body]]
    collective = { op = "allreduce", bytes = 8 }
  [[program.body]]
  collective = { op = "bcast", bytes = 8 }
"""
    closed, found = carried_out(program(text), 16)
    assert found.part < 0.2
    assert found.course.runtime == pytest.approx(closed.runtime, rel=1e-9)


def test_a_program_that_ends_before_it_communicates_is_not_carried_out() -> None:
    text = "[[program]]\nloop = { count = 4 }\n[[program.body]]\n"
    with pytest.raises(NotUnrolled, match="no messages in so few steps"):
        carried_out(program(f'{text}collective = {{ op = "barrier", every = 5 }}\n'), 4)


# -- what a prediction says of it


def uneven() -> Signature:
    work = "parallel = { trip = 64, inner = 1000, flops = 2 }"
    return program(
        f"[[program]]\nloop = {{ count = 100 }}\n[[program.body]]\n{work}\n"
        f"[[program.body]]\n{NEIGHBOURS}\n",
        imbalance="transient_cv = { value = 0.1, low = 0.05, high = 0.15 }",
    )


def test_the_replay_is_shown() -> None:
    run = predict(uneven(), machine(), 64, 1)
    both = run.agreement
    assert both is not None and run.source == "replay"
    assert run.runtime.value == pytest.approx(both.replay.runtime)
    assert run.runtime.low is not None and run.runtime.low < run.runtime.value
    efficiency = run.metrics["hybrid-additive"]["parallel_efficiency"].value
    assert efficiency == pytest.approx(both.useful / both.replay.runtime)
    assert both.gap > 0.02
    assert run.to_dict()["source"] == "replay"
    document = run.to_dict()["replay"]
    assert document["replay"]["parallel_efficiency"] == pytest.approx(efficiency)
    parts = sum(part.value for part in run.time.values())
    assert parts == pytest.approx(run.runtime.value)
    ideal = both.replay.ideal / both.replay.runtime
    assert run.metrics["mpi"]["transfer_efficiency"].value == pytest.approx(ideal)


def test_what_would_help_is_told_of_the_replay_that_is_shown() -> None:
    signature = uneven()
    run = predict(signature, machine(), 64, 1)
    wanted = replace(signature.imbalance["transient_cv"], value=0.05, low=None, high=None)
    even = predict(replace(signature, imbalance={"transient_cv": wanted}), machine(), 64, 1)
    assert run.agreement is not None and even.agreement is not None
    after, before = even.agreement.replay.runtime, run.agreement.replay.runtime
    closed = even.agreement.closed_form.runtime / run.agreement.closed_form.runtime
    told = run.remedies["half the imbalance"]
    assert told == pytest.approx(after / before - 1, abs=0.002)
    assert told != pytest.approx(closed - 1, abs=0.04)
    elasticity = {one.name: one.value for one in run.elasticities}["transient"]
    assert elasticity == pytest.approx(2 * -told, rel=0.01)  # linear in the spread
    full, none = run.model_form
    assert full <= run.runtime.value <= none


@pytest.mark.parametrize(
    ("text", "processes", "reason"),
    [
        ("[[program]]\nserial = { trip = 1000 }", 4, "no MPI calls"),
        (
            f"[[program]]\n{GLOBAL}\n[[program]]\nserial = {{ trip = 10 }}",
            1,
            "one process, no messages",
        ),
    ],
)
def test_a_prediction_without_replay_says_why(text: str, processes: int, reason: str) -> None:
    run = predict(program(text), machine(), processes, 1)
    assert run.agreement is None
    assert run.source == run.to_dict()["source"] == "closed form"
    assert reason in run.to_dict()["replay"]["why"]


@given(
    st.integers(2, 24),
    st.floats(0, 0.3),
    st.floats(0, 0.3),
    st.sampled_from([GLOBAL, NEIGHBOURS, 'collective = { op = "reduce", bytes = 100 }']),
    st.integers(0, 3),
)
def test_neither_transfer_nor_serialisation_exceeds_one(
    processes: int, persistent: float, transient: float, body: str, seed: int
) -> None:
    spread = {"persistent_cv": persistent, "transient_cv": transient}
    course = carried_out(steps(body, 6, ""), processes, seed, **spread)[1].course
    assert course.computing <= course.ideal * (1 + 1e-12)
    assert course.ideal <= course.runtime * (1 + 1e-12)


def test_work_known_value_by_value_is_believed_as_it_is_carried_out() -> None:
    # the closed form has all wait for the slowest in every step: neighbours wait for less
    work = "serial = { trip = 1, seconds = 1e-3, quantiles = [0.1, 0.1, 0.1, 0.1, 4.6] }"
    signature = program(
        f"[[program]]\nloop = {{ count = 20 }}\n"
        f"[[program.body]]\n{work}\n[[program.body]]\n{NEIGHBOURS}\n"
    )
    tree = model_of(signature, 16, 1).work()
    found = simulate(tree, {}, 0)
    whole = outline(Script.of(tree, {}), {})
    each = []
    for seed in range(found.repeats):
        free = replace(whole.charges, transfer=np.zeros_like(whole.charges.transfer))
        each.append(ends(carry_out(whole, {}, seed).program, [free]).max())
    assert found.course.ideal == pytest.approx(np.mean(each), rel=0.02)
    assert closed_form(tree.total, 16, tree.spread({}), has_mpi=True).ideal > 1.1 * np.mean(each)
