"""A small program with three constants, and runs of it that the model itself makes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from model.demo import flat

from popmodel.efficiency.hierarchy import load_families
from popmodel.fit.problem import Chosen, Problem, problem
from popmodel.fit.scores import CalibrationFit, fit, noise_of, relevant
from popmodel.machines.profile import Profile
from popmodel.model import signatures
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import Calibration, nominal
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.runs.measurement import MeasuredRow

MACHINE = flat()
SPLITS = ((1, 1), (4, 1), (2, 4), (8, 1), (1, 8), (16, 2))
CONSTANTS = {"rate": 2e-9, "master": 2e-4, "size": 1e5}
NOISE = 0.02

BODY = """
[[program]]
loop = { count = 50 }
[[program.body]]
parallel = { trip = "N / P", seconds = "rate" }
[[program.body]]
serial = { trip = "1", seconds = "master / P" }
[[program.body]]
collective = { op = "allreduce", bytes = "size" }
"""


def text(body: str = BODY, factor: float = 2.0, **constants: float) -> str:
    """A signature whose constants are known by some factor to either side."""
    stated = "".join(
        f"{name} = {{ value = {one!r}, low = {one / factor!r}, high = {one * factor!r} }}\n"
        for name, one in (constants or CONSTANTS).items()
    )
    head = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n[params]\nN = 1e6\n'
    return f"{head}[constants]\n{stated}{body}"


@cache
def program(body: str = BODY, factor: float = 2.0, **constants: float) -> Signature:
    return signatures.from_text(text(body, factor, **constants))


def drawn(rng: np.random.Generator, signature: Signature) -> dict[str, float]:
    """Constants drawn inside their intervals, as often as these say."""
    return {
        name: float(one.value * (one.high / one.value) ** (rng.standard_normal() / 1.6448536))
        for name, one in signature.constants.items()
        if one.high is not None
    }


def runs(
    signature: Signature,
    constants: Mapping[str, float],
    splits: Sequence[tuple[int, int]] = SPLITS,
    rng: np.random.Generator | None = None,
    errors: Mapping[str, float] | None = None,
    noise: float = NOISE,
    metrics: bool = False,
    profile: Profile = MACHINE,
) -> list[MeasuredRow]:
    """Predictions that stand for runs.

    With noise where there is a generator; ``errors`` are scores, of laws and of terms, that the
    calibrated signature may carry.
    """
    scores = dict(errors or {})
    count = len(scores)
    known = Calibration(
        profile.name,
        profile.digest,
        tuple(scores),
        np.array(list(scores.values())),
        np.zeros((count, count)),
    )
    plain = replace(signature, calibration=None)
    study = Study(plain, profile, dict(constants), 0, 0)
    found = []
    for number, split in enumerate(splits):
        placement = study.admit(*split)
        points = {name: np.array([value]) for name, value in scores.items()}
        source = Chosen(study.quantities, points, 1, study.factors, known)
        made = study.run(placement, source if count else study.sources()).modelled
        values = load_families()[MAIN_FAMILY].evaluate_samples(made.aggregates, made.absent).values
        factor = 1.0 if rng is None else float(np.exp(noise * rng.standard_normal()))
        found.append(
            MeasuredRow(
                f"run-{number}.prv",
                *split,
                nominal(made.runtime) * factor,
                {MAIN_FAMILY: {name: nominal(one) for name, one in values.items()}}
                if metrics
                else {},
            )
        )
    return found


def ready(
    signature: Signature, given: Sequence[MeasuredRow], profile: Profile = MACHINE
) -> Problem:
    """Runs beside the model, ready for a fit."""
    first = problem(signature, profile, given, {})
    return relevant(first, noise_of(first))


def fitted(
    signature: Signature, given: Sequence[MeasuredRow], profile: Profile = MACHINE
) -> CalibrationFit:
    one = ready(signature, given, profile)
    return fit(one, noise_of(one))
