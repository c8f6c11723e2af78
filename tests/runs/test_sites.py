"""The table of sites adds up to what efficiencies are computed from, and tells what is where."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

import popmodel
from popmodel.efficiency.measure import analyse, before_replay
from popmodel.runs.sites import BEFORE, END, REGION, UNITS, sites_of
from popmodel.traces.selection import TracePart

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
TRACES = [
    ROOT / "examples/traces/stencil3d.2x2.prv.gz",
    *(
        DATA / f"{name}.prv.gz"
        for name in ("bt-mz.S.2x2", "cg.S.2", "comd.4", "lu.S.4", "mixnbc.4", "mixrma.4")
    ),
]


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_sites_add_up_to_the_times_of_the_run(path: Path) -> None:
    trace = popmodel.read(path)
    sites, run = sites_of(trace), analyse(trace).observables
    regions = sites[sites["kind"] == REGION]
    calls = sites[sites["kind"] != REGION]
    assert sites["computing"].sum() == close(float(run.useful.sum()))
    assert regions["computing"].sum() == close(float(run.omp_useful.sum()))
    assert calls["seconds"].sum() == close(float(run.in_mpi.sum()))
    assert regions["seconds"].sum() == close(float(run.in_openmp.sum()))
    assert sites["messages"].sum() == sites["receives"].sum() == len(trace.messages.size)
    assert (sites["computing_max"] <= sites["computing"] + 1e-12).all()
    assert sites["processes"].between(1, trace.processes).all()


def test_windows_of_a_run_add_up_to_it() -> None:
    trace = popmodel.read(TRACES[0])
    whole = sites_of(trace, TracePart(from_start=True))
    middle = trace.duration // 2
    ends = [(trace.begin, trace.begin + middle), (trace.begin + middle, trace.end)]
    halves = [sites_of(trace.window(*limits)) for limits in ends]
    for amount in ("computing", "seconds"):
        assert sum(half[amount].sum() for half in halves) == close(whole[amount].sum())
        regions = [half[half["kind"] == REGION][amount].sum() for half in (*halves, whole)]
        assert sum(regions[:2]) == close(regions[2])


def test_a_site_tells_its_calls_its_messages_and_who_they_go_to() -> None:
    sites = sites_of(popmodel.read(TRACES[0]))
    halo = sites[(sites["kind"] == "MPI_Isend") & (sites["messages"] > 0)].iloc[0]
    assert halo[["executions", "messages", "bytes", "partners"]].tolist() == [200, 200, 64e6, 1]
    assert set(halo[["size_min", "size_median", "size_high", "size_max"]]) == {320_000}
    residual = sites[sites["kind"] == "MPI_Allreduce"].iloc[0]
    assert residual[["executions_max", "communicator", "size_median"]].tolist() == [20, 2, 8]
    sweep = sites[(sites["kind"] == REGION) & (sites["place"] == "stencil3d.c:180")].iloc[0]
    assert sweep["executions"] == 200
    lost = sweep[["imbalance", "scheduling", "synchronisation", "mpi"]].sum()
    assert 0 < lost < 2 * sweep["seconds"]  # of the threads of a team of two
    before = sites[(sites["kind"] == BEFORE) & (sites["place"] == "stencil3d.c:180")].iloc[0]
    assert 0 < before["computing"] < 0.1 * sweep["computing"]
    assert sites["instructions"].isna().all()


def test_columns_name_the_site_the_group_and_amounts_with_units() -> None:
    sites = sites_of(popmodel.read(DATA / "cg.S.2.prv.gz"))
    named = ["site", "kind", "function", "place", "position", "group", "processes", "rank"]
    assert list(sites) == [*named, *UNITS]
    assert sites["site"].is_monotonic_increasing
    assert not sites.duplicated(["site", "group"]).any()
    assert set(sites.loc[sites["kind"] == END, "executions"]) <= {0}


def test_processes_that_pass_other_sites_are_a_group_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "master.ti.txt"
    lines = [f"{rank} init\n{rank} compute 1e9\n" for rank in range(4)]
    for rank in (1, 2, 3):
        lines += [f"{rank} compute 2e9\n", f"{rank} send 0 7 1000\n"]
        lines += [f"0 recv {rank} 7 1000\n"]
    lines += [f"{rank} finalize\n" for rank in range(4)]
    path.write_text("".join(lines))
    sites = sites_of(popmodel.read(path))
    sends = sites[sites["kind"] == "MPI_Send"]
    receives = sites[sites["kind"] == "MPI_Recv"]
    assert (set(sends["group"]), set(receives["group"])) == ({1}, {0})
    assert (sends["messages"].sum(), sends["bytes"].sum()) == (3, 3000)
    assert (receives["receives"].sum(), receives["partners"].max()) == (3, 1)
    assert sites["computing"].sum() == close(float(before_replay(popmodel.read(path)).useful.sum()))


def test_counters_add_up(shared_traces: Path) -> None:
    trace = popmodel.read(shared_traces / "paraver" / "epoch_4proc.prv.gz")
    sites, run = sites_of(trace), analyse(trace).observables
    assert run.instructions is not None
    assert run.cycles is not None
    assert sites["instructions"].sum() == float(run.instructions.sum())
    assert sites["cycles"].sum() == float(run.cycles.sum())


def test_a_trace_that_knows_callers_tells_function_and_address(shared_traces: Path) -> None:
    runs = [
        sites_of(popmodel.read(shared_traces / "programs" / f"minife.{size}x1.N_20.prv.gz"))
        for size in (1, 2)
    ]
    named = [set(zip(one["kind"], one["function"], one["place"], strict=True)) for one in runs]
    assert all(isinstance(one, pandas.DataFrame) for one in runs)
    assert len(named[0] & named[1]) > len(named[0]) / 2  # one process makes no halo exchange
    assert named[1] - named[0]
