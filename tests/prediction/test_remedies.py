"""What would help: changes of the parts that lose, each worth what a prediction says of it."""

from __future__ import annotations

import pytest
from model.demo import exact, machine, program

from popmodel.machines import profile as profiles
from popmodel.machines.profile import Profile
from popmodel.model import signatures
from popmodel.model.kinds import KINDS, remedy
from popmodel.model.signature.application import Signature
from popmodel.prediction.prediction import predict

WORK = "parallel = { name = 'sweep', trip = 800, inner = 1000, flops = 2 }"


def node() -> Profile:
    """The machine with all that the parts below need."""
    document = dict(machine().document)
    constructs = ("critical", "dynamic_chunk", "guided_chunk")
    document["openmp"] = document["openmp"] | {
        name: {"T": [1, 8], "seconds": [exact(1e-8), exact(5e-8)]} for name in constructs
    }
    document["memory"] = document["memory"] | {
        "copy_bw": exact(5e9),
        "line": 64,
        "line_transfer": {"near": exact(1e-7), "far": exact(2e-7)},
        "kappa_fs": exact(1),
    }
    return profiles.from_document(document)


def made(*parts: str) -> Signature:
    body = "".join(f"  {{ {part} }},\n" for part in parts)
    return program(
        f"[[program]]\nloop = {{ count = 10, body = [\n{body}] }}\n",
        decomp="global = [512, 512]\ngrid = 'auto'\n",
    )


@pytest.mark.parametrize(
    ("label", "before", "after"),
    [
        (
            "parallelise setup",
            "serial = { name = 'setup', trip = 1e6, flops = 2 }",
            "parallel = { name = 'setup', trip = 1e6, flops = 2 }",
        ),
        (
            "pack edges in a parallel region",
            "halo = { name = 'edges', width = 4, bytes_per_cell = 800 }",
            "halo = { name = 'edges', width = 4, bytes_per_cell = 800, pack = 'parallel' }",
        ),
        (
            "overlap edges fully with computation",
            "halo = { name = 'edges', width = 4, bytes_per_cell = 800, overlap = 0.2 }",
            "halo = { name = 'edges', width = 4, bytes_per_cell = 800, overlap = 1 }",
        ),
        (
            "no critical section in sum",
            "parallel = { name = 'sum', trip = 800, critical = { entries = 90, seconds = 1e-7 } }",
            "parallel = { name = 'sum', trip = 800 }",
        ),
        (
            "no false sharing in count",
            "parallel = { name = 'count', trip = 800, "
            "shared_writes = { count = 1e5, bytes = 8, chunk = 1 } }",
            "parallel = { name = 'count', trip = 800 }",
        ),
        (
            "schedule(dynamic) for rows",
            "parallel = { name = 'rows', trip = 64, inner = 1e5, flops = 2, iteration_cv = 1 }",
            "parallel = { name = 'rows', trip = 64, inner = 1e5, flops = 2, iteration_cv = 1, "
            "schedule = 'dynamic' }",
        ),
        (
            "twice the blocks in wave",
            "pipeline = { name = 'wave', dims = [0], blocks = 2, seconds = 1e-2, bytes = 8 }",
            "pipeline = { name = 'wave', dims = [0], blocks = '2*(2)', seconds = 1e-2, bytes = 8 }",
        ),
    ],
)
def test_a_remedy_is_worth_what_the_changed_program_gains(
    label: str, before: str, after: str
) -> None:
    run, other = (predict(made(WORK, one), node(), 4, 4, draws=0) for one in (before, after))
    gained = other.runtime.value / run.runtime.value - 1
    assert gained < -0.001
    assert run.remedies[label] == pytest.approx(gained, rel=0.3)
    if run.agreement is None:  # else the replay of the run is scaled, not repeated
        assert run.remedies[label] == pytest.approx(gained, rel=1e-9)


def test_the_part_that_costs_most_has_a_remedy() -> None:
    """Of the stencil the master packs columns: that is what limits, and what can be changed."""
    run = predict(signatures.load("stencil3d"), profiles.load(profiles.DEFAULT_PRESET), 16, 4)
    assert run.limits == "serial_region_efficiency"
    assert next(iter(run.causes[run.limits])) == "packing, columns"
    program_only = [label for label in run.remedies if "pack" in label or "wall" in label]
    assert program_only[0] == "parallelise packing, columns"
    lost = run.causes[run.limits]["packing, columns"] / run.runtime.value
    # the threads share the bandwidth of the memory that they copy from
    assert 0.3 * lost < -run.remedies["parallelise packing, columns"] < 0.75 * lost


def test_what_the_profile_cannot_cost_is_left_out() -> None:
    """Without a measured dynamic schedule nothing tells what one would cost."""
    rows = "parallel = { name = 'rows', trip = 64, inner = 1e5, flops = 2, iteration_cv = 1 }"
    run = predict(made(rows, "collective = { op = 'barrier' }"), machine(), 4, 4, draws=0)
    assert not [label for label in run.remedies if label.startswith("schedule")]


def test_parts_of_one_name_change_together() -> None:
    serial = "serial = { name = 'setup', trip = 1e6, flops = 2 }"
    once, twice = (
        predict(made(WORK, *parts, "collective = { op = 'barrier' }"), node(), 4, 4, draws=0)
        for parts in ([serial], [serial, serial])
    )
    saved = [-one.remedies["parallelise setup"] * one.runtime.value for one in (once, twice)]
    assert saved[1] == pytest.approx(2 * saved[0], rel=0.01)


def test_every_remedy_of_a_program_has_a_meaning() -> None:
    for pattern, meaning in (one for kind in KINDS.values() for one in kind.remedies.values()):
        assert remedy(pattern.format("wall, columns")) == meaning
    assert remedy("parallelise ") is None
    assert remedy("half the imbalance") is None
