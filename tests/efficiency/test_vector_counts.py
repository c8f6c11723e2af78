"""Vectorisation from counters of floating-point instructions by width, against plain sums."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.cli import main
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.efficiency.vector_counts import vector_counters, width_of
from popmodel.traces import read
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

WIDTHS = {
    "SCALAR_DOUBLE": 1,
    "128B_PACKED_DOUBLE": 2,
    "256B_PACKED_DOUBLE": 4,
    "512B_PACKED_DOUBLE": 8,
    "SCALAR_SINGLE": 1,
    "128B_PACKED_SINGLE": 4,
    "256B_PACKED_SINGLE": 8,
    "512B_PACKED_SINGLE": 16,
}
DOUBLE = [mask for mask in WIDTHS if mask.endswith("DOUBLE")]
REASON = "no counters of floating-point instructions by width (FP_ARITH_INST_RETIRED)"


def traced(
    path: Path, readings: list[dict[str, int]], form: str = "FP_ARITH_INST_RETIRED:{} [retired]"
) -> Path:
    """A trace of a thread per reading, each made where its computing ends."""
    masks = list(dict.fromkeys(mask for reading in readings for mask in reading))
    types = {mask: 42_001_000 + number for number, mask in enumerate(masks)}
    labels = {type_: form.format(mask) for mask, type_ in types.items()}
    writer = TraceWriter([1] * len(readings), labels=Labels(event_types=labels, event_values={}))
    for process, reading in enumerate(readings):
        writer.state(process, 0, 0, 1000, 1)
        writer.state(process, 0, 1000, 2000, 3)
        writer.event(process, 0, 1000, [(types[mask], n) for mask, n in reading.items()])
        # what is counted while the thread waits is not useful
        writer.event(process, 0, 2000, [(types[mask], 77) for mask in reading])
    writer.write(path)
    return path


@given(
    st.lists(
        st.fixed_dictionaries({mask: st.integers(0, 10**12) for mask in WIDTHS}),
        min_size=1,
        max_size=4,
    )
)
def test_shares_are_those_of_plain_sums(
    tmp_path_factory: pytest.TempPathFactory, readings: list[dict[str, int]]
) -> None:
    path = traced(tmp_path_factory.mktemp("x") / "x.prv", readings)
    evaluation = load_families()["vector"].evaluate(analyse(read(path)).observables.aggregates())
    flops = packed = vector = number = 0
    for reading in readings:
        for mask, n in reading.items():
            flops += WIDTHS[mask] * n
            number += n
            if WIDTHS[mask] > 1:
                vector += WIDTHS[mask] * n
                packed += n
    if not flops:
        assert not evaluation.values
        return
    assert evaluation.values["vectorised_flops_share"] == pytest.approx(vector / flops)
    assert evaluation.values["packed_instructions_share"] == pytest.approx(packed / number)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("FP_ARITH_INST_RETIRED:SCALAR_DOUBLE", 1),
        ("FP_ARITH:256B_PACKED_SINGLE", 8),
        ("fp_arith_inst_retired.128b_packed_double", 2),
        ("skx::FP_ARITH_INST_RETIRED:512B_PACKED_DOUBLE:e=0:i=0:cpu=3", 8),
        ("FP_ARITH_INST_RETIRED:SCALAR_DOUBLE:SCALAR_SINGLE", 1),
        ("FP_ARITH_INST_RETIRED.4_FLOPS", 4),
        ("FP_ARITH:SCALAR_DOUBLE:256B_PACKED_DOUBLE", None),  # of several widths
        ("FP_ARITH_INST_RETIRED:VECTOR", None),
        ("PAPI_TOT_INS", None),
    ],
)
def test_names_of_papi_extrae_and_perf_are_known(name: str, width: int | None) -> None:
    assert width_of(name) == width


@pytest.mark.parametrize(
    ("masks", "why"),
    [
        ([], REASON),
        (["SCALAR_DOUBLE"], "no counter FP_ARITH_INST_RETIRED:128B_PACKED_DOUBLE, 256B_PACKED"),
        (DOUBLE[1:], "no counter FP_ARITH_INST_RETIRED:SCALAR_DOUBLE"),
        ([*DOUBLE, "SCALAR_SINGLE"], "no counter FP_ARITH_INST_RETIRED:128B_PACKED_SINGLE, 256B"),
        (DOUBLE, ""),
        (DOUBLE[:3], ""),  # a processor without AVX-512
        (["SCALAR", "128B_PACKED_DOUBLE", "4_FLOPS", "8_FLOPS"], ""),
    ],
)
def test_counters_tell_all_widths_or_why_they_do_not(masks: list[str], why: str) -> None:
    chosen, told = vector_counters([f"FP_ARITH:{mask}" for mask in masks])
    assert told.startswith(why)
    assert bool(told) == bool(why)
    assert bool(chosen) != bool(why)


def test_nothing_is_counted_twice() -> None:
    names = [f"FP_ARITH:{mask}" for mask in ("SCALAR", *WIDTHS)]
    chosen, _ = vector_counters(names)
    assert "FP_ARITH:SCALAR" in chosen
    assert not {"FP_ARITH:SCALAR_DOUBLE", "FP_ARITH:SCALAR_SINGLE"} & set(chosen)


def test_a_missing_width_makes_the_share_absent_with_its_reason(tmp_path: Path) -> None:
    path = traced(tmp_path / "x.prv", [{"SCALAR_DOUBLE": 5, "128B_PACKED_DOUBLE": 5}])
    found = popmodel.metrics(path, family="vector")
    (run,) = found.to_dict()["runs"]
    assert run["absent"]["vector"]["vectorised_flops_share"] == (
        "no counter FP_ARITH_INST_RETIRED:256B_PACKED_DOUBLE"
    )
    assert found["vectorised_flops_share"] is None
    found = popmodel.metrics("tests/data/cg.S.2.prv.gz", family="vector")
    assert found.find("vectorised_flops_share")[0].why == REASON


def test_the_family_is_shown_where_it_says_something(tmp_path: Path) -> None:
    path = traced(tmp_path / "x.prv", [dict.fromkeys(DOUBLE, 10)])
    found = popmodel.metrics(path)
    assert found["vectorised_flops_share"] == pytest.approx(14 / 15)
    assert "vector" in found.to_dict()["runs"][0]["metrics"]
    without = popmodel.metrics("tests/data/cg.S.2.prv.gz")
    assert "vector" not in without.to_dict()["runs"][0]["metrics"]


def test_a_saved_document_keeps_the_counts(tmp_path: Path) -> None:
    path = traced(tmp_path / "x.prv", [dict.fromkeys(DOUBLE, 10)])
    saved = tmp_path / "x.json"
    assert main(["metrics", str(path), "-o", str(saved)]) == 0
    (run,) = json.loads(saved.read_text())["runs"]
    assert run["observables"]["vector_counts"]["flops"] == 150
    assert main(["convert", str(saved), "-o", str(tmp_path / "runs.csv")]) == 0
