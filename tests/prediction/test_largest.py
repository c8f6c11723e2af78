"""The largest number of cores that keeps an efficiency, beside a search through all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.demo import LINE, PIPELINE, machine, program

from popmodel.base.errors import UsageError
from popmodel.machines import profile
from popmodel.machines.profile import Profile
from popmodel.model import signatures as signature
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.prediction.split_choice import evaluate_all
from popmodel.prediction.split_sweep import largest_cores, sweep

BUNDLED = signature.load("stencil3d")
TWO_STEPS = {**BUNDLED.params, "steps": replace(BUNDLED.params["steps"], value=2.0)}
# without imbalance one replay is enough, and a search through all is cheap
STENCIL = replace(BUNDLED, imbalance={}, params=TWO_STEPS)
CANNON = signature.load("cannon")
PRESET = profile.load(profile.DEFAULT_PRESET)
SIXTEEN_NODES, FORTY_NODES = (
    profile.from_document(
        {**PRESET.document, "topology": {**PRESET.document["topology"], "nodes": nodes}}
    )
    for nodes in (16, 40)
)


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
            fastest = min(splits, key=lambda one: one.runtime.value)
            found[cores] = fastest.parallel_efficiency.value
    return found


@pytest.mark.long
@pytest.mark.parametrize("application", [STENCIL, CANNON], ids=lambda one: one.name)
def test_on_few_nodes_the_largest_number_of_cores_is_that_of_a_search_through_all(
    application: Signature,
) -> None:
    every = efficiencies(application, SIXTEEN_NODES)
    for target in (0.85, 0.7):
        found = largest_cores(study(application, SIXTEEN_NODES), target)
        largest = max(cores for cores, value in every.items() if value >= target)
        assert found.cores == largest
        assert found.efficiency == pytest.approx(every[found.cores])
        assert found.efficiency >= target
        following = [cores for cores in every if cores > found.cores]
        if following:
            assert found.beyond == (following[0], pytest.approx(every[following[0]]))
            assert every[following[0]] < target
        else:
            assert found.beyond is None


@pytest.mark.long
def test_on_many_nodes_numbers_between_powers_of_two_are_tried() -> None:
    every = efficiencies(CANNON, FORTY_NODES)
    for target in (0.95, 0.9):
        found = largest_cores(study(CANNON, FORTY_NODES), target)
        largest = max(cores for cores, value in every.items() if value >= target)
        powers = [cores for cores in every if cores.bit_count() == 1 and every[cores] >= target]
        assert max(powers) <= found.cores <= largest
        following = min(cores for cores in every if cores > found.cores)
        assert found.beyond == (following, pytest.approx(every[following]))


def test_an_efficiency_that_no_number_of_cores_keeps() -> None:
    text = f'{PIPELINE}  [[program.body]]\n  collective = {{ op = "barrier" }}\n'
    several = program(text, params="blocks = 1\nt = 1", limits='require = ["P >= 2"]', **LINE)
    with pytest.raises(UsageError) as caught:
        largest_cores(study(several, machine()), 0.9)
    assert caught.value.message == "demo: no number of cores has a parallel efficiency of 90 %"
    assert caught.value.hint == "the highest is 50.0 %, on 2 cores"


def test_neither_cores_nor_an_efficiency() -> None:
    with pytest.raises(UsageError, match="cores and efficiency are both missing"):
        sweep(STENCIL, PRESET, None)
