"""Traces of different programs are refused, and what differs is said."""

import re
from pathlib import Path

import pytest
from synthetic import programs, run

from popmodel.errors import PopmodelError
from popmodel.signature import signature_from
from popmodel.signature.align_runs import require_places
from popmodel.signature.collectives import met
from popmodel.structure import find
from popmodel.trace import read

SMPI = Path(__file__).parent.parent / "data" / "smpi"


def test_names_of_another_program_are_refused(tmp_path):
    traces = [
        run(program).read(tmp_path, f"{name}.prv")
        for name, program in (
            ("small", programs.jacobi((2, 2), 6, how="sendrecv")),
            ("large", programs.jacobi((3, 3), 6)),
        )
    ]
    said = "small.prv: not the program of .*large.prv: communication MPI_Sendrecv instead of "
    with pytest.raises(PopmodelError, match=said) as error:
        signature_from(traces)
    assert error.value.hint == "give runs of one program, best of one build"


@pytest.fixture(scope="module")
def structure(real_trace):
    """Trace and structure of a real run; each is found once."""
    found = {}

    def of(name):
        if name not in found:
            own = SMPI / f"{name}.ti.txt.gz"
            trace = read(own if own.exists() else real_trace(name))
            found[name] = trace, met(find(trace))
        return found[name]

    return of


@pytest.mark.parametrize(
    ("first", "other"),
    [("cgA.4", "cg.S.2"), ("jac2048.4", "jac2048.16"), ("mix.4", "mixpers.4")],
)
def test_runs_of_one_program_are_alike(structure, first, other):
    require_places(*structure(first), *structure(other))
    require_places(*structure(other), *structure(first))


def test_calls_that_all_stand_in_a_larger_program_are_refused(tmp_path):
    small, large = (
        run(program).read(tmp_path, f"{name}.prv")
        for name, program in (
            ("transposes", programs.transposes(4, 6)),
            ("levels", programs.levels((2, 2), 5, depth=6)),
        )
    )
    found = [met(find(trace)) for trace in (large, small)]
    with pytest.raises(PopmodelError, match="in their order, among the"):
        require_places(large, found[0], small, found[1])


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        ("cg.S.2", "comd.4", "only 3 of its 34 calls and parallel regions are, in their order"),
        ("is.S.4", "cgA.4", "only 5 of its 33 calls"),
        ("cgA.4", "is.S.4", "only 5 of its 10 calls"),
    ],
)
def test_the_order_of_calls_tells_programs_apart(structure, first, other, said):
    with pytest.raises(PopmodelError, match=re.escape(said)):
        require_places(*structure(first), *structure(other))
