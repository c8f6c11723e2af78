"""What was measured against what a prediction uses: inside, beyond by a factor, or outside."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, program

from popmodel.base.values import plain
from popmodel.machines import profile
from popmodel.machines.profile import Profile, from_document
from popmodel.model import signatures as signature
from popmodel.model.model_error import LIMITS
from popmodel.model.run.parameters import ParameterUse
from popmodel.model.run.process_placement import Allocation, place
from popmodel.model.uncertainty import Estimate
from popmodel.prediction.prediction import Validity, assess, predict
from popmodel.prediction.split_sweep import sweep
from popmodel.reports.prediction_tables import blocks
from popmodel.reports.renderers.markdown import markdown_lines
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style
from popmodel.reports.split_tables import blocks as sweep_blocks

TWO_CORES = profile.load(Path(__file__).parents[2] / "examples" / "profiles" / "two-core-vm.json")
LOOP = (
    "[[program]]\nparallel = { trip = 6400, inner = 1e4, flops = 2, bytes = { MEM = 8 }, "
    "constructs = { parallel_for = 1 } }\n"
)
SUM = '[[program]]\ncollective = { op = "allreduce", bytes = 8 }\n'
HALO = '[[program]]\nhalo = { width = 1, bytes_per_cell = "w" }\n'


def measured(**changes: Any) -> Profile:
    """The machine with round figures as if it was measured to 2 threads, 4 cores, 64 KiB."""
    document = copy.deepcopy(dict(machine().document))

    def mark(entry: Any) -> None:
        if isinstance(entry, dict):
            if "origin" in entry:
                entry |= {
                    "origin": "measured",
                    "low": 0.9 * entry["value"],
                    "high": 1.1 * entry["value"],
                }
            for value in entry.values():
                mark(value)
        elif isinstance(entry, list):
            for value in entry:
                mark(value)

    document["memory"]["by_cores"] = {"1": exact(1e10), "4": exact(2e10)}
    document["openmp"]["parallel_for"]["T"] = [1, 2]
    for tier in ("intra", "inter"):
        table = [{"bytes": size, "seconds": exact(1e-6)} for size in (0, 65536)]
        document["net"][tier]["table"] = table
    row = {"P": 8, "ppn": 8, "bytes": 8, "seconds": exact(1e-5), "algorithm": "ring"}
    document["coll"] = {"allreduce": [{**row, "P": 2}, row]}
    mark(document)
    document["topology"] |= changes
    return from_document(document)


@pytest.mark.parametrize(("processes", "threads"), [(1, 1), (1, 2), (2, 1)])
def test_what_fits_the_measured_machine_is_inside(processes: int, threads: int) -> None:
    run = predict(signature.load("stencil3d"), TWO_CORES, processes, threads, draws=50)
    assert run.validity == Validity("inside", 1.0, ())
    assert run.runtime.low is not None


@pytest.mark.parametrize(
    ("threads", "cores", "status", "factor", "reasons"),
    [
        (2, 8, "inside", 1.0, ()),
        (
            4,
            8,
            "extrapolated",
            2.0,
            ("threads a factor of 2 above the largest measured (2): openmp.parallel_for",),
        ),
        (
            8,
            16,
            "extrapolated",
            4.0,
            (
                "threads a factor of 4 above the largest measured (2): openmp.parallel_for",
                "cores a factor of 2 above the largest measured (4): memory.by_cores",
            ),
        ),
        (
            64,
            128,
            "outside",
            32.0,
            (
                "threads a factor of 32 above the largest measured (2): openmp.parallel_for",
                "cores a factor of 16 above the largest measured (4): memory.by_cores",
            ),
        ),
    ],
)
def test_threads_beyond_those_measured(
    threads: int, cores: int, status: str, factor: float, reasons: tuple[str, ...]
) -> None:
    on = measured(cores_per_node=cores)
    document = copy.deepcopy(dict(on.document))
    document["core"]["freq"] = {str(count): document["core"]["freq"]["1"] for count in (1, cores)}
    run = predict(program(LOOP), from_document(document), 1, threads, draws=50)
    assert run.validity == Validity(status, factor, reasons)


def test_far_outside_there_is_no_interval_and_a_reason() -> None:
    run = predict(program(LOOP + SUM), measured(cores_per_node=128), 2, 64, draws=50)
    assert run.validity.status == "outside"
    document = run.to_dict()
    why = document["runtime"]["why"]
    assert why.startswith("too far outside the measured range: ")
    estimates = [
        document["runtime"],
        document["e_mt"],
        *document["time"].values(),
        *(one for family in document["metrics"].values() for one in family.values()),
    ]
    assert all(one["value"] is not None for one in estimates)
    assert all(one["low"] is None and one["high"] is None for one in estimates)
    assert {one["why"] for one in estimates} == {why}
    lines = block_lines(blocks(document, ["hybrid-additive"]), Style(60))
    assert max(map(len, lines)) <= 60
    text = " ".join(" ".join(lines).split())
    assert text.startswith("! too far outside the measured range: ")
    whole = block_lines(blocks(document, ["hybrid-additive"]), Style(whole=True))
    text = " ".join(" ".join(whole).split())
    assert "validity too far outside the measured range: " in text


def test_messages_and_collectives_beyond_those_measured() -> None:
    long = program(HALO + SUM, params="w = 8e3", decomp="global = [640, 640]")
    run = predict(long, measured(), 16, 1, draws=50)
    assert run.validity.status == "extrapolated"
    assert run.validity.reasons[0] == (
        "processes a factor of 8 above the largest measured (2): "
        "messages of coll.allreduce between nodes"
    )
    assert run.validity.reasons[1].endswith(
        " above the largest measured (64 KiB): net.inter, net.intra"
    )
    one_node = predict(long, measured(cores_per_node=16), 16, 1, draws=50)
    assert one_node.validity.reasons[0] == (
        "processes a factor of 2 above the largest measured (8): coll.allreduce within a node"
    )
    assert "largest measured (64 KiB): net.intra" in one_node.validity.text
    short = program(HALO, params="w = 8", decomp="global = [640, 640]")
    assert predict(short, measured(), 16, 1, draws=50).validity.status == "inside"


def test_a_collective_that_was_not_measured_is_made_of_messages() -> None:
    spread = program('[[program]]\ncollective = { op = "bcast", bytes = 8 }\n')
    assert predict(spread, measured(), 2, 1, draws=50).validity.status == "inside"
    run = predict(spread, measured(), 8, 1, draws=50)
    assert run.validity == Validity(
        "extrapolated",
        4.0,
        (
            "processes a factor of 4 above the largest measured (2): "
            "messages of coll.bcast within a node",
        ),
    )


def test_more_nodes_than_the_profile_has() -> None:
    more = Allocation(nodes=24)
    run = predict(program(SUM), measured(), 24, 1, allocation=more, draws=50)
    assert run.validity.reasons == (
        "processes a factor of 12 above the largest measured (2): "
        "messages of coll.allreduce between nodes",
        "nodes a factor of 3 above those of the profile (8)",
    )
    preset = predict(program(SUM), machine(), 24, 1, allocation=more, draws=50)
    assert preset.validity == Validity(
        "user", None, ("nodes a factor of 3 above those of the profile (8)",)
    )
    assert (
        preset.validity.text
        == "no measured range (user values): nodes a factor of 3 above those of the profile (8)"
    )


def test_what_was_not_measured_in_a_measured_profile_is_told() -> None:
    document = copy.deepcopy(dict(measured().document))
    document["core"]["freq"]["1"]["origin"] = "user"
    document["core"]["freq"]["8"] = document["core"]["freq"]["1"]
    run = predict(program(LOOP), from_document(document), 1, 2, draws=50)
    assert run.validity == Validity("inside", 1.0, ("core.freq not measured (user)",))
    assert run.validity.text == "within the measured range: core.freq not measured (user)"


@given(st.sampled_from(["threads", "cores", "bytes", "processes"]), st.floats(1.0, 1e7))
def test_farther_is_never_safer(argument: str, times: float) -> None:
    on = measured()
    subject, start = {
        "threads": ("openmp.parallel_for", 2.0),
        "cores": ("memory.by_cores", 4.0),
        "bytes": ("net.intra", 65536.0),
        "processes": ("coll.allreduce within a node", 8.0),
    }[argument]
    placement = place(1, 1, on.topology)
    found = assess(on, placement, [ParameterUse(subject, argument, start * times)])
    assert found.factor == pytest.approx(times)
    limit = LIMITS[argument]
    expected = "inside" if times <= 1 + 1e-9 else "extrapolated" if times <= limit else "outside"
    assert found.status == expected
    assert found.has_interval == (times <= limit)


def test_what_is_below_the_measured_range() -> None:
    on = measured()
    placement = place(1, 1, on.topology)
    few = assess(on, placement, [ParameterUse("coll.allreduce within a node", "processes", 1.0)])
    assert few.reasons == (
        "processes a factor of 2 below the smallest measured (2): coll.allreduce within a node",
    )
    short = assess(on, placement, [ParameterUse("coll.allreduce within a node", "bytes", 1.0)])
    assert short.status == "inside"


def test_estimates_lose_their_interval_and_keep_their_value() -> None:
    run = predict(program(LOOP), measured(), 1, 2, draws=50)
    bare = run.without_intervals("because")
    assert bare.runtime == Estimate(run.runtime.value, why="because")
    assert bare.inputs == run.inputs
    assert bare.placement == run.placement
    assert bare.time["parallel loops"].why == "because"


def test_the_splits_of_a_sweep_are_marked() -> None:
    document = copy.deepcopy(dict(measured(cores_per_node=128).document))
    document["core"]["freq"]["128"] = document["core"]["freq"]["1"]
    found = sweep(program(LOOP + SUM), from_document(document), [64], draws=50)
    statuses = {one.placement.threads: one.validity.status for one in found.candidates}
    assert statuses[32] == "extrapolated"  # 16 times the threads that were measured
    assert statuses[64] == "outside"
    assert [one.runtime.low is None for one in found.candidates] == [
        one.validity.status == "outside" for one in found.candidates
    ]
    document = found.to_dict()
    for one, candidate in zip(document["candidates"], found.candidates, strict=True):
        assert one["validity"] == plain(candidate.validity)
    lines = block_lines(sweep_blocks(document), Style(60))
    assert max(map(len, lines)) <= 60
    assert any(" 2 x 32~ " in line for line in lines)
    assert any(" 1 x 64! " in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert (
        "~ extrapolated: threads a factor of 16 above the largest measured (2): openmp.parallel_for"
        in text
    )
    assert "! too far outside the measured range for an interval: threads a factor of 32 " in text
    assert "1 x 64!" in "\n".join(markdown_lines(sweep_blocks(document)))
