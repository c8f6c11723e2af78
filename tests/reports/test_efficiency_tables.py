"""The screen of efficiencies, on runs that no small trace gives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from popmodel.base.values import plain
from popmodel.cli.metrics import metrics_document as measured
from popmodel.efficiency.evidence import CallSite
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import MeasuredRun, analyse
from popmodel.efficiency.observables import RegionObservables
from popmodel.efficiency.scaling import Comparable, scale
from popmodel.reports import efficiency_tables
from popmodel.reports.renderers.markdown import markdown_lines
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style
from popmodel.traces import read
from popmodel.traces.paraver.writer import TraceWriter


@pytest.fixture
def run(tmp_path: Path) -> MeasuredRun:
    """One process that computes for 10 ms."""
    script = TraceWriter(threads=(1,))
    script.state(0, 0, 0, 10_000_000, 1)
    script.write(tmp_path / "x.prv")
    return analyse(read(tmp_path / "x.prv"))


def shown(*runs: MeasuredRun) -> dict[str, Any]:
    """The document of runs, which are called a, b, ..."""
    runs = tuple(replace(run, trace=f"{name}.prv") for name, run in zip("ab", runs, strict=False))
    aggregates = [run.observables.aggregates() for run in runs]
    absent = runs[0].observables.absent
    mpi = load_families()["mpi"]
    scaled = scale([Comparable(run.trace, aggregates[0], absent) for run in runs])
    families = [
        {"mpi": mpi.evaluate(values, absent), "scaling": scaling}
        for values, scaling in zip(aggregates, scaled.evaluations, strict=True)
    ]
    return measured(runs, families, scaled, [()] * len(runs))


def drawn(document: dict[str, Any], width: int = 80) -> list[str]:
    return block_lines(efficiency_tables.blocks(document), Style(width, whole=True))


def brief(document: dict[str, Any]) -> str:
    return "\n".join(block_lines(efficiency_tables.blocks(document), Style(80)))


def test_caveats_of_several_runs_are_told_once(run: MeasuredRun) -> None:
    lost = [replace(run, caveats=(f"{share} % is lost",)) for share in (3, 4)]
    assert "3 % (a), 4 % (b) is lost" in drawn(shown(*lost), 60)
    assert "b: 3 % is lost" in drawn(shown(run, lost[0]), 60)


def test_the_screen_says_why_a_value_is_above_100_percent(run: MeasuredRun) -> None:
    document = shown(run)
    metrics = document["runs"][0]["metrics"]["mpi"]
    document["runs"][0]["family_notes"] = {"mpi": ["another remark", "times are inconsistent"]}
    assert "times are inconsistent" not in brief(document)
    metrics["parallel_efficiency"] = 1.02
    assert "times are inconsistent" in brief(document)
    assert "another remark" not in brief(document)


def test_what_the_doubt_says_leaves_its_place_to_other_caveats(run: MeasuredRun) -> None:
    caveats = ("more threads than CPUs: 4 threads may use only 2 CPUs", "records lost: rank 1")
    document = shown(replace(run, caveats=caveats))
    document["advice"]["doubts"] = ["Doubtful: 4 threads share 2 cores."]
    assert "records lost" in brief(document)
    assert "may use only" not in brief(document)


def test_what_regions_lose_to_locks_has_a_column_where_it_matters(run: MeasuredRun) -> None:
    free = RegionObservables("sweep", 5, 1.0, 0.5, 1.0, cost=2.0)
    waits = RegionObservables("scatter", 5, 1.0, 0.5, 1.0, cost=1.5, locks=0.25)

    def table(*regions: RegionObservables) -> tuple[list[str], list[str]]:
        result = shown(replace(run, observables=replace(run.observables, regions=regions)))
        return drawn(result), markdown_lines(efficiency_tables.blocks(result))

    screen, markdown = table(free, waits)
    assert any(line.endswith("lost  to locks") for line in screen)
    assert any(line.endswith("250.0 ms  scatter") for line in screen)
    assert any("to locks |" in line for line in markdown)
    for lines in table(free, replace(waits, locks=0.01)):
        assert not any("to locks" in line for line in lines)


SITE = CallSite("MPI_Allreduce", "solve", "app.c:12", 2000, 0.0025, 0.25, 0.002)


def test_calls_of_mpi_are_shown_with_their_places(run: MeasuredRun) -> None:
    other = replace(SITE, function="", place="", count=1, share=1e-2, waiting=None)
    result = shown(replace(run, call_sites=(SITE, other)))
    lines = drawn(result)
    begin = lines.index("MPI calls")
    assert lines[begin : begin + 5] == [
        "MPI calls",
        "times  time %  wait %",
        "2,000    25.0    80.0  MPI_Allreduce in solve (app.c:12)",
        "    1     1.0       -  MPI_Allreduce",
        " time %: of core time; wait %: of that spent waiting, the rest is transfer",
    ]
    text = "\n".join(markdown_lines(efficiency_tables.blocks(result)))
    assert "| MPI calls | times | time % | wait % |" in text
    assert "| MPI_Allreduce in solve (app.c:12) | 2,000 | 25.0 | 80.0 |" in text
    assert result["runs"][0]["call_sites"][0] == plain(SITE)


def test_long_names_of_calls_are_wrapped_and_never_shortened(run: MeasuredRun) -> None:
    site = replace(SITE, function="boundary::do_field_mpi_with_lengths", place="boundary.F90:286")
    for width in (80, 60, 40):
        lines = drawn(shown(replace(run, call_sites=(site,))), width)
        below = " ".join(" ".join(lines[lines.index("MPI calls") :]).split())
        assert f"80.0 {site.name} time %" in below
        assert max(map(len, lines)) <= width


def test_calls_that_cost_nothing_are_not_listed(run: MeasuredRun) -> None:
    result = shown(replace(run, call_sites=(replace(SITE, share=5e-4),)))
    lines = drawn(result)
    assert "MPI calls: less than 0.1 % of the core time each (--format json lists all)" in lines


def test_only_the_costliest_calls_are_shown(run: MeasuredRun) -> None:
    sites = tuple(replace(SITE, place=f"app.c:{n}", time=1 / n) for n in range(1, 15))
    result = shown(replace(run, call_sites=sites))
    lines = drawn(result)
    assert sum("MPI_Allreduce in" in line for line in lines) == efficiency_tables.SHOWN
    assert " and 4 more (--format json lists all)" in lines
