"""Families are read with clear errors, evaluated with reasons, and displayed in order."""

import re
from pathlib import Path

import numpy as np
import pytest
from efficiency.builders import observables

from popmodel.base.errors import FileError, PopmodelError
from popmodel.efficiency.family import AGGREGATES, Family, IdentityError
from popmodel.efficiency.hierarchy import load_families, read_family

TEXT = """\
id = 'small'
title = 'Small'
use = 'tests'
source = 'none'
top = 'whole'

[[metric]]
id = 'whole'
name = 'Whole'
formula = 'useful_mean / runtime'
meaning = 'm'
advice = 'a'
source = 's'
at_most = 1

[[metric]]
id = 'left'
name = 'Left'
formula = 'useful_mean / useful_max'
meaning = 'm'
advice = 'a'
source = 's'

[[metric]]
id = 'right'
name = 'Right'
formula = 'useful_max / runtime'
meaning = 'm'
advice = 'a'
source = 's'

[[decomposition]]
of = 'whole'
by = 'product'
parts = ['left', 'right']
proved = true

[[note]]
when = 'right > 0.5'
text = 'busy'
"""


@pytest.fixture
def family_file(tmp_path: Path) -> Path:
    return tmp_path / "small.toml"


def read(path: Path, old: str = "", new: str = "") -> Family:
    assert old in TEXT
    path.write_text(TEXT.replace(old, new, 1) if old else TEXT)
    return read_family(path)


def test_a_family_is_data(family_file: Path) -> None:
    family = read(family_file)
    evaluation = family.evaluate({"useful_mean": 3.0, "useful_max": 4.0, "runtime": 5.0})
    assert evaluation.values == pytest.approx({"whole": 0.6, "left": 0.75, "right": 0.8})
    assert evaluation.notes == ("busy",)
    assert evaluation.absent == {}


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("id = 'small'", "id = ", 1, "is not TOML: Invalid value", None),
        ("title = 'Small'", "title = " + "[" * 100_000, None, "is nested too deeply", None),
        ("title = 'Small'\n", "", None, "the family: title is missing", None),
        ("use = 'tests'", "use = 3", None, "the family: use must be text", None),
        ("use = ", "serch = []\nuse = ", None, "the family: serch is not a known", "search?"),
        ("top = 'whole'", "top = 'hole'", None, "top is 'hole', which is not known", "'whole'?"),
        (
            "top = 'whole'",
            "top = 'whole'\nsearch = ['lef']",
            None,
            "search begins at 'lef', which is not known",
            "did you mean 'left'?",
        ),
        ("id = 'whole'", "id = 'The whole'", 7, "metric id 'The whole' is not a name in lower", ""),
        ("id = 'right'", "id = 'left'", 24, "metric 'left' is defined twice", None),
        ("at_most = 1", "at_most = true", 7, "metric whole: at_most must be a number", None),
        (
            "at_most = 1",
            "at_most = 0\nat_least = 1",
            7,
            "whole: at_least (1) is more than at_most (0)",
            None,
        ),
        ("advice = 'a'\n", "", 7, "metric whole: advice is missing", None),
        (
            "'useful_mean / useful_max'",
            "'useful_mean / useful_min'",
            16,
            "the formula of left uses 'useful_min', which is not known",
            "did you mean 'useful_mean'?",
        ),
        (
            "'useful_mean / useful_max'",
            "'useful_mean / '",
            16,
            "formula of left: expression 'useful_mean /', column",
            None,
        ),
        (
            "source = 's'\n\n[[dec",
            "source = 's'\nview_of = 'up'\n\n[[dec",
            24,
            "right is a view of 'up', which is not known",
            "use a metric of the family or an aggregate",
        ),
        (
            "of = 'whole'",
            "of = 'hole'",
            32,
            "decomposition of 'hole', which is not known",
            "did you mean 'whole'?",
        ),
        ("by = 'product'", "by = 'mean'", 32, "by must be one of product, sum", None),
        ("parts = ['left', 'right']", "parts = ['left']", 32, "must be a list with at least 2", ""),
        ("'left', 'right'", "'left', 'write'", 32, "has the part 'write', which is not", "right"),
        ("proved = true", "proved = 'yes'", 32, "proved must be true or false", None),
        ("'left', 'right'", "'left', 'whole'", 7, "is a part of itself: whole -> whole", None),
        ("when = 'right >", "when = 'rihgt >", 38, "the condition of the note uses 'rihgt'", ""),
        ("when = 'right > 0.5'", "when = 'right >'", 38, "condition of the note: expression", ""),
        ("text = 'busy'", "texts = 'busy'", 38, "note 1: text is missing", None),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(
    family_file: Path, old: str, new: str, line: int | None, message: str, hint: str | None
) -> None:
    with pytest.raises(FileError, match=re.escape(message)) as caught:
        read(family_file, old, new)
    assert caught.value.message.startswith(str(family_file))
    assert caught.value.line == line
    assert "\n" not in caught.value.message
    if hint:
        assert hint in (caught.value.hint or "")


