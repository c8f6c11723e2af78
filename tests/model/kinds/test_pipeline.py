"""Pipelines of a signature, closed form and replay, against sweeps that run event by event."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod
from random import Random

import numpy as np
import pytest
from model.demo import exact, machine, program
from model.wavefronts import Sweep, runtime

from popmodel.machines.profile import Profile, from_document
from popmodel.model.replayed_run import simulate
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunCourse, closed_form
from popmodel.model.signature.application import Signature
from popmodel.model.tree import Model, prepare

WORDS = {1: "forward", -1: "backward"}
BYTES = 1000


@cache
def network(latency: float, gap: float, overhead: float | None, eager: float = 65536) -> Profile:
    """Large nodes; ``gap`` is that of a message of `BYTES`."""
    document = copy.deepcopy(dict(machine().document))
    document["topology"] |= {"cores_per_node": 64, "nodes": 64}
    for tier in ("intra", "inter"):
        classes = [{"alpha": exact(latency), "beta": exact(gap / BYTES)}]
        document["net"][tier] = {"classes": classes, "eager_threshold": exact(eager)}
        if overhead is not None:
            document["net"][tier]["os"] = exact(overhead)
    del document["net"]["shm_k"], document["net"]["nic_G"]
    return from_document(document)


def pipe(sweep: Sweep, **keys: str | int) -> str:
    dims = [dim for dim, way in enumerate(sweep.ways) if way]
    ways = [WORDS[sweep.ways[dim]] for dim in dims]
    more = "".join(f", {key} = {value!r}" for key, value in keys.items())
    return (
        f"pipeline = {{ dims = {dims}, direction = {ways}, blocks = {sweep.blocks}, "
        f"seconds = {sweep.seconds}, bytes = {BYTES}{more} }}"
    )


def looped(extent: Sequence[int], items: Sequence[str], count: int = 1) -> Signature:
    body = "".join(f"  [[program.body]]\n  {item}\n" for item in items)
    grid = f"[decomp]\ngrid = {list(extent)}\n"
    return program(f"{grid}[[program]]\nloop = {{ count = {count} }}\n{body}")


def model_of(signature: Signature, processes: int, profile: Profile) -> Model:
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    return prepare(signature, place(processes, 1, profile.topology), parameters, {})


def both(signature: Signature, processes: int, profile: Profile) -> tuple[RunCourse, RunCourse]:
    tree = model_of(signature, processes, profile).work()
    closed = closed_form(tree.total, processes, {}, has_mpi=True)
    return closed, simulate(tree, {}, seed=0).course


def errors(
    extent: tuple[int, ...], sweeps: Sequence[Sweep], count: int, overhead: float | None
) -> tuple[float, float]:
    """Of closed form and replay; how messages move is that of the first sweep."""
    first = sweeps[0]
    profile = network(first.latency, first.gap, overhead, 0 if first.waits else 65536)
    signature = looped(extent, [pipe(sweep) for sweep in sweeps], count)
    courses = both(signature, prod(extent), profile)
    truth = runtime(extent, [*sweeps] * count)
    closed, replayed = (course.runtime / truth - 1 for course in courses)
    return closed, replayed


F, B, C = 1, -1, 0  # forward, backward, another corner
ORDERS = [((F,), 1), ((F,), 5), ((F, B), 3), ((F, F, B, B), 2), ((F, C, B), 2)]
EXTENTS = [(4,), (16,), (4, 4), (2, 3, 4), (8, 8)]


def corner(kind: int, dims: int) -> tuple[int, ...]:
    return (kind,) * dims if kind else (F,) * (dims - 1) + (B,)


@pytest.mark.long(after=3)
@pytest.mark.parametrize("extent", EXTENTS, ids=str)
@pytest.mark.parametrize("ratio", [0.01, 0.1, 1.0])
@pytest.mark.parametrize(
    ("how", "corners"),
    [("overhead", 0.001), ("whole", 0.001), ("waits", 0.04)],
)
def test_the_table_of_errors(
    extent: tuple[int, ...], ratio: float, how: str, corners: float
) -> None:
    """That of `popmodel.model.terms.pipeline`: at most, over orders of sweeps and blocks."""
    for blocks in (1, 16) if prod(extent) > 16 else (1, 4, 64):
        latency, gap = 0.8 * ratio, 0.2 * ratio
        busy = {"overhead": 0.2 * ratio, "whole": ratio, "waits": 0.0}[how]
        for order, count in ORDERS:
            sweeps = [
                Sweep(
                    corner(kind, len(extent)),
                    blocks,
                    float(blocks),
                    latency,
                    gap,
                    busy,
                    waits=how == "waits",
                )
                for kind in order
            ]
            found = errors(extent, sweeps, count, None if how == "whole" else busy)
            assert abs(found[0]) < (corners if C in order else 0.001), (blocks, order)
            assert abs(found[1]) < 0.001, (blocks, order)


@pytest.mark.parametrize("extent", [(4,), (16,), (4, 4), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("gap", [0.5, 0.9, 2.0, 8.0])
@pytest.mark.parametrize("blocks", [1, 4, 32])
def test_a_port_that_is_the_bottleneck(extent: tuple[int, ...], gap: float, blocks: int) -> None:
    """Messages that take longer to leave than blocks to be computed."""
    ways = (1,) * len(extent)
    sweep = Sweep(ways, blocks, float(blocks), latency=0.5, gap=gap, overhead=0.1)
    back = replace(sweep, ways=tuple(-way for way in ways))
    for found in errors(extent, [sweep, back], 2, 0.1):
        assert abs(found) < 0.001


@pytest.mark.long
def test_different_sweeps_in_random_orders() -> None:
    """Blocks of all lengths, corners and dimensions in turn, messages that wait or do not."""
    random = Random(1)
    closed, replayed = [], []
    for _ in range(200):
        extent = random.choice([(2,), (4,), (7,), (3, 4), (2, 5), (2, 3, 2)])
        message, gap = random.choice([0.05, 0.3, 1.0]), random.choice([0.1, 0.5, 0.9])
        busy, waits = random.choice([0.0, 0.3, 1.0]) * message * (1 - gap), random.random() < 0.3
        sweeps = []
        for _ in range(random.randint(1, 3)):
            ways = [random.choice([1, -1, 1, -1, 0]) for _ in extent]
            blocks = random.choice([1, 2, 5, 16])
            sweeps.append(
                Sweep(
                    tuple(ways) if any(ways) else (1,) * len(extent),
                    blocks,
                    blocks * random.uniform(0.5, 2),
                    message * (1 - gap),
                    message * gap,
                    busy,
                    waits,
                )
            )
        found = errors(extent, sweeps, random.choice([1, 2, 5]), busy)
        closed.append(abs(found[0]))
        replayed.append(abs(found[1]))
    assert np.quantile(closed, 0.5) < 0.001
    assert np.quantile(closed, 0.9) < 0.02
    assert max(closed) < 0.12
    assert np.quantile(replayed, 0.9) < 0.001


# -- what stands between sweeps

SWEEP = Sweep((1,), 4, 1.0, 0.0)
NETWORK = network(1e-3, 1e-3, 1e-4)


def ideal(items: Sequence[str], count: int = 1) -> tuple[float, float]:
    closed, replayed = both(looped((5,), items, count), 5, NETWORK)
    return closed.ideal, replayed.ideal


def test_computation_between_sweeps_lets_them_overlap() -> None:
    """The pipeline is full once: every sweep and every loop of others takes its own time."""
    between = "serial = { trip = 1, flops = 4e9 }"  # 1 s, and a cycle
    closed, replayed = ideal([pipe(SWEEP), between], 10)
    assert closed == pytest.approx(20 + 4 / 4)
    assert replayed == pytest.approx(closed)


def test_a_collective_empties_the_pipeline() -> None:
    closed, replayed = ideal([pipe(SWEEP), 'collective = { op = "barrier" }'], 10)
    assert closed == pytest.approx(10 * (1 + 4 / 4))
    assert replayed == pytest.approx(closed)


def test_loops_in_loops() -> None:
    inner = f"loop = {{ count = 3, body = [{{ {pipe(SWEEP)} }}] }}"
    back = replace(SWEEP, ways=(-1,))
    closed, replayed = ideal([inner, pipe(back)], 4)
    assert closed == pytest.approx(4 * (3 + 1 + 2 * 4 / 4))
    assert replayed == pytest.approx(closed)
    closed, replayed = ideal([inner], 4)
    assert closed == pytest.approx(12 + 4 / 4)
    assert replayed == pytest.approx(closed)


# -- where messages go


@pytest.mark.parametrize(("dims", "hops"), [((1, 0), 7), ((0, 1), 0), ((1, 1), 7)])
def test_only_hops_between_nodes_pay_for_them(dims: tuple[int, int], hops: int) -> None:
    """Eight processes on a node, one line of the grid each."""
    profile = machine(
        net__inter__classes__0__alpha=1e-3,
        net__shm_k=1000,
        net__nic_G=1e-15,
        net__inter__os=1e-9,
        net__intra__os=1e-9,
    )
    sweep = Sweep(dims, 1, 0.5, 0.0)
    for course in both(looped((8, 8), [pipe(sweep)]), 64, profile):
        assert course.runtime - course.ideal == pytest.approx(hops * 1e-3, abs=2e-5)


def test_a_profile_that_does_not_say_what_sending_costs() -> None:
    signature = looped((5,), [pipe(SWEEP, name="wave")])
    known, unknown = (
        model_of(signature, 5, network(1e-3, 1e-3, overhead)).work() for overhead in (1e-4, None)
    )
    assert known.point.parameters.remarks == set()
    assert unknown.point.parameters.remarks == {
        "the profile has no net.intra.os: each block of 'wave' keeps its sender busy for a whole "
        "message"
    }
    # three further blocks
    extra = unknown.total.transfer - known.total.transfer
    assert extra == pytest.approx(3 * (2e-3 - 1e-4))


def test_one_process_or_one_line_pays_nothing() -> None:
    tree = model_of(looped((1, 4), [pipe(replace(SWEEP, ways=(1, 0)))]), 4, NETWORK).work()
    assert (tree.total.waiting, tree.total.transfer) == (0.0, 0.0)
