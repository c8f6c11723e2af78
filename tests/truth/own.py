"""Truths that the model is right about: its own predictions, with constants drawn inside intervals.

What a calibration has to find is known here, and nothing stands in its way but noise.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import popmodel
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines.profile import Profile
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import nominal
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.runs.measurement import MeasuredRow
from truth.drawn import Stated
from truth.given import write
from truth.truths import Truth, truth

_END = 1.6448536269514715


@dataclass(frozen=True)
class Own:
    """A program as its signature says, but for what its intervals leave open."""

    stated: Truth  # Signature and profile as people have them; its constants are the true ones
    # What the predictions that stand for runs are made with.
    signature: Signature
    profile: Profile
    constants: dict[str, float]  # Right values of the constants of the signature

    def run(self, processes: int, threads: int, repeat: int = 0) -> MeasuredRow:
        """Return a run: a prediction with noise."""
        name = f"{self.stated.name} {processes} {threads} {repeat}"
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        study = Study(self.signature, self.profile, {}, 0, 0)
        made = study.outcome(study.admit(processes, threads), study.sources()).modelled
        family = load_families()[MAIN_FAMILY].evaluate_samples(made.aggregates, made.absent)
        noise = math.exp(self.stated.run_cv * rng.standard_normal())
        return MeasuredRow(
            f"run-{processes}x{threads}.prv",
            processes,
            threads,
            float(f"{nominal(made.runtime) * noise:.5g}"),
            {MAIN_FAMILY: {name: nominal(one) for name, one in family.values.items()}},
            parameters={"N": float(self.stated.program.cells), "steps": 50.0},
        )

    def training(self) -> list[MeasuredRow]:
        """Runs of the six configurations that a person would measure."""
        return [self.run(*size) for size in self.stated.training()]


def own(seed: int, folder: Path) -> Own:
    """Draw a truth; its files are written to a folder."""
    one = truth("shared", seed)
    rng = np.random.default_rng([7, seed])
    stated = replace(one, program=redrawn(one.program, rng), machine=redrawn(one.machine, rng))
    right = stated.informed()
    paths = write(right, folder)
    program = stated.program
    constants = {"serial_cycles": program.serial.true}
    for number, loop in enumerate(program.loops):
        constants[f"cycles_{number}"] = loop.cycles.true
        constants[f"traffic_{number}"] = loop.traffic.true
    return Own(
        stated,
        popmodel.load_signature(paths[0]),
        popmodel.load_machine(paths[1]),
        constants,
    )


def redrawn(value: Any, rng: np.random.Generator) -> Any:
    """Return a value in which all that is stated, however deep, is true as often as it says."""
    if isinstance(value, Stated):
        if value.low <= 0 or value.low == value.high:
            return replace(value, true=value.value)
        score = float(np.clip(rng.standard_normal(), -2.3, 2.3)) / _END
        end = value.high if score > 0 else value.low
        return replace(value, true=value.value * (end / value.value) ** abs(score))
    if isinstance(value, tuple):
        return tuple(redrawn(one, rng) for one in value)
    if isinstance(value, dict):
        return {name: redrawn(one, rng) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: redrawn(getattr(value, one.name), rng) for one in fields(value)}
        )
    return value
