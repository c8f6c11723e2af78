"""The predictions of mini-apps from their source that were kept before their runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

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
    for row in kept.get("measured", {}).get("runs", ()):
        (told,) = (
            prediction
            for prediction in kept["programs"][row["program"]]["predictions"]
            if (prediction["size"], prediction["split"]) == (row["size"], row["split"])
        )
        assert (row["seconds"], row["low"], row["high"]) == (
            told["seconds"],
            told["low"],
            told["high"],
        ), row
