"""Work that is known process by process, and factors that are known value by value."""

import numpy as np
import pytest
from model.demo import machine, program

from popmodel.model.predictor import Study
from popmodel.model.script import Script
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import factors_of
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.unroll import carry_out, outline
from popmodel.prediction.prediction import predict

RANKS = [1.0, 1.5, 0.75, 0.75]
VALUES = [0.8, 0.9, 1.0, 1.0, 1.3]


def steps(own: str, count: int = 20, kind: str = "serial", **sections: str) -> Signature:
    more = "constructs = {}, " if kind == "parallel" else ""
    return program(
        f"[[program]]\nloop = {{ count = {count} }}\n[[program.body]]\n"
        f'{kind} = {{ name = "work", trip = 1, seconds = 1e-3, {more}{own} }}\n'
        '[[program.body]]\ncollective = { op = "barrier" }\n',
        **sections,
    )


def closed(signature: Signature, processes: int = 4, **what_if: float) -> tuple[float, float]:
    """Slowest process overall, and sum of the slowest of all steps, over the average."""
    study = Study(signature, machine(), {}, 0, 0, factors_of(what_if))
    run = study.run(study.admit(processes, 1), study.sources())
    mean = float(run.work.serial + run.work.share)
    return float(run.course.computing) / mean, float(run.course.ideal) / mean


def computed(signature: Signature, processes: int = 4, seed: int = 0) -> np.ndarray:
    """Computation of every process before every barrier of a replay, s."""
    study = Study(signature, machine(), {}, 0, 0)
    placement = study.admit(processes, 1)
    drawn = study.sources()
    common = study.spread(placement, drawn)
    script = Script.of(study.run(placement, drawn).tree, common)
    return carry_out(outline(script, {}), common, seed).program.burst.reshape(processes, -1) / 1e9


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_the_slowest_process_is_the_one_of_the_list(kind: str) -> None:
    one = steps(f"by_rank = {RANKS}", kind=kind)
    assert closed(one) == pytest.approx((1.5, 1.5))
    assert computed(one) == pytest.approx(np.outer(RANKS, np.full(20, 1e-3)))


def test_for_other_numbers_of_processes_the_spread_holds() -> None:
    both = steps(f"by_rank = {RANKS}, persistent_cv = 0.1")
    assert closed(both) == pytest.approx((1.5, 1.5))
    assert closed(both, 8)[0] == pytest.approx(1 + 0.1 * expected_maximum(8))


def test_slow_processes_of_several_items_need_not_be_the_same() -> None:
    body = "[[program.body]]\nserial = {{ trip = 1, seconds = 1e-3, by_rank = {} }}\n"
    text = "[[program]]\nloop = { count = 9 }\n" + "".join(
        body.format(ranks) for ranks in ([1.5, 0.5], [0.6, 1.4])
    )
    one = program(text + '[[program.body]]\ncollective = { op = "barrier" }\n')
    assert closed(one, 2) == pytest.approx(((1.5 + 0.6) / 2,) * 2)


def test_the_closed_form_has_the_expected_maximum_of_the_values() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.choice(VALUES, size=(200_000, 4))
    assert closed(steps(f"quantiles = {VALUES}"))[0] == pytest.approx(1)
    assert closed(steps(f"quantiles = {VALUES}"))[1] == pytest.approx(
        drawn.max(axis=1).mean(), abs=3e-3
    )
    both = (drawn * RANKS).max(axis=1).mean()
    found = closed(steps(f"quantiles = {VALUES}, by_rank = {RANKS}"))
    assert found == pytest.approx((1.5, both), abs=3e-3)


def test_known_processes_and_a_normal_spread_together() -> None:
    rng = np.random.default_rng(1)
    factor = 1 + 0.1 * rng.standard_normal((200_000, 4))
    found = closed(steps(f"by_rank = {RANKS}, transient_cv = 0.1", count=400))
    assert found[1] == pytest.approx((factor * RANKS).max(axis=1).mean(), abs=2e-3)
    assert found[0] == pytest.approx(1.5, abs=2e-3)


def test_every_process_takes_all_values_in_turn() -> None:
    found = computed(steps(f"quantiles = {VALUES}, by_rank = {RANKS}", count=10))
    for rank, times in enumerate(found):
        for part in (times[:5], times[5:]):
            assert sorted(part / RANKS[rank]) == pytest.approx(np.array(VALUES) * 1e-3)
    orders = {tuple(np.argsort(times)) for times in found / np.array(RANKS)[:, None]}
    assert len(orders) > 1  # not the same one in the same step


def test_what_is_drawn_first_does_not_depend_on_how_much_is_drawn() -> None:
    short, long = (computed(steps(f"quantiles = {VALUES}", count=n)) for n in (3, 12))
    assert np.array_equal(short, long[:, :3])


def test_processes_of_unknown_work_take_values_as_well() -> None:
    found = computed(steps(f"quantiles = {VALUES}, persistent_cv = 0.2", count=5))
    means = found.mean(axis=1) / 1e-3
    assert means.max() == pytest.approx(1 + 0.2 * expected_maximum(4))


def test_a_replay_agrees_with_the_closed_form() -> None:
    one = predict(
        steps(f"quantiles = {VALUES}, by_rank = {RANKS}", count=200), machine(), 4, 1, draws=0
    )
    assert one.agreement is not None
    assert one.agreement.replay.ideal == pytest.approx(one.agreement.closed_form.ideal, rel=1e-3)
    balance = one.metrics["hybrid-additive"]["process_load_balance"].value
    assert balance == pytest.approx(1 - 0.5e-3 * 200 / one.runtime.value)


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("max(1 - rank, 0)", [1, 0, 0, 0, 0]),
        ("max(rank - P + 2, 0)", [0, 0, 0, 0, 1]),
        ("1 + rank/P", [1, 1.2, 1.4, 1.6, 1.8]),
    ],
)
def test_a_formula_of_rank_is_its_list_of_values(formula: str, values: list[float]) -> None:
    of_rank, of_list = steps(f'by_rank = "{formula}"'), steps(f"by_rank = {values}")
    assert closed(of_rank, 5) == pytest.approx(closed(of_list, 5), rel=1e-12)
    assert closed(of_rank, 40)[0] == pytest.approx({"m": 40, "1": 79 / 59.5}[formula[0]], rel=1e-9)
