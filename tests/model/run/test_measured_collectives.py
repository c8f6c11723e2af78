"""Collectives as measured: exact where measured, linear in logarithms, carried on by formulas."""

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import ALPHA, BETA, GAMMA, flat, program

from popmodel.machines.profile import Profile, from_document
from popmodel.model.predictor import Study
from popmodel.model.run.collective_times import CARRIED, CARRIED_LAW, MeasuredShape, RunTeams
from popmodel.model.run.operations import RunMessages
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.uncertainty import interval, nominal
from popmodel.prediction.derivation import formula
from popmodel.prediction.prediction import predict

SIZES = (8, 512, 65536)
COUNTS = (2, 8, 16)


def seconds(processes: int, size: float) -> float:
    """Times that no formula gives."""
    return 3e-6 * processes**0.7 + 2e-9 * size**0.9


def row(processes: int, per_node: int, size: float, time: float, **more: Any) -> dict[str, Any]:
    known = {"value": time, "low": time / 1.1, "high": time * 1.1, "origin": "measured"}
    return {"P": processes, "ppn": per_node, "bytes": size, "seconds": known, **more}


def with_rows(rows: list[dict[str, Any]], op: str = "allreduce", cores: int = 64) -> Profile:
    document = copy.deepcopy(dict(flat(cores=cores).document))
    document["coll"] = {op: rows}
    return from_document(document)


def within(**more: Any) -> list[dict[str, Any]]:
    return [row(p, p, m, seconds(p, m), **more) for p in COUNTS for m in SIZES]


def teams(profile: Profile, processes: int, extent: tuple[int, ...] = ()) -> RunTeams:
    known = {**profile.quantities, CARRIED_LAW: CARRIED}
    parameters = Parameters(profile, lambda path: known[path].value)
    return RunTeams(RunMessages(parameters, place(processes, 1, profile.topology)), extent)


def time(profile: Profile, processes: int, size: float, op: str = "allreduce") -> float:
    return float(teams(profile, processes).collective(op, size))


def doubling(processes: int, size: float) -> float:
    """Recursive doubling on the flat machine, for powers of two."""
    return math.log2(processes) * (ALPHA + (BETA + GAMMA) * size)


def test_where_it_was_measured_the_measured_time_is_used() -> None:
    for processes in COUNTS:
        for size in SIZES:
            found = time(with_rows(within()), processes, size)
            assert found == pytest.approx(seconds(processes, size), rel=1e-12)


def test_between_measurements_the_logarithm_of_the_time_is_linear() -> None:
    profile = with_rows(within())
    assert time(profile, 4, 8) == pytest.approx(math.sqrt(seconds(2, 8) * seconds(8, 8)))
    assert time(profile, 8, 64) == pytest.approx(math.sqrt(seconds(8, 8) * seconds(8, 512)))
    corners = math.prod(seconds(p, m) for p in (2, 8) for m in (8, 512))
    assert time(profile, 4, 64) == pytest.approx(corners**0.25)


@given(st.integers(2, 16), st.floats(8, 65536))
def test_between_measurements_the_time_is_between_theirs(processes: int, size: float) -> None:
    profile = with_rows(within())
    below = max(p for p in COUNTS if p <= processes), max(m for m in SIZES if m <= size)
    above = min(p for p in COUNTS if p >= processes), min(m for m in SIZES if m >= size)
    found = time(profile, processes, size)
    assert seconds(*below) * (1 - 1e-12) <= found <= seconds(*above) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("processes", "size", "nearest"),
    [(64, 8, (16, 8)), (16, 1 << 20, (16, 65536)), (64, 1 << 20, (16, 65536)), (2, 1, (2, 8))],
)
def test_beyond_measurements_the_formula_goes_on(
    processes: int, size: float, nearest: tuple[int, int]
) -> None:
    profile = with_rows(within(algorithm="recursive_doubling"))
    growth = doubling(processes, size) / doubling(*nearest)
    assert time(profile, processes, size) == pytest.approx(seconds(*nearest) * growth)


@given(st.sampled_from([2, 4, 8, 16, 32]), st.sampled_from([8.0, 512.0, 65536.0]))
def test_there_is_no_jump_where_measurements_end(processes: int, size: float) -> None:
    """Not even where the nearest measurements are of different algorithms."""
    names = iter(["ring", "rabenseifner", "recursive_doubling"] * 3)
    rows = [one | {"algorithm": next(names)} for one in within()]
    profile = with_rows(rows)
    below, above = (time(profile, processes, size * part) for part in (1 - 1e-6, 1 + 1e-6))
    assert above == pytest.approx(below, rel=1e-5)


def test_what_was_measured_within_a_node_says_nothing_of_the_network() -> None:
    for cores, rows in ((4, within()), (64, [row(16, 1, 8, 1.0), row(64, 4, 8, 1.0)])):
        profile = with_rows(rows, cores=cores)
        assert time(profile, 16, 8) == pytest.approx(doubling(16, 8))


