"""The predictions of mini-apps from their source that were kept before their runs."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from popmodel.model.symbols import SOURCE

FOLDER = Path(__file__).parents[2] / "examples" / "validation"


def test_predictions_and_drafts_are_those_that_were_kept() -> None:
    kept = json.loads((FOLDER / "source_predictions.json").read_text())
    text = json.dumps(kept["programs"], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == kept["sha256"]
    files = {name: program["draft"] for name, program in kept["programs"].items()}
    for name, digest in {f"{name}.toml": digest for name, digest in files.items()}.items():
        assert hashlib.sha256((FOLDER / "drafts" / name).read_bytes()).hexdigest() == digest, name
    machine = hashlib.sha256((FOLDER / "drafts" / "machine.json").read_bytes()).hexdigest()
    assert machine == kept["machine"]
    predicted = {
        (program, row["size"], row["split"]): (row["seconds"], row["low"], row["high"])
        for program, told in kept["programs"].items()
        for row in told["predictions"]
    }
    runs = kept["measured"]["runs"]
    for run in runs:
        told = predicted[run["program"], run["size"], run["split"]]
        assert (run["seconds"], run["low"], run["high"]) == told, run
    longer = [run["median"] / run["seconds"] for run in runs]
    page = (FOLDER / "README.md").read_text()
    assert not any(run["low"] <= run["median"] <= run["high"] for run in runs)
    assert f"by a factor of {min(longer):.1f} to {max(longer):.1f}, and no interval held" in page
    error = statistics.median(1 - run["seconds"] / run["median"] for run in runs)
    assert f"the median error is {100 * error:.0f} %" in page.replace("\n", " ")


def test_the_law_of_work_from_source_has_the_error_that_was_measured() -> None:
    runs = json.loads((FOLDER / "source_predictions.json").read_text())["measured"]["runs"]
    off = defaultdict(list)
    for run in runs:
        off[run["program"]].append(math.log(run["median"] / run["seconds"]))
    whole = statistics.mean(statistics.mean(x * x for x in logs) for logs in off.values())
    own = sum(statistics.variance(logs) * (len(logs) - 1) for logs in off.values())
    assert math.sqrt(whole) == pytest.approx(SOURCE.spread, abs=0.005)
    assert own / (len(runs) - len(off)) / whole == pytest.approx(SOURCE.own, abs=0.005)