def test_formulas_that_need_each_other_are_refused(family_file: Path) -> None:
    text = TEXT.replace("useful_mean / useful_max", "whole / right")
    text = text.replace("useful_max / runtime", "whole / left")
    family_file.write_text(text)
    with pytest.raises(FileError, match="left is computed from itself: left -> right -> left"):
        read_family(family_file)


def test_formulas_may_use_metrics_that_come_later(family_file: Path) -> None:
    family = read(family_file, "useful_mean / useful_max", "whole / right")
    assert family.order == ("whole", "right", "left")
    assert family.needs("left") == ("runtime", "useful_max", "useful_mean")
    values = family.evaluate({"useful_mean": 3.0, "useful_max": 4.0, "runtime": 5.0}).values
    assert list(values) == ["whole", "left", "right"]
    assert values["left"] == pytest.approx(0.75)


def test_a_list_where_tables_belong_is_refused(family_file: Path) -> None:
    text = TEXT[: TEXT.index("[[metric]]")] + "metric = [1]\n"
    family_file.write_text(text)
    with pytest.raises(FileError, match="metric 1 must be a table, not 1"):
        read_family(family_file)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.toml: cannot be read: No such file"):
        read_family(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\x00\x01")
    with pytest.raises(FileError, match=r"binary\.toml: is not UTF-8 text"):
        read_family(tmp_path / "binary.toml")


def test_a_false_decomposition_is_caught_in_use(family_file: Path) -> None:
    family = read(family_file, "by = 'product'", "by = 'sum'")
    with pytest.raises(IdentityError) as caught:
        family.evaluate({"useful_mean": 3.0, "useful_max": 4.0, "runtime": 5.0})
    assert str(caught.value) == (
        "family small: whole is 0.6, but the sum of left, right less 1 is 0.55"
    )
    # one bad sample among good ones is found as well
    with pytest.raises(IdentityError, match=r"whole is 0\.6"):
        family.evaluate_samples(
            {
                "useful_mean": np.array([4.0, 3.0]),
                "useful_max": np.array([4.0, 4.0]),
                "runtime": np.array([4.0, 5.0]),
            }
        )


def test_identities_hold_for_tiny_efficiencies() -> None:
    run = observables([[1e-9], [2e-9]], 1e5, ideal_runtime=3e-8)
    for family in load_families().values():
        family.evaluate(run.aggregates(), run.absent)


def test_missing_input_gives_a_reason_and_no_number() -> None:
    run = observables([[8], [6]], 12)
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    assert evaluation.absent == {
        "global_efficiency": "no reference run",
        "serialisation_efficiency": "no replay on an ideal network",
        "transfer_efficiency": "no replay on an ideal network",
    }
    assert not evaluation.values.keys() & evaluation.absent.keys()


def test_a_metric_of_missing_metrics_inherits_their_reasons() -> None:
    run = observables([[8], [6]], 12)
    family = load_families()["hybrid-multiplicative"]
    evaluation = family.evaluate(run.aggregates("not-in-mpi"), run.absent)
    assert evaluation.absent["openmp_load_balance"] == (
        "the time outside MPI calls was not measured"
    )
    assert evaluation.values["hybrid_load_balance"] == pytest.approx(7 / 8)


def test_reasons_may_be_given_by_aggregate() -> None:
    family = load_families()["mpi"]
    values = {"master_useful_mean": 1.0, "master_useful_max": 1.0, "runtime": 2.0}
    evaluation = family.evaluate(values, {"computation_scaling": "the counters differ"})
    assert evaluation.absent["global_efficiency"] == "the counters differ"
    del values["master_useful_mean"]
    evaluation = family.evaluate(values)
    assert evaluation.absent["load_balance"] == (
        "not known: useful time of the master threads, average over processes"
    )


def test_no_useful_time_is_a_reason_not_a_number() -> None:
    run = observables([[0.0], [0.0]], 12)
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    assert evaluation.values["parallel_efficiency"] == 0.0
    assert evaluation.absent["load_balance"] == (
        "undefined: max(useful of masters) is 0 and Avg(useful of masters) is 0"
    )


def test_all_time_in_mpi_divides_by_a_difference() -> None:
    run = observables([[0.0]], 12, in_mpi=[12])
    evaluation = load_families()["talp"].evaluate(run.aggregates(), run.absent)
    assert evaluation.absent["mpi_load_balance"] == "undefined: the formula divides by 0"


def test_aggregates_that_are_no_numbers_are_refused() -> None:
    family = load_families()["mpi"]
    with pytest.raises(PopmodelError) as caught:
        family.evaluate({"runtime": 1.0, "master_useful_mean": float("nan")})
    assert caught.value.message == (
        "useful time of the master threads, average over processes (master_useful_mean)"
        " is not a finite number"
    )
    assert caught.value.hint == "leave out what is not known, with the reason why"
    with pytest.raises(PopmodelError, match="the runtime is not positive"):
        family.evaluate({"runtime": 0.0})
    with pytest.raises(ValueError, match="did you mean 'useful_mean'"):
        family.evaluate({"runtime": 1.0, "useful_means": 1.0})


def test_an_undefined_sample_makes_the_metric_absent() -> None:
    family = load_families()["mpi"]
    samples = family.evaluate_samples(
        {
            "master_useful_mean": np.array([0.0, 1.0]),
            "master_useful_max": np.array([0.0, 2.0]),
            "runtime": 4.0,
        }
    )
    assert samples.values["parallel_efficiency"].tolist() == [0.0, 0.25]
    assert samples.absent["load_balance"].startswith("undefined:")


def test_contradicting_times_are_said_aloud() -> None:
    run = observables([[14], [6]], 12, ideal_runtime=13.0)
    notes = load_families()["mpi"].evaluate(run.aggregates(), run.absent).notes
    assert notes == (
        "The replay on the ideal network takes longer than the measured run, so transfer efficiency"
        " exceeds 1: an assumption of the replay does not hold for this run; its notes name which."
        " The value is not clipped.",
        "Communication efficiency is 1.16667, above 1, which is impossible: the times of the run "
        "are inconsistent.",
        "Serialisation efficiency is 1.07692, above 1, which is impossible: the times of the run "
        "are inconsistent.",
    )
    negative = observables([[1]], 12, in_openmp=[14], has_openmp=True)
    notes = load_families()["hybrid-additive"].evaluate(negative.aggregates()).notes
    assert any("OpenMP parallel region efficiency is -0.166667, below 0" in note for note in notes)


def test_an_openmp_quotient_above_one_is_kept_and_noted() -> None:
    """All threads do the same, but one process needs twice the time for it."""
    useful = [[5, 5], [5, 5]]
    run = observables(useful, 10, omp_useful=useful, in_openmp=[10, 5])
    evaluation = load_families()["hybrid-multiplicative"].evaluate(run.aggregates())
    assert evaluation.values["openmp_load_balance"] == pytest.approx(4 / 3)
    assert len(evaluation.notes) == 1
    assert evaluation.notes[0].startswith("An OpenMP efficiency exceeds 1.")


def test_all_families_load_once_and_quickly() -> None:
    assert load_families() is load_families()


def test_texts_of_the_families_are_complete() -> None:
    for family in load_families().values():
        for metric in family.metrics.values():
            for text in (metric.meaning, metric.advice):
                assert text.endswith(".") and "\n" not in text and len(text) > 20
            assert metric.source
        used = {name for id in family.metrics for name in family.needs(id)}
        assert used <= AGGREGATES.keys()


@pytest.mark.parametrize("family", load_families())
def test_every_metric_is_in_the_tree(family: str) -> None:
    shown = {row.metric for walk in load_families()[family].tree() for row in walk.rows}
    assert shown == load_families()[family].metrics.keys()


def test_lowest_leaf_stops_where_parts_are_missing() -> None:
    family = load_families()["mpi"]
    run = observables([[8], [6]], 16)
    lowest = family.lowest_leaf(family.evaluate(run.aggregates(), run.absent))
    assert lowest is not None and lowest.id == "communication_efficiency"
    replayed = observables([[8], [6]], 16, ideal_runtime=9.0)
    lowest = family.lowest_leaf(family.evaluate(replayed.aggregates(), replayed.absent))
    assert lowest is not None and lowest.id == "transfer_efficiency"
    assert "A replay with other latencies" in lowest.advice


def test_lowest_leaf_is_no_view() -> None:
    family = load_families()["hybrid-additive"]
    run = observables([[8]], 10, openmp_imbalance=9.9)
    lowest = family.lowest_leaf(family.evaluate(run.aggregates(), run.absent))
    assert lowest is not None and lowest.id == "process_communication_efficiency"


def test_lowest_leaf_of_talp_looks_at_both_sides() -> None:
    family = load_families()["talp"]
    run = observables(
        [[4, 1]], 10, idle_serial=8.0, idle_imbalance=1.0, idle_scheduling=0.0, in_mpi=[1, 0]
    )
    lowest = family.lowest_leaf(family.evaluate(run.aggregates(), run.absent))
    assert lowest is not None and lowest.id == "openmp_serialisation_efficiency"


def test_lowest_leaf_of_nothing_is_none() -> None:
    family = load_families()["mpi"]
    assert family.lowest_leaf(family.evaluate({})) is None
