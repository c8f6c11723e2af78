"""Grids and patterns of real programs: what is found in each, failures included."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from structure.expand import carried_out

import popmodel
from popmodel.structure.iterations import find as find_structure
from popmodel.structure.message_groups import closed_groups
from popmodel.structure.message_rows import PlaceTable
from popmodel.structure.patterns import find_communication

DATA = Path(__file__).parents[1] / "data"

#: Grids, and for each kind of pattern its share of the bytes between processes, if that is at least
#: half a percent, and whether all of them are exact.
KNOWN = {
    # two halves of a vector: every reading of two processes is the same
    "cg.S.2": ([((2,), (False,))], {"halo": (1.0, True)}),
    # sums over rows, then an exchange with the transposed process: no grid of neighbours
    "smpi/cgA.4": ([], {"butterfly": (0.5, True), "transpose": (0.5, True)}),
    # wavefronts from both corners, and faces of the solution
    "lu.S.4": (
        [((2, 2), (False, False))],
        {"halo": (0.75, True), "pipeline": (0.25, True)},
    ),
    # all levels of the multigrid; along the dimension that is not split a process sends to itself
    "mg.S.4": ([((2, 2), (True, True))], {"halo": (1.0, True)}),
    "smpi/mgA.4": ([((2, 2), (True, True))], {"halo": (1.0, True)}),
    "comd.4": ([((2, 2), (True, True))], {"halo": (1.0, True)}),
    "smpi/jac2048.4": ([((2, 2), (False, False))], {"halo": (1.0, True)}),
    "smpi/jac2048.16": ([((4, 4), (False, False))], {"halo": (1.0, True)}),
    # three messages to the next process at the end, for the check of the order
    "is.S.4": ([((4,), (False,))], {"shift": (1.0, True)}),
    "ft.S.4": ([], {}),
    "bt-mz.S.2x2": ([((2,), (False,))], {"halo": (1.0, True)}),
    # Fields and particles go around a ring of all processes; the start, and output through other
    # processes, have a grid of 4 x 4. What is written differs in size, some of it has no pattern.
    "epoch_16proc": (
        [((16,), (True,)), ((4, 4), (True, True))],
        {
            "halo": (0.95, False),
            "butterfly": (0.05, False),
        },
    ),
    "epoch_4proc": (
        [((4,), (True,)), ((2, 2), (True, False))],
        {"halo": (1.0, False)},
    ),
    "epoch_1proc": ([], {}),
    # a test of many calls: around a ring, but for a part that hands work on from the first process
    "mix.4": ([((4,), (True,))], {"shift": (1.0, True)}),
}


def path_of(real_trace, name: str) -> Path:
    untimed = DATA / f"{name}.ti.txt.gz"
    return untimed if untimed.exists() else real_trace(name)


@cache
def structure_of(path: Path):
    return find_structure(popmodel.read(path, flop_rate=1e9 if ".ti." in path.name else None))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", KNOWN)
def test_what_is_found(name, real_trace):
    made = structure_of(path_of(real_trace, name))
    found = find_communication(made)
    grids, shares = KNOWN[name]
    assert [(grid.dims, grid.periodic) for grid in found.grids] == grids
    messages = [pattern for pattern in found.patterns if pattern.kind != "collective"]
    between = Counter()
    exact = {}
    for pattern in messages:
        own = pattern.kind == "ring" and pattern.facts["offsets"] == (0,)
        between[pattern.kind] += 0 if own else pattern.bytes
        exact[pattern.kind] = exact.get(pattern.kind, True) and pattern.exact
    total = max(sum(between.values()), 1)
    assert {
        kind: (round(size / total, 2), exact[kind])
        for kind, size in between.items()
        if size >= 0.005 * total
    } == shares


def test_the_pipelines_of_lu_go_both_ways_in_blocks(real_trace):
    found = find_communication(structure_of(path_of(real_trace, "lu.S.4")))
    pipelines = [pattern for pattern in found.patterns if pattern.kind == "pipeline"]
    assert sum(pattern.executions for pattern in pipelines) == 2 * 51 * 10
    assert {tuple(pattern.facts["direction"]) for pattern in pipelines} == {
        ("forward", "forward"),
        ("backward", "backward"),
    }
    assert {pattern.facts["blocks"] for pattern in pipelines} == {10}


def test_the_halos_of_mg_shrink_with_its_grids(real_trace):
    found = find_communication(structure_of(path_of(real_trace, "mg.S.4")))
    sizes = {
        way["bytes"]
        for pattern in found.patterns
        if pattern.kind == "halo"
        for way in pattern.facts["directions"]
    }
    assert sizes == {32, 96, 192, 320, 480, 1152, 1440, 4352, 4896}


def test_the_exchanges_of_is_and_ft_are_collectives(real_trace):
    found = find_communication(structure_of(path_of(real_trace, "is.S.4")))
    uneven = [one for one in found.patterns if one.facts.get("call") == "MPI_Alltoallv"]
    assert [(one.executions, one.exact, one.why) for one in uneven] == [
        (11, False, "sizes differ, sizes differ between members")
    ]
    found = find_communication(structure_of(path_of(real_trace, "ft.S.4")))
    transposes = [one for one in found.patterns if one.facts["op"] == "alltoall"]
    assert sum(one.executions for one in transposes) == 8
    assert all(one.exact for one in transposes)


@pytest.mark.long(after=4)
@pytest.mark.parametrize("name", KNOWN)
def test_lists_of_calls_send_the_same_messages(name, real_trace):
    made = structure_of(path_of(real_trace, name))
    if len(made.program.threads):
        pytest.skip("threads call MPI")
    table = PlaceTable(made)
    for group in closed_groups(made):
        if group.leaf is None:
            continue
        found = table.rows(group.places)
        assert not found.why
        expected: Counter = Counter()  # of executions without messages it stays empty
        for each in group.classes:
            if found.executions[0] in each.executions:
                expected.update(each.messages.tolist())
        sent: Counter = Counter()
        for rank, calls in enumerate(carried_out(found.calls, made.program.processes)):
            for call in calls:
                if call[0] in ("send", "isend"):
                    sent[rank, call[1], call[2]] += 1
                elif call[0] == "sendrecv":
                    sent[rank, call[1], call[3]] += 1
        assert sent == expected
