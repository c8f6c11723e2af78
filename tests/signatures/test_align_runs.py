"""Runs of one program side by side: what one lacks is data, times are kept whole."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import programs, run

import popmodel
from popmodel.base.errors import PopmodelError
from popmodel.signatures import LearntSignature, Run, signature_from
from popmodel.signatures.align_runs import RunTable, Site, aligned
from popmodel.traces import read

SHARED = Path(os.environ.get("POPMODEL_SHARED", "/nowhere"))


def stub(names: Sequence[str], shares: Sequence[float]) -> Any:
    """A run of which only places and their shares of the time are known."""
    features = np.zeros((len(names), 4))
    features[:, 0] = shares
    sites = [Site(name, "", is_region=False) for name in names]
    return SimpleNamespace(sites=sites, features=features)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=20), st.data())
def test_places_that_a_run_lacks_are_found_by_the_time_of_the_others(
    names: list[str], data: st.DataObject
) -> None:
    """Shares that differ tell equal calls apart."""
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(names))), min_size=1)))
    home = aligned(
        stub(names, [1.0] * len(names)), stub([names[i] for i in kept], [1.0] * len(kept))
    )
    assert (home >= 0).all()
    assert (np.diff(home) > 0).all()
    assert [names[place] for place in home] == [names[i] for i in kept]


def test_the_time_tells_which_of_two_equal_calls_is_there() -> None:
    home = aligned(stub(["a", "a", "b"], [0.1, 0.7, 0.2]), stub(["a", "b"], [0.75, 0.25]))
    assert home.tolist() == [1, 2]


def jacobi(folder: Path, dims: tuple[int, ...], steps: int = 6, seed: int = 1, **kinds: Any) -> Run:
    """A run of a solver; one process has no halo."""
    done = run(programs.jacobi(dims, steps, cells=(512, 512), **kinds), transient=0.01, seed=seed)
    return Run(done.read(folder, f"{dims[0]}x{dims[1]}x{steps}x{seed}.prv"))


def runtime(found: LearntSignature, folder: Path, processes: int, **parameters: float) -> float:
    """What a signature takes when it is replayed."""
    path = folder / "app.toml"
    path.write_text(found.text)
    document = popmodel.whatif(
        str(path), "alpha-beta", latency=2.5e-6, procs=processes, threads=1, settings=parameters
    ).to_dict()
    return float(document["runs"][0]["runtime"])


def measured(run: Run) -> float:
    return float(popmodel.metrics(run.trace.path).to_dict()["runs"][0]["runtime"])


def test_one_process_without_halos_is_learnt_from(tmp_path: Path) -> None:
    found = signature_from([jacobi(tmp_path, dims) for dims in ((1, 1), (1, 2), (2, 2))])
    truth = jacobi(tmp_path, (4, 4), seed=7)
    before_init = 1e-4  # which metrics leave out
    foretold = runtime(found, tmp_path, 16) - before_init
    assert foretold == pytest.approx(measured(truth), rel=0.06)
    assert not any("first run" in note for note in found.notes)


def test_a_run_whose_loop_calls_nothing_keeps_its_time(tmp_path: Path) -> None:
    """One process exchanges nothing: all turns are one burst, which the file makes turn by turn."""
    dims = ((1, 2), (2, 2), (1, 1))
    runs = [jacobi(tmp_path, each, steps=20, residual=0) for each in dims]
    found = signature_from(runs)
    for each, traced in zip(dims, runs, strict=True):
        again = runtime(found, tmp_path, each[0] * each[1])
        assert again == pytest.approx(measured(traced), rel=0.05), each


def test_runs_of_other_iteration_counts_are_learnt_from(tmp_path: Path) -> None:
    runs = [
        Run(jacobi(tmp_path, dims, steps).trace, {"steps": steps})
        for dims, steps in (((1, 2), 6), ((2, 2), 9), ((2, 2), 12), ((2, 4), 8))
    ]
    found = signature_from(runs)
    assert [str(one.formula) for key, one in found.amounts.items() if key[0] == "count"] == [
        "steps"
    ]


def test_counts_that_data_decide_are_a_law_with_an_interval(tmp_path: Path) -> None:
    runs = [
        Run(jacobi(tmp_path, (2, 2), steps).trace, {"N": size})
        for size, steps in ((10.0, 11), (20.0, 19), (40.0, 43), (80.0, 79))
    ]
    found = signature_from(runs)
    (count,) = [one for key, one in found.amounts.items() if key[0] == "count"]
    assert count.constants
    assert count.constants[0].low < count.constants[0].high
    (law,) = [law for law in found.laws if law["of"].startswith("iterations of")]
    assert law["form"] in ("N", "1 + N")


def test_a_site_that_comes_and_goes_keeps_the_rest_where_it_is(tmp_path: Path) -> None:
    """Without a residual the sums of processes are in the next burst that both have."""
    runs = [jacobi(tmp_path, (2, 4)), jacobi(tmp_path, (2, 2), residual=0)]
    table = RunTable(runs)
    names = [str(site) for site in runs[0].sites]
    lacking = names.index("MPI_Allreduce")
    assert table.rows[1].executions[lacking] == 0
    assert (table.rows[1].executions[:lacking] > 0).any()
    assert table.burst[lacking] != lacking
    for one, row in zip(runs, table.rows, strict=True):
        assert row.before.sum() == pytest.approx(one.computing[0].sum())


def test_copies_of_a_run_count_once(tmp_path: Path) -> None:
    runs = [jacobi(tmp_path, dims) for dims in ((1, 2), (2, 2), (2, 2), (2, 4))]
    found = signature_from(runs)
    assert len(found.runs) == 3
    assert sum("are one run: it counts once" in note for note in found.notes) == 1


def test_equal_runs_that_differ_are_said_and_widen(tmp_path: Path) -> None:
    some = [jacobi(tmp_path, dims) for dims in ((1, 2), (2, 4))]
    slow = jacobi(tmp_path, (2, 2), seed=5, per_cell=1.6e-8)
    alike = signature_from([*some, jacobi(tmp_path, (2, 2)), jacobi(tmp_path, (2, 2), seed=2)])
    apart = signature_from([*some, jacobi(tmp_path, (2, 2)), slow])
    said = [note for note in apart.notes if "runs at P = 4, T = 1 compute up to" in note]
    assert len(said) == 1
    assert not any("compute up to" in note for note in alike.notes)

    def width(found: LearntSignature) -> float:
        constant = max(
            (one for amount in found.amounts.values() for one in amount.constants
             if one.unit == "s" and "Irecv" in one.source),
            key=lambda one: one.value,
        )  # fmt: skip
        assert constant.low is not None
        assert constant.high is not None
        return constant.high / constant.low

    assert width(apart) > 1.3 * width(alike)


def test_a_signature_without_a_run_looks_into_no_trace_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [jacobi(tmp_path, dims) for dims in ((1, 2), (2, 2), (2, 4), (4, 4))]
    signature_from(runs)

    def fail(*_: object) -> None:
        raise AssertionError("looked into a trace again")

    for name in ("find", "laid_out", "aligned"):
        monkeypatch.setattr(f"popmodel.signatures.align_runs.{name}", fail)
    assert len(signature_from([runs[0], *runs[2:]]).runs) == 3


@pytest.mark.long(after=1)
@pytest.mark.skipif(not SHARED.is_dir(), reason="the traces of reference are not here")
@pytest.mark.parametrize(
    ("program", "learnt", "within"),
    [
        ("stencil9", (2, 4, 8), 0.06),  # no diagonal neighbours on two processes
        ("ring", (2, 4, 8), 0.06),  # P - 1 shifts of 1/P**2 of the work
        ("cg2d", (4, 8, 16), 0.06),  # rows and columns of a grid that grows in steps
    ],
)
def test_simulated_programs_are_carried_to_64_processes(
    program: str, learnt: tuple[int, ...], within: float, tmp_path: Path
) -> None:
    folder = SHARED / "scaling"
    traces = [str(folder / f"{program}.{processes}.ti.txt.gz") for processes in learnt]
    popmodel.signature(traces, flop_rate=1e9).save(tmp_path / "app.toml")
    there = popmodel.predict(
        str(tmp_path / "app.toml"), machine=str(folder / "machine.json"), procs=64
    ).to_dict()["runtime"]
    truth = json.loads((folder / "truth.json").read_text())["runtime"][program]["64"]
    assert there["value"] == pytest.approx(truth, rel=within)
    assert there["low"] <= truth <= there["high"]


@pytest.mark.long
@pytest.mark.skipif(not SHARED.is_dir(), reason="the traces of reference are not here")
def test_a_solver_without_halos_on_one_process_grows_with_the_problem(tmp_path: Path) -> None:
    """miniFE: its iterations and work follow N, though one process makes no exchange."""
    runs = [(1, 20), (1, 30), (2, 20), (2, 30)]
    found = popmodel.signature(
        [f"{SHARED}/programs/minife.{p}x1.N_{n}.prv.gz:N={n}" for p, n in runs]
    )
    assert not any("P was not varied" in note for note in found.facts["notes"])
    path = tmp_path / "app.toml"
    found.save(path)
    times = {
        size: popmodel.whatif(
            str(path), "alpha-beta", procs=2, threads=1, settings={"N": size}
        ).to_dict()["runs"][0]["runtime"]
        for size in (30, 60)
    }
    assert 6 < times[60] / times[30] < 20  # N**3 of work in about N iterations: 8 to 16


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
