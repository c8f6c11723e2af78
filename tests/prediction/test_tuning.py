"""The best value of a parameter, beside other values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from model.demo import LINE, PIPELINE, SOLITARY, machine, program

from popmodel.errors import UsageError
from popmodel.machine import profile
from popmodel.model import reduced_run
from popmodel.model import signatures as signature
from popmodel.model.signature.program import Signature
from popmodel.prediction.prediction import PredictedRun, predict
from popmodel.prediction.split_sweep import Tuned, sweep

# without imbalance one replay is enough, and a search through all is cheap
STENCIL = replace(signature.load("stencil3d"), imbalance={})
PRESET = profile.load(profile.DEFAULT_PRESET)


def tuned(of: Signature, name: str, cores: int = 8, **settings: float) -> Tuned:
    (found,) = sweep(of, machine(), [cores], settings, tune=name, draws=20).tuned
    return found


@pytest.mark.long(after=1)
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
    expected = math.sqrt(7 * (1e-2 / 8) / latency)  # seven wait for the first
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


@pytest.mark.long
def test_values_too_large_for_a_replay_are_judged_by_like_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wave = program(
        PIPELINE.replace("count = 10", "count = 50"),
        params="blocks = 2\nt = 1e-2",
        limits='require = ["T == 1"]',
        **LINE,
    )
    monkeypatch.setattr(reduced_run, "MOST_IN_STEPS", 20_000)
    found = tuned(wave, "blocks")
    assert found.source == "replay"
    now, best = (predict(wave, machine(), 8, 1, {"blocks": n}) for n in (2, found.best))
    assert now.source == best.source == "replay"
    assert best.runtime.value < now.runtime.value
    assert found.tried[1] == 2000
    monkeypatch.setattr(reduced_run, "MOST_IN_STEPS", 1)
    closed = tuned(wave, "blocks")
    assert (closed.source, closed.tried[1]) == ("closed form", 2000)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("sender", [None, 1e-7])
@pytest.mark.parametrize("cores", [2, 4])
def test_many_blocks_on_few_processes(cores: int, sender: float | None) -> None:
    """Waves that follow each other fill the pipeline once: the table shows replays that know it.

    A closed form that fills every wave anew would ask for many more blocks, and promise much.
    """
    wave = program(
        PIPELINE.replace("count = 10", "count = 50"),
        params="blocks = 4\nt = 1e-2",
        limits='require = ["T == 1"]',
        **LINE,
    )
    profile = machine() if sender is None else machine(net__intra__os=sender)
    (found,) = sweep(wave, profile, [cores], {}, tune="blocks", draws=0).tuned
    assert (found.split, found.source) == ((cores, 1), "replay")

    def run(blocks: float) -> PredictedRun:
        return predict(wave, profile, cores, 1, {"blocks": blocks}, draws=0)

    shown = {blocks: run(blocks) for blocks in (*(float(2**n) for n in range(11)), found.best)}
    assert {one.source for one in shown.values()} == {"replay"}
    times = {blocks: one.runtime.value for blocks, one in shown.items()}
    assert times[found.best] <= min(times.values()) * 1.001
    assert found.change.value == pytest.approx(times[found.best] / times[4] - 1, abs=1e-9)
    (row,) = sweep(wave, profile, [cores], {"blocks": found.best}, draws=0).candidates
    assert row.runtime.value == pytest.approx(times[found.best])
    for one in shown.values():  # a closed form that fills every wave anew is far from that
        assert one.agreement is not None
        assert one.agreement.closed_form.runtime == pytest.approx(one.runtime.value, rel=0.01)


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
