"""Best values found by search, beside all values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from model.demo import machine, program

from popmodel.errors import UsageError
from popmodel.machine import profile
from popmodel.machine.profile import Profile
from popmodel.model import signatures as signature
from popmodel.model.predict import predict
from popmodel.model.signature.program import Signature
from popmodel.model.study import Study
from popmodel.model.sweep.checking import check
from popmodel.model.sweep.optimum import Largest, Tuned, largest_cores
from popmodel.model.sweep.splits import evaluate_all
from popmodel.model.sweep.sweep import sweep
from popmodel.model.terms import pipeline
from popmodel.model.uncertainty import nominal

# without imbalance one replay is enough, and a search through all is cheap
STENCIL = replace(signature.load("stencil3d"), imbalance={})
CANNON = signature.load("cannon")
PRESET = profile.load(profile.DEFAULT_PRESET)
SIXTEEN_NODES = profile.from_document(
    {**PRESET.document, "topology": {**PRESET.document["topology"], "nodes": 16}}
)

PIPELINE = """
[[program]]
loop = { name = "iteration", count = 10 }
  [[program.body]]
  [program.body.pipeline]
  name = "sweep"
  dims = [0]
  blocks = "blocks"
  seconds = "t/P"
  bytes = "8e4/blocks"
"""
LINE = {"decomp": 'grid = ["P"]'}

SOLITARY = """
[[program]]
serial = { trip = 1e6, flops = 2 }
[[program]]
parallel = { trip = 1e9, flops = 2, constructs = { parallel_for = 1 } }
"""


def study(of: Signature, on: Profile, **settings: float) -> Study:
    return Study(of, on, settings, 0, 0)


def efficiencies(of: Signature, on: Profile) -> dict[int, float]:
    """Parallel efficiency of the fastest split, replayed, of every number of cores."""
    it = study(of, on)
    drawn, node = it.sources(), on.topology.cores_per_node
    found = {}
    for cores in [*range(1, node), *range(node, node * on.topology.nodes + 1, node)]:
        splits, _ = evaluate_all(it, drawn, cores)
        if splits:
            splits, _ = check(it, drawn, splits)
            fastest = min(splits, key=lambda one: nominal(one.runtime))
            found[cores] = nominal(fastest.efficiency)
    return found


# -- the largest number of cores


@pytest.mark.parametrize("application", [STENCIL, CANNON], ids=lambda one: one.name)
def test_the_largest_number_of_cores_is_nearly_that_of_a_search_through_all(
    application: Signature,
) -> None:
    every = efficiencies(application, SIXTEEN_NODES)
    for target in (0.95, 0.85, 0.7):
        found = largest_cores(study(application, SIXTEEN_NODES), target)
        largest = max(cores for cores, value in every.items() if value >= target)
        # numbers far from the root that divide better than those around it may be missed
        assert largest / 2 <= found.cores <= largest
        assert found.efficiency == pytest.approx(every[found.cores])
        assert found.efficiency >= target
        following = [cores for cores in every if cores > found.cores]
        if following:
            assert found.beyond == (following[0], pytest.approx(every[following[0]]))
            assert every[following[0]] < target
        else:
            assert found.beyond is None


def test_within_a_node_single_cores_count() -> None:
    every = efficiencies(program(SOLITARY), machine())
    target = every[5] + 1e-9
    found = largest_cores(study(program(SOLITARY), machine()), target)
    assert 1 <= found.cores < 5
    assert found.beyond is not None
    assert found.beyond[1] < target <= found.efficiency


def test_numbers_that_the_application_refuses_are_passed_over() -> None:
    """Only multiples of 3 have a split, which no power of two is."""
    threefold = program(SOLITARY, limits='require = ["floor(P/3)*3 == P", "T == 1"]')
    found = largest_cores(study(threefold, machine()), 0.01)
    assert found.cores % 3 == 0
    assert found == Largest(0.01, 48, found.efficiency, None)


def test_an_efficiency_that_no_number_of_cores_keeps() -> None:
    text = f'{PIPELINE}  [[program.body]]\n  collective = {{ op = "barrier" }}\n'
    several = program(text, params="blocks = 1\nt = 1", limits='require = ["P >= 2"]', **LINE)
    with pytest.raises(UsageError) as caught:
        largest_cores(study(several, machine()), 0.9)
    assert caught.value.message == "demo: no number of cores has a parallel efficiency of 90 %"
    assert caught.value.hint == "the highest is 50.0 %, on 2 cores"


def test_the_sweep_is_that_of_the_number_found() -> None:
    found = sweep(STENCIL, SIXTEEN_NODES, None, efficiency=0.95, draws=20)
    assert found.largest is not None
    assert [choice.cores for choice in found.choices] == [found.largest.cores]
    document = found.to_dict()["largest"]
    assert document["parallel_efficiency"] == 0.95
    assert document["beyond"]["parallel_efficiency"] < 0.95 <= document["reached"]


def test_neither_cores_nor_an_efficiency() -> None:
    with pytest.raises(UsageError, match="cores and efficiency are both missing"):
        sweep(STENCIL, PRESET, None)


# -- the best value of a parameter


def tuned(of: Signature, name: str, cores: int = 8, **settings: float) -> Tuned:
    (found,) = sweep(of, machine(), [cores], settings, tune=name, draws=20).tuned
    return found


@pytest.mark.parametrize("blocks", [1, 8, 1000])
def test_blocks_of_a_pipeline_are_those_of_the_closed_form(blocks: int) -> None:
    """The message volume is the same for all: only the latency of every block counts."""
    pipe = program(
        PIPELINE.replace("count = 10", "count = 1"),
        params=f"blocks = {blocks}\nt = 1e-2",
        limits='require = ["T == 1"]',
        **LINE,
    )
    found = tuned(pipe, "blocks")
    latency = machine().quantities["net.intra.classes[0].alpha"].value
    expected = math.sqrt(pipeline.fill((8,)) * (1e-2 / 8) / latency)
    # the minimum is flat, and the replay counts whole bytes
    assert found.best == pytest.approx(expected, rel=0.25)
    least, formula = (
        predict(pipe, machine(), 8, 1, {"blocks": float(n)}).runtime.value
        for n in (found.best, round(expected))
    )
    assert least == pytest.approx(formula, rel=0.002)
    assert found.best == round(found.best)
    assert found.good[0] <= found.best <= found.good[1]
    assert found.change.value < 0


@pytest.mark.parametrize("best", [3, 17, 40])
def test_no_whole_number_near_is_faster(best: int) -> None:
    valley = program(
        '[[program]]\npipeline = { name = "w", dims = [0], blocks = 1, '
        f'seconds = "1 + 1*abs(log(x/{best}))", bytes = 8 }}\n'
        "[[program]]\nserial = { trip = 1, flops = 1 }\n",
        params="x = 10",
        **LINE,
    )
    assert tuned(valley, "x").best == best


def test_a_parameter_that_is_no_whole_number() -> None:
    valley = program(
        '[[program]]\npipeline = { name = "w", dims = [0], blocks = 1, '
        'seconds = "1 + 1*log(x/0.37)**2", bytes = 8 }\n'
        "[[program]]\nserial = { trip = 1, flops = 1 }\n",
        params="x = 0.5",
        **LINE,
    )
    found = tuned(valley, "x")
    assert found.best == pytest.approx(0.37, rel=1e-3)
    assert found.tried == (pytest.approx(0.5e-3), pytest.approx(0.5e3))


def test_a_parameter_that_changes_the_work_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(STENCIL, PRESET, [8], tune="N", draws=0)
    assert caught.value.message == (
        "N changes the amount of work of stencil3d: less work is always faster"
    )
    assert caught.value.hint is not None
    assert "number of blocks" in caught.value.hint


def test_values_too_large_for_a_replay_are_not_compared_with_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Waves that follow each other: the closed form of each is many times longer."""
    wave = program(
        PIPELINE.replace("count = 10", "count = 50"),
        params="blocks = 2\nt = 1e-2",
        limits='require = ["T == 1"]',
        **LINE,
    )
    monkeypatch.setattr("popmodel.model.replayed.simulate.MOST_OPERATIONS", 10_000)
    found = tuned(wave, "blocks")
    assert found.source == "replay"
    now, best = (predict(wave, machine(), 8, 1, {"blocks": n}) for n in (2, found.best))
    assert now.agreement is not None
    assert now.agreement.closed_form.runtime > 1.5 * now.runtime.value
    assert best.source == "replay"
    assert best.runtime.value < now.runtime.value
    assert found.tried[1] < 200  # of 2000
    monkeypatch.setattr("popmodel.model.replayed.simulate.MOST_OPERATIONS", 1)
    closed = tuned(wave, "blocks")
    assert (closed.source, closed.tried[1]) == ("closed form", 2000)


