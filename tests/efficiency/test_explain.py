"""Explanations say what the one definition says."""

import pytest

from popmodel.base.errors import UsageError
from popmodel.efficiency.explain import explain, find_family
from popmodel.efficiency.hierarchy import load_families


def test_a_metric_is_explained_in_every_family_that_has_it() -> None:
    explanation = explain("load_balance", load_families())
    assert explanation["metric"] == "load_balance"
    assert [each["family"] for each in explanation["definitions"]] == ["mpi", "mpi-additive"]
    mpi, additive = explanation["definitions"]
    assert mpi["formula"] == "Avg(useful of masters) / max(useful of masters)"
    assert additive["formula"] == (
        "1 - (max(useful of masters) - Avg(useful of masters)) / runtime"
    )
    assert mpi["terms"][0] == {
        "symbol": "Avg(useful of masters)",
        "meaning": "useful time of the master threads, average over processes",
        "unit": "s",
    }
    assert tuple(mpi["parents"]) == (
        "Parallel efficiency = Load balance x Communication efficiency",
    )
    assert tuple(additive["parents"]) == (
        "Parallel efficiency = Load balance + Communication efficiency - 1",
    )
    assert tuple(mpi["parts"]) == () and mpi["view_of"] is None and tuple(mpi["absent_when"]) == ()
    assert mpi["advice"] == load_families()["mpi"].metrics["load_balance"].advice


def test_formula_over_other_metrics_uses_their_names() -> None:
    (definition,) = explain("openmp_communication_efficiency", load_families())["definitions"]
    assert definition["formula"] == "Hybrid communication efficiency / MPI communication efficiency"
    assert [term["unit"] for term in definition["terms"]] == ["", ""]
    assert tuple(definition["absent_when"]) == ("the time outside MPI calls was not measured",)


def test_parts_and_reasons_to_be_absent() -> None:
    mpi, _ = explain("communication_efficiency", load_families())["definitions"]
    assert tuple(mpi["parts"]) == (
        "Communication efficiency = Serialisation efficiency x Transfer efficiency",
    )
    transfer, _ = explain("transfer_efficiency", load_families())["definitions"]
    assert tuple(transfer["absent_when"]) == ("no replay on an ideal network", "no MPI calls")
    (ipc,) = explain("ipc_scaling", load_families())["definitions"]
    assert tuple(ipc["absent_when"]) == (
        "no hardware counter of cycles",
        "no hardware counter of instructions",
        "no reference run",
        "the reference run has no hardware counter of cycles",
        "the reference run has no hardware counter of instructions",
    )


def test_every_way_to_explain_a_metric_is_shown() -> None:
    (definition,) = explain("hybrid_parallel_efficiency", load_families())["definitions"]
    assert tuple(definition["parts"]) == (
        "Hybrid parallel efficiency = MPI parallel efficiency x OpenMP parallel efficiency",
        "Hybrid parallel efficiency = Hybrid load balance x Hybrid communication efficiency",
    )


def test_views_name_what_they_are_a_view_of() -> None:
    (definition,) = explain("hybrid-additive.openmp_load_balance", load_families())["definitions"]
    assert definition["view_of"] == "OpenMP parallel region efficiency"


@pytest.mark.parametrize(
    "wanted",
    ["Serialisation efficiency", "serialization-efficiency", " SERIALISATION_EFFICIENCY "],
)
def test_names_are_as_good_as_ids(wanted: str) -> None:
    assert explain(wanted, load_families())["metric"] == "serialisation_efficiency"


def test_a_name_may_stand_for_an_id_that_differs_from_it() -> None:
    assert explain("Speed-up", load_families())["metric"] == "speedup"
    assert explain("Process transfer efficiency", load_families())["metric"] == (
        "process_transfer_efficiency"
    )


def test_every_metric_of_every_family_can_be_explained() -> None:
    for family in load_families().values():
        for id, metric in family.metrics.items():
            (definition,) = explain(f"{family.id}.{id}", load_families())["definitions"]
            assert definition["name"] == metric.name
            assert "_" not in definition["formula"].replace("_ref", "")


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("load_balanse", "unknown metric 'load_balanse'", "did you mean load_balance"),
        ("xyzzy", "unknown metric 'xyzzy'", "popmodel docs --all lists fam"),
        ("talp.speedup", "unknown metric 'speedup'", "popmodel docs --all lists fam"),
        ("mpi-aditive", "unknown metric 'mpi-aditive'", "did you mean mpi-additive"),
        ("tulp.speedup", "unknown family 'tulp'", "families: mpi, mpi-additive"),
    ],
)
def test_unknown_metrics_get_near_names(wanted: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        explain(wanted, load_families())
    assert caught.value.message == message
    assert caught.value.hint is not None and caught.value.hint.startswith(hint)
    assert caught.value.exit_status == 2


def test_families_are_found_however_they_are_written() -> None:
    families = load_families()
    for wanted in ("mpi-additive", "MPI_additive", " mpi additive "):
        assert find_family(wanted, families) is families["mpi-additive"]
    assert find_family("load_balance", families) is None
