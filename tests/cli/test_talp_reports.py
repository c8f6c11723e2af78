"""Reports of TALP: its own efficiencies as a table, beside those of traces or alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import FileError, UsageError
from popmodel.cli import main
from popmodel.cli.talp_reports import ReportedMetrics
from popmodel.efficiency.hierarchy import load_families
from popmodel.runs.talp_files import TALP, read_talp

DATA = Path(__file__).parent.parent / "data"
REPORT = DATA / "talp.json"
TRACE = DATA / "bt-mz.S.2x2.prv.gz"


def read(*paths: Path, **options: Any) -> ReportedMetrics:
    found = popmodel.metrics(paths, **options)
    assert isinstance(found, ReportedMetrics)
    return found


def written(folder: Path, document: Any) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps(document))
    return path


def test_efficiencies_are_those_that_talp_writes() -> None:
    found = read(REPORT)
    (run,) = found.to_dict()["runs"]
    assert (run["processes"], run["threads"], run["runtime"]) == (4, 2, 5.0)
    assert run["ideal_runtime"] is None
    assert run["metrics"]["talp"] == {
        "parallel_efficiency": 0.75,
        "mpi_parallel_efficiency": 0.9,
        "mpi_load_balance": 0.95,
        "mpi_load_balance_in": 0.97,
        "mpi_load_balance_out": 0.98,
        "mpi_communication_efficiency": 0.95,
        "openmp_parallel_efficiency": 0.85,
        "openmp_serialisation_efficiency": 0.91,
        "openmp_load_balance": 0.95,
        "openmp_scheduling_efficiency": 0.99,
    }
    assert found["parallel_efficiency"] == 0.75


def test_efficiencies_of_devices_are_there_where_the_run_has_any(tmp_path: Path) -> None:
    document = json.loads(REPORT.read_text())
    of_devices = {
        "deviceOffloadEfficiency": 0.95,
        "gpuParallelEfficiency": 0.3,
        "gpuLoadBalance": 0.8,
        "gpuCommunicationEfficiency": 0.7,
        "gpuOrchestrationEfficiency": 0.54,
    }
    document["Application"]["Global"] |= of_devices
    assert "gpu-talp" not in read(written(tmp_path, document)).to_dict()["runs"][0]["metrics"]
    document["Application"]["Global"]["numGpus"] = 2
    found = read(written(tmp_path, document))
    assert found.to_dict()["runs"][0]["metrics"]["gpu-talp"] == {
        "device_offload_efficiency": 0.95,
        "device_parallel_efficiency": 0.3,
        "device_load_balance": 0.8,
        "device_communication_efficiency": 0.7,
        "device_orchestration_efficiency": 0.54,
    }
    assert "Device offload efficiency        95.0" in str(found)  # which explains the whole
    assert "also, with --all: talp" in str(found)


def test_every_metric_of_the_family_is_known_in_reports() -> None:
    assert read_talp(REPORT).regions[0].metrics[TALP].keys() == load_families()[TALP].metrics.keys()


def test_reports_stand_beside_the_same_family_of_traces() -> None:
    found = read(TRACE, REPORT)
    alone = popmodel.metrics(TRACE)
    ours, theirs = found.to_dict()["runs"]
    assert ours["metrics"]["talp"] == alone.to_dict()["runs"][0]["metrics"]["talp"]
    assert theirs["metrics"]["talp"]["parallel_efficiency"] == 0.75
    assert theirs["absent"]["scaling"]["speedup"] == (
        "reports of TALP are compared with each other only"
    )
    lines = str(found).splitlines()
    assert len(lines) <= 25
    (heads,) = [line for line in lines if line.startswith("MPI + OpenMP (TALP)")]
    assert heads.split()[-2:] == ["bt-mz.S.2x2", "talp.json"]
    (row,) = [line for line in lines if line.strip().startswith("Parallel efficiency  ")]
    assert row.split()[-1] == "75.0"
    assert "talp.json: as TALP writes them, nothing replayed" in str(found)


def test_reports_alone_scale_without_global_efficiency(tmp_path: Path) -> None:
    document = json.loads(REPORT.read_text())
    run = document["Application"]["Global"]
    run |= {"numCpus": 16, "numMpiRanks": 8, "elapsedTime": 2_500_000_000}
    run["usefulTime"] = 40_000_000_000
    found = read(REPORT, written(tmp_path, document))
    ratios = found.to_dict()["runs"][1]["metrics"]["scaling"]
    assert ratios["speedup"] == pytest.approx(2)
    assert ratios["computation_scaling"] == pytest.approx(0.75)
    assert "global_efficiency" not in ratios  # TALP's total is not CPUs x runtime
    assert found.to_dict()["scaling"]["reference"] == str(REPORT)


def test_a_region_is_one_that_talp_monitors() -> None:
    (run,) = read(REPORT, region="solve").to_dict()["runs"]
    assert (run["runtime"], run["metrics"]["talp"]["parallel_efficiency"]) == (3.0, 0.88)
    with pytest.raises(FileError, match="has no region 'solv'") as caught:
        read(REPORT, region="solv")
    assert caught.value.hint == "did you mean solve?"
    (run,) = read(REPORT, by="region").to_dict()["runs"]
    assert [part["region"] for part in run["by_region"]] == ["solve"]  # not what never ran


@pytest.mark.parametrize("options", [{"window": (0, 1)}, {"from_start": True}, {"by": "process"}])
def test_what_needs_a_course_of_time_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"talp\.json has no"):
        read(REPORT, **options)


@pytest.mark.parametrize(
    "regions",
    [
        [{"name": "MPI Execution", "elapsedTime": 2e9}],
        {"MPI Execution": {"elapsedTime": 2e9}},
    ],
)
def test_releases_before_3_5_are_read(tmp_path: Path, regions: Any) -> None:
    values = {
        "parallelEfficiency": 0.8,
        "communicationEfficiency": 0.9,
        "loadBalance": 0.89,
        "lbIn": 0.95,
        "lbOut": 0.94,
    }
    for region in regions if isinstance(regions, list) else regions.values():
        region |= values
    path = written(tmp_path, {"resources": {"numCpus": 4, "numMpiRanks": 4}, "popMetrics": regions})
    region = read_talp(path).regions[0]
    assert (region.processes, region.cpus, region.runtime) == (4, 4, 2.0)
    assert region.metrics[TALP] == {
        "parallel_efficiency": 0.8,
        "mpi_communication_efficiency": 0.9,
        "mpi_load_balance": 0.89,
        "mpi_load_balance_in": 0.95,
        "mpi_load_balance_out": 0.94,
    }


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"dlbVersion": "3.5", "Application": {}}, "without a region that ran"),
        ({"dlbVersion": "3.5", "Application": {"Global": {"elapsedTime": 0}}}, "without a region"),
        (
            {"dlbVersion": "3.5", "Application": {"Global": {"elapsedTime": "1"}}},
            "Global.elapsedTime must be a number up to 1e18, not '1'",
        ),
        (
            {"dlbVersion": "3.5", "Application": {"Global": {"elapsedTime": float("nan")}}},
            "Global.elapsedTime must be a number up to 1e18, not nan",
        ),
        (
            {
                "dlbVersion": "3.5",
                "Application": {"Global": {"elapsedTime": 1, "numMpiRanks": 10**9}},
            },
            "Global.numMpiRanks must be a number from 0 to 16777216, not 1000000000",
        ),
    ],
)
def test_what_is_wrong_with_a_report_is_said(tmp_path: Path, document: Any, problem: str) -> None:
    with pytest.raises(FileError, match=problem) as caught:
        read(written(tmp_path, document))
    assert caught.value.hint


@pytest.mark.parametrize("format", ["json", "csv", "markdown", "html", "svg"])
def test_every_format_is_written_and_read_again(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"found.{ {'markdown': 'md'}.get(format, format) }"
    assert main(["metrics", str(TRACE), str(REPORT), "-o", str(path)]) == 0
    assert path.stat().st_size
    if format in ("json", "html"):
        assert main(["report", str(path), str(REPORT), "-o", str(tmp_path / "x.html")]) == 1
        assert main(["report", str(path), "--format", "json"]) == 0
