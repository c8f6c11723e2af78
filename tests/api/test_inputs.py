"""What the functions take, and what they answer to what makes no sense."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import UsageError
from popmodel.base.units import parse_time
from popmodel.cli.inputs import several
from popmodel.cli.metrics import Metrics
from popmodel.cli.options import quantity, whole_number

from .conftest import CG, HYBRID, RUNS


def test_a_trace_may_be_a_path_or_an_object(measured: Metrics) -> None:
    from_object = popmodel.metrics(popmodel.read(CG))
    from_path = popmodel.metrics(str(CG))
    assert from_object.to_dict() == from_path.to_dict()
    assert from_path.runs[0].observables.runtime == measured.runs[0].observables.runtime


@pytest.mark.long
def test_an_application_and_a_machine_may_be_names_or_objects() -> None:
    size = {"procs": 16, "threads": 4}
    named = popmodel.predict("stencil3d", machine="sandybridge-fdr", **size)
    loaded = popmodel.predict(
        popmodel.load_signature("stencil3d"),
        machine=popmodel.load_machine("sandybridge-fdr"),
        **size,
    )
    assert named.to_dict() == loaded.to_dict() == popmodel.predict(**size).to_dict()


def test_quantities_may_be_numbers_or_texts() -> None:
    texts = popmodel.whatif(CG, latency="5us", bandwidth="1GB/s", eager_threshold="32KiB")
    numbers = popmodel.whatif(CG, latency=5e-6, bandwidth=1e9, eager_threshold=32768)
    assert texts.to_dict() == numbers.to_dict()


def test_several_values_make_a_replay_for_each_combination() -> None:
    found = popmodel.whatif(CG, ["ideal", "dimemas"], latency=[1e-6, 2e-6], cpu_factor=2)
    networks = [outcome.network for outcome in found.runs]
    assert [(one.name, one.latency, one.cpu_factor) for one in networks] == [
        ("ideal", 1e-6, 2),
        ("ideal", 2e-6, 2),
        ("dimemas", 1e-6, 2),
        ("dimemas", 2e-6, 2),
    ]


def test_families_that_were_asked_for_are_shown() -> None:
    found = popmodel.metrics(HYBRID, family="talp, mpi")
    assert list(found.to_dict()["runs"][0]["metrics"]) == ["talp", "mpi", "scaling"]
    assert "MPI + OpenMP (TALP)" in str(found)
    assert "additive), %" not in str(found)
    assert len(popmodel.metrics(HYBRID, family="all").to_dict()["runs"][0]["metrics"]) == 6


@pytest.mark.parametrize("part", [{}, {"from_start": True}, {"window": (0.46, "480ms")}])
def test_all_functions_take_the_same_part_of_a_trace(part: dict[str, Any]) -> None:
    (run,) = popmodel.metrics(CG, **part).runs
    assert run.window is not None
    assert popmodel.whatif(CG, "ideal", **part).measured == run.observables.runtime
    assert popmodel.metrics(popmodel.read(CG), **part).runs[0].window == run.window


def test_weak_scaling_compares_with_another_problem_size() -> None:
    weak = popmodel.predict(procs=8, settings={"N": 512}, reference=(1, 1, {"N": 256}))
    assert weak.to_dict()["reference"]["settings"]["N"] == 256


@pytest.mark.long
def test_validation_takes_nodes_and_cores_as_predictions_do() -> None:
    table = {"machine": "sandybridge-fdr", "settings": {"N": 256}}
    alone = popmodel.predict("stencil3d", procs=2, nodes=2, cores_per_node=1, **table)
    found = popmodel.validate("stencil3d", RUNS, nodes=1, cores_per_node=4, **table)
    packed = popmodel.predict("stencil3d", procs=2, nodes=1, cores_per_node=4, **table)
    row = next(row for row in found.rows if (row.processes, row.threads) == (2, 1))
    assert row.estimate.value == packed.runtime.value != alone.runtime.value


def test_a_prediction_is_compared_with_runs_of_its_size() -> None:
    prediction = popmodel.predict(procs=2, threads=1, settings={"N": 256})
    with pytest.raises(UsageError, match="is a run of 1 x 1, the prediction is for 2 x 1"):
        popmodel.validate(prediction, RUNS)


def test_one_thing_is_a_list_of_one() -> None:
    assert several("a") == ["a"]
    assert several(CG) == [CG]
    assert several(("a", "b")) == ["a", "b"]
    assert several(3) == [3]


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda: popmodel.predict(procs=2.5),  # type: ignore[arg-type]
            "procs: must be a whole number, at least 1, not 2.5",
            "try procs=4",
        ),
        (
            lambda: popmodel.predict(cores=[64, "many"]),  # type: ignore[list-item]
            "cores: must be a whole number, at least 1, not 'many'",
            "try cores=4",
        ),
        (
            lambda: popmodel.predict(cores=64, what_if={"memory": 0}),
            "what_if: memory=0: must be a factor above 0",
            "0.5 halves, 2 doubles",
        ),
        (
            lambda: popmodel.predict(cores=64, max_memory="2 cows"),
            "max_memory: '2 cows'",
            None,
        ),
        (
            lambda: popmodel.whatif(CG, latency="5"),
            "latency: '5'",
            None,
        ),
        (
            lambda: popmodel.whatif(CG, latency=object()),  # type: ignore[arg-type]
            "latency=<object",
            None,
        ),
        (
            lambda: popmodel.whatif(CG, "ideal", against="mesured"),  # type: ignore[arg-type]
            "against: unknown value 'mesured'",
            "did you mean measured?",
        ),
        (lambda: popmodel.predict(cores=[]), "cores: no number given", "try cores=64"),
        (
            lambda: popmodel.predict(efficiency=80),
            "efficiency: must be above 0 and at most 1, not 80",
            "try efficiency=0.8",
        ),
        (
            lambda: popmodel.predict(procs=4, reference=(1, 0)),
            "reference threads: must be a whole number, at least 1, not 0",
            None,
        ),
        (lambda: popmodel.metrics([]), "no trace given", "name at least one"),
        (
            lambda: popmodel.metrics([CG, None]),  # type: ignore[list-item]
            "trace: must be a path or a trace that was read, not NoneType",
            None,
        ),
        (
            lambda: popmodel.predict(5, procs=4),  # type: ignore[arg-type]
            "inputs: must be paths, names, signatures or traces, not int",
            None,
        ),
        (
            lambda: popmodel.predict(machine=5, procs=4),  # type: ignore[arg-type]
            "machine: must be a path, a name or a loaded profile, not int",
            None,
        ),
        (
            lambda: popmodel.metrics(CG, application="a"),  # type: ignore[arg-type]
            "application: must be a whole number, at least 1, not 'a'",
            None,
        ),
        (lambda: popmodel.metrics(CG, family=5), "family: unknown family 5", None),  # type: ignore[arg-type]
        (
            lambda: popmodel.metrics(CG, outside_mpi="not-in-omp"),  # type: ignore[arg-type]
            "outside_mpi: unknown value 'not-in-omp'",
            "did you mean not-in-mpi?",
        ),
        (
            lambda: popmodel.metrics(CG, window=5),  # type: ignore[arg-type]
            "window=5: must be a text or a pair",
            "try window=(1.5, 3)",
        ),
        (
            lambda: popmodel.predict(procs=4, settings="four"),  # type: ignore[arg-type]
            "settings: must be a dict of names and numbers, not 'four'",
            None,
        ),
        (
            lambda: popmodel.predict(procs=4, settings={"N": "x"}),  # type: ignore[dict-item]
            "settings: N='x': must be a number",
            None,
        ),
        (
            lambda: popmodel.predict(procs=4, draws=-1),
            "draws: must be a whole number, at least 0",
            None,
        ),
        (
            lambda: popmodel.predict(cores=4, seed=-1),
            "seed: must be a whole number, at least 0",
            None,
        ),
        (
            lambda: popmodel.predict(cores=4, max_memory=math.nan),
            "max_memory: must be a number, at least 0, not nan",
            None,
        ),
        (
            lambda: popmodel.whatif(CG, latency=[]),
            "latency: no value given",
            "give one or several, or leave it out",
        ),
        (lambda: popmodel.whatif(CG, 5), "network: unknown network '5'", None),  # type: ignore[arg-type]
        (
            lambda: popmodel.validate("stencil3d", []),
            "no measured run given",
            "name at least one trace or table",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(
    call: Callable[[], Any], message: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    if hint is not None:
        assert caught.value.hint == hint


@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, math.inf, True, "4.5", None])
def test_what_counts_nothing_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="must be a whole number, at least 1"):
        whole_number("procs", value)


def test_whole_numbers_of_other_types_will_do() -> None:
    import numpy as np

    assert whole_number("procs", np.int64(4)) == 4
    assert whole_number("procs", 4.0) == 4


def test_a_number_is_in_si_units() -> None:
    assert quantity(parse_time)("latency", 1) == 1.0
    assert quantity(parse_time)("latency", "1ms") == 1e-3


def test_a_hint_stands_below_the_message_in_python() -> None:
    with pytest.raises(UsageError) as caught:
        popmodel.load_machine("sandybridge")
    assert caught.value.__notes__ == ["hint: did you mean sandybridge-fdr?"]
