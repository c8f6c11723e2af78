"""Points that laws are fitted to."""

import math

import pytest

from popmodel.fit.samples import UNKNOWN_ERROR, Sample, points_of


def test_repeats_of_a_configuration_become_their_weighted_geometric_mean() -> None:
    points = points_of([Sample(2, 1, 1.0, {}, 0.1), Sample(2, 1, 1.1, {}, 0.2)])
    assert len(points) == 1
    weights = 0.1**-2, 0.2**-2
    expected = math.exp(weights[1] * math.log(1.1) / sum(weights))
    assert points.values[0] == pytest.approx(expected)
    assert points.errors[0] == pytest.approx(sum(weights) ** -0.5)
    assert points.notes == ()


def test_repeats_apart_by_more_than_their_errors_are_said_to_contradict_each_other() -> None:
    points = points_of([Sample(2, 1, 1.0, {}, 0.01), Sample(2, 1, 1.2, {}, 0.01)])
    assert points.notes == ("P = 2, T = 1: values contradict each other: 1 and 1.2",)
    assert points.errors[0] > 0.05


def test_repeats_without_errors_contradict_each_other_from_a_fifth_on() -> None:
    assert points_of([Sample(2, 1, 1.0), Sample(2, 1, 1.1)]).notes == ()
    assert points_of([Sample(2, 1, 1.0), Sample(2, 1, 1.5)]).notes != ()


def test_repeats_of_which_one_is_0_are_told() -> None:
    points = points_of([Sample(2, 1, 0.0), Sample(2, 1, 1.0)])
    assert points.notes == ("P = 2, T = 1: once 0 and once not",)


def test_the_error_of_unstated_samples_follows_their_repeats() -> None:
    quiet = points_of([Sample(2, 1, 1.0), Sample(4, 1, 1.0)])
    assert quiet.errors == pytest.approx([UNKNOWN_ERROR] * 2)
    noisy = points_of([Sample(2, 1, 1.0), Sample(2, 1, 1.19), Sample(4, 1, 1.0)])
    assert noisy.errors[1] > 2 * UNKNOWN_ERROR


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 1.0), "processes and threads must be at least 1"),
        ((1, 1, -1.0), "a value must be finite and not negative, not -1.0"),
        ((1, 1, math.nan), "a value must be finite and not negative, not nan"),
        ((1, 1, 1.0, {"N": 0.0}), "parameter N must be above 0, not 0.0"),
        ((1, 1, 1.0, {}, -0.1), "a relative error must be finite and not negative"),
    ],
)
def test_what_is_no_measurement_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sample(*arguments)  # type: ignore[arg-type]


def test_samples_need_the_same_parameters() -> None:
    with pytest.raises(ValueError, match="P = 2, T = 1: all samples must have the same parameters"):
        points_of([Sample(1, 1, 1.0, {"N": 8.0}), Sample(2, 1, 1.0)])
    with pytest.raises(ValueError, match="a law needs at least one sample"):
        points_of([])
