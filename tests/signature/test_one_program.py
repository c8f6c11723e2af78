"""Traces of different programs are refused, with what each of them does alone."""

from pathlib import Path

import pytest
from synthetic import programs, run

from popmodel.errors import PopmodelError
from popmodel.signature import Run, signature_from
from popmodel.signature.align_runs import RunTable
from popmodel.trace import read

SMPI = Path(__file__).parent.parent / "data" / "smpi"


def test_another_program_is_refused_with_both_lists(tmp_path):
    traces = [
        run(program).read(tmp_path, f"{name}.prv")
        for name, program in (
            ("small", programs.jacobi((2, 2), 6, how="sendrecv")),
            ("large", programs.transposes(9, 6)),
        )
    ]
    said = "small.prv: not the program of .*large.prv: what both do holds .* % of the time"
    with pytest.raises(PopmodelError, match=said) as error:
        signature_from(traces)
    assert "only there: MPI_Alltoall" in str(error.value)
    assert "MPI_Sendrecv" in str(error.value).partition("only here: ")[2]
    assert error.value.hint == "give runs of one program"


@pytest.fixture(scope="module")
def traced(real_trace):
    """A real run; its structure is found once."""
    found = {}

    def of(name):
        if name not in found:
            own = SMPI / f"{name}.ti.txt.gz"
            found[name] = Run(read(own if own.exists() else real_trace(name)))
        return found[name]

    return of


@pytest.mark.parametrize(
    ("first", "other"),
    [("cgA.4", "cg.S.2"), ("jac2048.4", "jac2048.16"), ("mix.4", "mixpers.4")],
)
def test_runs_of_one_program_are_alike(traced, first, other):
    assert len(RunTable([traced(first), traced(other)]).rows) == 2
    assert len(RunTable([traced(other), traced(first)]).rows) == 2


@pytest.mark.parametrize(
    ("first", "other"), [("cg.S.2", "comd.4"), ("is.S.4", "cgA.4"), ("cgA.4", "is.S.4")]
)
def test_programs_with_calls_in_common_are_told_apart(traced, first, other):
    with pytest.raises(PopmodelError, match="not the program of"):
        RunTable([traced(first), traced(other)])
