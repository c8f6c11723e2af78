"""All splits of some cores: what is possible, what is best, how sure that is."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from model.demo import exact, machine, program
from model.strategies import machines, programs

from popmodel.base.errors import UsageError
from popmodel.base.expressions import parse
from popmodel.machines import profile
from popmodel.machines.profile import Profile, from_document
from popmodel.model import replayed_run
from popmodel.model import signatures as signature
from popmodel.model.kinds.item import Item
from popmodel.model.kinds.loops import Parallel
from popmodel.model.kinds.spread import ItemSpread
from popmodel.model.predictor import expand
from popmodel.model.run.process_placement import Allocation
from popmodel.model.signature.application import Signature, mapped
from popmodel.model.symbols import WHAT_IF, factors_of
from popmodel.model.uncertainty import DEFAULT_COUNT, FIRST
from popmodel.prediction.prediction import predict
from popmodel.prediction.split_sweep import SplitSweep, sweep

STENCIL = signature.load("stencil3d")
CANNON = signature.load("cannon")
PRESET = profile.load(profile.DEFAULT_PRESET)
SHORT = {"steps": 2.0}
SERIAL = """
[[program]]
serial = { trip = 1e6, flops = 2 }
[[program]]
parallel = { trip = 6400, inner = 1e4, flops = 2, constructs = { parallel_for = 1 } }
"""


@cache
def on_64_cores(draws: int = DEFAULT_COUNT) -> SplitSweep:
    return sweep(STENCIL, PRESET, [64], draws=draws)


@pytest.mark.long
@given(st.sampled_from([1, 2, 6, 12, 16, 48, 64, 96]))
@settings(max_examples=8)
def test_every_split_is_a_candidate_or_refused(cores: int) -> None:
    found = sweep(STENCIL, PRESET, [cores], SHORT, draws=20)
    splits = [(one.placement.processes, one.placement.threads) for one in found.candidates]
    splits += [(one.processes, one.threads) for one in found.refused]
    assert sorted(splits) == [(d, cores // d) for d in range(1, cores + 1) if cores % d == 0]


@given(st.sampled_from([4, 16, 64]), st.integers(0, 3))
@settings(max_examples=12)
def test_probabilities_and_regret(cores: int, seed: int) -> None:
    found = sweep(STENCIL, PRESET, [cores], SHORT, draws=100, seed=seed)
    assert sum(one.probability_best for one in found.candidates) == pytest.approx(1)
    for one in found.candidates:
        assert one.regret is not None and one.regret >= 0
        assert one.probability_best is not None and one.probability_tied is not None
        assert one.probability_tied >= one.probability_best
    (choice,) = found.choices
    assert choice.taken.regret == min(one.regret for one in found.candidates)
    assert choice.tied[0] is choice.taken


def check_each_is_predicted_alike(
    found: SplitSweep, signature: Signature, machine: Profile, **options: Any
) -> None:
    """Every number of a candidate is the number of its own prediction."""
    assert found.candidates
    for one in found.candidates:
        alone = predict(
            signature, machine, *one.split, draws=found.draws, seed=found.seed, **options
        )
        assert one.runtime == alone.runtime
        assert one.source == alone.source
        assert (one.regret is None) == (
            alone.source == "closed form"
            and one.split[0] > 1
            and found.choices[0].source == "replay"
        )
        assert one.grid == alone.grid
        assert one.parallel_efficiency == alone.metrics["hybrid-additive"]["parallel_efficiency"]
        assert one.memory_per_process == alone.memory_per_process
        assert one.validity == alone.validity


@pytest.mark.parametrize("application", [STENCIL, CANNON], ids=lambda one: one.name)
@pytest.mark.parametrize("cores", [[1], [16, 32]])
def test_a_candidate_is_what_predict_says(application: Signature, cores: list[int]) -> None:
    found = sweep(application, PRESET, cores)
    check_each_is_predicted_alike(found, application, PRESET)


@pytest.mark.long
def test_a_candidate_on_more_nodes_is_what_predict_says() -> None:
    spread = Allocation(nodes=8, cores_per_node=8)
    found = sweep(STENCIL, PRESET, [64], {"N": 128.0}, allocation=spread, draws=50)
    check_each_is_predicted_alike(found, STENCIL, PRESET, settings={"N": 128.0}, allocation=spread)


@pytest.mark.long
@given(
    programs(most_steps=50),
    machines(),
    st.sampled_from([1, 2, 6, 8, 16]),
    st.integers(0, 2),
    st.sampled_from([None, 1, 20_000]),
)
def test_a_sweep_of_any_program_says_what_predict_says(
    signature: Signature, machine: Profile, cores: int, seed: int, most: int | None
) -> None:
    """With replays of all splits, of some and of none."""
    with pytest.MonkeyPatch.context() as patch:
        if most is not None:
            patch.setattr("popmodel.model.replayed_run.MOST_OPERATIONS", most)
        found = sweep(signature, machine, [cores], draws=20, seed=seed)
        event(found.choices[0].source)
        check_each_is_predicted_alike(found, signature, machine)
    check_order(found)


def test_splits_are_not_told_apart_by_less_than_the_laws_are_sure_of() -> None:
    """Three splits of the bundled stencil are within 5 % of each other."""
    found = on_64_cores()
    fastest = min(one.runtime.value for one in found.candidates)
    near = [one for one in found.candidates if one.runtime.value < 1.05 * fastest]
    assert len(near) >= 3
    assert all((one.probability_best or 0) < 0.6 for one in near)
    assert all(one.split in [each.split for each in found.choices[0].tied] for one in near)
    assert 0.01 < (found.choices[0].taken.regret or 0) < 0.06


def check_order(found: SplitSweep) -> None:
    """What is recommended follows from the runtimes that are shown."""
    for choice in found.choices:
        mine = [one for one in found.candidates if one.regret is not None]
        times = np.array([one.draws for one in mine])
        assert [one.runtime.value for one in mine] == list(times[:, 0])
        drawn = times[:, FIRST:] if times.shape[1] > 1 else times
        regrets = (drawn / drawn.min(axis=0) - 1).mean(axis=1)
        assert [one.regret for one in mine] == pytest.approx(list(regrets))
        assert choice.taken in mine


@pytest.mark.long
@given(programs(most_steps=20), machines(), st.sampled_from(sorted(WHAT_IF)))
@settings(max_examples=15)
def test_a_changed_machine_is_predicted_like_a_profile_with_these_values(
    signature: Signature, machine: Profile, word: str
) -> None:
    """Without a what-if: of a profile, or a signature, with other values."""
    found = sweep(signature, machine, [8], what_if={word: 2.0}, draws=20)
    document = copy.deepcopy(dict(machine.document))
    for path, factor in expand(factors_of({word: 2.0}), machine.quantities).items():
        entry = _entry(document, path)
        entry |= {key: entry[key] * factor for key in {"value", "low", "high"} & entry.keys()}
    uneven = {
        name: replace(known, **{key: 2.0 * getattr(known, key) for key in ("value", "low", "high")})
        for name, known in signature.imbalance.items()
        if word == "imbalance" and name.endswith("_cv") and known.low is not None
    }
    program = mapped(signature.program, _twice_as_uneven) if word == "imbalance" else None
    imbalance = {**signature.imbalance, **uneven}
    changed = replace(signature, imbalance=imbalance, program=program or signature.program)
    without = sweep(changed, from_document(document), [8], draws=20)
    for one, alike in zip(found.candidates, without.candidates, strict=True):
        assert (alike.split, alike.source) == (one.split, one.source)
        for bound in ("value", "low", "high"):
            other = getattr(alike.runtime, bound)
            assert getattr(one.runtime, bound) == pytest.approx(other, rel=1e-6), bound


def _twice_as_uneven(item: Item) -> Item:
    """The item with twice its own spread, if it has one."""
    own = {name: parse(f"2*({cv.text})") for name, cv in item.own_spread.items()}
    return replace(item, spread=ItemSpread(**own)) if isinstance(item, Parallel) and own else item


def _entry(document: dict[str, Any], path: str) -> dict[str, Any]:
    """The quantity at a path such as ``net.inter.classes[0].beta``."""
    found: Any = document
    for key in re.findall(r"[^.\[\]]+", path):
        found = found[int(key)] if isinstance(found, list) else found[key]
    return cast(dict[str, Any], found)


def test_without_uncertainty_the_fastest_is_certain() -> None:
    found = sweep(program(SERIAL), machine(), [8], draws=50)
    best = min(found.candidates, key=lambda one: one.runtime.value)
    assert [one.probability_best for one in found.candidates if one is not best] == [0.0] * (
        len(found.candidates) - 1
    )
    assert best.probability_best == 1.0
    assert found.choices[0].taken is best
    assert best.regret == 0.0
    assert found.choices[0].doubt is None


def test_what_is_common_to_all_splits_does_not_blur_the_choice() -> None:
    """A clock between 1 and 4 GHz changes all runtimes, and none of their order."""
    known = from_document(
        copy.deepcopy(dict(machine().document))
        | {
            "core": dict(machine().document["core"])
            | {"freq": {"1": exact(2e9) | {"low": 1e9, "high": 4e9}}}
        }
    )
    found = sweep(program(SERIAL), known, [8], draws=200)
    best = found.choices[0].taken
    assert best.runtime.high is not None
    assert best.runtime.low is not None
    assert best.runtime.high > 3 * best.runtime.low
    assert best.probability_best > 0.95


def test_what_does_not_fit_is_refused_with_the_reason() -> None:
    found = sweep(CANNON, PRESET, [64], max_memory=200 * 2**20)
    reasons = {(one.processes, one.threads): one.why for one in found.refused}
    assert reasons[32, 2] == "cannon cannot run with 32 processes: it requires is_square(P)"
    assert reasons[2, 32] == "a node has 16 cores, fewer than 32 threads"
    assert reasons[4, 16] == "needs 640 MiB per process, more than 200 MiB"
    assert [one.placement.processes for one in found.candidates] == [64, 16]


def test_cores_whose_processes_are_too_large_name_the_nearest_that_are_not() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(CANNON, PRESET, [9], max_memory=200 * 2**20)
    assert "needs 284 MiB per process, more than 200 MiB" in caught.value.message
    # 9 processes are possible, but 16 are the fewest that are small enough
    assert caught.value.hint == "possible: 16 cores for cannon"


def test_cores_without_any_split_name_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(CANNON, PRESET, [34])
    assert caught.value.message == (
        "cannon: no split of 34 cores is possible: cannon cannot run with 34 processes: "
        "it requires is_square(P)"
    )
    assert caught.value.hint == "possible: 32 or 36 cores for cannon"


def test_more_cores_than_the_profile_has_name_the_nodes_that_they_fill() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(STENCIL, PRESET, [4096])
    assert caught.value.hint == (
        "possible: 1024 cores for stencil3d, or --nodes 256 if the machine has as many"
    )


def test_cores_without_a_split_leave_the_others_their_result() -> None:
    both = sweep(STENCIL, PRESET, [4096, 16, 10**9], draws=20)
    alone = sweep(STENCIL, PRESET, [16], draws=20)
    assert both.candidates == alone.candidates
    assert [choice.cores for choice in both.choices] == [16]
    assert [one.cores for one in both.impossible] == [4096, 10**9]
    assert both.impossible[0].hint == (
        "possible: 1024 cores for stencil3d, or --nodes 256 if the machine has as many"
    )
    assert {one.processes * one.threads for one in both.refused} == {4096, 10**9}


def test_a_split_in_which_nothing_takes_time_is_not_possible() -> None:
    only_messages = program("[[program]]\ncollective = { op = 'allreduce', bytes = 8 }")
    found = sweep(only_messages, machine(), [4], draws=20)
    assert [one.placement.processes for one in found.candidates] == [4, 2]
    (alone,) = found.refused
    assert (alone.processes, alone.threads) == (1, 4)
    assert alone.why == "demo takes no time, nothing is computed or sent"
    run = predict(only_messages, machine(), 4, 1)
    assert (run.reference.processes, run.reference.threads) == (2, 1)


def test_cores_near_that_the_formulas_refuse_are_not_named() -> None:
    with pytest.raises(UsageError) as caught:
        sweep(program("[[program]]\nserial = { trip = '1/(P - 3)' }"), machine(), [3])
    assert caught.value.hint == "possible: 4 cores for demo"  # of 2 the formula is negative


def test_more_cores_are_compared_with_fewer() -> None:
    document = sweep(STENCIL, PRESET, [128, 64], draws=50).to_dict()
    (grown,) = document["growth"]
    runtimes = {
        choice["cores"]: next(
            one["runtime"]["value"]
            for one in document["candidates"]
            if [one["processes"], one["threads"]] == choice["take"]
        )
        for choice in document["choices"]
    }
    assert grown["cores"] == [64, 128]
    assert grown["speedup"]["value"] == runtimes[64] / runtimes[128]
    # the laws of either split may be off on their own, so that more than 2 is possible
    low, value, high = (grown["speedup"][key] for key in ("low", "value", "high"))
    assert 1 < low < value < 2 < high < 2 * value / low


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", sorted(WHAT_IF))
def test_a_better_machine_is_no_slower(name: str) -> None:
    better = {"latency": 0.5, "openmp": 0.5, "imbalance": 0.5}.get(name, 2.0)
    before = on_64_cores(0).candidates
    after = sweep(STENCIL, PRESET, [64], what_if={name: better}, draws=0).candidates
    for one, other in zip(before, after, strict=True):
        assert other.runtime.value <= one.runtime.value
    assert any(a.runtime.value < b.runtime.value for b, a in zip(before, after, strict=True))


def test_each_split_says_where_its_time_goes_and_how_to_start_it_as_a_prediction_does() -> None:
    one = sweep(STENCIL, PRESET, [16], draws=20).to_dict()["candidates"][1]
    alone = predict(STENCIL, PRESET, one["processes"], one["threads"], draws=20).to_dict()
    time = one["breakdown"]["time"]
    assert time == {part: found["value"] for part, found in alone["time"].items()}
    assert sum(time.values()) == pytest.approx(one["runtime"]["value"])
    metrics = alone["metrics"]["hybrid-additive"]
    assert one["breakdown"]["metrics"] == {name: of["value"] for name, of in metrics.items()}
    assert one["launch"] == alone["launch"]
    assert one["launch_mpirun"] == alone["launch_mpirun"]


def test_a_split_that_is_too_large_for_a_replay_changes_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_of_them = on_64_cores(20)
    assert all_of_them.choices[0].source == "replay"
    assert {one.source for one in all_of_them.candidates} == {"replay"}
    monkeypatch.setattr(replayed_run, "MOST_AT_ONCE", 1000)
    monkeypatch.setattr(replayed_run, "FEWEST", 64)
    some = sweep(STENCIL, PRESET, [64], draws=20)
    (choice,) = some.choices
    assert [one.split for one in choice.candidates if one.gap is None] == [(64, 1)]
    assert choice.source == "replay"
    for one, other in zip(some.candidates, all_of_them.candidates, strict=True):
        if one.split == (64, 1):
            assert one.source == "closed form"
            assert one.runtime.value == pytest.approx(1.599, abs=0.01)
            assert (one.probability_best, one.probability_tied, one.regret) == (None, None, None)
        else:
            assert (one.source, one.runtime) == ("replay", other.runtime)
    monkeypatch.setattr(replayed_run, "MOST_AT_ONCE", 1)
    none = sweep(STENCIL, PRESET, [64], draws=20)
    assert none.choices[0].source == "closed form"


def test_one_process_needs_no_replay_beside_others_that_are_replayed() -> None:
    node = sweep(STENCIL, PRESET, [16], {"N": 64}, draws=20)
    (choice,) = node.choices
    assert (1, 16) in [one.split for one in choice.candidates if one.gap is None]
    assert choice.source == "replay"
    assert {one.source for one in node.candidates if one.split != (1, 16)} == {"replay"}
