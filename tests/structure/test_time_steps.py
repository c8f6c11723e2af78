"""Time steps of runs whose calls never repeat exactly."""

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from structure.programs import Call, write

from popmodel.structure.iterations import find, structure_of
from popmodel.structure.program_events import events_of
from popmodel.structure.structure import FoundLoop
from popmodel.structure.time_steps import by_site, time_steps
from popmodel.traces import read


def at_sites(program):
    """Events of which each size is a site of its own."""
    events = events_of(program)
    return replace(events, coarse=events.exact, tagged=events.exact)


def irregular(steps, processes=3, seed=1):
    """Steps of one long burst, with calls in between as often as it happens, at any of 30 sites."""
    random = np.random.default_rng(seed)
    body = [Call("allreduce", 50, seconds=0.2)]
    for _ in range(steps):
        body += [Call("ring", 1, seconds=20e-3), Call("allreduce", 2, seconds=5e-3)]
        body += [
            Call("allreduce", 10 + int(number), seconds=1e-5)
            for number in random.integers(0, 30, random.integers(0, 12))
        ]
        if random.random() < 0.15:  # a list is built anew
            body += [Call("allreduce", 48, seconds=3e-3)] * int(random.integers(1, 4))
    return at_sites(write(processes, body).program)


@pytest.mark.parametrize("steps", [7, 60])
def test_steps_are_found_by_the_site_that_holds_the_time(steps):
    found = time_steps(irregular(steps))
    assert found is not None
    assert found.steps == steps
    assert found.alike > 0.8


def test_calls_by_site_are_the_same_on_all_processes():
    events = irregular(40)
    steps = by_site(events, time_steps(events))
    loop = steps.common.nest[steps.loop]
    assert isinstance(loop, FoundLoop)
    assert loop.counts == (40,)
    assert steps.common.places < 80
    keys = events.sequence, steps.common.place, steps.common.execution
    executions = {*zip(*(key.tolist() for key in keys), strict=True)}
    assert len(executions) == len(events)  # no two events of a process are one execution
    names = np.array(events.names)[events.name]
    met = Counter(
        (place, execution)
        for name, (_, place, execution) in zip(
            names.tolist(), zip(*(key.tolist() for key in keys), strict=True), strict=True
        )
        if name == "collective"
    )
    assert set(met.values()) == {3}


def test_what_never_comes_again_has_no_steps():
    body = [Call("allreduce", 1 + number, seconds=1e-3) for number in range(50)]
    assert time_steps(at_sites(write(2, body).program)) is None


@pytest.mark.long
def test_known_programs(shared_traces: Path) -> None:
    """Iterations of programs of which they are known; what is said to be sure is right."""
    known = {
        "programs/clover.1x1": {40},
        "programs/clover.1x2": {40},
        "programs/clover.2x1": {40},
        "programs/lmp.2x1": {60, 61},  # 60, and forces once before
        "programs/minife.2x1.N_20": {76, 77},
        "programs/minife.2x1.N_30": {114, 115},
        "paraver/bt-mz.S.2x2": {60},
        "paraver/ft.S.4": {6},
        "paraver/lu.S.4": {50},
        "paraver/mg.S.4": {4},
        "paraver/comd.4": {4},
    }
    for name, counts in known.items():
        found = find(read(shared_traces / f"{name}.prv.gz"))
        assert len(found.kinds) in counts, name
    ours = {"cg2d": 60, "particles": 40, "ring": 6, "stencil9": 60}
    wrong, sure = [], 0
    for (name, count), size in itertools.product(ours.items(), (2, 4, 8, 16)):
        found = find(read(shared_traces / "scaling" / f"{name}.{size}.ti.txt.gz"))
        sure += found.confidence >= 0.8
        if len(found.kinds) != count and found.confidence >= 0.8:
            wrong.append(f"{name}.{size}")
    assert sure >= 10
    assert wrong == []


def test_calls_that_repeat_too_rarely_are_told_by_site():
    """As many different calls in every iteration that no nest of them could be compared."""
    random = np.random.default_rng(2)
    body = [Call("allreduce", int(number)) for number in random.integers(1, 40, 9000)]
    found = structure_of(write(2, body).program)
    assert len(found.places) < 80
    assert len(found.events) == 18000


def test_steps_of_molecular_dynamics_with_lists_built_now_and_then(shared_traces: Path) -> None:
    """60 steps of LAMMPS, and forces once before; its neighbour lists are built 12 times."""
    found = find(read(shared_traces / "programs" / "lmp.2x1.prv.gz"))
    assert len(found.kinds) == 61
    assert len(found.places) < 200