def test_other_processes_per_node_are_carried_on_by_the_formula() -> None:
    full = [row(8, 4, 8, 1e-4), row(16, 4, 8, 2e-4)]
    profile = with_rows(full, cores=2)  # 2 per node is asked, 4 were measured
    assert time(profile, 8, 8) == pytest.approx(2e-4 * doubling(8, 8) / doubling(16, 8))
    both = [*full, row(2, 1, 8, 1e-5), row(4, 1, 8, 3e-5)]
    between = with_rows(both, cores=2)  # as many nodes, with 1 and with 4 on each
    assert time(between, 4, 8) == pytest.approx(math.sqrt(1e-4 * 1e-5))
    assert time(between, 8, 8) == pytest.approx(math.sqrt(2e-4 * 3e-5))


def test_communicators_at_work_at_once_are_slower_as_the_formula_says() -> None:
    document = copy.deepcopy(dict(flat(cores=8).document))
    document["net"] |= {"shm_k": {"value": 2.0, "origin": "user"}}
    plain = from_document(document)
    profile = from_document({**document, "coll": {"bcast": [row(4, 4, 1e6, 7e-3)]}})
    size = 1e6
    alone = teams(profile, 4, (4,)).collective("bcast", size, (0,))
    assert alone == pytest.approx(7e-3)
    one, two = (teams(plain, p, (p // 4, 4)).collective("bcast", size, (1,)) for p in (4, 8))
    assert two > 1.5 * one
    found = teams(profile, 8, (2, 4)).collective("bcast", size, (1,))
    assert found == pytest.approx(7e-3 * two / one)


def test_a_time_of_which_nothing_was_left_is_no_measurement() -> None:
    nothing = row(4, 4, 8, 0.0)
    assert time(with_rows([nothing, *within()]), 4, 8) == time(with_rows(within()), 4, 8)
    assert time(with_rows([nothing]), 4, 8) == pytest.approx(doubling(4, 8))


@pytest.mark.parametrize(
    ("processes", "per_node", "shape"),
    [
        (8, 8, MeasuredShape(8, 1, 8)),
        (8, 16, MeasuredShape(8, 1, 8)),
        (8, 3, MeasuredShape(8, 3, 3)),
        (4, 1, MeasuredShape(4, 4, 1)),
    ],
)
def test_the_shape_of_a_row(processes: int, per_node: int, shape: MeasuredShape) -> None:
    assert MeasuredShape.of_row(row(processes, per_node, 8, 1.0)) == shape


# -- in predictions

SUM = '[[program]]\ncollective = { op = "allreduce", bytes = "m" }\n'


def study(profile: Profile, size: float, factors: dict[str, Any] | None = None) -> Study:
    return Study(program(SUM, params=f"m = {size}"), profile, {}, 200, 0, factors)


def runtime(profile: Profile, processes: int, size: float, **factors: float) -> Any:
    paths = {name.replace("__", "."): factor for name, factor in factors.items()}
    asked = study(profile, size, paths)
    return asked.run(asked.admit(processes, 1), asked.sources()).modelled.runtime


def test_another_network_changes_a_measured_time_as_the_formula_says() -> None:
    profile, plain = with_rows(within(algorithm="recursive_doubling")), flat()
    for factors in (
        {"net__intra__alpha": 0.5},
        {"net__intra__beta": 3.0, "net__reduce_gamma": 2.0},
    ):
        ratio = [runtime(plain, 8, 512, **changed) for changed in (factors, {})]
        found = [runtime(profile, 8, 512, **changed)[0] for changed in (factors, {})]
        assert found[1] == pytest.approx(seconds(8, 512))
        assert found[0] / found[1] == pytest.approx(nominal(ratio[0]) / nominal(ratio[1]))


def test_the_interval_is_that_of_the_measurement_and_wider_beyond() -> None:
    profile = with_rows(within())

    def width(processes: int, size: float) -> float:
        low, high = interval(runtime(profile, processes, size))
        assert low is not None and high is not None
        return math.log(high / low)

    measured_one = width(16, 65536)
    assert measured_one == pytest.approx(2 * math.log(1.1), rel=0.02)
    assert width(4, 300) == pytest.approx(measured_one, rel=0.02)
    once, far = width(32, 65536), width(64, 65536 * 4)
    doubled = 2 * math.hypot(math.log(1.1), math.log(1.35))
    assert once == pytest.approx(doubled, rel=0.1)
    assert far == pytest.approx(2 * math.hypot(math.log(1.1), 2 * math.log(1.35)), rel=0.1)


@pytest.mark.parametrize(("processes", "size"), [(8, 512), (4, 600), (32, 1e6)])
def test_replay_closed_form_and_printed_formula_agree(processes: int, size: float) -> None:
    profile = with_rows(within(algorithm="ring"))
    signature = program(SUM, params=f"m = {size}")
    run = predict(signature, profile, processes, 1)
    assert run.source == "replay"
    assert run.agreement is not None and run.agreement.gap == pytest.approx(0, abs=1e-9)
    printed = formula(signature, profile, processes, 1).equations[0].value
    assert printed == pytest.approx(run.runtime.value)
    assert any(path.startswith("coll.allreduce[") for path in run.inputs)
