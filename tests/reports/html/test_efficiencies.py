"""Trees of efficiencies on a page: every value, what it costs, what it means."""

from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.units import format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.html import page_efficiencies as efficiencies
from popmodel.reports.html.contents import Contents, Section
from popmodel.reports.html.page import fragment
from popmodel.reports.html.page_efficiencies import columns

from ..balanced import Node, parsed

DATA = Path(__file__).parent.parent.parent / "data"
TEMPLATES = Path(efficiencies.__file__).parent.parent / "templates"
HYBRID, CG = DATA / "bt-mz.S.2x2.prv.gz", DATA / "cg.S.2.prv.gz"


def contents(*inputs: Any) -> Contents:
    return popmodel.report(inputs).contents


@pytest.fixture(scope="module")
def measured() -> Contents:
    return contents(popmodel.metrics([CG, HYBRID]))


@pytest.fixture(scope="module")
def predicted() -> Contents:
    return contents(popmodel.predict("stencil3d", procs=4, threads=2, draws=50))


def section(of: Contents) -> Section:
    found = efficiencies.section(of)
    assert found is not None
    return found


def drawn(of: Contents) -> Node:
    return parsed(fragment(section(of)))


def family(of: Contents, id: str) -> Node:
    (found,) = drawn(of).all("div", **{"data-family": id})
    return found


def rows(of: Contents, id: str) -> dict[str, list[str]]:
    """Values and losses of each metric of a family."""
    names = list(load_families()[id].metrics)
    return {
        names[int(number)]: [cell.text for cell in row.all("td")]
        for row in reversed(family(of, id).all("tr"))
        if (number := row.attributes.get("data-metric"))
    }


def test_every_value_of_every_family_is_there_with_its_cost(measured: Contents) -> None:
    (document,) = measured.of("metrics")
    for id, known in load_families().items():
        if known.requires:
            continue  # no run with devices
        found = rows(measured, id)
        for index, run in enumerate(document["runs"]):
            for metric, value in run["metrics"][id].items():
                shown = f"{value:.3f}" if id == "scaling" else f"{100 * value:.1f}"
                assert found[metric][index].split(": ")[-1] == shown


def test_in_an_additive_family_a_loss_is_a_part_of_the_runtime() -> None:
    alone = contents(popmodel.metrics(HYBRID))
    run = alone.of("metrics")[0]["runs"][0]
    lost = rows(alone, "hybrid-additive")["thread_efficiency"][1]
    value = run["metrics"]["hybrid-additive"]["thread_efficiency"]
    assert lost == format_time((1 - value) * run["runtime"], digits=3)


def test_a_missing_value_has_its_reason(measured: Contents) -> None:
    found = rows(measured, "mpi")["global_efficiency"]
    assert "-[1]" in found
    assert "[1] processes have several threads" in family(measured, "mpi").text


def test_the_largest_loss_of_a_run_is_marked_in_words(measured: Contents) -> None:
    lowest = measured.of("metrics")[0]["runs"][0]["lowest"]["mpi"]["metric"]
    marked = [name for name, cells in rows(measured, "mpi").items() if "largest loss:" in cells[0]]
    assert marked == [lowest]


def test_colours_only_repeat_what_is_printed(measured: Contents) -> None:
    for cell in family(measured, "mpi").all("td"):
        classes = (cell.attributes.get("class") or "").split()
        heat = [name for name in classes if name.startswith("heat-")]
        if heat:
            shown = min(float(cell.text.split(": ")[-1]), 100)
            assert abs(shown - int(heat[0].removeprefix("heat-"))) <= 2.1


def test_every_metric_is_explained(measured: Contents) -> None:
    named = [one.attributes["data-metric"] for one in drawn(measured).all("h4")]
    families = load_families().values()
    without_devices = [family for family in families if not family.requires]
    assert named == [metric for family in without_devices for metric in family.metrics]
    (explained,) = family(measured, "mpi").all("details")
    assert "mean over maximum" in explained.text
    assert "Formula: Avg(useful of masters) / max(useful of masters)" in explained.text
    symbols = [one.text for one in explained.all("dt")]
    meanings = [one.text for one in explained.all("dd")]
    assert "(s)" in dict(zip(symbols, meanings, strict=True))["max(useful of masters)"]


def test_heads_tell_what_columns_are(measured: Contents) -> None:
    heads = [one.text for one in family(measured, "mpi").all("th", scope="col")][1:3]
    assert [head.split(" ")[0] for head in heads] == ["cg.S.2", "bt-mz.S.2x2"]
    assert "2 x 2" in heads[1]


def test_a_prediction_has_intervals(predicted: Contents) -> None:
    (document,) = predicted.of("predict")
    one = document["metrics"]["hybrid-additive"]["parallel_efficiency"]
    cell = rows(predicted, "hybrid-additive")["parallel_efficiency"][0]
    assert cell == f"{100 * one['value']:.1f} {100 * one['low']:.1f} .. {100 * one['high']:.1f}"
    assert "predicted" in family(predicted, "mpi").text


def test_a_run_alone_does_not_scale(measured: Contents) -> None:
    alone = section(contents(popmodel.metrics(CG)))
    assert "scaling" not in [one["id"] for one in alone.context["families"]]
    assert "scaling" in [one["id"] for one in section(measured).context["families"]]


def test_the_family_that_is_advised_by_is_shown_first(measured: Contents) -> None:
    cause = measured.of("metrics")[0]["advice"]["causes"][0]
    data = section(measured).data
    assert data["family"] == cause["family"]


def test_runs_of_one_name_are_numbered(predicted: Contents) -> None:
    both = contents(*[popmodel.predict(procs=n, draws=10) for n in (4, 4)])
    assert [one.name for one in columns(both)] == ["stencil3d 4 x 1 #1", "stencil3d 4 x 1 #2"]
    assert [one.name for one in columns(predicted)] == ["stencil3d 4 x 2"]


def test_without_runs_there_is_no_section() -> None:
    assert efficiencies.section(contents(popmodel.predict(cores=8, draws=10))) is None


def test_devices_are_shown_first_with_what_each_of_them_loses() -> None:
    found = contents(popmodel.metrics(DATA / "offload.2.prv.gz"))
    assert section(found).data["family"] == "gpu-bsc"
    assert "time lost by each device" in family(found, "gpu-bsc").text
    assert "time lost by each thread" in family(found, "talp").text
