"""Figures as reports write them."""

from popmodel.reports.figures import loses, percent


def test_a_fraction_is_written_in_per_cent() -> None:
    assert percent(0.81249) == "81.2"
    assert percent(0.81249, 0) == "81"


def test_what_is_printed_as_100_is_no_loss() -> None:
    assert loses(0.9994)
    assert not loses(0.9996)