def test_a_tuned_parameter_has_the_runtimes_of_two_predictions() -> None:
    pipe = program(PIPELINE, params="blocks = 1\nt = 1e-2", limits='require = ["T == 1"]', **LINE)
    found = tuned(pipe, "blocks")
    before, after = (
        predict(pipe, machine(), 8, 1, {"blocks": value}).runtime.value
        for value in (found.now, found.best)
    )
    assert found.change.value == pytest.approx(after / before - 1)


def test_a_parameter_that_does_not_matter_stays() -> None:
    idle = program(SOLITARY, params="x = 7")
    found = tuned(idle, "x")
    assert found.best == found.now == 7
    assert (found.change.value, found.change.low) == (0.0, None)


def test_values_that_are_not_possible_are_left_out() -> None:
    pipe = program(
        PIPELINE,
        params="blocks = 8\nt = 1e-2",
        limits='require = ["T == 1", "blocks <= 20"]',
        **LINE,
    )
    found = tuned(pipe, "blocks")
    assert found.tried == (1, 20)
    assert found.best == 20


def test_an_unknown_parameter() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(STENCIL, PRESET, [8], tune="stepz")
    assert caught.value.message == "stencil3d has no parameter 'stepz' to tune"
    assert caught.value.hint == "did you mean steps?"
